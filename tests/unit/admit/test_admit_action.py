"""Admission inside the cycle: workloads get quota, their pods start and stop, and are told why they wait."""

from msgspec.structs import replace

from mooring.config.queueing import QueueingSettings, TransformedResource
from mooring.model.api.kueue import HOLD, HOLD_AND_DRAIN, LOWER_PRIORITY, ResourceFlavor, ResourceFlavorSpec
from mooring.model.api.meta import LabelSelector
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Toleration
from mooring.model.decisions import Admit, Bind, Decision, Defer, Evict, PodSetFlavors, Suspend, Wait
from mooring.model.events import ObjectLost, PodSeen
from mooring.model.keys import PodKey
from mooring.state.workloads import Stage
from mooring.testing.builders import make_namespace, make_node
from mooring.testing.queueing_builders import (
    hold,
    make_flavor,
    make_group,
    make_local_queue,
    make_queue,
    make_quota,
)
from mooring.testing.tenant_builders import TenantWorld, admitted, make_job, suspended, waits


def test_an_admitted_work_starts_at_once_and_the_other_is_told_why_it_waits() -> None:
    jobs = [make_job("first", pods=2, cpu=4, second=1), make_job("second", cpu=4, second=2)]
    world = TenantWorld([make_queue()], jobs)

    decisions = world.cycle()

    message = (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 2 more needed"
    )
    assert decisions == [
        Admit("default/first", "queue", (PodSetFlavors("main", 2, {"cpu": "default"}),), "The workload is admitted"),
        Defer("default/second", "WaitingForQuota", message),
        Wait("default/second-0", message, ("Admit",), reason="WaitingForQuota"),
        Bind("default/first-0", "node"),
        Bind("default/first-1", "node"),
    ]


def test_what_was_said_is_not_said_again() -> None:
    world = TenantWorld([make_queue()], [make_job("large", cpu=11)])

    assert waits(world.cycle()) == {
        "large-0": "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, "
        "previously considered podsets requests (0) + current podset request (11) > maximum capacity (10)"
    }
    assert world.cycle() == []


def test_pods_go_to_the_nodes_of_their_flavor_and_tolerate_its_taints() -> None:
    taint = Taint(key="spot", value="yes", effect="NoSchedule")
    spec = ResourceFlavorSpec(
        node_labels={"pool": "spot"}, node_taints=[taint], tolerations=[Toleration(key="spot", operator="Exists")]
    )
    flavor = make_flavor("spot")
    flavor.spec = spec
    nodes = [make_node("plain", cpu=64), make_node("spot", cpu=64, labels={"pool": "spot"}, taints=[taint])]
    queue = make_queue("queue", make_group(spot=make_quota(10)))
    world = TenantWorld([queue], [make_job(pods=2)], nodes=nodes, flavors=[flavor])

    binds = [found for found in world.cycle() if isinstance(found, Bind)]

    assert [found.node for found in binds] == ["spot", "spot"]


def test_of_a_partly_admitted_work_as_many_pods_run_as_were_admitted() -> None:
    world = TenantWorld([make_queue()], [make_job("elastic", pods=8, min_pods=2, cpu=2)])

    decisions = world.cycle()

    assert world.running() == [f"elastic-{index}" for index in range(5)]
    said = "The workload is admitted with 5 of 8 pods of pod set main; the others start as those finish"
    assert waits(decisions) == {f"elastic-{index}": said for index in (5, 6, 7)}
    world.succeed("default/elastic-0", "default/elastic-1")
    world.cycle()
    assert world.running() == [f"elastic-{index}" for index in (2, 3, 4, 5, 6)]


def test_pods_that_are_done_give_back_their_share_and_the_last_one_all() -> None:
    jobs = [make_job("first", pods=4, cpu=2, second=1), make_job("second", cpu=4, second=2)]
    world = TenantWorld([make_queue()], jobs)
    world.cycle()

    world.succeed("default/first-0", "default/first-1")
    assert admitted(world.cycle()) == ["second"]

    world.succeed("default/first-2", "default/first-3")
    world.cycle()
    assert world.in_stage(Stage.DONE) == ["first"]
    assert "default/first" not in world.admission.ledger


