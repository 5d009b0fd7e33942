"""What becomes of decisions on workloads that the world refuses."""

from msgspec.structs import replace

from mooring.model.api.pods import SchedulingGate
from mooring.model.decisions import Admit, Bind, Evict, Suspend
from mooring.model.events import Failed, PodSeen
from mooring.model.keys import PodKey
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, admitted, make_job, suspended

QUEUE = make_queue("queue", make_group(cpu=make_quota(4)), within_queue="LowerPriority")


def test_a_workload_whose_admission_was_refused_is_pending_again() -> None:
    world = TenantWorld([QUEUE])
    world.submit(make_job("job", pods=2, cpu=1))
    assert admitted(world.cycle()) == ["job"]

    world.scheduler.handle(Failed(Admit("default/job", "queue", (), ""), "the webhook is down"))
    decisions = world.settle()

    assert suspended(decisions) == [("job", "AdmissionRefused")]
    assert admitted(decisions) == ["job"], "its quota was free again, and it is given it again"


def test_who_could_not_be_suspended_is_told_again_and_keeps_its_quota() -> None:
    world = TenantWorld([QUEUE])
    world.finishes_evictions = False
    world.submit(make_job("low", pods=1, cpu=4))
    world.cycle()
    world.cycle(1.0)
    world.submit(make_job("high", pods=1, cpu=4, priority=10, second=1))
    (first,) = [found for found in world.cycle(1.0) if isinstance(found, Suspend)]

    world.scheduler.handle(Failed(first, "timed out"))
    decisions = world.cycle(1.0)

    assert [found for found in decisions if isinstance(found, Suspend)] == [first]
    assert admitted(decisions) == [], "what low holds is not free before its pods are gone"
    world.let_go()
    assert admitted(world.settle()) == ["high"]


def test_a_pod_that_gets_a_node_after_its_workload_was_stopped_is_evicted() -> None:
    """Another scheduler was about to bind it, or whoever stopped the workload died before it evicted its pods."""
    world = TenantWorld([QUEUE])
    world.submit(low := make_job("low", pods=1, cpu=4))
    world.cycle()
    world.cycle(1.0)
    world.submit(make_job("high", pods=1, cpu=4, priority=10, second=1))
    assert "high-0" in [found.pod.partition("/")[2] for found in world.settle() if isinstance(found, Bind)]

    (pod,) = low.pods
    world.scheduler.handle(PodSeen(replace(pod, spec=replace(pod.spec, node_name="node", scheduling_gates=None))))
    evicted = [found.pod for found in world.settle() if isinstance(found, Evict)]

    assert evicted == ["default/low-0"]


def test_a_pod_without_quota_whose_eviction_failed_is_evicted_again() -> None:
    """Its bind was on its way when the eviction was sent, and is seen before the failure is."""
    world = TenantWorld([QUEUE])
    world.finishes_evictions = False
    world.submit(make_job("low", pods=1, cpu=4))
    world.cycle()
    world.cycle(1.0)
    world.submit(make_job("high", pods=1, cpu=4, priority=10, second=1))
    (first,) = [found for found in world.cycle(1.0) if isinstance(found, Evict)]

    world.scheduler.handle(Failed(first, "it has no node", retry_after=5.0))
    assert [found for found in world.cycle(1.0) if isinstance(found, Evict)] == []
    again = [found for found in world.cycle(5.0) if isinstance(found, Evict)]

    assert again == [first]


def test_a_pod_that_is_being_bound_and_is_seen_gated_once_more_has_no_second_turn() -> None:
    """Its gate is opened while news from before that are still on their way."""
    world = TenantWorld([QUEUE])
    world.submit(make_job("job", pods=1, cpu=1))
    decisions = world.scheduler.cycle(1.0)
    (bound,) = [found for found in decisions if isinstance(found, Bind)]
    record = world.scheduler.cluster.pods.records[PodKey(bound.pod)]
    gates = [SchedulingGate(name="kueue.x-k8s.io/admission")]
    gated = replace(record.pod, spec=replace(record.pod.spec, scheduling_gates=gates, node_selector=None))

    world.scheduler.handle(PodSeen(gated))
    assert [found for found in world.scheduler.cycle(2.0) if isinstance(found, Bind)] == []
    assert world.scheduler.take_faults() == []
    assert record.node_name == bound.node
