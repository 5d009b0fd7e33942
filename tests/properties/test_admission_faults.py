"""Something raises anywhere in admission: quota stays with whom it was given to, and nobody is lost."""

from collections import Counter
from collections.abc import Iterator

import pytest
from raising import Injector, check_quota, check_stages

from mooring.config.queueing import QueueingSettings
from mooring.config.tenant_policy import ALWAYS, TenantPolicy
from mooring.model.api.kueue import BEST_EFFORT_FIFO, STRICT_FIFO, ClusterQueue
from mooring.model.decisions import Admit, Decision, Suspend
from mooring.model.events import Failed
from mooring.model.keys import PodKey
from mooring.state.pods import PodRecord
from mooring.state.workloads import Stage
from mooring.testing.builders import make_node
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.random_clusters import Choose, one_of, seeded
from mooring.testing.tenant_builders import Job, TenantWorld, make_job, replace_workload

POLICIES = (
    (QueueingSettings(), TenantPolicy()),
    (QueueingSettings(fair_sharing=True), TenantPolicy(hold_freed_room=True)),
    (QueueingSettings(fair_sharing=True), TenantPolicy(usage_half_life_seconds=600)),
    (QueueingSettings(), TenantPolicy(check_placement=ALWAYS, minimum_runtime_before_reclaim_seconds=5)),
)


class Story:
    """Jobs come, finish and go, queues change, the world refuses decisions; and what the driver was told."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.strategy = one_of(choose, (BEST_EFFORT_FIFO, BEST_EFFORT_FIFO, STRICT_FIFO))
        settings, policy = one_of(choose, POLICIES)
        self.world = TenantWorld(
            [self._queue("one", 6), self._queue("two", 6)],
            nodes=[make_node("node", cpu=16, pods=1000)],
            settings=settings,
            policy=policy,
        )
        self.jobs: dict[str, Job] = {}
        self.told: dict[str, str] = {}
        """By workload, what the driver was told last: to start it, or to stop it."""
        self.count = 0

    def _queue(self, name: str, cpu: int) -> ClusterQueue:
        group = make_group(default=make_quota(cpu))
        return make_queue(
            name, group, cohort="all", within_queue="LowerPriority", reclaim="Any", strategy=self.strategy
        )

    def happen(self) -> None:
        one_of(self.choose, (self._come, self._come, self._come, self._go, self._finish, self._change, self._refuse))()

    def _come(self) -> None:
        self.count += 1
        job = make_job(
            f"job-{self.count}",
            queue=one_of(self.choose, ("one", "two")),
            pods=1 + self.choose(3),
            cpu=1 + self.choose(3),
            priority=self.choose(3),
            second=self.count,
        )
        self.jobs[job.key] = job
        self.world.submit(job)

    def _go(self) -> None:
        if self.jobs:
            job = self.jobs.pop(one_of(self.choose, sorted(self.jobs)))
            self.told.pop(job.key, None)
            self.world.delete(job)

    def _running(self, job: Job) -> Iterator[PodRecord]:
        for pod in job.pods:
            record = self.world.scheduler.cluster.pods.records.get(PodKey(pod.key))
            if record is not None and record.node_name and record.leaving is None:
                yield record

    def _finish(self) -> None:
        running = sorted(record.key for job in self.jobs.values() for record in self._running(job))
        if running:
            self.world.succeed(one_of(self.choose, running))

    def _change(self) -> None:
        """A queue gets another quota, or somebody asks for a job to be stopped or to go on."""
        if self.choose(2) or not self.jobs:
            self.world.show(self._queue(one_of(self.choose, ("one", "two")), 3 + self.choose(6)))
            return
        job = self.jobs[one_of(self.choose, sorted(self.jobs))]
        spec = type(job.workload.spec)(
            **{name: getattr(job.workload.spec, name) for name in job.workload.spec.__struct_fields__}
        )
        spec.active = not spec.active
        self.jobs[job.key] = job._replace(queued=replace_workload(job.queued, spec=spec))
        self.world.see(self.jobs[job.key])

    def _refuse(self) -> None:
        if self.told and not self.choose(3):
            key = one_of(self.choose, sorted(self.told))
            decision = Admit(key, "", (), "") if self.told[key] == "start" else Suspend(key, "", "")
            self.world.scheduler.handle(Failed(decision, "refused"))

    def cycle(self, seconds: float, injector: Injector | None = None) -> None:
        def work() -> list[Decision]:
            return self.world.cycle(seconds)

        for decision in work() if injector is None else injector.run(work):
            if isinstance(decision, Admit) and not decision.pending_checks:
                self.told[decision.workload] = "start"
            elif isinstance(decision, Suspend):
                self.told[decision.workload] = "stop"

    # What must be so.

    def check(self) -> None:
        if self.world.action.lifecycle is None:
            return
        assert not self.world.scheduler.cluster.is_trying, "something is still being tried out"
        check_quota(self.world.admission)
        check_stages(self.world.lifecycle)
        for key, record in self.world.lifecycle.workloads.items():
            told, stage = self.told.get(key), record.stage
            if key not in self.jobs or key not in self.world.scheduler.cluster.tenants.workloads:
                continue
            if stage is Stage.ADMITTED:
                assert told == "start", f"{key} is admitted, and the driver was told to {told}"
            elif stage is not Stage.DONE:
                assert told != "start", f"{key} is {stage}, and the driver was told to start it"
            if not record.is_holding and stage is not Stage.DONE:
                running = [found.key for found in self._running(self.jobs[key])]
                assert not running, f"{key} is {stage}, and {running} run"


def run(seed: int) -> list[str]:
    """Let something raise in two cycles of a story; where that was."""
    choose = seeded(seed)
    story, first = Story(choose), 1 + choose(8)
    injectors = {
        number: Injector(1 + choose(one_of(choose, (30, 300, 1500)))) for number in (first, first + 1 + choose(2))
    }
    for number in range(12):
        for _ in range(choose(3)):
            story.happen()
        story.cycle(1.0, injectors.get(number))
        story.check()
    for _ in range(4):
        story.cycle(301.0)
        story.check()
    if story.world.action.lifecycle is not None:
        known = set(story.world.lifecycle.workloads)
        assert not [key for key in known if key in story.world.lifecycle.aside]
        assert known == set(story.jobs), "somebody is lost, or is not gone"
    return [injector.where for injector in injectors.values() if injector.where]


@pytest.mark.faults
def test_whatever_raises_in_admission_quota_stays_with_whom_it_was_given_to() -> None:
    where = Counter[str]()
    for seed in range(300):
        try:
            where.update(run(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error

    assert len(where) > 60, "too few places have raised"
    assert sum(where.values()) > 100
