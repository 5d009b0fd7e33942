"""Workloads that have not run for the minimum are spared by other queues, and by nobody else."""

import pytest

from mooring.config.queueing import QueueingSettings
from mooring.config.tenant_policy import TenantPolicy
from mooring.model.api.kueue import ANY, LOWER_PRIORITY, AdmissionCheck, AdmissionCheckRule, AdmissionChecksStrategy
from mooring.model.api.kueue_workload import AdmissionCheckState, WorkloadStatus
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, admitted, make_job, suspended

MINIMUM = 600
RULE = TenantPolicy(minimum_runtime_before_reclaim_seconds=MINIMUM)


def borrowed(policy: TenantPolicy, *, fair_sharing: bool = False) -> TenantWorld:
    """One queue borrows all that another owns."""
    queues = [
        make_queue("owner", make_group(default=make_quota(4)), cohort="all", reclaim=ANY),
        make_queue("borrower", make_group(default=make_quota(0)), cohort="all", within_queue=LOWER_PRIORITY),
    ]
    settings = QueueingSettings(fair_sharing=fair_sharing, pods_ready=None)
    world = TenantWorld(queues, [make_job("loan", queue="borrower", cpu=4)], settings=settings, policy=policy)
    assert admitted(world.settle()) == ["loan"]
    return world


@pytest.mark.parametrize("fair_sharing", [False, True], ids=["by rank", "by share"])
def test_what_is_borrowed_is_reclaimed_once_it_has_run_for_the_minimum(fair_sharing: bool) -> None:
    world = borrowed(RULE, fair_sharing=fair_sharing)
    started = world.now
    world.now += 100
    world.submit(make_job("own", queue="owner", cpu=4))

    assert suspended(world.settle()) == []
    assert world.action.next_wake(world.scheduler.cluster, world.now) == started + MINIMUM
    world.now = started + MINIMUM - 1
    assert suspended(world.settle()) == []
    world.now = started + MINIMUM
    decisions = world.settle()

    assert suspended(decisions) == [("loan", "InCohortReclamation")]
    assert admitted(decisions) == ["own"]


def test_without_a_minimum_it_is_reclaimed_at_once() -> None:
    world = borrowed(TenantPolicy())
    world.submit(make_job("own", queue="owner", cpu=4))

    assert suspended(world.settle()) == [("loan", "InCohortReclamation")]
    assert world.action.next_wake(world.scheduler.cluster, world.now) is None


def test_a_more_important_job_of_the_same_queue_need_not_wait() -> None:
    world = borrowed(RULE)
    # Without the owner's right, only preemption within the queue is left.
    world.submit(make_job("urgent", queue="borrower", cpu=4, priority=1))

    # What a workload may preempt must fit the nominal quota, so give the queue some.
    world.show(make_queue("borrower", make_group(default=make_quota(4)), cohort="all", within_queue=LOWER_PRIORITY))
    world.show(make_queue("owner", make_group(default=make_quota(0)), cohort="all", reclaim=ANY))
    decisions = world.settle()

    assert suspended(decisions) == [("loan", "InClusterQueue")]
    assert admitted(decisions) == ["urgent"]


def test_of_two_loans_the_older_goes_though_the_younger_would_go_first() -> None:
    queues = [
        make_queue("owner", make_group(default=make_quota(4)), cohort="all", reclaim=ANY),
        make_queue("borrower", make_group(default=make_quota(0)), cohort="all"),
    ]
    world = TenantWorld(queues, [make_job("old", queue="borrower", cpu=2)], policy=RULE)
    world.settle()
    world.now += MINIMUM
    world.submit(make_job("new", queue="borrower", cpu=2))
    world.settle()

    world.submit(make_job("own", queue="owner", cpu=2))

    assert suspended(world.settle()) == [("old", "InCohortReclamation")]


def test_a_workload_that_comes_back_is_young_again() -> None:
    world = borrowed(RULE)
    world.now += MINIMUM
    world.submit(make_job("own", queue="owner", cpu=4))
    assert suspended(world.settle()) == [("loan", "InCohortReclamation")]
    world.succeed("default/own-0")
    assert admitted(world.settle()) == ["loan"]

    world.now += MINIMUM - 1
    world.submit(make_job("own-again", queue="owner", cpu=4, second=9))

    assert suspended(world.settle()) == []


def test_time_counts_from_when_the_pods_were_let_go() -> None:
    borrower = make_queue("borrower", make_group(default=make_quota(0)), cohort="all")
    borrower.spec.admission_checks_strategy = AdmissionChecksStrategy(
        admission_checks=[AdmissionCheckRule(name="room")]
    )
    check = AdmissionCheck()
    check.metadata.name = "room"
    owner = make_queue("owner", make_group(default=make_quota(4)), cohort="all", reclaim=ANY)
    job = make_job("loan", queue="borrower", cpu=4)
    world = TenantWorld([owner, borrower], [job], related=[check], policy=RULE)
    world.settle()
    world.now += MINIMUM
    world.see(job, status=WorkloadStatus(admission_checks=[AdmissionCheckState(name="room", state="Ready")]))
    assert admitted(world.settle()) == ["loan"]

    world.now += 1
    world.submit(make_job("own", queue="owner", cpu=4))

    assert suspended(world.settle()) == []
