"""All actions at work on the same pods at once: plain pods, gangs, Kueue's and Volcano's queues, with faults.

The world here binds late, refuses some decisions, loses pods and nodes, and a plugin or admission itself raises at
random calls. Whatever happens: nobody is evicted who does not run, nobody twice, nothing is tried out any more when a
cycle is over, nothing is assumed without a decision, and quota is held by those who were given it.
"""

import importlib
import inspect
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from raising import Injector, check_quota, check_stages

import mooring.state
from mooring.actions.admit.action import Admit as AdmitAction
from mooring.assembly import assemble
from mooring.config.settings import Settings
from mooring.engine.plugin import Depends, Filter, Mask, Permit, Reserve, Score, Scores
from mooring.engine.verdict import Rejection
from mooring.engine.verdict import Wait as NotYet
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.api.volcano_queue import Queue, QueueSpec
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend, Wait
from mooring.model.events import (
    Event,
    Failed,
    GangSeen,
    NodeLost,
    NodeSeen,
    ObjectSeen,
    PodLost,
    PodSeen,
    WorkloadLost,
    WorkloadSeen,
)
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import GANG_NAME, PLAIN_KIND
from mooring.model.keys import PodKey
from mooring.state.pods import UNBOUND
from mooring.state.workloads import Stage
from mooring.testing.builders import make_node, make_pod
from mooring.testing.queueing_builders import make_flavor, make_group, make_local_queue, make_queue, make_quota
from mooring.testing.random_clusters import Choose, one_of, seeded
from mooring.testing.tenant_builders import make_job

QUEUE_NAME = "scheduling.volcano.sh/queue-name"
NODE_CPU = 4


class Faulty(Filter, Score, Reserve, Permit):
    """Raises at random calls, as a plugin with a bug does; and permits some pods later, or not at all."""

    depends_on = Depends.NODE_USAGE
    raises: ClassVar[Callable[[], bool]] = staticmethod(lambda: False)
    permits: ClassVar[Callable[[], Rejection | NotYet | None]] = staticmethod(lambda: None)

    def _perhaps(self, point: str) -> None:
        if type(self).raises():
            raise RuntimeError(f"raised in {point}")

    def filter(self, pod: Any, nodes: Any) -> Mask:
        self._perhaps("filter")
        return np.ones(len(nodes), np.bool_)

    def score(self, pod: Any, nodes: Any) -> Scores:
        self._perhaps("score")
        return np.zeros(len(nodes), np.int64)

    def reserve(self, pod: Any, cluster: Any, row: int, *more: Any) -> list[Event]:
        self._perhaps("reserve")
        return []

    def unreserve(self, pod: Any, cluster: Any, row: int, *more: Any) -> list[Event]:
        self._perhaps("unreserve")
        return []

    def permit(self, pod: Any, cluster: Any, row: int, *more: Any) -> Rejection | NotYet | None:
        self._perhaps("permit")
        return type(self).permits()


