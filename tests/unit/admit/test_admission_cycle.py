"""Cycles of admission as stories: who waits, who gets quota, who has to go."""

import pytest

from mooring.actions.admit.cycle.cycle import Admission, Admitted, Preempted
from mooring.model.api.kueue import (
    ANY,
    HOLD,
    LOWER_PRIORITY,
    STRICT_FIFO,
    TRY_NEXT_FLAVOR,
    FlavorFungibility,
)
from mooring.model.api.meta import LabelSelector
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Toleration
from mooring.model.decisions import PodSetFlavors
from mooring.model.keys import WorkloadKey
from mooring.testing.queueing_builders import (
    hold,
    make_admission,
    make_cohort,
    make_flavor,
    make_group,
    make_local_queue,
    make_pod_set,
    make_queue,
    make_quota,
    make_workload,
)

NOW = 1_800_000_000.0


def run(admission: Admission, cycles: int = 1) -> list[str]:
    """Run cycles, victims leaving at once; the workloads admitted, in order."""
    admitted: list[str] = []
    for _ in range(cycles):
        report = admission.run_cycle(NOW + admission.cycle)
        admitted += [found.workload.removeprefix("default/") for found in report.admitted]
        admission.finish_evictions([found.workload for found in report.preempted])
    return admitted


def test_a_workload_that_fits_is_admitted_with_its_flavor() -> None:
    admission = make_admission([make_queue()], [make_workload("train", cpu=4)])

    report = admission.run_cycle(NOW)

    pods = PodSetFlavors("main", 1, {"cpu": "default"})
    assert report.admitted == [Admitted(WorkloadKey("default/train"), "queue", (pods,))]
    assert report.outcomes == {"default/train": "QuotaReserved"}


def test_the_higher_priority_goes_first_then_the_older() -> None:
    workloads = [
        make_workload("young", second=9),
        make_workload("old", second=1),
        make_workload("urgent", priority=5, second=20),
    ]

    assert run(make_admission([make_queue()], workloads), cycles=3) == ["urgent", "old", "young"]


def test_a_strict_queue_waits_behind_its_head_and_a_best_effort_queue_does_not() -> None:
    workloads = [make_workload("large", cpu=8, second=1), make_workload("small", cpu=1, second=2)]
    holding = [hold(make_workload("running"), "queue", usage={"cpu": 5})]

    strict = make_admission([make_queue(strategy=STRICT_FIFO)], [*holding, *workloads])
    relaxed = make_admission([make_queue()], [*holding, *workloads])

    assert run(strict, cycles=3) == []
    assert run(relaxed, cycles=3) == ["small"]


def test_what_cannot_fit_takes_all_of_its_shape_with_it() -> None:
    twins = [make_workload(f"twin-{number}", cpu=11, second=number) for number in range(3)]
    admission = make_admission([make_queue()], twins)

    report = admission.run_cycle(NOW)

    assert report.outcomes == {"default/twin-0": "ExceedsMaxQuota"}
    assert sorted(admission.pending.pending_queues["queue"].parked) == [f"default/twin-{number}" for number in range(3)]
    assert not admission.pending.has_heads


def test_quota_that_is_freed_brings_back_what_is_parked_in_the_whole_tree() -> None:
    queues = [make_queue("left", cohort="both"), make_queue("right", cohort="both")]
    running = hold(make_workload("running", queue="left"), "left", usage={"cpu": 20})
    admission = make_admission(queues, [running, make_workload("waiting", queue="right", cpu=3)])
    assert run(admission) == []

    admission.finish([WorkloadKey("default/running")])

    assert run(admission) == ["waiting"]


def test_a_workload_in_the_wrong_namespace_is_parked_and_stays_so() -> None:
    queue = make_queue(namespaces=LabelSelector(match_labels={"team": "a"}))
    labels = {"default": {"team": "b"}}
    admission = make_admission([queue], [make_workload()], namespace_labels=labels)

    assert admission.run_cycle(NOW).outcomes == {"default/workload": "Misconfigured"}
    admission.pending.retry([admission.structure.queues["queue"]])
    assert not admission.pending.has_heads


