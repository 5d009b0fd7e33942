"""Gangs for which room is made: for all of their members at one moment, and for nobody without the others."""

from collections.abc import Iterable
from typing import Any

from preemption_builders import gang_scheduler, make_gang, make_member, make_running, seconds

from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Evict, Wait
from mooring.model.events import NodeLost, NodeSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import RACK, make_node, make_pod, make_profile

WAITS = "gang default/train: room for 0 of 2 members"


def make_members(count: int, gang: str = "train", **given: Any) -> list[Pod]:
    given = {"cpu": 2, "priority": 10} | given
    return [make_member(f"{gang}-{index}", gang, **given) for index in range(count)]


def evicted(decisions: Iterable[Any]) -> list[str]:
    return [found.pod.partition("/")[2] for found in decisions if isinstance(found, Evict)]


def bound(decisions: Iterable[Any]) -> dict[str, str]:
    return {found.pod.partition("/")[2]: found.node for found in decisions if isinstance(found, Bind)}


def full_cluster(*more: Pod, gangs: Iterable[Gang] = (), profile: Any = None) -> Any:
    """Two nodes, each full of one pod, and a gang of two that wants both."""
    return gang_scheduler(
        nodes=[make_node("a", cpu=2), make_node("b", cpu=2)],
        pods=[make_running("x", "a", cpu=2), make_running("y", "b", cpu=2), *make_members(2), *more],
        gangs=[make_gang("train", 2), *gangs],
        profile=profile,
    )


def test_a_gang_waits_for_all_of_its_victims_and_is_bound_as_one() -> None:
    scheduler = full_cluster()

    first = scheduler.cycle(1.0)

    message = f"{WAITS} pod group preemption: found a placement for podgroup, preempting 2 victims"
    nodes = {found.pod: found.nominated_node for found in first if isinstance(found, Wait)}
    assert first == [
        Evict("default/x", "a", "default/train-0", "Preempted by pod group default/train"),
        Evict("default/y", "b", "default/train-0", "Preempted by pod group default/train"),
        Wait("default/train-0", message, ("GangScheduling",), nodes["default/train-0"]),
        Wait("default/train-1", message, ("GangScheduling",), nodes["default/train-1"]),
    ]
    assert sorted(nodes.values()) == ["a", "b"]
    scheduler.handle(PodLost("default/x"))
    assert scheduler.cycle(2.0) == []
    scheduler.handle(PodLost("default/y"))
    assert {f"default/{pod}": node for pod, node in bound(scheduler.cycle(3.0)).items()} == nodes


def test_nobody_else_takes_the_room_meanwhile() -> None:
    scheduler = full_cluster()
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/x"), PodSeen(make_pod("latecomer", cpu=1)))

    assert bound(scheduler.cycle(2.0)) == {}
    scheduler.handle(PodLost("default/y"))
    assert sorted(bound(scheduler.cycle(3.0))) == ["train-0", "train-1"]


def test_members_shown_as_waiting_meanwhile_keep_their_places() -> None:
    scheduler = full_cluster()
    scheduler.cycle(1.0)
    scheduler.handle(*(PodSeen(pod) for pod in make_members(2)))
    assert bound(scheduler.cycle(2.0)) == {}

    scheduler.handle(PodLost("default/x"), PodLost("default/y"))

    assert sorted(bound(scheduler.cycle(3.0))) == ["train-0", "train-1"]
    assert scheduler.cycle(4.0) == []


def test_a_gang_that_loses_a_member_meanwhile_gives_its_room_up() -> None:
    scheduler = full_cluster()
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/train-1"), PodLost("default/x"), PodSeen(make_pod("other", cpu=2)))

    first = bound(scheduler.cycle(2.0))
    second = bound(scheduler.cycle(3.0))

    assert first | second == {"other": "a"}


def test_a_gang_that_gets_its_member_back_is_tried_again() -> None:
    scheduler = full_cluster()
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/train-1"), PodLost("default/x"), PodLost("default/y"))
    assert bound(scheduler.cycle(2.0)) == {}
    again = make_members(2)[1]
    again.metadata.uid = "again"
    scheduler.handle(PodSeen(again))

    assert sorted(bound(scheduler.cycle(3.0))) == ["train-0", "train-1"]


def test_a_still_more_urgent_pod_takes_the_room_from_the_whole_gang() -> None:
    scheduler = full_cluster()
    scheduler.cycle(1.0)
    scheduler.handle(PodSeen(make_pod("most-urgent", cpu=2, priority=20)))
    assert evicted(scheduler.cycle(2.0)) == []
    scheduler.handle(PodLost("default/x"), PodLost("default/y"))

    decisions = [*scheduler.cycle(3.0), *scheduler.cycle(4.0)]

    assert list(bound(decisions)) == ["most-urgent"]
    last = {found.pod: found.message for found in decisions if isinstance(found, Wait)}
    assert set(last) == {"default/train-0", "default/train-1"}


def test_a_gang_whose_node_is_lost_meanwhile_is_placed_elsewhere() -> None:
    scheduler = full_cluster()
    scheduler.cycle(1.0)
    scheduler.handle(NodeLost("a"), NodeSeen(make_node("c", cpu=2)), NodeSeen(make_node("d", cpu=2)))

    decisions = [decision for now in (2.0, 3.0, 4.0) for decision in scheduler.cycle(now)]

    assert sorted(bound(decisions)) == ["train-0", "train-1"]
    assert set(bound(decisions).values()) == {"c", "d"}