def preempting_world() -> TenantWorld:
    jobs = [make_job("low", pods=2, cpu=4, priority=1, second=1)]
    world = TenantWorld([make_queue(within_queue=LOWER_PRIORITY)], jobs)
    world.settle()
    world.submit(make_job("high", cpu=8, priority=9, second=2))
    return world


def test_a_preempted_work_is_suspended_its_pods_evicted_and_it_waits_again() -> None:
    world = preempting_world()

    decisions = world.cycle()

    message = (
        "Preempted to accommodate a workload (UID: uid-high, JobUID: UNKNOWN) due to prioritization in the "
        "ClusterQueue; preemptor path: /queue; preemptee path: /queue"
    )
    assert decisions[0] == Suspend("default/low", "InClusterQueue", message, "default/high")
    assert decisions[1:3] == [Evict(f"default/low-{n}", "node", "default/high", message) for n in range(2)]
    assert waits(decisions)["high-0"] == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 6 more needed. "
        "Pending the preemption of 1 workload(s)"
    )
    assert admitted(world.cycle()) == ["high"]
    assert world.running() == ["high-0"]
    assert world.in_stage(Stage.WAITING) == ["low"]


def test_a_victim_holds_its_quota_until_its_pods_are_gone() -> None:
    world = preempting_world()
    world.finishes_evictions = False
    world.cycle()

    assert world.cycle() == []
    assert world.in_stage(Stage.LEAVING) == ["low"]

    world.let_go()
    assert admitted(world.cycle()) == ["high"]


def test_a_work_that_comes_again_starts_as_it_did_the_first_time() -> None:
    flavors = [make_flavor("default", labels={"pool": "a"})]
    nodes = [make_node("node", cpu=64, labels={"pool": "a"})]
    queue = make_queue(within_queue=LOWER_PRIORITY)
    low = make_job("low", cpu=8, second=1)
    world = TenantWorld([queue], [low], flavors=flavors, nodes=nodes)
    world.settle()
    urgent = make_job("urgent", cpu=8, priority=3, second=2)
    world.submit(urgent)
    world.settle()

    held = world.scheduler.cluster.pods.records[PodKey("default/low-0")].pod
    assert held.spec.scheduling_gates and not held.spec.node_selector
    world.succeed("default/urgent-0")

    assert admitted(world.settle()) == ["low"]
    assert world.scheduler.cluster.pods.records[PodKey("default/low-0")].pod.spec.node_selector == {"pool": "a"}


def test_quota_that_is_raised_counts_from_the_next_cycle_and_nobody_loses_anything() -> None:
    jobs = [make_job("first", cpu=8, second=1), make_job("second", cpu=8, second=2)]
    world = TenantWorld([make_queue()], jobs)
    world.settle()

    world.show(make_queue("queue", make_group(default=make_quota(16))))

    assert admitted(world.cycle()) == ["second"]
    assert world.running() == ["first-0", "second-0"]


def test_a_held_queue_admits_nobody_and_lets_those_run_who_do() -> None:
    world = TenantWorld([make_queue()], [make_job("first", cpu=4, second=1)])
    world.settle()
    world.show(make_queue(stop_policy=HOLD))
    world.submit(make_job("second", second=2))

    assert waits(world.cycle()) == {"second-0": "ClusterQueue queue is inactive: is stopped"}
    assert world.running() == ["first-0"]

    world.show(make_queue())
    assert admitted(world.cycle()) == ["second"]


def test_a_drained_queue_evicts_and_takes_back_when_it_is_started_again() -> None:
    world = TenantWorld([make_queue()], [make_job("first", cpu=4)])
    world.settle()
    world.show(make_queue(stop_policy=HOLD_AND_DRAIN))

    decisions = world.cycle()
    assert decisions[0] == Suspend("default/first", "ClusterQueueStopped", "The ClusterQueue is stopped")
    world.settle()
    assert world.running() == []

    world.show(make_queue())
    assert admitted(world.settle()) == ["first"]


