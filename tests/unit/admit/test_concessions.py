"""Who would have to give back for a workload to start, and which policy is in the way."""

from typing import Any

import pytest

from mooring.actions.admit.concessions import (
    FAIR_SHARING,
    INACTIVE,
    NO_FLAVOR,
    TOO_MUCH,
    TOO_YOUNG,
    Outlook,
    find_outlook,
)
from mooring.actions.admit.cycle.cycle import Admission
from mooring.model.api.kueue import ANY, HOLD, LOWER_PRIORITY, NEVER, ClusterQueue, Workload
from mooring.model.keys import WorkloadKey
from mooring.testing.queueing_builders import (
    hold,
    make_admission,
    make_group,
    make_pod_set,
    make_queue,
    make_quota,
    make_workload,
)


def team(name: str, nominal: int, **policies: Any) -> ClusterQueue:
    return make_queue(name, make_group(default=make_quota(nominal)), cohort="all", **policies)


def running(name: str, queue: str, cpu: int, *, priority: int = 0, second: int = 0) -> Workload:
    workload = make_workload(name, queue=queue, cpu=cpu, priority=priority, second=second)
    return hold(workload, queue, usage={"cpu": cpu}, second=second)


def outlook(admission: Admission, name: str) -> Outlook:
    """What is found for a workload that waits; the ledger is the same before and after."""
    pending = admission.pending.find(WorkloadKey(f"default/{name}"))
    assert pending is not None, "it does not wait"
    before = admission.structure.tree.usage.copy()
    found = find_outlook(admission, pending)
    assert (admission.structure.tree.usage == before).all()
    return found


def giving(found: Outlook) -> list[tuple[str, list[int], str]]:
    return [
        (concession.admitted.pending.key.partition("/")[2], list(concession.amounts.values()), concession.forbidden_by)
        for concession in found.concessions
    ]


def test_somebody_of_the_same_queue_would_have_to_go_and_the_policy_never_forbids_it() -> None:
    workloads = [running("small", "queue", 2, second=2), running("large", "queue", 7, second=1)]
    admission = make_admission([make_queue()], [*workloads, make_workload("new", cpu=6)])

    assert giving(outlook(admission, "new")) == [("large", [7000], "withinClusterQueue: Never")]


def test_priorities_forbid_it_where_the_policy_compares_them() -> None:
    queue = make_queue(within_queue=LOWER_PRIORITY)
    workloads = [running("old", "queue", 8, priority=5), make_workload("new", cpu=6, priority=5)]

    assert giving(outlook(make_admission([queue], workloads), "new")) == [
        ("old", [8000], "withinClusterQueue: LowerPriority")
    ]


@pytest.mark.parametrize(
    ("reclaim", "policy"),
    [
        pytest.param(NEVER, "reclaimWithinCohort: Never", id="never"),
        pytest.param(LOWER_PRIORITY, "reclaimWithinCohort: LowerPriority", id="equal priority"),
        pytest.param(ANY, "", id="allowed"),
    ],
)
def test_a_borrower_would_have_to_give_back_what_the_queue_owns(reclaim: str, policy: str) -> None:
    queues = [team("owner", 6, reclaim=reclaim), team("borrower", 4)]
    workloads = [running("loan", "borrower", 9), make_workload("new", queue="owner", cpu=5)]

    assert giving(outlook(make_admission(queues, workloads), "new")) == [("loan", [9000], policy)]


def test_who_uses_no_more_than_its_own_is_named_last_and_no_policy_takes_from_it() -> None:
    queues = [team("rich", 8), team("poor", 2, reclaim=ANY)]
    workloads = [running("own", "rich", 8), make_workload("new", queue="poor", cpu=4)]

    assert giving(outlook(make_admission(queues, workloads), "new")) == [("own", [8000], "borrowWithinCohort: Never")]

    queues[1] = team("poor", 2, reclaim=ANY, borrow_policy=LOWER_PRIORITY)
    assert giving(outlook(make_admission(queues, workloads), "new")) == [
        ("own", [8000], "rich uses no more than its nominal quota")
    ]