class World:
    """What is really so, and what becomes of decisions."""

    def __init__(self, choose: Choose, *, with_faults: bool, with_permits: bool = False) -> None:
        self.choose = choose
        self.with_faults = with_faults
        self.happened = Counter[type[Decision]]()
        """What was decided, by kind."""
        answers = (None, None, None, NotYet(1), NotYet(500), Rejection(("no",)))
        Faulty.permits = staticmethod(lambda: one_of(choose, answers) if with_permits else None)
        Faulty.raises = staticmethod(lambda: with_faults and not choose(25))
        self.scheduler = assemble(Settings(), extra_plugins=[Faulty]).new_scheduler()
        self.now = 1000.0
        self.count = 0
        self.pods: dict[str, Pod] = {}
        """Every pod there is, with its node if it has one."""
        self.leaving: dict[str, int] = {}
        """Those that were told to go, and for how many more cycles they stay."""
        self.jobs: dict[str, Any] = {}
        self.nodes = [f"n{number}" for number in range(2 + choose(3))]
        team = make_group(default=make_quota(6))
        queues = [
            make_queue("one", team, cohort="all", within_queue="LowerPriority", reclaim="Any"),
            make_queue("two", team, cohort="all", within_queue="LowerPriority", reclaim="Any"),
        ]
        shared = [Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(weight=1)) for name in ("rich", "poor")]
        locals_ = [make_local_queue("one"), make_local_queue("two")]
        self.scheduler.handle(
            *(NodeSeen(make_node(name, cpu=NODE_CPU)) for name in self.nodes),
            ObjectSeen(make_flavor("default")),
            *(ObjectSeen(queue) for queue in queues),
            *(ObjectSeen(queue) for queue in locals_),
            *(ObjectSeen(queue) for queue in shared),
        )

    # What happens.

    def happen(self) -> None:
        kinds = (self._plain, self._plain, self._shared, self._gang, self._job, self._end, self._lose_node)
        for event in one_of(self.choose, kinds)():
            self.scheduler.handle(event)

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"

    def _add(self, pod: Pod) -> PodSeen:
        self.pods[pod.key] = pod
        return PodSeen(pod)

    def _plain(self) -> Iterator[Event]:
        yield self._add(make_pod(self._name("plain"), cpu=1 + self.choose(3), priority=10 * self.choose(4)))

    def _shared(self) -> Iterator[Event]:
        for _ in range(1 + self.choose(4)):
            queue = one_of(self.choose, ("rich", "poor"))
            yield self._add(make_pod(self._name(queue), cpu=1 + self.choose(2), annotations={QUEUE_NAME: queue}))

    def _gang(self) -> Iterator[Event]:
        name, size = self._name("gang"), 2 + self.choose(3)
        queue = one_of(self.choose, ("", "", "poor"))
        yield GangSeen(
            Gang(gang_key(PLAIN_KIND, "default", name), f"default/{name}", size, queue=queue, priority=self.choose(30))
        )
        for number in range(size):
            yield self._add(make_pod(f"{name}-{number}", cpu=1 + self.choose(2), annotations={GANG_NAME: name}))

    def _job(self) -> Iterator[Event]:
        queue = one_of(self.choose, ("one", "two"))
        name = self._name("job")
        job = make_job(name, queue=queue, pods=1 + self.choose(3), cpu=1 + self.choose(3), priority=self.choose(3))
        self.jobs[name] = job
        for pod in job.pods:
            yield self._add(pod)
        yield WorkloadSeen(job.queued)

    def _end(self) -> Iterator[Event]:
        """Somebody is deleted, or succeeds; now and then a whole job goes."""
        if self.jobs and not self.choose(3):
            job = self.jobs.pop(one_of(self.choose, sorted(self.jobs)))
            yield WorkloadLost(job.key)
            gone = [pod.key for pod in job.pods if pod.key in self.pods]
        else:
            gone = [one_of(self.choose, sorted(self.pods))] if self.pods else []
        for key in gone:
            pod = self._forget(key)
            ends = pod.spec.node_name and self.choose(2)
            yield PodSeen(replace(pod, status=PodStatus(phase="Succeeded"))) if ends else PodLost(key)

    def _lose_node(self) -> Iterator[Event]:
        if self.choose(3) or len(self.nodes) == 1:
            return
        name = self.nodes.pop(self.choose(len(self.nodes)))
        yield NodeLost(name)
        for key in [key for key, pod in self.pods.items() if pod.spec.node_name == name]:
            self._forget(key)
            yield PodLost(key)
        if self.choose(2):
            self.nodes.append(name)
            yield NodeSeen(make_node(name, cpu=NODE_CPU))

    def _forget(self, key: str) -> Pod:
        self.leaving.pop(key, None)
        return self.pods.pop(key)

    # A cycle.

    def cycle(self) -> None:
        self.now += one_of(self.choose, (1.0, 15.0, 400.0))
        known = dict(self.pods)
        at_most = one_of(self.choose, (1000, 1000, 2))

        def work() -> list[Decision]:
            return self.scheduler.cycle(self.now, at_most=at_most)

        is_faulty = self.with_faults and not self.choose(4)
        decisions = Injector(1 + self.choose(400)).run(work) if is_faulty else work()
        self.happened.update(type(decision) for decision in decisions)
        self._check(decisions, known)
        self._check_quota()
        for decision in decisions:
            self.scheduler.handle(*self._carry_out(decision))
        for key in list(self.leaving):
            self.leaving[key] -= 1
            if self.leaving[key] < 0:
                self.scheduler.handle(*self._go(key))

    def _carry_out(self, decision: Decision) -> Iterator[Event]:
        if isinstance(decision, Bind):
            if decision.pod not in self.pods:
                return
            if decision.node not in self.nodes or not self.choose(12):
                yield Failed(decision, "refused")
                return
            # What admission does to a pod of a job is part of what is bound.
            pod = self.scheduler.cluster.pods.records[PodKey(decision.pod)].pod
            self.pods[decision.pod] = replace(pod, spec=replace(pod.spec, node_name=decision.node))
            yield PodSeen(self.pods[decision.pod])
        elif isinstance(decision, Evict) and decision.pod in self.pods:
            never_ran = not self.pods[decision.pod].spec.node_name  # it was to be bound a moment ago, which failed
            if never_ran or not self.choose(10):
                yield Failed(decision, "refused")
            else:
                self.leaving[decision.pod] = self.choose(4)

    def _go(self, key: str) -> Iterator[Event]:
        """A pod that was evicted is gone; its controller makes another one, if it has one."""
        pod = self._forget(key)
        yield PodLost(key)
        if self.choose(3):
            self.count += 1
            job = self.jobs.get(pod.metadata.name.rpartition("-")[0])
            again = next((given for given in job.pods if given.key == key), pod) if job is not None else pod
            spec = replace(again.spec, node_name="")
            metadata = replace(again.metadata, uid=f"{key}#{self.count}")
            yield self._add(replace(again, metadata=metadata, spec=spec, status=PodStatus(phase="Pending")))

    # What must be so.

    def _check(self, decisions: list[Decision], known: dict[str, Pod]) -> None:
        cluster = self.scheduler.cluster
        assert not cluster.is_trying, "something is still being tried out"
        bound, told = set[str](), set(self.leaving)
        for decision in decisions:
            if isinstance(decision, Bind):
                assert decision.pod not in bound, f"{decision.pod} is bound twice"
                assert not known[decision.pod].spec.node_name, f"{decision.pod} runs, and is bound again"
                bound.add(decision.pod)
            elif isinstance(decision, Evict):
                runs = known[decision.pod].spec.node_name or decision.pod in bound
                assert runs, f"{decision.pod} is evicted for {decision.preemptor!r}, and does not run"
                assert decision.pod not in told, f"{decision.pod} is evicted again, for {decision.preemptor!r}"
                told.add(decision.pod)
        nominated = {held.key for _, plan in cluster.plans() for held in plan.holds}
        for record in cluster.pods.records.values():
            if record.nominated:
                assert record.key in nominated, f"{record.key} holds room, and nobody knows for what"
                assert record.key not in bound, f"{record.key} holds room, and is bound"
            elif record.assumed and record.row != UNBOUND:
                assert record.key in bound, f"{record.key} is assumed on {record.node_name} without a decision"
            if record.leaving is not None:
                assert record.key in told, f"{record.key} is leaving, and was not told"
        self._check_room(bound, decisions)

    def _check_quota(self) -> None:
        """Quota is held by those who were given it, and pods of jobs run only with it."""
        admit = next(action for action in self.scheduler.actions if isinstance(action, AdmitAction))
        if admit.lifecycle is None:
            return
        check_quota(admit.lifecycle.admission)
        check_stages(admit.lifecycle)
        for job in self.jobs.values():
            record = admit.lifecycle.workloads.get(job.queued.workload.key)
            if record is None or record.is_holding or record.stage is Stage.DONE:
                continue
            records = [self.scheduler.cluster.pods.records.get(PodKey(pod.key)) for pod in job.pods]
            running = [found.key for found in records if found is not None and found.row != UNBOUND]
            assert not running, f"{record.key} is {record.stage}, and {running} run"

    def _check_room(self, bound: set[str], decisions: list[Decision]) -> None:
        """No node has more on it than it holds, those included that are to be bound and those that still leave."""
        cluster = self.scheduler.cluster
        used = dict.fromkeys(cluster.nodes.row_of, 0)
        for record in cluster.pods.records.values():
            if record.row != UNBOUND and not record.nominated:
                used[record.node_name] += record.shape.requests.get("cpu", 0)
        over = {name: amount for name, amount in used.items() if amount > 1000 * NODE_CPU}
        assert not over, f"{over} are over-allocated by {sorted(bound)}"