def test_a_local_queue_can_be_held_and_drained_too() -> None:
    world = TenantWorld([make_queue()], [make_job("first", second=1)])
    world.settle()
    local = make_local_queue("queue")
    local.spec.stop_policy = HOLD_AND_DRAIN
    world.show(local)
    world.submit(make_job("second", second=2))

    decisions = world.cycle()

    assert suspended(decisions) == [("first", "LocalQueueStopped")]
    assert waits(decisions)["second-0"] == "LocalQueue queue is inactive"
    world.settle()
    world.show(make_local_queue("queue"))
    assert admitted(world.settle()) == ["first", "second"]


def test_a_queue_that_is_missing_is_named_and_waited_for() -> None:
    world = TenantWorld([make_queue()], [make_job("astray", queue="nowhere")])

    assert waits(world.cycle()) == {"astray-0": "LocalQueue nowhere doesn't exist"}

    world.show(make_local_queue("nowhere", cluster_queue="queue"))
    assert admitted(world.cycle()) == ["astray"]


def test_a_flavor_that_is_missing_makes_the_queue_inactive() -> None:
    world = TenantWorld([make_queue()], [make_job()], flavors=[])

    said = "ClusterQueue queue is inactive: references missing ResourceFlavor(s): default"
    assert waits(world.cycle()) == {"job-0": said}

    world.show(ResourceFlavor(metadata=make_flavor("default").metadata))
    assert admitted(world.cycle()) == ["job"]


def test_a_namespace_that_the_queue_does_not_select_waits_until_it_is_labelled() -> None:
    queue = make_queue(namespaces=LabelSelector(match_labels={"team": "a"}))
    world = TenantWorld([queue], [make_job()], related=[make_namespace("default")])

    assert waits(world.cycle()) == {"job-0": "Workload namespace doesn't match ClusterQueue selector"}

    world.show(make_namespace("default", labels={"team": "a"}))
    assert admitted(world.cycle()) == ["job"]


def test_who_runs_goes_on_when_the_queue_disappears_and_counts_again_when_it_is_back() -> None:
    world = TenantWorld([make_queue()], [make_job("first", cpu=8, second=1)])
    world.settle()
    world.scheduler.handle(ObjectLost("ClusterQueue", "queue"))
    world.cycle()
    assert world.running() == ["first-0"]

    world.show(make_queue())
    world.submit(make_job("second", cpu=8, second=2))
    assert admitted(world.cycle()) == []


def test_a_deactivated_work_stops_and_starts_again_when_it_is_activated() -> None:
    job = make_job()
    world = TenantWorld([make_queue()], [job])
    world.settle()

    world.see(job, spec=replace(job.workload.spec, active=False))
    assert suspended(world.cycle()) == [("job", "Deactivated")]
    assert waits(world.cycle()) == {"job-0": "The workload is deactivated"}
    assert world.running() == []

    world.see(job, spec=job.workload.spec)
    assert admitted(world.settle()) == ["job"]


def test_a_deleted_work_frees_what_it_held() -> None:
    first, second = make_job("first", cpu=8, second=1), make_job("second", cpu=8, second=2)
    world = TenantWorld([make_queue()], [first, second])
    world.settle()

    world.delete(first)

    assert admitted(world.cycle()) == ["second"]


def test_a_work_that_the_world_says_is_admitted_goes_on() -> None:
    running = make_job("running", cpu=8, second=1)
    hold(running.workload, "queue", usage={"cpu": 8})
    world = TenantWorld([make_queue()], [running, make_job("waiting", cpu=8, second=2)])

    assert admitted(world.cycle()) == ["running"]
    assert world.running() == ["running-0"]
    assert world.in_stage(Stage.WAITING) == ["waiting"]


def test_pods_that_come_late_or_without_the_gate_are_treated_like_the_others() -> None:
    job, waiting = make_job("job", pods=2, cpu=4, second=1), make_job("waiting", cpu=8, second=2)
    late, ungated = job.pods.pop(), waiting.pods[0]
    ungated.spec.scheduling_gates = None
    world = TenantWorld([make_queue()], [job, waiting])
    world.settle()
    assert world.running() == ["job-0"]

    world.scheduler.handle(PodSeen(late))
    world.settle()

    assert world.running() == ["job-0", "job-1"]