def test_the_next_flavor_is_tried_when_pods_do_not_tolerate_the_first() -> None:
    flavors = [make_flavor("spot", taints=[Taint(key="spot", effect="NoSchedule")]), make_flavor("reserved")]
    queue = make_queue("queue", make_group(spot=make_quota(10), reserved=make_quota(10)))
    tolerant = make_pod_set(tolerations=[Toleration(key="spot", operator="Exists")])
    workloads = [make_workload("plain", second=1), make_workload("tolerant", tolerant, second=2)]
    admission = make_admission([queue], workloads, flavors=flavors)

    reports = [admission.run_cycle(NOW), admission.run_cycle(NOW + 1)]

    assert [report.admitted[0].pod_sets[0].flavors for report in reports] == [{"cpu": "reserved"}, {"cpu": "spot"}]


@pytest.mark.parametrize(
    ("fungibility", "flavor"),
    [
        pytest.param(FlavorFungibility(), "first", id="borrows in the first flavor by default"),
        pytest.param(
            FlavorFungibility(when_can_borrow=TRY_NEXT_FLAVOR), "second", id="tries the next before borrowing"
        ),
    ],
)
def test_whether_to_borrow_or_to_try_the_next_flavor_is_the_queues_choice(
    fungibility: FlavorFungibility, flavor: str
) -> None:
    group = make_group(first=make_quota(1), second=make_quota(5))
    lender = make_queue("lender", make_group(first=make_quota(10)), cohort="both")
    admission = make_admission(
        [make_queue("queue", group, cohort="both", fungibility=fungibility), lender], [make_workload(cpu=3)]
    )

    (admitted,) = admission.run_cycle(NOW).admitted

    assert admitted.pod_sets[0].flavors == {"cpu": flavor}


def test_fewer_pods_start_where_not_all_fit() -> None:
    pods = make_pod_set(count=8, min_count=2, requests={"cpu": 2})
    admission = make_admission([make_queue()], [make_workload("elastic", pods)])

    (admitted,) = admission.run_cycle(NOW).admitted

    assert admitted.pod_sets[0].count == 5


def test_the_lower_priority_goes_for_the_higher_and_comes_back_in_line() -> None:
    queue = make_queue(within_queue=LOWER_PRIORITY)
    low = hold(make_workload("low", cpu=8, priority=1, second=1), "queue", usage={"cpu": 8})
    admission = make_admission([queue], [low, make_workload("high", cpu=5, priority=2, second=2)])

    report = admission.run_cycle(NOW)

    assert report.preempted == [
        Preempted(WorkloadKey("default/low"), "queue", "InClusterQueue", WorkloadKey("default/high"))
    ]
    assert report.outcomes == {"default/high": "WaitingForPreemptedWorkloads"}
    admission.finish_evictions([WorkloadKey("default/low")])
    assert run(admission, cycles=2) == ["high"]
    assert list(admission.pending.pending_queues["queue"].parked) == ["default/low"]


def test_a_victim_that_is_still_leaving_is_not_told_twice() -> None:
    queue = make_queue(within_queue=LOWER_PRIORITY)
    low = hold(make_workload("low", cpu=8, priority=1), "queue", usage={"cpu": 8})
    admission = make_admission([queue], [low, make_workload("high", cpu=5, priority=2)])
    admission.run_cycle(NOW)

    report = admission.run_cycle(NOW + 1)

    assert report.preempted == []
    assert report.outcomes == {"default/high": "WaitingForPreemptedWorkloads"}


def test_only_as_many_go_as_are_needed() -> None:
    queue = make_queue(within_queue=LOWER_PRIORITY)
    holding = [
        hold(make_workload(f"low-{size}", priority=1), "queue", usage={"cpu": size}, second=size) for size in (1, 2, 7)
    ]
    admission = make_admission([queue], [*holding, make_workload("high", cpu=6, priority=2)])

    assert [found.workload for found in admission.run_cycle(NOW).preempted] == ["default/low-7"]