def test_one_that_would_have_to_borrow_needs_leave_to_do_so_while_others_go() -> None:
    queues = [team("lender", 6), team("borrower", 2), team("poor", 2, reclaim=ANY, borrow_policy=LOWER_PRIORITY)]
    workloads = [running("loan", "borrower", 9, priority=3), make_workload("new", queue="poor", cpu=3, priority=3)]

    assert giving(outlook(make_admission(queues, workloads), "new")) == [
        ("loan", [9000], "borrowWithinCohort: LowerPriority")
    ]


def test_a_threshold_spares_the_more_important() -> None:
    queue = make_queue(
        "poor",
        make_group(default=make_quota(2)),
        cohort="all",
        reclaim=ANY,
        borrow_policy=LOWER_PRIORITY,
        priority_threshold=1,
    )
    workloads = [running("loan", "borrower", 9, priority=2), make_workload("new", queue="poor", cpu=3, priority=3)]
    admission = make_admission([team("lender", 6), team("borrower", 2), queue], workloads)

    assert giving(outlook(admission, "new")) == [
        ("loan", [9000], "borrowWithinCohort: LowerPriority, maxPriorityThreshold: 1")
    ]


def test_under_fair_sharing_shares_forbid_it() -> None:
    light = make_queue("light", make_group(default=make_quota(2)), cohort="all", reclaim=ANY, weight="100m")
    workloads = [running("loan", "borrower", 10), make_workload("new", queue="light", cpu=3)]
    admission = make_admission([team("lender", 6), team("borrower", 2), light], workloads, fair_sharing=True)

    assert giving(outlook(admission, "new")) == [("loan", [10_000], FAIR_SHARING)]


def test_one_that_has_not_run_long_enough_is_spared_by_other_queues() -> None:
    queues = [team("owner", 6, reclaim=ANY), team("borrower", 4)]
    admission = make_admission(queues, [running("loan", "borrower", 9), make_workload("new", queue="owner", cpu=5)])
    admission.ledger.spares = lambda admitted: True

    assert giving(outlook(admission, "new")) == [("loan", [9000], TOO_YOUNG)]


def test_no_more_is_named_than_it_takes() -> None:
    loans = [running(f"loan-{index}", "borrower", 2, second=index) for index in range(4)]
    queues = [team("owner", 8), team("borrower", 2)]
    admission = make_admission(queues, [*loans, make_workload("new", queue="owner", cpu=6)])

    assert giving(outlook(admission, "new")) == [
        ("loan-3", [2000], "reclaimWithinCohort: Never"),
        ("loan-2", [2000], "reclaimWithinCohort: Never"),
    ]


def test_nothing_helps_one_that_asks_for_more_than_there_can_ever_be() -> None:
    admission = make_admission([make_queue()], [make_workload("huge", cpu=11)])

    assert outlook(admission, "huge") == Outlook(hopeless=TOO_MUCH)


def test_nothing_helps_one_that_no_flavor_takes() -> None:
    workload = make_workload("gpu", make_pod_set(requests={"nvidia.com/gpu": 1}))

    assert outlook(make_admission([make_queue()], [workload]), "gpu") == Outlook(hopeless=NO_FLAVOR)


def test_nothing_helps_in_a_queue_that_is_stopped() -> None:
    admission = make_admission([make_queue(stop_policy=HOLD)], [make_workload("new")])

    assert outlook(admission, "new") == Outlook(hopeless=INACTIVE)


def test_one_for_which_there_is_quota_needs_nobody() -> None:
    found = outlook(make_admission([make_queue()], [make_workload("new")]), "new")

    assert found == Outlook(pods=(1,), usage={0: 1000}, has_quota=True)
