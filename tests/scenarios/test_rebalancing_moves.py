"""Moves of rebalancing: their target is held, gangs go whole, and nothing moves in vain or twice."""

from typing import Any

import pytest
from rebalancing_world import (
    START,
    evictions,
    let_run,
    make_world,
    places,
    plan_of,
    policy_of,
    replica,
)

from mooring.drivers.offline.driver import Offline
from mooring.model.api.meta import LabelSelector, ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec
from mooring.model.decisions import Bind, Evict, Wait
from mooring.model.events import NodeLoadSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang
from mooring.model.gangs.membership import membership
from mooring.model.keys import PodKey
from mooring.model.load.reports import NodeReport, PodUsage
from mooring.observe.progress import Progress
from mooring.testing.builders import HOSTNAME, make_node, make_nodes, make_pod, make_spread, make_taint

TAINTS = policy_of({"RemovePodsViolatingNodeTaints": {}})
LOW_CPU = {"LowNodeUtilization": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}}


def tainted(*pods: Pod, policy: dict[str, Any] = TAINTS, **given: Any) -> Offline:
    nodes = [make_node("old", cpu=10, taints=[make_taint("old")]), make_node("new", cpu=4)]
    return make_world(nodes, pods, policy, **given)


def test_the_target_is_held_until_the_successor_comes() -> None:
    world = tainted(replica("a", "old", cpu=3))
    scheduler = world.scheduler

    first = [found for found in scheduler.cycle(START) if not isinstance(found, Wait)]
    reason = "RemovePodsViolatingNodeTaints: node(s) had untolerated taint(s)"
    assert first == [Evict("default/a", "old", "", reason, "new", "eviction")]

    scheduler.handle(PodLost("default/a"), PodSeen(make_pod("thief", cpu=3)))
    assert [type(found) for found in scheduler.cycle(START + 1)] == [Wait]

    scheduler.handle(PodSeen(replica("b", cpu=3)))
    assert [found for found in scheduler.cycle(START + 2) if isinstance(found, Bind)] == [Bind("default/b", "new")]


def test_a_budget_lets_go_no_more_than_it_has() -> None:
    spec = PodDisruptionBudgetSpec(min_available=1, selector=LabelSelector(match_labels={"app": "web"}))
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="default"), spec=spec)
    pods = [replica(name, "old", cpu=1, labels={"app": "web"}) for name in "ab"]
    world = tainted(*pods, related=[budget])

    plan = plan_of(world)

    assert [step.pod for step in plan.steps] == ["default/a"]
    assert [(stay.pod, stay.reason) for stay in plan.stays] == [("default/b", "a disruption budget has none to give")]


def test_a_pod_that_asks_not_to_be_disrupted_stays() -> None:
    world = tainted(replica("a", "old", cpu=1, annotations={"karpenter.sh/do-not-disrupt": "true"}))

    assert evictions(let_run(world)) == []


def test_a_pod_without_a_controller_stays_even_if_the_policy_lets_it_go() -> None:
    alone = make_pod("a", node="old", cpu=1, annotations={"descheduler.alpha.kubernetes.io/evict": ""})
    world = tainted(alone)

    assert [stay.reason for stay in plan_of(world).stays] == ["it has no controller: nothing would make it anew"]


def test_a_plan_is_only_looked_at() -> None:
    world = tainted(replica("a", "old", cpu=1))

    assert [step.pod for step in plan_of(world).steps] == ["default/a"]
    assert plan_of(world) == plan_of(world)
    assert not world.scheduler.cluster.has_plans
    assert world.scheduler.cluster.moves.last("web", "new") is None


# Gangs.


def gang_of(names: str, node: str, **given: Any) -> tuple[Gang, list[Pod]]:
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    pods = [replica(name, node, of="train", labels=labels, **given) for name in names]
    found = membership(pods[0])
    assert found is not None
    return Gang(found.gang, "default/g", len(names)), pods


def test_a_gang_moves_whole() -> None:
    gang, pods = gang_of("ab", "old", cpu=1)
    pods[1].spec.node_name = "other"
    nodes = [make_node("old", cpu=4, taints=[make_taint("old")]), make_node("other", cpu=1), make_node("new", cpu=4)]
    world = make_world(nodes, pods, TAINTS, gangs=[gang])

    moved = evictions(let_run(world))

    assert sorted(pod for pod, _, _ in moved) == ["default/a", "default/b"]
    assert places(world)["default/a"] == "new"
    assert places(world)["default/b"] in ("new", "other")


def test_a_gang_that_finds_no_room_as_a_whole_stays() -> None:
    gang, pods = gang_of("ab", "old", cpu=3)
    world = tainted(*pods, gangs=[gang])

    assert evictions(let_run(world)) == []
    assert {stay.reason.partition(":")[0] for stay in plan_of(world).stays} == {"gang default/g cannot be placed"}


# Never twice, and never for less than it costs.


def test_nothing_moves_twice_within_the_quiet_time() -> None:
    nodes = [make_node("a", cpu=10), make_node("b", cpu=10)]
    pods = [replica("web", "a", cpu=4), *(replica(f"x-{n}", "a", of="x", cpu=1) for n in range(3))]
    world = make_world(nodes, pods, policy_of(LOW_CPU), quiet_seconds=3600.0)

    assert evictions(let_run(world, 60)) == [("default/web", "a", "b")]
    # The other node becomes the busy one: what was moved there stays until the time is over.
    full = [replica(f"y-{n}", "b", of="y", cpu=1, priority=10) for n in range(5)]
    world.scheduler.handle(*map(PodSeen, full))
    world.given |= {pod.key: pod for pod in full}
    moved = [pod for pod, _, _ in evictions(world.pass_time(3000, Progress()))]
    assert "default/web" not in moved
    assert moved[:1] == ["default/y-0"]


