"""What holds for tenants' queues whatever happens: drawn stories through the whole cycle of the scheduler."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.admit.quota import NO_PARENT, UNLIMITED
from mooring.actions.admit.works import Stage
from mooring.config.queueing import PodsReady, QueueingSettings
from mooring.config.tenant_policy import TenantPolicy
from mooring.model.decisions import Admit, Bind, Decision, Suspend
from mooring.model.nodes import Node
from mooring.model.queue_labels import QUEUE_GATES
from mooring.model.queueing import (
    ANY,
    BEST_EFFORT_FIFO,
    HOLD_AND_DRAIN,
    LOWER_OR_NEWER_EQUAL_PRIORITY,
    LOWER_PRIORITY,
    NEVER,
    STRICT_FIFO,
    ClusterQueue,
    Cohort,
)
from mooring.state.pods import PodRecord
from mooring.testing.builders import make_node
from mooring.testing.queueing_builders import make_cohort, make_group, make_queue, make_quota
from mooring.testing.tenant_builders import Job, TenantWorld, make_job

Event: TypeAlias = Callable[[TenantWorld], None]


@dataclass(frozen=True)
class Submit:
    job: Job

    def __call__(self, world: TenantWorld) -> None:
        world.submit(self.job)


@dataclass(frozen=True)
class FinishPods:
    """So many of the pods that run finish, counted from somewhere among them."""

    start: int
    count: int

    def __call__(self, world: TenantWorld) -> None:
        running = world.running()
        chosen = dict.fromkeys(running[(self.start + n) % len(running)] for n in range(self.count)) if running else ()
        world.succeed(*(f"default/{name}" for name in chosen))


@dataclass(frozen=True)
class LetGo:
    """The pods that were evicted are gone at last."""

    def __call__(self, world: TenantWorld) -> None:
        world.let_go()


@dataclass(frozen=True)
class Pass:
    seconds: int

    def __call__(self, world: TenantWorld) -> None:
        world.now += self.seconds


@dataclass(frozen=True)
class Show:
    queue: ClusterQueue

    def __call__(self, world: TenantWorld) -> None:
        world.show(self.queue)


@dataclass(frozen=True)
class Story:
    queues: list[ClusterQueue]
    cohorts: list[Cohort]
    nodes: list[Node]
    settings: QueueingSettings
    policy: TenantPolicy
    steps: list[list[Event]]

    def begin(self) -> TenantWorld:
        world = TenantWorld(
            self.queues, cohorts=self.cohorts, nodes=self.nodes, settings=self.settings, policy=self.policy
        )
        world.finishes_evictions = False
        return world

    def play(self, world: TenantWorld, look: Callable[[list[Decision]], None] = lambda decisions: None) -> None:
        """Let everything happen, looking after every cycle."""
        for step in self.steps:
            for event in step:
                event(world)
            decisions = world.cycle()
            if world.action.desk is not None:
                look(decisions)


# Drawing.


@st.composite
def drawn_queue(draw: st.DrawFn, name: str, cohorts: list[Cohort], *, more: int = 0) -> ClusterQueue:
    cohort = draw(st.sampled_from([found.metadata.name for found in cohorts] or [""]))
    nominal = draw(st.integers(2, 8)) + more
    limits = st.none() | st.none() | st.integers(0, 4)
    quota = make_quota(
        nominal,
        borrowing_limit=draw(limits) if cohort else None,
        lending_limit=draw(st.none() | st.none() | st.integers(0, nominal)) if cohort else None,
    )
    reclaim = draw(st.sampled_from((NEVER, LOWER_PRIORITY, ANY, ANY)))
    return make_queue(
        name,
        make_group(default=quota),
        cohort=cohort,
        strategy=draw(st.sampled_from((STRICT_FIFO, BEST_EFFORT_FIFO))),
        within_queue=draw(st.sampled_from((NEVER, LOWER_PRIORITY, LOWER_PRIORITY, LOWER_OR_NEWER_EQUAL_PRIORITY))),
        reclaim=reclaim,
        borrow_policy=NEVER if reclaim == NEVER else draw(st.sampled_from((NEVER, LOWER_PRIORITY))),
        weight=draw(st.sampled_from((0, 1, 3))),
    )


def drawn_event() -> st.SearchStrategy[Event]:
    return st.one_of(
        st.builds(FinishPods, st.integers(0, 9), st.integers(1, 4)),
        st.builds(FinishPods, st.integers(0, 9), st.integers(1, 4)),
        st.just(LetGo()),
        st.builds(Pass, st.sampled_from((1, 200, 400))),
    )


@st.composite
def drawn_jobs(draw: st.DrawFn, names: list[str]) -> list[Job]:
    jobs = []
    for number in range(draw(st.integers(6, 14))):
        pods = draw(st.integers(1, 3))
        jobs.append(
            make_job(
                f"job-{number:02d}",
                queue=draw(st.sampled_from(names)),
                pods=pods,
                min_pods=draw(st.none() | st.none() | st.integers(1, pods)),
                cpu=draw(st.integers(1, 2)),
                # Later jobs are more urgent more often than not: else nobody would have to go.
                priority=draw(st.integers(0, 2)) + number // 4,
                second=number,
            )
        )
    return jobs


@st.composite
def stories(draw: st.DrawFn, *, stops: bool = False) -> Story:
    cohorts = [make_cohort("root"), make_cohort("branch", parent="root")][: draw(st.sampled_from((0, 1, 1, 2)))]
    names = [f"queue-{number}" for number in range(draw(st.integers(1, 3)))]
    queues = [draw(drawn_queue(name, cohorts)) for name in names]
    nodes = [make_node(f"node-{number}", cpu=draw(st.integers(4, 16))) for number in range(draw(st.integers(1, 3)))]
    pods_ready = draw(st.sampled_from((None, PodsReady(300, 100, backoff_limit=2), PodsReady(blocks_admission=True))))
    settings = QueueingSettings(fair_sharing=draw(st.booleans()), pods_ready=pods_ready)
    policy = TenantPolicy(
        hold_freed_room=draw(st.booleans()),
        check_placement=draw(st.sampled_from(("Never", "Never", "Never", "Always"))),
    )
    events: list[Event] = [Submit(job) for job in draw(drawn_jobs(names))]
    for place in draw(st.lists(st.integers(0, 40), min_size=8, max_size=24)):
        events.insert(place % (len(events) + 1), draw(drawn_event()))
    if stops:
        for name in names:
            changed = draw(drawn_queue(name, cohorts, more=draw(st.integers(0, 4))))
            changed.spec.stop_policy = draw(st.sampled_from((None, None, None, HOLD_AND_DRAIN)))
            events.insert(draw(st.integers(0, len(events))), Show(changed))
    cuts = sorted(draw(st.lists(st.integers(1, len(events)), min_size=4, max_size=12)))
    edges = [0, *cuts, len(events)]
    steps = [events[start:end] for start, end in pairwise(edges)]
    return Story(queues, cohorts, nodes, settings, policy, [*steps, [LetGo()], [LetGo()]])


# What is looked at.


def is_held(record: PodRecord) -> bool:
    return any(gate.name in QUEUE_GATES for gate in record.pod.spec.scheduling_gates or ())


def check_quota(world: TenantWorld) -> None:
    """No node of the tree uses more than it may, and usage is what those who hold quota add up to."""
    tree = world.admission.structure.tree
    recount = np.zeros_like(tree.usage)
    for holder in world.admission.ledger.holders():
        for column, amount in holder.usage.items():
            recount[holder.node, column] += amount
    for node in reversed(range(len(tree.nodes))):
        if tree.parent[node] != NO_PARENT:
            recount[tree.parent[node]] += np.maximum(0, recount[node] - tree.local[node])
    assert np.array_equal(tree.usage, recount)
    for node, described in enumerate(tree.nodes):
        assert (tree.usage[node] <= tree.potential[node]).all(), described.name
        if described.parent == NO_PARENT:
            assert (tree.usage[node] <= tree.subtree[node]).all(), described.name
        else:
            limited = tree.borrowing_limit[node] != UNLIMITED
            beyond = tree.usage[node] - tree.subtree[node]
            assert (beyond[limited] <= tree.borrowing_limit[node][limited]).all(), described.name


def check_pods(world: TenantWorld) -> None:
    """Of every work, as many pods were let go as were admitted and are left to do, or none; and no others run."""
    records, tenants = world.scheduler.cluster.pods.records, world.scheduler.cluster.tenants
    for key, work in world.desk.works.items():
        pods = [records[pod] for keys in work.queued.pods.values() for pod in keys if pod in records]
        free = [record for record in pods if not is_held(record)]
        if work.stage is Stage.ADMITTED:
            finished = tenants.finished_pods(key)
            for given_ in work.pod_sets:
                total = work.workload.spec.pod_sets[0].count
                assert len(free) == min(given_.count, total - finished.get(given_.name, 0)), key
        elif work.stage is Stage.LEAVING:
            assert all(record.node_name for record in free), key
        else:
            assert work.stage is Stage.DONE or not free, key


@given(stories())
def test_quota_is_never_exceeded_anywhere_in_the_hierarchy(story: Story) -> None:
    world = story.begin()

    story.play(world, lambda decisions: check_quota(world))


@given(stories(stops=True))
def test_the_pods_of_a_work_all_start_or_none_does(story: Story) -> None:
    world = story.begin()

    story.play(world, lambda decisions: check_pods(world))


@given(stories(stops=True))
def test_only_pods_of_admitted_works_are_bound(story: Story) -> None:
    world = story.begin()

    def look(decisions: list[Decision]) -> None:
        work_of = world.scheduler.cluster.tenants.work_of
        for found in decisions:
            if isinstance(found, Bind):
                assert world.desk.works[work_of[found.pod]].stage is Stage.ADMITTED

    story.play(world, look)


@given(stories(stops=True))
def test_the_same_events_give_the_same_decisions(story: Story) -> None:
    told: list[list[list[Decision]]] = [[], []]

    for decisions in told:
        story.play(story.begin(), decisions.append)

    assert told[0] == told[1]


@given(stories(stops=True))
def test_nobody_is_suspended_who_does_not_run_and_nobody_admitted_who_does(story: Story) -> None:
    world, holding = story.begin(), set[str]()

    def look(decisions: list[Decision]) -> None:
        for found in decisions:
            if isinstance(found, Admit):
                assert found.workload not in holding
                holding.add(found.workload)
            elif isinstance(found, Suspend):
                assert found.workload in holding
                holding.remove(found.workload)
        works = world.desk.works
        holding.difference_update(key for key in list(holding) if works[key].stage is Stage.DONE)
        assert holding == {key for key, work in works.items() if work.stage is Stage.ADMITTED}

    story.play(world, look)


@given(stories())
def test_nobody_passes_the_head_of_a_strict_queue(story: Story) -> None:
    world = story.begin()

    def look(decisions: list[Decision]) -> None:
        moved = {found.workload for found in decisions if isinstance(found, Suspend)}
        for found in decisions:
            line = world.admission.pending.lines[found.cluster_queue] if isinstance(found, Admit) else None
            if line is None or not line.queue.is_strict or not isinstance(found, Admit):
                continue
            holder = world.admission.holder(found.workload)
            if holder is not None and found.workload not in moved:
                for waiting in line.waiting():
                    assert waiting.key in moved or holder.applicant.queue_order < waiting.queue_order

    story.play(world, look)


@given(
    nominals=st.lists(st.integers(1, 8), min_size=2, max_size=4),
    wanted=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=4, max_size=14),
    holds=st.booleans(),
)
def test_with_reclaim_a_queue_gets_its_nominal_quota_whoever_borrows_it(
    nominals: list[int], wanted: list[tuple[int, int]], holds: bool
) -> None:
    queues = [
        make_queue(f"queue-{number}", make_group(default=make_quota(nominal)), cohort="all", reclaim=ANY)
        for number, nominal in enumerate(nominals)
    ]
    world = TenantWorld(queues, policy=TenantPolicy(hold_freed_room=holds))
    for number, (place, cpu) in enumerate(wanted):
        queue = f"queue-{place % len(queues)}"
        world.submit(make_job(f"job-{number:02d}", queue=queue, cpu=cpu, second=number))
        world.settle(most=100)

        structure = world.admission.structure
        for name, found in structure.queues.items():
            own = structure.tree.nominal_of(found.node, 0) - structure.tree.usage_of(found.node, 0)
            for applicant in world.admission.pending.lines[name].waiting():
                assert applicant.pod_sets[0].per_pod["cpu"] > own, (name, applicant.key)


@given(
    weights=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    pool=st.integers(6, 24),
    order=st.permutations(range(4)),
)
def test_shares_converge_with_fair_sharing(weights: list[int], pool: int, order: list[int]) -> None:
    """However late a queue comes, in the end nobody is more than one job ahead of anybody else."""
    empty = make_group(default=make_quota(0))
    queues = [
        make_queue(f"queue-{number}", empty, cohort="all", reclaim=ANY, weight=weight)
        for number, weight in enumerate(weights)
    ]
    world = TenantWorld(
        queues,
        cohorts=[make_cohort("all", make_group(default=make_quota(pool)))],
        settings=QueueingSettings(fair_sharing=True),
    )
    second = 0
    for number in (found for found in order if found < len(queues)):
        for _ in range(pool):
            second += 1
            world.submit(make_job(f"job-{second:03d}", queue=f"queue-{number}", second=second))
        world.settle(most=200)

    tree, nodes = world.admission.structure.tree, world.admission.structure.queues
    used = [tree.usage_of(nodes[f"queue-{number}"].node, 0) // 1000 for number in range(len(queues))]
    assert sum(used) == pool
    for first, weight in zip(used, weights, strict=True):
        for second_used, second_weight in zip(used, weights, strict=True):
            assert first / weight <= (second_used + 1) / second_weight