def test_a_cohort_takes_back_from_another_subtree_what_is_its_own() -> None:
    cohorts = [make_cohort("root"), make_cohort("ours", parent="root"), make_cohort("theirs", parent="root")]
    ours = make_queue("ours", cohort="ours", reclaim=ANY)
    theirs = make_queue("theirs", make_group(default=make_quota(0)), cohort="theirs")
    borrowing = hold(make_workload("borrowing", queue="theirs", priority=9), "theirs", usage={"cpu": 10})
    admission = make_admission([ours, theirs], [borrowing, make_workload("owner", queue="ours")], cohorts=cohorts)

    assert admission.run_cycle(NOW).preempted == [
        Preempted(WorkloadKey("default/borrowing"), "theirs", "InCohortReclamation", WorkloadKey("default/owner"))
    ]


def test_two_that_need_the_same_victim_do_not_take_another() -> None:
    queues = [
        make_queue("left", make_group(default=make_quota(4)), cohort="both", reclaim=ANY),
        make_queue("right", make_group(default=make_quota(4)), cohort="both", reclaim=ANY),
        make_queue("borrower", make_group(default=make_quota(0)), cohort="both"),
    ]
    borrowing = hold(make_workload("borrowing", queue="borrower"), "borrower", usage={"cpu": 8})
    waiting = [make_workload(name, queue=name, cpu=4, second=index) for index, name in enumerate(("left", "right"))]
    admission = make_admission(queues, [borrowing, *waiting])

    report = admission.run_cycle(NOW)

    assert [(found.workload, found.preemptor) for found in report.preempted] == [("default/borrowing", "default/left")]
    assert set(report.outcomes.values()) == {"WaitingForPreemptedWorkloads"}
    admission.finish_evictions([WorkloadKey("default/borrowing")])
    assert sorted(run(admission)) == ["left", "right"]


def test_under_fair_sharing_who_borrowed_least_goes_first() -> None:
    empty = make_group(default=make_quota(0))
    queues = [make_queue(name, empty, cohort="both") for name in ("greedy", "modest")]
    queues.append(make_queue("lender", make_group(default=make_quota(10)), cohort="both"))
    running = hold(make_workload("running", queue="greedy"), "greedy", usage={"cpu": 6})
    waiting = [make_workload(name, queue=name, cpu=3, second=index) for index, name in enumerate(("greedy", "modest"))]

    assert run(make_admission(queues, [running, *waiting], fair_sharing=True)) == ["modest"]
    assert run(make_admission(queues, [running, *waiting])) == ["greedy"]


def test_under_fair_sharing_who_borrowed_most_gives_first() -> None:
    empty = make_group(default=make_quota(0))
    queues = [make_queue(name, empty, cohort="both", reclaim=ANY) for name in ("greedy", "modest", "new")]
    queues.append(make_queue("lender", make_group(default=make_quota(9)), cohort="both"))
    holding = [
        hold(make_workload(f"greedy-{number}", queue="greedy"), "greedy", usage={"cpu": 3}, second=number)
        for number in range(2)
    ]
    holding.append(hold(make_workload("modest", queue="modest"), "modest", usage={"cpu": 3}))
    admission = make_admission(queues, [*holding, make_workload("new", queue="new", cpu=3)], fair_sharing=True)

    assert admission.run_cycle(NOW).preempted == [
        Preempted(WorkloadKey("default/greedy-1"), "greedy", "InCohortFairSharing", WorkloadKey("default/new"))
    ]


def test_a_stopped_queue_keeps_its_workloads_waiting() -> None:
    admission = make_admission([make_queue(stop_policy=HOLD)], [make_workload()])

    assert not admission.pending.has_heads
    assert admission.structure.queues["queue"].inactive_reason == "is stopped"


def test_a_queue_whose_flavor_is_missing_is_inactive_and_says_so() -> None:
    admission = make_admission([make_queue()], [make_workload()], flavors=[])

    assert not admission.pending.has_heads
    reason = "references missing ResourceFlavor(s): default"
    assert admission.structure.queues["queue"].inactive_reason == reason


def test_queues_below_a_cycle_of_cohorts_are_inactive_and_say_so() -> None:
    cohorts = [make_cohort("a", parent="b"), make_cohort("b", parent="a")]
    queues = [make_queue("inside", cohort="a"), make_queue("outside", cohort="c")]
    admission = make_admission(queues, cohorts=cohorts)

    assert admission.structure.queues["inside"].inactive_reason == "cohort a is part of a cycle of cohorts"
    assert admission.structure.queues["outside"].is_active