@pytest.mark.parametrize(("kind", "moves"), [("ReplicaSet", 1), ("StatefulSet", 1), ("Job", 0)])
def test_what_would_start_over_stays_when_it_has_run_for_long(kind: str, moves: int) -> None:
    world = tainted(replica("a", "old", kind=kind, cpu=1))

    assert len(evictions(let_run(world))) == moves


def test_a_relief_of_less_than_the_cost_of_a_restart_is_none() -> None:
    nodes = [make_node("a", cpu=1000), make_node("b", cpu=1000)]
    pods = [replica("large", "a", of="large", cpu=505), *(replica(f"s-{n}", "a", of="s", cpu=5) for n in range(2))]
    world = make_world(nodes, pods, policy_of(LOW_CPU))

    reasons = {stay.reason for stay in plan_of(world).stays}
    assert reasons == {"a gain of 0.5 does not exceed the cost of 1.0"}
    assert evictions(let_run(world)) == []


# Other strategies.


def test_duplicates_go_where_none_of_them_is() -> None:
    nodes = make_nodes(3, cpu=10)
    pods = [replica(f"web-{n}", "node-0", cpu=1) for n in range(3)]
    world = make_world(nodes, pods, policy_of({"RemoveDuplicates": {}}))

    assert len(evictions(let_run(world))) == 2
    assert sorted(places(world).values()) == ["node-0", "node-1", "node-2"]


def test_broken_spread_is_mended() -> None:
    nodes = make_nodes(2, cpu=10, labels={})
    for node in nodes:
        node.metadata.labels = {HOSTNAME: node.metadata.name}
    spread = [make_spread(HOSTNAME, labels={"app": "web"})]
    pods = [replica(f"web-{n}", "node-0", cpu=1, labels={"app": "web"}, spread=spread) for n in range(4)]
    world = make_world(nodes, pods, policy_of({"RemovePodsViolatingTopologySpreadConstraint": {}}))

    assert len(evictions(let_run(world))) == 2
    assert sorted(places(world).values()) == ["node-0", "node-0", "node-1", "node-1"]


def test_pods_that_are_too_old_are_made_anew_wherever_they_go() -> None:
    world = make_world(
        make_nodes(2, cpu=10),
        [replica("a", "node-0", cpu=1)],
        policy_of({"PodLifeTime": {"maxPodLifeTimeSeconds": 86400}}),
    )

    assert [(pod, node) for pod, node, _ in evictions(let_run(world))] == [("default/a", "node-0")]
    assert places(world)["default/a"] != ""


def test_limits_of_the_policy_hold() -> None:
    pods = [replica(name, "old", cpu=1) for name in "abc"]
    policy = policy_of({"RemovePodsViolatingNodeTaints": {}}, maxNoOfPodsToEvictTotal=2)
    world = tainted(*pods, policy=policy)

    assert [step.pod for step in plan_of(world).steps] == ["default/a", "default/b"]


def test_a_run_that_has_to_end_goes_on_in_the_next() -> None:
    world = tainted(*(replica(name, "old", cpu=1) for name in "abc"))
    asked = iter([False, True, True, True])
    world.scheduler.new_deadline = lambda: lambda: next(asked, True)

    assert len(evictions(world.scheduler.cycle(START))) == 1


def test_no_more_pods_leave_in_one_run_than_the_policy_says() -> None:
    world = tainted(*(replica(name, "old", cpu=1) for name in "abc"), most_moves_per_run=2, interval_seconds=600.0)

    assert len(evictions(let_run(world, 300))) == 2
    assert len(evictions(world.pass_time(600, Progress()))) == 1


# Measured load.


def loaded(**given: Any) -> Offline:
    """Node `a` is measured to be overloaded by two pods that request little."""
    args = {"lowThresholds": {"cpu": 40}, "highThresholds": {"cpu": 70}, **given}
    pods = [replica("x", "a", cpu=1), replica("y", "a", cpu=2), replica("z", "b", of="other", cpu=1)]
    world = make_world([make_node("a", cpu=10), make_node("b", cpu=10)], pods, policy_of({"LowNodeLoad": args}))
    usage = {PodKey(f"default/{name}"): PodUsage({"cpu": 4000, "memory": 0}) for name in "xy"}
    world.scheduler.handle(
        NodeLoadSeen(NodeReport("a", START, usage={"cpu": 8000, "memory": 0}, pods=usage)),
        NodeLoadSeen(NodeReport("b", START, usage={"cpu": 1000, "memory": 0})),
    )
    return world


def test_pods_leave_nodes_that_are_measured_to_be_overloaded() -> None:
    world = loaded(anomalyCondition={"consecutiveAbnormalities": 1})

    assert evictions(let_run(world, 60)) == [("default/x", "a", "b")]


def test_one_look_at_the_load_is_not_enough_unless_the_policy_says_so() -> None:
    world = loaded(nodeMetricExpirationSeconds=0)  # five looks, by default

    assert evictions(let_run(world, 1400)) == []
    assert evictions(world.pass_time(200, Progress())) == [("default/x", "a", "b")]


def test_a_plan_believes_what_was_measured() -> None:
    world = loaded()
    world.scheduler.catch_up(START)

    (step,) = plan_of(world).steps

    assert (step.pod, step.target, step.gain) == ("default/x", "b", 40.0)
    assert step.reason == "node a is measured to be overloaded"
