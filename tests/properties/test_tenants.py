"""What holds for tenants' queues whatever happens: drawn stories through the whole cycle of the scheduler."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mooring.config.queueing import PodsReady, QueueingSettings
from mooring.config.tenant_policy import TenantPolicy
from mooring.model.api.kueue import (
    ANY,
    BEST_EFFORT_FIFO,
    HOLD_AND_DRAIN,
    LOWER_OR_NEWER_EQUAL_PRIORITY,
    LOWER_PRIORITY,
    NEVER,
    STRICT_FIFO,
    ClusterQueue,
    Cohort,
    QueuePreemption,
)
from mooring.model.api.kueue_labels import QUEUE_GATES
from mooring.model.api.nodes import Node
from mooring.model.api.pods import ResourceRequirements
from mooring.model.decisions import Admit, Bind, Decision, Suspend
from mooring.model.keys import PodKey, WorkloadKey
from mooring.state.pods import PodRecord
from mooring.state.quota_tree import NO_PARENT, UNLIMITED
from mooring.state.workloads import Stage
from mooring.testing.builders import make_node
from mooring.testing.queueing_builders import make_cohort, make_group, make_queue, make_quota
from mooring.testing.tenant_builders import Job, TenantWorld, make_job

Event: TypeAlias = Callable[[TenantWorld], None]


class Terse:
    """What is shown by its own words when something fails, not by all that it holds."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, repr=False)
class Submit(Terse):
    job: Job

    def __call__(self, world: TenantWorld) -> None:
        world.submit(self.job)

    def __repr__(self) -> str:
        spec = self.job.workload.spec
        (pods,) = spec.pod_sets
        cpu = (pods.template.spec.containers[0].resources or ResourceRequirements()).requests
        return f"Submit({self.job.key} to {spec.queue_name}: {pods.min_count}..{pods.count} x {cpu}, {spec.priority})"


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


@dataclass(frozen=True, repr=False)
class Show(Terse):
    queue: ClusterQueue

    def __call__(self, world: TenantWorld) -> None:
        world.show(self.queue)

    def __repr__(self) -> str:
        return f"Show({describe(self.queue)})"


@dataclass(frozen=True, repr=False)
class Story(Terse):
    queues: list[ClusterQueue]
    cohorts: list[Cohort]
    nodes: list[Node]
    settings: QueueingSettings
    policy: TenantPolicy
    steps: list[list[Event]]

    def __repr__(self) -> str:
        """Short enough to be read when something fails."""
        nodes = [(node.status.capacity or {})["cpu"] for node in self.nodes]
        cohorts = [(found.metadata.name, found.spec.parent_name) for found in self.cohorts]
        queues = [describe(queue) for queue in self.queues]
        return f"Story({queues}, {cohorts}, nodes of {nodes}, {self.settings}, {self.policy}, {self.steps})"

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
            if world.action.lifecycle is not None:
                look(decisions)


def describe(queue: ClusterQueue) -> str:
    spec = queue.spec
    (quota,) = (spec.resource_groups or [])[0].flavors[0].resources
    limits = f"{quota.nominal_quota}/{quota.borrowing_limit}/{quota.lending_limit}"
    preemption = spec.preemption or QueuePreemption()
    policies = f"{spec.queueing_strategy} {preemption.within_cluster_queue} {preemption.reclaim_within_cohort}"
    return f"{queue.metadata.name} in {spec.cohort_name!r}: {limits} {policies} {spec.stop_policy}"


# Drawing. Strategies are made once: making them costs more than drawing from them.

few = st.integers(0, 3)
nominals = st.integers(3, 8)
limits = st.sampled_from((None, None, None, 0, 1, 2, 3))
"""For what must be small to matter."""
reclaims = st.sampled_from((NEVER, LOWER_PRIORITY, ANY, ANY))
withins = st.sampled_from((NEVER, LOWER_PRIORITY, LOWER_PRIORITY, LOWER_OR_NEWER_EQUAL_PRIORITY))
strategies = st.sampled_from((STRICT_FIFO, BEST_EFFORT_FIFO))
weights_of_queues = st.sampled_from((0, 1, 3))
TIMEOUTS = PodsReady(300, 100, backoff_limit=2)
waiting_for_pods = st.sampled_from((None, TIMEOUTS, TIMEOUTS, PodsReady(blocks_admission=True)))
check_placements = st.sampled_from(("Never", "Never", "Never", "Always"))
job_shapes = st.tuples(few, st.integers(1, 3), limits, st.integers(1, 2), few)
in_between: st.SearchStrategy[Event] = st.one_of(
    st.builds(FinishPods, st.integers(0, 9), st.integers(1, 4)),
    st.sampled_from((LetGo(), Pass(1), Pass(200), Pass(400))),
)
events_in_between = st.lists(st.tuples(st.integers(0, 40), in_between), min_size=6, max_size=16)
node_sizes = st.lists(st.integers(4, 16), min_size=1, max_size=3)
cut_points = st.lists(st.integers(1, 30), min_size=4, max_size=10)
stop_policies = st.sampled_from((None, None, None, HOLD_AND_DRAIN))
"""Queues that change are mostly those that go on."""