def test_excluded_and_transformed_resources_count_as_configured() -> None:
    rule = TransformedResource({"credits": 3 * 10**9}, keeps_input=False)
    settings = QueueingSettings(transformations={"cpu": rule}, excluded_prefixes=("memory",))
    queue = make_queue("queue", make_group(default=make_quota(7, resource="credits")))
    jobs = [make_job("first", cpu=2, second=1), make_job("second", cpu=1, second=2)]
    world = TenantWorld([queue], jobs, settings=settings)

    assert admitted(world.cycle()) == ["first"]
    tree = world.admission.structure.tree
    assert tree.usage_of(world.admission.structure.queues["queue"].node, 0) == 6


def test_resources_without_quota_keep_a_work_out_unless_they_are_ignored() -> None:
    queue = make_queue("queue", make_group(default=make_quota(7, resource="memory")))

    blocked = TenantWorld([queue], [make_job()])
    ignored = TenantWorld([queue], [make_job()], settings=QueueingSettings(ignores_undeclared=True))

    said = "couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue"
    assert waits(blocked.cycle()) == {"job-0": said}
    assert admitted(ignored.cycle()) == ["job"]


def test_a_work_that_is_sent_back_and_admitted_at_the_same_moment_starts_with_what_it_is_given_now() -> None:
    queue = make_queue("queue", make_group(fast=make_quota(3), slow=make_quota(0)))
    flavors = [make_flavor("fast", labels={"pool": "fast"}), make_flavor("slow", labels={"pool": "slow"})]
    nodes = [make_node(pool, cpu=64, labels={"pool": pool}) for pool in ("fast", "slow")]
    world = TenantWorld([queue], [make_job("job", pods=3, min_pods=1)], flavors=flavors, nodes=nodes)
    world.settle()
    world.show(replace(queue, spec=replace(queue.spec, stop_policy=HOLD_AND_DRAIN)))
    world.finishes_evictions = False
    world.cycle()

    world.show(make_queue("queue", make_group(fast=make_quota(0), slow=make_quota(2))))
    world.let_go()
    decisions = world.cycle()

    assert [(found.pod, found.node) for found in decisions if isinstance(found, Bind)] == [
        ("default/job-0", "slow"),
        ("default/job-1", "slow"),
    ]


def deferred(decisions: list[Decision]) -> list[tuple[str, str]]:
    return [(found.workload, found.reason) for found in decisions if isinstance(found, Defer)]


def test_of_a_workload_that_waits_it_is_said_why_once_and_again_when_that_changes() -> None:
    jobs = [make_job("first", pods=2, cpu=4, second=1), make_job("second", cpu=4, second=2)]
    world = TenantWorld([make_queue()], jobs)
    assert deferred(world.cycle()) == [("default/second", "WaitingForQuota")]
    assert deferred(world.cycle()) == []
    world.show(make_queue(stop_policy=HOLD))
    assert deferred(world.cycle()) == [("default/second", "Suspended")]


def shortage(decisions: list[Decision], workload: str) -> str:
    """The end of what a workload that waits is told."""
    told = (said.message for said in decisions if isinstance(said, Defer) and said.workload == workload)
    return next(told, "").rpartition(", ")[2]


def test_what_is_short_is_said_anew_when_quota_was_freed_and_the_workload_is_tried_again() -> None:
    jobs = [make_job("first", cpu=4, second=1), make_job("large", cpu=8, second=2)]
    world = TenantWorld([make_queue()], jobs)
    assert shortage(world.cycle(), "default/large") == "2 more needed"

    world.submit(make_job("small", cpu=3, second=3))
    assert not shortage(world.cycle(), "default/large"), "it is not tried: what others are given does not help it"
    world.submit(make_job("tiny", cpu=1, second=4))
    assert not shortage(world.cycle(), "default/large")

    world.succeed("default/tiny-0")
    assert shortage(world.cycle(), "default/large") == "5 more needed"


def test_the_condition_of_who_is_preempted_tells_that_and_for_what_reason() -> None:
    told = Suspend("default/low", "InClusterQueue", "", "default/high"), Suspend("default/low", "Deactivated", "")
    assert [(found.evicted_reason, found.reason) for found in told] == [
        ("Preempted", "InClusterQueue"),
        ("Deactivated", "Deactivated"),
    ]
