"""What holds for admission whatever the queues, cohorts and workloads: drawn trees, drawn loads, drawn completions."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_tournament import PlainTournament

from mooring.actions.admit.cycle.cycle import Admission, CycleReport
from mooring.model.api.kueue import (
    ANY,
    BEST_EFFORT_FIFO,
    LOWER_OR_NEWER_EQUAL_PRIORITY,
    LOWER_PRIORITY,
    NEVER,
    STRICT_FIFO,
    TRY_NEXT_FLAVOR,
    ClusterQueue,
    Cohort,
    FlavorFungibility,
    ResourceGroup,
    ResourceQuota,
    Workload,
)
from mooring.model.keys import WorkloadKey
from mooring.state.quota_tree import NO_PARENT, UNLIMITED
from mooring.testing.queueing_builders import (
    hold,
    make_admission,
    make_cohort,
    make_group,
    make_pod_set,
    make_queue,
    make_quota,
    make_workload,
)

RESOURCES = ("cpu", "nvidia.com/gpu")
MOST_CYCLES = 8


@dataclass(frozen=True)
class Story:
    """A setting, and who finishes after each cycle (as indices into who holds quota then)."""

    queues: list[ClusterQueue]
    cohorts: list[Cohort]
    workloads: list[Workload]
    fair_sharing: bool
    finishing: list[list[int]] = field(default_factory=list)
    cycles: int = MOST_CYCLES

    def admission(self, *, is_reversed: bool = False, keeps_nominations: bool = True) -> Admission:
        workloads = self.workloads[::-1] if is_reversed else self.workloads
        return make_admission(
            self.queues,
            workloads,
            cohorts=self.cohorts,
            fair_sharing=self.fair_sharing,
            keeps_nominations=keeps_nominations,
        )

    def play(self, admission: Admission, *, cycles_to_stop: int = 0) -> Iterator[CycleReport]:
        """Run cycles, yielding after each; victims go so many cycles later, and some admitted workloads finish."""
        leaving: list[list[WorkloadKey]] = [[] for _ in range(cycles_to_stop)]
        for number in range(self.cycles):
            if not admission.pending.has_heads:
                return
            report = admission.run_cycle(1_000_000.0 + number)
            yield report
            leaving.append([found.workload for found in report.preempted])
            admission.finish_evictions([key for key in leaving.pop(0) if key in admission.ledger])
            admitted_workloads = sorted(admitted.pending.key for admitted in admission.ledger.admitted_workloads())
            chosen = self.finishing[number] if number < len(self.finishing) else []
            admission.finish(
                {admitted_workloads[index % len(admitted_workloads)]: None for index in chosen}
                if admitted_workloads
                else ()
            )


amounts = st.integers(0, 12)
scarce = st.integers(0, 3)
"""For what must be small to matter: limits, shares of quota that are kept."""
policies = st.sampled_from((NEVER, LOWER_PRIORITY, LOWER_OR_NEWER_EQUAL_PRIORITY))


@st.composite
def quotas(draw: st.DrawFn, resource: str, has_parent: bool) -> ResourceQuota:
    nominal = draw(st.integers(0, 8))
    limit = draw(st.none() | scarce) if has_parent else None
    lending = draw(st.none() | st.integers(0, nominal)) if has_parent else None
    return make_quota(nominal, resource=resource, borrowing_limit=limit, lending_limit=lending)


@st.composite
def groups(draw: st.DrawFn, has_parent: bool) -> ResourceGroup:
    names = draw(st.sampled_from((("spot",), ("spot",), ("reserved", "spot"), ("spot", "reserved"))))
    return make_group(**{name: [draw(quotas(resource, has_parent)) for resource in RESOURCES] for name in names})


@st.composite
def cohort_lists(draw: st.DrawFn) -> list[Cohort]:
    found: list[Cohort] = []
    for number in range(draw(st.integers(0, 3))):
        parent = draw(st.sampled_from(["", *(cohort.metadata.name for cohort in found)]))
        given_groups = [draw(groups(bool(parent)))] if draw(st.booleans()) else []
        weights: tuple[str | int, ...] = (0, 1, "2.5")
        weight = draw(st.sampled_from(weights))
        found.append(make_cohort(f"cohort-{number}", *given_groups, parent=parent, weight=weight))
    return found


@st.composite
def cluster_queues(draw: st.DrawFn, name: str, cohorts: list[Cohort]) -> ClusterQueue:
    known = [cohort.metadata.name for cohort in cohorts] or ["bare"]
    cohort = draw(st.sampled_from([*known, *known, ""]))  # on its own only now and then: cohorts are where it gets hard
    reclaim = draw(st.sampled_from((NEVER, LOWER_PRIORITY, ANY)))
    return make_queue(
        name,
        draw(groups(bool(cohort))),
        cohort=cohort,
        strategy=draw(st.sampled_from((STRICT_FIFO, BEST_EFFORT_FIFO))),
        within_queue=draw(policies),
        reclaim=reclaim,
        borrow_policy=NEVER if reclaim == NEVER else draw(st.sampled_from((NEVER, LOWER_PRIORITY))),
        priority_threshold=draw(st.none() | st.integers(0, 2)),
        fungibility=FlavorFungibility(when_can_borrow=draw(st.sampled_from(("", TRY_NEXT_FLAVOR)))),
        weight=draw(st.sampled_from((0, 1, 3))),
    )


@st.composite
def stories(draw: st.DrawFn) -> Story:
    cohorts = draw(cohort_lists())
    names = [f"queue-{number}" for number in range(draw(st.integers(2, 4)))]
    queues = [draw(cluster_queues(name, cohorts)) for name in names]
    workloads = []
    for number in range(draw(st.integers(6, 14))):
        pod_sets = []
        for index in range(draw(st.sampled_from((1, 1, 1, 2)))):
            count = draw(st.integers(1, 3))
            least = draw(st.none() | st.integers(1, count)) if index == 0 else None
            wanted = draw(st.sampled_from((RESOURCES[:1], RESOURCES[:1], RESOURCES[1:], RESOURCES)))
            requests = {resource: draw(scarce) for resource in wanted}
            pod_sets.append(make_pod_set(f"set-{index}", count=count, min_count=least, requests=requests))
        workloads.append(
            make_workload(
                f"workload-{number:02d}",
                *pod_sets,
                queue=draw(st.sampled_from(names)),
                priority=draw(st.integers(0, 3)),
                second=number,
            )
        )
    finishing = draw(st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=MOST_CYCLES))
    return Story(queues, cohorts, workloads, draw(st.booleans()), finishing)


@st.composite
def crowded_stories(draw: st.DrawFn) -> Story:
    """One flavor of one resource, and many who are alike: what was planned for one may do for the next."""
    story = draw(stories())
    for queue in story.queues:
        queue.spec.resource_groups = [make_group(spot=[make_quota(draw(st.integers(0, 4)), resource="cpu")])]
    names = [queue.metadata.name for queue in story.queues]
    workloads = [
        make_workload(
            f"workload-{number:02d}",
            make_pod_set("set", requests={"cpu": draw(st.integers(1, 2))}),
            queue=draw(st.sampled_from(names)),
            priority=draw(st.integers(0, 1)),
            second=number,
        )
        for number in range(draw(st.integers(12, 24)))
    ]
    finishing = draw(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=1), min_size=20, max_size=20))
    return replace(story, workloads=workloads, finishing=finishing, cycles=len(finishing))


@given(stories())
def test_quota_is_never_exceeded_anywhere_in_the_tree(story: Story) -> None:
    admission = story.admission()
    tree = admission.structure.tree

    for _ in story.play(admission):
        for node, described in enumerate(tree.nodes):
            if described.parent == NO_PARENT:
                assert (tree.usage[node] <= tree.subtree[node]).all()
            else:
                # Beyond what is its own by right, a node uses at most what it may borrow ...
                limits = tree.borrowing_limit[node]
                beyond = tree.usage[node] - tree.subtree[node]
                assert (beyond[limits != UNLIMITED] <= limits[limits != UNLIMITED]).all()
                # ... and what it keeps for itself never shows above it, so it cannot be lent.
                spilled = np.maximum(0, tree.usage[node] - tree.local[node])
                assert (spilled <= tree.usage[described.parent]).all()
            assert (tree.usage[node] <= tree.potential[node]).all()


@given(stories())
def test_usage_is_what_a_recount_of_the_holders_gives(story: Story) -> None:
    admission = story.admission()
    tree = admission.structure.tree

    for _ in story.play(admission):
        recount = np.zeros_like(tree.usage)
        for admitted in admission.ledger.admitted_workloads():
            for column, amount in admitted.usage.items():
                recount[admitted.node, column] += amount
        for node in reversed(range(len(tree.nodes))):
            if tree.parent[node] != NO_PARENT:
                recount[tree.parent[node]] += np.maximum(0, recount[node] - tree.local[node])
        assert np.array_equal(tree.usage, recount)


@given(stories())
def test_nobody_passes_the_head_of_a_strict_queue(story: Story) -> None:
    admission = story.admission()

    for report in story.play(admission):
        for found in report.admitted:
            line = admission.pending.pending_queues[found.queue]
            if line.queue.is_strict:
                order = admission.ledger.admitted(found.workload).pending.queue_order
                assert all(order < waiting.queue_order for waiting in line.in_order())
                assert not line.parked


@given(stories(), st.data())
def test_rollback_restores_identical_columns(story: Story, data: st.DataObject) -> None:
    admission = story.admission()
    for _ in story.play(admission):
        pass
    ledger, tree = admission.ledger, admission.structure.tree
    nodes = [queue.node for queue in admission.structure.queues.values()]
    usage, away = tree.usage.copy(), {node: list(ledger.admitted_in(node)) for node in nodes}
    with ledger.what_if():
        for _ in range(data.draw(st.integers(1, 4))):
            before, keeps = tree.usage.copy(), data.draw(st.booleans())
            with ledger.what_if() as trial:
                for admitted in list(ledger.admitted_workloads()):
                    if admitted in ledger.admitted_in(admitted.node) and data.draw(st.booleans()):
                        ledger.remove(admitted)
                        if data.draw(st.booleans()):
                            ledger.put_back(admitted)
                node = data.draw(st.sampled_from(nodes))
                ledger.add_usage(node, {column: data.draw(amounts) for column in tree.declared[node]})
                if keeps:
                    trial.keep()
            assert keeps or np.array_equal(tree.usage, before)

    assert np.array_equal(tree.usage, usage)
    assert {node: list(ledger.admitted_in(node)) for node in nodes} == away


@given(stories())
def test_the_same_input_gives_the_same_decisions_in_whatever_order_it_comes(story: Story) -> None:
    first = list(story.play(story.admission()))
    second = list(story.play(story.admission()))
    reversed_ = list(story.play(story.admission(is_reversed=True)))

    assert first == second
    assert [(found.heads, found.outcomes) for found in first] == [(found.heads, found.outcomes) for found in reversed_]


@given(stories() | crowded_stories(), st.integers(0, 3))
def test_nominations_that_are_kept_are_those_that_would_be_made(story: Story, cycles_to_stop: int) -> None:
    kept = story.play(story.admission(), cycles_to_stop=cycles_to_stop)
    made = story.play(story.admission(keeps_nominations=False), cycles_to_stop=cycles_to_stop)

    assert list(kept) == list(made)


@given(stories(), st.integers(0, 1))
def test_turns_by_fair_shares_are_those_of_a_tournament_before_each_of_them(story: Story, cycles_to_stop: int) -> None:
    fair = replace(story, fair_sharing=True)
    plain = fair.admission()
    tournament = PlainTournament(plain.ledger, plain._planning.shares)
    plain._planning = plain._planning._replace(order=tournament)

    assert list(fair.play(fair.admission(), cycles_to_stop=cycles_to_stop)) == list(
        fair.play(plain, cycles_to_stop=cycles_to_stop)
    )


@given(stories())
def test_no_cycle_leaves_a_trace_of_its_what_ifs(story: Story) -> None:
    admission = story.admission()
    tree = admission.structure.tree

    for report in story.play(admission):
        assert not tree.log.depth and not len(tree.log)
        keys = {found.workload for found in report.admitted}
        assert keys.isdisjoint(found.workload for found in report.preempted)
        for line in admission.pending:
            assert all(waiting.key not in admission.ledger for waiting in line.in_order())


@given(
    nominal=st.integers(1, 10),
    lender_share=st.data(),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    priorities=st.lists(st.integers(0, 5), min_size=8, max_size=8),
    fair_sharing=st.booleans(),
)
def test_a_queue_gets_its_nominal_quota_back_with_reclaim_any(
    nominal: int, lender_share: st.DataObject, sizes: list[int], priorities: list[int], fair_sharing: bool
) -> None:
    owner = make_queue("owner", make_group(default=make_quota(nominal)), cohort="both", reclaim=ANY)
    borrower = make_queue("borrower", make_group(default=make_quota(4)), cohort="both")
    borrowers = [
        make_workload(f"borrower-{number}", queue="borrower", cpu=size, priority=priorities[number], second=number)
        for number, size in enumerate(sizes)
    ]
    admission = make_admission([owner, borrower], borrowers, fair_sharing=fair_sharing)
    while admission.pending.has_heads:
        admission.run_cycle(1_000_000.0)
    wanted = lender_share.draw(st.integers(1, nominal))

    admission.add(make_workload("owner", queue="owner", cpu=wanted, second=100))
    for number in range(2):
        report = admission.run_cycle(1_000_001.0 + number)
        admission.finish_evictions([found.workload for found in report.preempted])

    assert "default/owner" in admission.ledger


@given(stories())
def test_what_was_admitted_elsewhere_counts_like_what_was_admitted_here(story: Story) -> None:
    """Stop at any time, write everything down, read it again: usage is the same."""
    admission = story.admission()
    for _ in story.play(admission):
        pass
    tree = admission.structure.tree
    column_names = tree.columns
    written = []
    for admitted in admission.ledger.admitted_workloads():
        queue = admission.structure.queue_of_node[admitted.node].name
        for column, amount in admitted.usage.items():
            flavor, resource = column_names[column]
            quantity = f"{amount}m" if resource == "cpu" else amount
            name = f"{admitted.pending.key.split('/')[1]}-{column}"
            written.append(hold(make_workload(name, queue=queue), queue, usage={resource: quantity}, flavor=flavor))

    again = make_admission(story.queues, written, cohorts=story.cohorts)

    assert np.array_equal(again.structure.tree.usage, tree.usage)