def test_a_gang_makes_room_only_for_the_members_it_needs() -> None:
    scheduler = gang_scheduler(
        nodes=[make_node("a", cpu=2), make_node("b", cpu=2)],
        pods=[make_running("x", "a", cpu=2), make_running("y", "b", cpu=2), *make_members(2)],
        gangs=[make_gang("train", 1)],
    )

    first = scheduler.cycle(1.0)
    assert len(evicted(first)) == 1
    scheduler.handle(PodLost(f"default/{evicted(first)[0]}"))

    assert list(bound(scheduler.cycle(2.0))) == ["train-0"]


def test_a_gang_evicts_a_whole_gang_and_not_a_part_of_it() -> None:
    victims = [make_member(f"old-{index}", "old", cpu=1, node=node) for index, node in enumerate("abc")]
    scheduler = gang_scheduler(
        nodes=[make_node(name, cpu=1) for name in "abc"],
        pods=[*victims, *make_members(2, cpu=1)],
        gangs=[make_gang("train", 2), make_gang("old", 3)],
    )

    decisions = scheduler.cycle(1.0)

    assert evicted(decisions) == ["old-0", "old-1", "old-2"]
    reasons = {found.reason for found in decisions if isinstance(found, Evict)}
    assert reasons == {"Preempted by pod group default/train, gang default/old as a whole"}


def test_a_gang_evicts_no_pod_of_equal_priority() -> None:
    scheduler = gang_scheduler(
        nodes=[make_node("a", cpu=2), make_node("b", cpu=2)],
        pods=[make_running("x", "a", cpu=2), make_running("y", "b", cpu=2, priority=10), *make_members(2)],
        gangs=[make_gang("train", 2)],
    )

    decisions = scheduler.cycle(1.0)

    why = f"{WAITS} pod group preemption: room for 1 of 2 members even without all 1 pods of lower priority"
    assert decisions == [Wait(f"default/train-{i}", why, ("GangScheduling",)) for i in range(2)]
    assert scheduler.cycle(2.0) == []


def test_a_gang_that_may_not_evict_waits() -> None:
    scheduler = gang_scheduler(
        nodes=[make_node("a", cpu=2), make_node("b", cpu=2)],
        pods=[make_running("x", "a", cpu=2), make_running("y", "b", cpu=2), *make_members(2)],
        gangs=[make_gang("train", 2, preemption_policy="Never")],
    )

    decisions = scheduler.cycle(1.0)

    why = f"{WAITS} pod group preemption: not eligible due to preemptionPolicy=Never."
    assert decisions == [Wait(f"default/train-{i}", why, ("GangScheduling",)) for i in range(2)]


def test_without_the_plugin_a_gang_evicts_nobody() -> None:
    scheduler = full_cluster(profile=make_profile("NodeResourcesFit"))

    assert scheduler.cycle(1.0) == [Wait(f"default/train-{i}", WAITS, ("GangScheduling",)) for i in range(2)]


def test_room_is_made_in_one_rack_where_the_gang_wants_one() -> None:
    nodes = [make_node(f"n{i}", cpu=2, rack=f"rack-{i // 2}") for i in range(4)]
    running = [
        make_running("x", "n0", cpu=2),
        make_running("kept", "n1", cpu=2, priority=20),
        make_running("y", "n2", cpu=2, priority=5),
        make_running("z", "n3", cpu=2, priority=5),
    ]
    scheduler = gang_scheduler(
        nodes=nodes,
        pods=[*running, *make_members(2)],
        gangs=[make_gang("train", 2, topology_request=TopologyRequest(required=RACK))],
    )

    decisions = scheduler.cycle(1.0)

    assert evicted(decisions) == ["y", "z"]
    scheduler.handle(PodLost("default/y"), PodLost("default/z"))
    assert set(bound(scheduler.cycle(2.0)).values()) == {"n2", "n3"}


def test_the_rack_with_the_cheapest_victims_is_chosen() -> None:
    nodes = [make_node(f"n{i}", cpu=2, rack=f"rack-{i // 2}") for i in range(6)]
    running = [make_running(f"r{i}", f"n{i}", cpu=2, priority=(5, 5, 1, 1, 1, 5)[i]) for i in range(6)]
    scheduler = gang_scheduler(
        nodes=nodes,
        pods=[*running, *make_members(2)],
        gangs=[make_gang("train", 2, topology_request=TopologyRequest(required=RACK))],
    )

    assert evicted(scheduler.cycle(1.0)) == ["r2", "r3"]


def test_a_gang_is_told_for_how_long_its_victims_are_protected_and_tries_again() -> None:
    start = seconds("09:00")
    scheduler = gang_scheduler(
        nodes=[make_node("a", cpu=2), make_node("b", cpu=2)],
        pods=[make_running(name, node, cpu=2, started="09:00") for name, node in (("x", "a"), ("y", "b"))]
        + make_members(2),
        gangs=[make_gang("train", 2)],
        profile=make_profile(args={"PreemptionCost": {"minimumRuntimeSeconds": 60}}),
    )

    first = scheduler.cycle(start + 10)

    why = f"{WAITS} pod group preemption: victims are protected for another 50s"
    assert first == [Wait(f"default/train-{i}", why, ("GangScheduling",)) for i in range(2)]
    assert evicted(scheduler.cycle(start + 30)) == []
    assert evicted(scheduler.cycle(start + 60)) == ["x", "y"]


def test_a_gang_takes_the_nodes_that_lose_the_least_work() -> None:
    starts = ("01:00", "08:00", "02:00", "08:30")
    scheduler = gang_scheduler(
        nodes=[make_node(f"n{i}", cpu=2) for i in range(4)],
        pods=[make_running(f"r{i}", f"n{i}", cpu=2, started=start) for i, start in enumerate(starts)] + make_members(2),
        gangs=[make_gang("train", 2)],
        profile=make_profile(args={"PreemptionCost": {"leastWorkLost": True}}),
    )

    assert sorted(evicted(scheduler.cycle(seconds("09:00")))) == ["r1", "r3"]