@st.composite
def drawn_queue(draw: st.DrawFn, name: str, cohort: str) -> ClusterQueue:
    nominal, reclaim = draw(nominals), draw(reclaims)
    borrowing, lending = (draw(limits), draw(limits)) if cohort else (None, None)
    quota = make_quota(
        nominal, borrowing_limit=borrowing, lending_limit=None if lending is None else min(lending, nominal)
    )
    return make_queue(
        name,
        make_group(default=quota),
        cohort=cohort,
        strategy=draw(strategies),
        within_queue=draw(withins),
        reclaim=reclaim,
        borrow_policy=LOWER_PRIORITY if reclaim == LOWER_PRIORITY else NEVER,
        weight=draw(weights_of_queues),
    )


def make_jobs(shapes: list[tuple[int, int, int | None, int, int]], names: list[str]) -> list[Job]:
    """Later jobs are more urgent more often than not: else nobody would have to go."""
    return [
        make_job(
            f"job-{number:02d}",
            queue=names[place % len(names)],
            pods=pods,
            min_pods=least if least and least < pods else None,
            cpu=cpu,
            priority=priority + number // 4,
            second=number,
        )
        for number, (place, pods, least, cpu, priority) in enumerate(shapes)
    ]


@st.composite
def stories(draw: st.DrawFn, *, changes: bool = False) -> Story:
    """With changes, queues get other quotas and policies on the way, and some are drained."""
    cohorts = [make_cohort("root"), make_cohort("branch", parent="root")][: draw(few)]
    names = [f"queue-{number}" for number in range(1 + draw(few) % 3)]
    above = {name: cohorts[draw(few) % len(cohorts)].metadata.name if cohorts else "" for name in names}
    queues = [draw(drawn_queue(name, above[name])) for name in names]
    nodes = [make_node(f"node-{number}", cpu=cpu) for number, cpu in enumerate(draw(node_sizes))]
    settings = QueueingSettings(fair_sharing=draw(st.booleans()), pods_ready=draw(waiting_for_pods))
    policy = TenantPolicy(hold_freed_room=draw(st.booleans()), check_placement=draw(check_placements))
    jobs = make_jobs(draw(st.lists(job_shapes, min_size=6, max_size=14)), names)
    events: list[Event] = [Submit(job) for job in jobs]
    for place, event in draw(events_in_between):
        events.insert(place % (len(events) + 1), event)
    for name in names if changes else ():
        changed = draw(drawn_queue(name, above[name]))
        changed.spec.stop_policy = draw(stop_policies)
        events.insert(draw(st.integers(0, len(events))), Show(changed))
    edges = [0, *sorted(min(cut, len(events)) for cut in draw(cut_points)), len(events)]
    steps = [events[start:end] for start, end in pairwise(edges)]
    return Story(queues, cohorts, nodes, settings, policy, [*steps, [LetGo()], [LetGo()]])


# What is looked at.


def is_held(record: PodRecord) -> bool:
    return any(gate.name in QUEUE_GATES for gate in record.pod.spec.scheduling_gates or ())


def check_quota(world: TenantWorld) -> None:
    """No node of the tree uses more than it may, and usage is what those who hold quota add up to."""
    tree = world.admission.structure.tree
    recount = np.zeros_like(tree.usage)
    for admitted in world.admission.ledger.admitted_workloads():
        for column, amount in admitted.usage.items():
            recount[admitted.node, column] += amount
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
    """Of every workload, as many pods were let go as were admitted and are left to do, or none; and no others run."""
    records, tenants = world.scheduler.cluster.pods.records, world.scheduler.cluster.tenants
    for key, workload in world.lifecycle.workloads.items():
        pods = [records[pod] for keys in workload.queued.pods.values() for pod in keys if pod in records]
        free = [record for record in pods if not is_held(record)]
        if workload.stage is Stage.ADMITTED:
            finished = tenants.finished_pods(key)
            for given_ in workload.pod_sets:
                total = workload.workload.spec.pod_sets[0].count
                assert len(free) == min(given_.count, total - finished.get(given_.name, 0)), key
        elif workload.stage is Stage.LEAVING:
            assert all(record.node_name for record in free), key
        else:
            assert workload.stage is Stage.DONE or not free, key