@pytest.mark.faults
@given(seed=st.integers(0, 1_000_000), with_faults=st.booleans(), with_permits=st.booleans())
def test_actions_that_meet_the_same_pods_agree(seed: int, with_faults: bool, with_permits: bool) -> None:
    choose = seeded(seed)
    world = World(choose, with_faults=with_faults, with_permits=with_permits)

    for _ in range(14):
        for _ in range(choose(4)):
            world.happen()
        world.cycle()
        if not with_faults:
            assert not world.scheduler.take_faults()


@pytest.mark.faults
@given(seed=st.integers(0, 1_000_000))
def test_whoever_met_a_fault_is_tried_again(seed: int) -> None:
    choose = seeded(seed)
    world = World(choose, with_faults=True, with_permits=True)
    for _ in range(6):
        for _ in range(choose(4)):
            world.happen()
        world.cycle()

    Faulty.raises, Faulty.permits = staticmethod(lambda: False), staticmethod(lambda: None)
    for _ in range(6):
        world.now += 400.0
        world.cycle()

    queue, cluster = world.scheduler.queue, world.scheduler.cluster
    assert not [parked for parked in queue.parked() if parked.is_fault]
    waiting = {key for key, pod in world.pods.items() if not pod.spec.node_name}
    lost = [key for key in sorted(waiting) if key not in queue and cluster.pods.records[PodKey(key)].row == UNBOUND]
    assert not lost, f"{lost} wait, and nobody knows of them"


