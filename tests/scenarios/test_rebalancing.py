"""What people have reported of the descheduler, as stories: evictions of two hours beside those of its own way."""

from rebalancing_world import (
    MOST_ALLOCATED,
    evictions,
    let_run,
    make_world,
    places,
    plan_of,
    policy_of,
    replica,
)

from mooring.drivers.offline.driver import Offline
from mooring.testing.builders import GPU, make_affinity, make_node, make_nodes, make_taint

LOW_CPU = {"LowNodeUtilization": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}}
HIGH_CPU = {"HighNodeUtilization": {"thresholds": {"cpu": 40}}}


def likes(zone: str, weight: int = 100) -> object:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    return make_affinity(
        nodes={"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": term}]}
    )


def returning(*, compatible: bool) -> Offline:
    """Descheduler issues 335, 655 and 994: the busy node is the one that the pods prefer by far."""
    nodes = [make_node("busy", cpu=10, labels={"zone": "a"}), make_node("idle", cpu=10, labels={"zone": "b"})]
    pods = [replica(f"web-{number}", "busy", cpu=1, affinity=likes("a")) for number in range(6)]
    return make_world(nodes, pods, policy_of(LOW_CPU), compatible=compatible)


def test_pods_that_would_return_to_the_node_that_they_left_stay() -> None:
    compatible, ours = returning(compatible=True), returning(compatible=False)

    assert len(evictions(let_run(compatible))) == 25  # one in each of 25 runs, and back again
    assert set(places(compatible).values()) == {"busy"}
    assert evictions(let_run(ours)) == []
    assert {stay.reason for stay in plan_of(ours).stays} == {"it would return to node busy"}


def dry_run(*, compatible: bool) -> Offline:
    """Descheduler issue 1584: ten pods are to leave, and one node has room, for one of them."""
    nodes = [
        make_node("old", cpu=100, taints=[make_taint("old")]),
        make_node("full", cpu=8),
        make_node("room", cpu=9),
    ]
    pods = [replica(f"web-{number}", "old", cpu=8) for number in range(10)] + [replica("other", "full", cpu=8)]
    policy = policy_of({"RemovePodsViolatingNodeTaints": {}, "DefaultEvictor": {"nodeFit": True}})
    return make_world(nodes, pods, policy, compatible=compatible)


def test_a_plan_deducts_what_it_moves() -> None:
    compatible, ours = dry_run(compatible=True), dry_run(compatible=False)

    assert len(plan_of(compatible).steps) == 10
    plan = plan_of(ours)
    assert [(step.pod, step.node, step.target) for step in plan.steps] == [("default/web-0", "old", "room")]
    assert len(plan.stays) == 9
    assert {stay.reason.partition(":")[0] for stay in plan.stays} == {"it cannot be placed"}
    assert evictions(let_run(ours)) == [("default/web-0", "old", "room")]
    assert places(ours)["default/web-0"] == "room"


def idle_everywhere(*, compatible: bool) -> Offline:
    """Descheduler issue 725: every node is below the threshold, so that nothing is ever emptied."""
    nodes = make_nodes(4, cpu=10)
    pods = [replica(f"web-{number}", f"node-{number}", cpu=number + 1) for number in range(3)]
    return make_world(nodes, pods, policy_of(HIGH_CPU), profile=MOST_ALLOCATED, compatible=compatible)


def test_nodes_are_emptied_even_if_every_node_is_idle() -> None:
    compatible, ours = idle_everywhere(compatible=True), idle_everywhere(compatible=False)

    assert evictions(let_run(compatible)) == []
    assert evictions(let_run(ours)) == [
        ("default/web-0", "node-0", "node-2"),
        ("default/web-1", "node-1", "node-2"),
    ]
    assert set(places(ours).values()) == {"node-2"}


def gpus(*, compatible: bool) -> Offline:
    """Descheduler issue 1635: with thresholds for GPUs alone, pods and nodes without GPUs are evicted, too."""
    nodes = [
        *make_nodes(3, prefix="gpu", cpu=20, gpu=8, labels={"kind": "gpu"}),
        *make_nodes(2, prefix="cpu", cpu=20),
    ]
    pods = [
        replica("train-0", "gpu-0", of="train", cpu=1, gpu=1),
        replica("sidecar", "gpu-0", of="side", cpu=1),
        replica("train-1", "gpu-1", of="train", cpu=1, gpu=4),
        replica("train-2", "gpu-2", of="train", cpu=1, gpu=6),
        *(replica(f"web-{number}", f"cpu-{number % 2}", cpu=4) for number in range(4)),
    ]
    policy = policy_of({"HighNodeUtilization": {"thresholds": {GPU: 40}}})
    profile = {
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": GPU, "weight": 1}]}},
            }
        ],
        "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
    }
    return make_world(nodes, pods, policy, profile=profile, compatible=compatible)


def test_thresholds_of_gpus_speak_of_gpus_alone() -> None:
    compatible, ours = gpus(compatible=True), gpus(compatible=False)

    first = [pod for pod, _, _ in evictions(compatible.step(2**31)[0])]
    assert sorted(first) == ["default/sidecar", "default/train-0", *(f"default/web-{n}" for n in range(4))]
    assert evictions(let_run(ours)) == [("default/train-0", "gpu-0", "gpu-2")]


def scores(*, compatible: bool) -> Offline:
    """Descheduler issue 238: a preferred node that is full is no better place to go to."""
    nodes = [
        make_node("liked", cpu=4, labels={"zone": "a"}),
        make_node("here", cpu=16, labels={"zone": "b"}),
        make_node("there", cpu=16, labels={"zone": "b"}),
    ]
    pods = [
        replica("first", "liked", of="other", cpu=3),
        replica("small", "here", cpu=1, affinity=likes("a")),
        replica("large", "here", of="large", cpu=2, affinity=likes("a")),
    ]
    args = {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]}
    policy = policy_of({"RemovePodsViolatingNodeAffinity": args})
    return make_world(nodes, pods, policy, compatible=compatible)


def test_pods_leave_only_for_nodes_with_higher_scores() -> None:
    compatible, ours = scores(compatible=True), scores(compatible=False)

    assert len(evictions(let_run(compatible))) == 26  # both at first, then `large` again and again
    assert evictions(let_run(ours)) == [("default/small", "here", "liked")]
    assert [stay.pod for stay in plan_of(ours).stays] == ["default/large"]
