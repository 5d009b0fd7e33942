"""Admission and time: pods that do not get ready, backoffs, checks that others answer, workloads that run too long."""

from msgspec.structs import replace

from mooring.config.queueing import PodsReady, QueueingSettings
from mooring.model.api.kueue import AdmissionCheck, AdmissionCheckRule, AdmissionChecksStrategy, ClusterQueue
from mooring.model.api.kueue_workload import (
    AdmissionCheckState,
    PodSetUpdate,
    RequeueState,
    WorkloadCondition,
    WorkloadStatus,
)
from mooring.model.api.pods import Toleration
from mooring.model.decisions import Admit, Evict, Suspend, Wait
from mooring.model.keys import PodKey, WorkloadKey
from mooring.state.workloads import Stage
from mooring.testing.builders import make_node
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import Job, TenantWorld, admitted, make_job, suspended, waits


def settings(**given: object) -> QueueingSettings:
    return QueueingSettings(pods_ready=PodsReady(timeout_seconds=300, recovery_timeout_seconds=60, **given))  # type: ignore[arg-type]


def crowded_world(*jobs: Job, **given: object) -> TenantWorld:
    """A world whose nodes have room for 4 CPU, and whose queue has quota for 10."""
    return TenantWorld([make_queue()], jobs, nodes=[make_node("node", cpu=4)], settings=settings(**given))


def test_a_work_whose_pods_do_not_get_ready_in_time_is_evicted_and_comes_back_after_a_backoff() -> None:
    world = crowded_world(make_job("slow", pods=2, cpu=3))
    assert admitted(world.cycle()) == ["slow"]
    assert world.running() == ["slow-0"]

    assert world.cycle(299) == []
    decisions = world.cycle(1)

    said = "Exceeded the PodsReady timeout default/slow"
    assert decisions[:2] == [
        Suspend("default/slow", "PodsReadyTimeout", said),
        Evict("default/slow-0", "node", "", said),
    ]
    assert waits(world.cycle()) == {f"slow-{n}": f"{said}; requeued in 60s" for n in range(2)}
    assert world.action.next_wake(world.scheduler.cluster, world.now) == world.now + 60
    assert admitted(world.cycle(59)) == []
    assert admitted(world.cycle(1)) == ["slow"]


def test_backoffs_double_and_the_limit_deactivates() -> None:
    world = crowded_world(make_job("slow", cpu=8), backoff_limit=2, backoff_max_seconds=100)
    world.cycle()

    for wait in (60, 100):
        assert suspended(world.cycle(300)) == [("slow", "PodsReadyTimeout")]
        assert admitted(world.cycle(wait - 1)) == []
        assert admitted(world.cycle(1)) == ["slow"]
    decisions = world.cycle(300)

    message = "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
    assert Suspend("default/slow", "DeactivatedDueToRequeuingLimitExceeded", message) in decisions
    assert waits(decisions)["slow-0"] == message
    world.cycle(10_000)
    assert world.in_stage(Stage.OUTSIDE) == ["slow"]


def test_an_evicted_work_goes_to_the_end_of_the_line_unless_its_creation_counts() -> None:
    for orders_by_eviction, first in ((True, "young"), (False, "old")):
        old, young = make_job("old", cpu=8, second=1), make_job("young", cpu=8, second=2)
        world = crowded_world(old, orders_by_eviction=orders_by_eviction, backoff_base_seconds=0)
        world.cycle()
        world.submit(young)

        assert admitted(world.cycle(300))[:1] == [first]


def test_pods_that_were_ready_and_are_lost_have_their_own_time_to_recover() -> None:
    world = crowded_world(make_job("job", pods=2, cpu=2))
    world.settle()
    assert world.lifecycle.unready == {}

    world.cycle(1000)
    world.lose("default/job-0")
    world.cycle()
    assert list(world.lifecycle.unready) == ["default/job"]
    assert world.cycle(59) == []

    assert suspended(world.cycle(1)) == [("job", "PodsReadyTimeout")]


def test_with_blocked_admission_one_work_starts_at_a_time() -> None:
    jobs = [make_job("first", cpu=3, second=1), make_job("second", second=2), make_job("third", second=3)]
    world = crowded_world(*jobs, blocks_admission=True)

    decisions = world.cycle()

    assert admitted(decisions) == ["first"]
    assert waits(decisions)["second-0"] == "waiting for all admitted workloads to be in PodsReady condition"
    assert admitted(world.cycle()) == ["second"]
    assert admitted(world.cycle()) == ["third"]


def test_with_blocked_admission_nobody_starts_while_a_work_cannot_get_ready() -> None:
    jobs = [make_job("stuck", cpu=8, second=1), make_job("small", second=2)]
    world = crowded_world(*jobs, blocks_admission=True)

    assert admitted(world.settle()) == ["stuck"]
    assert admitted(world.cycle(299)) == []
    assert admitted(world.cycle(1)) == ["small"]


def test_a_work_stops_when_it_has_run_for_as_long_as_it_may() -> None:
    world = TenantWorld([make_queue()], [make_job("job", max_seconds=100)])
    world.settle()

    assert world.cycle(99) == []
    decisions = world.cycle(1)

    message = "The workload is deactivated due to exceeding the maximum execution time"
    assert decisions[0] == Suspend("default/job", "DeactivatedDueToMaximumExecutionTimeExceeded", message)