@pytest.mark.faults
def test_whatever_can_be_decided_is_decided_here() -> None:
    happened, faults = Counter[type[Decision]](), Counter[str]()
    for seed in range(20):
        choose = seeded(seed)
        world = World(choose, with_faults=seed % 2 == 0, with_permits=seed % 3 == 0)
        for _ in range(14):
            for _ in range(choose(4)):
                world.happen()
            world.cycle()
            faults.update(type(fault.error).__name__ for fault in world.scheduler.take_faults())
        happened += world.happened

    missing = [kind.__name__ for kind in (Admit, Suspend, Bind, Evict, Wait) if happened[kind] < 5]
    assert not missing, f"{missing} hardly ever happen: {happened}"
    assert faults["PluginError"] >= 5 and faults["Injected"] >= 5, f"hardly anything raises: {faults}"


def classes_of_the_state() -> Iterator[type]:
    for found in pkgutil.walk_packages(mooring.state.__path__, "mooring.state."):
        module = importlib.import_module(found.name)
        yield from (each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == found.name)


def guard(cls: type, writers: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Note who sets attributes of these objects from outside the room of the state, under whatever name."""
    plain: Any = cls.__setattr__

    def set_attribute(self: object, name: str, value: object) -> None:
        frame = sys._getframe(1)
        while frame.f_code is set_attribute.__code__ and frame.f_back is not None:
            frame = frame.f_back
        room = frame.f_globals["__name__"]
        # A class that builds upon one of the state's sets its own attributes.
        if not room.startswith("mooring.state") and frame.f_locals.get("self") is not self:
            writers.add(f"{room}:{frame.f_lineno} {cls.__name__}.{name}")
        plain(self, name, value)

    monkeypatch.setattr(cls, "__setattr__", set_attribute)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_only_the_state_changes_the_state(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: set[str] = set()
    guarded = list(classes_of_the_state())
    for cls in guarded:
        guard(cls, writers, monkeypatch)
    choose = seeded(seed)
    world = World(choose, with_faults=seed % 2 == 0, with_permits=seed % 3 == 0)
    for _ in range(14):
        for _ in range(choose(4)):
            world.happen()
        world.cycle()

    assert len(guarded) > 50
    assert writers == set()


def test_a_write_from_outside_the_state_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    writers: set[str] = set()
    world = World(seeded(0), with_faults=False, with_permits=False)
    guard(type(world.scheduler.cluster), writers, monkeypatch)
    world.scheduler.cluster.nodes_version += 1

    assert len(writers) == 1