def check_bound(world: TenantWorld, decisions: list[Decision]) -> None:
    """Only pods of admitted workloads get nodes."""
    workload_of = world.scheduler.cluster.tenants.workload_of
    for found in decisions:
        if isinstance(found, Bind):
            assert world.lifecycle.workloads[workload_of[PodKey(found.pod)]].stage is Stage.ADMITTED


def check_decisions(world: TenantWorld, decisions: list[Decision], holding: set[str]) -> None:
    """Only those who have quota lose it, only those who have none get it, workloads are where that leaves them."""
    for found in decisions:
        if isinstance(found, Admit):
            assert found.workload not in holding
            holding.add(found.workload)
        elif isinstance(found, Suspend):
            assert found.workload in holding
            holding.remove(found.workload)
    workloads = world.lifecycle.workloads
    holding.difference_update([key for key in holding if workloads[WorkloadKey(key)].stage is Stage.DONE])
    assert holding == {key for key, workload in workloads.items() if workload.stage is Stage.ADMITTED}


def check_strict_queues(world: TenantWorld, decisions: list[Decision]) -> None:
    """Whoever was admitted in a strict queue comes before all who still wait there, but for those just sent back."""
    moved = {found.workload for found in decisions if isinstance(found, Suspend)}
    for found in decisions:
        if not isinstance(found, Admit) or found.workload in moved:
            continue
        line, admitted = (
            world.admission.pending.pending_queues[found.cluster_queue],
            world.admission.admitted(WorkloadKey(found.workload)),
        )
        if line.queue.is_strict and admitted is not None:
            for waiting in line.waiting():
                assert waiting.key in moved or admitted.pending.queue_order < waiting.queue_order


@given(stories())
def test_quota_is_never_exceeded_anywhere_and_nobody_passes_the_head_of_a_strict_queue(story: Story) -> None:
    world = story.begin()

    def look(decisions: list[Decision]) -> None:
        check_quota(world)
        check_strict_queues(world, decisions)

    story.play(world, look)


@given(stories(changes=True))
def test_the_pods_of_a_work_all_start_or_none_does_and_only_those_of_admitted_works_run(story: Story) -> None:
    world, holding = story.begin(), set[str]()

    def look(decisions: list[Decision]) -> None:
        check_pods(world)
        check_bound(world, decisions)
        check_decisions(world, decisions, holding)

    story.play(world, look)


@given(stories(changes=True))
def test_the_same_events_give_the_same_decisions(story: Story) -> None:
    told: list[list[list[Decision]]] = [[], []]

    for decisions in told:
        story.play(story.begin(), decisions.append)

    assert told[0] == told[1]


@given(
    quotas=st.lists(st.integers(1, 8), min_size=2, max_size=4),
    wanted=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=4, max_size=14),
    holds=st.booleans(),
)
def test_with_reclaim_a_queue_gets_its_nominal_quota_whoever_borrows_it(
    quotas: list[int], wanted: list[tuple[int, int]], holds: bool
) -> None:
    queues = [
        make_queue(f"queue-{number}", make_group(default=make_quota(nominal)), cohort="all", reclaim=ANY)
        for number, nominal in enumerate(quotas)
    ]
    world = TenantWorld(queues, policy=TenantPolicy(hold_freed_room=holds))
    for number, (place, cpu) in enumerate(wanted):
        queue = f"queue-{place % len(queues)}"
        world.submit(make_job(f"job-{number:02d}", queue=queue, cpu=cpu, second=number))
        world.settle(most=100)

        structure = world.admission.structure
        for name, found in structure.queues.items():
            own = structure.tree.nominal_of(found.node, 0) - structure.tree.usage_of(found.node, 0)
            for pending in world.admission.pending.pending_queues[name].waiting():
                assert pending.pod_sets[0].per_pod["cpu"] > own, (name, pending.key)


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