def test_a_workload_without_a_queue_is_told_why_it_cannot_wait() -> None:
    admission = make_admission([make_queue()], local_queues=[make_local_queue("astray", cluster_queue="gone")])

    assert admission.add(make_workload(queue="nowhere")) == "LocalQueue nowhere doesn't exist"
    assert admission.add(make_workload(queue="astray")) == "ClusterQueue gone doesn't exist"


def test_someone_put_back_in_a_what_if_is_seen_again() -> None:
    admission = make_admission([make_queue()], [hold(make_workload("running"), "queue", usage={"cpu": 5})])
    ledger, node = admission.ledger, admission.structure.queues["queue"].node
    admitted = ledger.admitted(WorkloadKey("default/running"))

    ledger.remove(admitted)
    assert list(ledger.admitted_in(node)) == []
    ledger.put_back(admitted)

    assert list(ledger.admitted_in(node)) == [admitted]


def test_a_waiting_workload_that_is_deleted_is_not_tried() -> None:
    admission = make_admission([make_queue()], [make_workload("gone", second=1), make_workload("next", second=2)])

    admission.finish([WorkloadKey("default/gone"), WorkloadKey("default/never-was")])

    assert run(admission) == ["next"]
    assert not admission.pending.has_heads


def test_a_deleted_workload_may_come_again_under_its_name() -> None:
    admission = make_admission([make_queue()], [make_workload(cpu=11)])
    assert run(admission) == []

    admission.finish([WorkloadKey("default/workload")])
    admission.add(make_workload(cpu=2, second=5))

    assert run(admission) == ["workload"]


def test_a_name_that_comes_again_stands_where_its_new_workload_belongs() -> None:
    admission = make_admission([make_queue()], [make_workload("again", second=1), make_workload("other", second=3)])

    admission.finish([WorkloadKey("default/again")])
    admission.add(make_workload("again", second=9))

    assert run(admission, cycles=2) == ["other", "again"]


def test_what_victims_leave_is_not_handed_out_before_they_are_gone() -> None:
    quotas = {"large": 11, "left": 1, "right": 1}
    queues = [
        make_queue(name, make_group(default=make_quota(cpu)), cohort="all", within_queue=LOWER_PRIORITY)
        for name, cpu in quotas.items()
    ]
    holding = [
        hold(make_workload("victim", queue="large"), "large", usage={"cpu": 4}),
        hold(make_workload("important", queue="large", priority=9), "large", usage={"cpu": 8}),
    ]
    waiting = [
        make_workload("preemptor", queue="large", cpu=2, priority=5, second=1),
        make_workload("first", queue="left", second=2),
        make_workload("second", queue="right", second=3),
    ]
    admission = make_admission(queues, [*holding, *waiting])
    tree, root = admission.structure.tree, admission.structure.queues["large"].root

    report = admission.run_cycle(NOW)

    # The victim frees 4, of which the preemptor needs 2; but now there is room for one more CPU only.
    assert [found.workload for found in report.preempted] == ["default/victim"]
    assert [found.workload for found in report.admitted] == ["default/first"]
    assert tree.usage_of(root, 0) == tree.subtree_of(root, 0)
    admission.finish_evictions([WorkloadKey("default/victim")])
    assert sorted(run(admission)) == ["preemptor", "second"]


def test_who_waits_like_one_that_failed_is_told_why_once_and_again_when_it_changes() -> None:
    waiting = [make_workload(name, cpu=8, second=number) for number, name in enumerate(("first", "second", "third"))]
    running = [hold(make_workload(name), "queue", usage={"cpu": 3}) for name in ("one", "two")]
    admission = make_admission([make_queue()], [*running, *waiting[:2]])

    def told(freed: str) -> set[str]:
        admission.finish([WorkloadKey(f"default/{freed}")])
        return {key.removeprefix("default/") for key in admission.run_cycle(NOW).conditions}

    assert told("") == {"first", "second"}
    admission.pending.retry(admission.structure.queues.values())
    assert told("") == {"first"}, "the second knows that already"
    admission.pending.retry(admission.structure.queues.values())
    admission.add(waiting[2])
    assert told("") == {"first", "third"}
    assert told("one") == {"first", "second", "third"}, "less is missing now"