def test_time_that_a_work_ran_before_counts() -> None:
    job = make_job("job", max_seconds=100)
    job.workload.status.accumulated_past_execution_time_seconds = 70
    world = TenantWorld([make_queue()], [job])
    world.settle()

    assert world.cycle(29) == []
    assert suspended(world.cycle(1)) == [("job", "DeactivatedDueToMaximumExecutionTimeExceeded")]


def test_a_backoff_that_the_world_tells_of_is_kept() -> None:
    job = make_job("job")
    job.workload.status.requeue_state = RequeueState(count=3, requeue_at="2033-05-18T03:35:00Z")
    world = TenantWorld([make_queue()], [job], settings=settings())  # now is 2033-05-18T03:33:20Z

    assert waits(world.cycle()) == {"job-0": "requeued in 100s"}
    assert admitted(world.cycle(100)) == ["job"]
    assert world.lifecycle.workloads[WorkloadKey("default/job")].requeue_count == 3


def test_an_eviction_that_the_world_tells_of_is_gone_through_with() -> None:
    job, other = make_job("job", cpu=8), make_job("other", cpu=8, second=5)
    world = TenantWorld([make_queue()], [job, other])
    world.settle()
    status = WorkloadStatus(
        admission=None, conditions=[WorkloadCondition(type="Evicted", status="True", reason="Preempted")]
    )
    world.see(job, status=status)

    assert world.settle() == []
    assert world.in_stage(Stage.ADMITTED) == ["job"]  # news from before our decision does not undo it


# Checks.


def checked_queue(*names: str, on_flavors: list[str] | None = None) -> ClusterQueue:
    queue = make_queue("queue", make_group(fast=make_quota(4), slow=make_quota(10)))
    rules = [AdmissionCheckRule(name=name, on_flavors=on_flavors) for name in names]
    queue.spec.admission_checks_strategy = AdmissionChecksStrategy(admission_checks=rules)
    return queue


def check(name: str) -> AdmissionCheck:
    made = AdmissionCheck()
    made.metadata.name = name
    return made


def answer(job: Job, state: str, **given: object) -> WorkloadStatus:
    found = AdmissionCheckState(name="room", state=state, **given)  # type: ignore[arg-type]
    return replace(job.workload.status, admission_checks=[found])


def checked_world(job: Job, **given: object) -> TenantWorld:
    return TenantWorld([checked_queue("room")], [job], related=[check("room")], **given)  # type: ignore[arg-type]


def test_a_work_with_a_pending_check_holds_quota_and_does_not_start() -> None:
    job = make_job("job", cpu=3)
    world = checked_world(job)

    decisions = world.cycle()

    (reserved,) = [found for found in decisions if isinstance(found, Admit)]
    assert (reserved.pending_checks, reserved.message) == (("room",), "Quota reserved in ClusterQueue queue")
    said = "The workload has quota, and waits for admission checks: room"
    assert Wait("default/job-0", said, ("Admit",), reason="AdmissionGated") in decisions
    assert "default/job" in world.admission.ledger
    assert world.running() == []

    world.see(job, status=answer(job, "Ready"))
    assert admitted(world.cycle()) == ["job"]
    assert world.running() == ["job-0"]


def test_what_a_check_adds_is_added_to_the_pods() -> None:
    job = make_job("job", cpu=3)
    nodes = [make_node("old", cpu=64), make_node("new", cpu=64, labels={"made-for": "job"})]
    world = checked_world(job, nodes=nodes)
    world.cycle()

    update = PodSetUpdate(name="main", node_selector={"made-for": "job"}, tolerations=[Toleration(key="x")])
    world.see(job, status=answer(job, "Ready", pod_set_updates=[update]))
    world.cycle()

    spec = world.scheduler.cluster.pods.records[PodKey("default/job-0")].pod.spec
    assert (spec.node_selector, spec.tolerations) == ({"made-for": "job"}, [Toleration(key="x")])


def test_a_check_that_wants_another_try_sends_the_work_back_and_is_asked_anew() -> None:
    job = make_job("job", cpu=3)
    world = checked_world(job)
    world.cycle()

    world.see(job, status=answer(job, "Retry", requeue_after_seconds=30))
    assert world.cycle()[0] == Suspend("default/job", "AdmissionCheck", "At least one admission check is false")
    assert [found for found in world.cycle(29) if isinstance(found, Admit)] == []

    (reserved,) = [found for found in world.cycle(1) if isinstance(found, Admit)]
    assert reserved.pending_checks == ("room",)


def test_a_rejected_check_deactivates_the_work() -> None:
    job = make_job("job", cpu=3)
    world = checked_world(job)
    world.cycle()

    world.see(job, status=answer(job, "Rejected"))

    message = "The workload is deactivated due to Admission check(s): room, were rejected"
    assert world.cycle()[0] == Suspend("default/job", "DeactivatedDueToAdmissionCheck", message)


def test_a_check_may_be_for_some_flavors_only() -> None:
    queue = checked_queue("room", on_flavors=["slow"])
    jobs = [make_job("small", cpu=3, second=1), make_job("large", cpu=8, second=2)]
    world = TenantWorld([queue], jobs, related=[check("room")])

    decisions = world.cycle()

    assert admitted(decisions) == ["small"]
    assert world.in_stage(Stage.RESERVED) == ["large"]


def test_a_check_that_is_not_there_makes_the_queue_inactive() -> None:
    world = TenantWorld([checked_queue("room")], [make_job()])

    said = "ClusterQueue queue is inactive: references missing AdmissionCheck(s): room"
    assert waits(world.cycle()) == {"job-0": said}
