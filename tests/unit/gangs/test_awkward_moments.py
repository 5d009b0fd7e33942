"""Gangs to which things happen at the worst moment: whole or absent all the same, nobody lost, and every cycle ends."""

from typing import Any

import pytest
from gang_builders import (
    RACK,
    bound,
    evicted,
    make_gang,
    make_members,
    make_part,
    make_part_members,
    make_whole,
    start,
    waiting,
    whole_key,
)

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind, Decision
from mooring.model.events import Event, Failed, GangLost, GangSeen, NodeLost, NodeSeen, PodLost, PodSeen
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import make_node, make_pod, make_profile
from mooring.testing.random_clusters import with_node


def go(scheduler: Scheduler, now: float, *events: Event) -> list[Decision]:
    scheduler.handle(*events)
    return scheduler.cycle(now)


def begin(**args: Any) -> Scheduler:
    """A scheduler that may preempt, with nothing in it."""
    return start(profile=make_profile(args=args))


# Who evicts whom.


def test_a_gang_is_no_easier_to_evict_than_its_most_urgent_member_makes_it() -> None:
    """Its seats are of lower priority than the pod between; each would evict the other for ever."""
    scheduler = begin()
    urgent_surplus = make_members(1, first=1, gpu=1, priority=9)
    pods = [make_pod("low", gpu=1, node="n"), *make_members(1, gpu=1, priority=1), *urgent_surplus]

    decisions = go(
        scheduler,
        1.0,
        NodeSeen(make_node("n", gpu=1)),
        GangSeen(make_gang(minimum=1)),
        *map(PodSeen, (*pods, make_pod("between", gpu=1, priority=5))),
    )

    assert set(evicted(decisions)) == {"low"}
    assert set(bound(go(scheduler, 2.0, PodLost("default/low")))) == {"train-0"}


def test_a_surplus_member_evicts_with_its_gangs_priority() -> None:
    scheduler = begin()
    first, second = make_members(2, gpu=1, priority=9)
    gang = make_gang(minimum=1, priority=2)
    go(scheduler, 1.0, NodeSeen(make_node("m", gpu=1)), GangSeen(gang), PodSeen(first))
    others = [make_pod("low", gpu=1, node="n", priority=3), make_pod("between", gpu=1, priority=5)]

    decisions = go(scheduler, 2.0, NodeSeen(make_node("n", gpu=1)), *map(PodSeen, (second, *others)))

    assert set(evicted(decisions)) == {"low"}
    assert set(bound(go(scheduler, 3.0, PodLost("default/low")))) == {"between"}


def test_a_gang_does_not_evict_the_one_that_it_has_to_start_after() -> None:
    scheduler = begin()
    first, second = make_gang("first", 1), make_gang("second", 1, after=make_gang("first").key)
    go(scheduler, 1.0, NodeSeen(make_node("n", gpu=1)), GangSeen(first), PodSeen(make_members(1, "first", gpu=1)[0]))

    decisions = go(scheduler, 2.0, GangSeen(second), PodSeen(make_members(1, "second", gpu=1, priority=5)[0]))

    assert not evicted(decisions)


def test_who_was_released_already_is_not_evicted_once_more() -> None:
    scheduler = begin()
    gang = make_gang(minimum=1, timeout_seconds=10.0)
    go(scheduler, 1.0, NodeSeen(make_node("n", gpu=1)), GangSeen(gang), PodSeen(make_members(1, gpu=1)[0]))
    go(scheduler, 2.0)

    decisions = go(scheduler, 20.0, PodSeen(make_pod("urgent", gpu=1, priority=5)))

    assert [type(found).__name__ for found in decisions].count("Evict") == 1
    assert set(bound(go(scheduler, 21.0, PodLost("default/train-0")))) == {"urgent"}


def test_gangs_in_gangs_in_a_gang_go_together_where_none_can_be_spared() -> None:
    scheduler = begin()
    subs = [make_whole(f"sub{i}", 2, parent=whole_key("all")) for i in range(2)]
    parts = [make_part(f"p{i}", 1, parent=f"sub{i // 2}") for i in range(4)]
    pods = [make_part_members(f"p{i}", 1, gpu=1)[0] for i in range(4)]
    gangs = map(GangSeen, (make_whole(minimum=2), *subs, *parts))
    go(scheduler, 1.0, NodeSeen(make_node("n", gpu=4)), *gangs, *map(PodSeen, pods))

    decisions = go(scheduler, 2.0, PodSeen(make_pod("urgent", gpu=1, priority=9)))

    assert len(evicted(decisions)) == 4


# Those for whom room is made.


def test_a_member_whose_node_is_lost_while_another_loses_its_seat_waits_again() -> None:
    scheduler = begin()
    low = [make_pod(f"low-{name}", gpu=1, node=name) for name in "ab"]
    nodes = [NodeSeen(make_node(name, gpu=1)) for name in "ab"]
    members = make_members(2, gpu=1, priority=5)
    go(scheduler, 1.0, *nodes, GangSeen(make_gang(minimum=2)), *map(PodSeen, (*low, *members)))

    go(scheduler, 2.0, NodeLost("a"), PodSeen(make_pod("urgent", gpu=1, priority=9)))
    go(scheduler, 3.0, PodLost("default/low-a"), PodLost("default/low-b"))

    assert set(bound(go(scheduler, 400.0, NodeSeen(make_node("c", gpu=2))))) == {"train-0", "train-1"}


def test_seats_on_a_node_that_comes_back_in_another_rack_are_given_up() -> None:
    scheduler = begin()
    nodes = [make_node(name, gpu=1, labels={RACK: "r"}) for name in "ab"]
    low = [make_pod(f"low-{name}", gpu=1, node=name) for name in "ab"]
    members = make_members(2, gpu=1, priority=5)
    gang = make_gang(minimum=2, topology_request=TopologyRequest(required=RACK))
    go(scheduler, 1.0, *map(NodeSeen, nodes), GangSeen(gang), *map(PodSeen, (*low, *members)))

    moved = make_node("b", gpu=1, labels={RACK: "elsewhere"})
    decisions = go(scheduler, 2.0, NodeLost("b"), NodeSeen(moved), PodLost("default/low-a"), PodLost("default/low-b"))

    assert not bound(decisions)


def test_a_surplus_member_that_holds_a_seat_does_not_run_yet() -> None:
    scheduler = begin()
    members = make_members(3, gpu=1, priority=5)
    nodes = [NodeSeen(make_node("n", gpu=2)), NodeSeen(make_node("full", gpu=1))]
    low = PodSeen(make_pod("low", gpu=1, node="full"))
    go(scheduler, 1.0, *nodes, low, GangSeen(make_gang(minimum=2)), *map(PodSeen, members[:2]))
    assert set(evicted(go(scheduler, 2.0, PodSeen(members[2])))) == {"low"}

    decisions = go(scheduler, 3.0, PodLost("default/low"), GangSeen(make_gang(minimum=4)))

    assert set(evicted(decisions)) == {"train-0", "train-1"}
    assert not bound(decisions)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(GangSeen(make_part("p2", 2)), id="it needs more members"),
        pytest.param(GangLost(make_part("p2", 1).key), id="it is withdrawn"),
        pytest.param(PodSeen(make_pod("urgent", gpu=2, priority=9)), id="the others are evicted"),
    ],
)
def test_a_part_that_holds_seats_is_not_bound_if_its_gang_is_no_longer_whole_with_it(happens: Event) -> None:
    scheduler = begin()
    nodes = [NodeSeen(make_node("a", gpu=2)), NodeSeen(make_node("b", gpu=1))]
    gangs = [make_whole(minimum=2, priority=5), *(make_part(f"p{i}", 1) for i in range(3))]
    pods = [make_pod("low", gpu=1, node="b"), *(make_part_members(f"p{i}", 1, gpu=1)[0] for i in range(3))]
    first = go(scheduler, 1.0, *nodes, *map(GangSeen, gangs), *map(PodSeen, pods))
    assert set(evicted(first)) == {"low"}

    assert not bound(go(scheduler, 2.0, PodLost("default/low"), happens))


def test_room_that_is_reserved_does_not_count_as_taken_by_the_gang() -> None:
    scheduler = begin(GangScheduling={"reserveAfterSeconds": 0})
    nodes = [NodeSeen(make_node(name, gpu=gpu, labels={RACK: "r"})) for name, gpu in (("a", 2), ("b", 1))]
    members = make_members(2, gpu=1, priority=1)
    gang = make_gang(minimum=2, topology_request=TopologyRequest(required=RACK))
    blocker = PodSeen(make_pod("blocker", gpu=1, node="b", priority=10))
    go(scheduler, 1.0, *nodes, blocker, GangSeen(gang), *map(PodSeen, members))
    surplus = PodSeen(make_members(1, first=2, gpu=1, priority=1)[0])
    go(scheduler, 2.0, *(PodSeen(with_node(pod, "a")) for pod in members), surplus)

    decisions = go(scheduler, 3.0, PodSeen(make_pod("urgent", gpu=2, priority=5)))

    assert set(evicted(decisions)) == {"train-0", "train-1"}
    assert not bound(decisions)


# What is left of gangs.


def test_a_member_that_was_to_be_evicted_and_was_never_bound_counts_again() -> None:
    scheduler = begin()
    nodes = [NodeSeen(make_node(name, gpu=1)) for name in "ab"]
    members = make_members(2, gpu=1)
    placed = bound(go(scheduler, 1.0, *nodes, GangSeen(make_gang(minimum=2)), *map(PodSeen, members)))
    refused = Failed(Bind("default/train-0", ""))
    assert set(evicted(go(scheduler, 2.0, refused, NodeLost(placed["train-0"])))) == {"train-1"}

    go(scheduler, 3.0, Failed(Bind("default/train-1", "")))
    placed = bound(go(scheduler, 20.0, NodeSeen(make_node("c", gpu=4))))
    go(scheduler, 21.0, *(PodSeen(with_node(pod, placed[pod.metadata.name])) for pod in members))

    assert not evicted(go(scheduler, 400.0))


def test_the_surplus_of_a_part_that_is_gone_waits_for_the_others() -> None:
    scheduler = begin()
    large, small = make_part_members("p0", 3, gpu=1), make_part_members("p1", 1, gpu=1)
    gangs = map(GangSeen, (make_whole(minimum=1), make_part("p0", 2), make_part("p1", 1)))
    running = [*large[:2], *small]
    go(scheduler, 1.0, NodeSeen(make_node("a", gpu=3)), *gangs, *map(PodSeen, running))
    go(scheduler, 2.0, *(PodSeen(with_node(pod, "a")) for pod in running), PodSeen(large[2]))

    assert not bound(go(scheduler, 3.0, PodLost(large[0].key), PodLost(large[1].key)))


def test_a_gang_that_waits_for_room_does_not_start_once_the_one_before_it_has_fallen_short() -> None:
    scheduler = begin()
    members = make_members(2, "first", gpu=1)
    go(scheduler, 1.0, NodeSeen(make_node("n", gpu=2)), GangSeen(make_gang("first", 2)), *map(PodSeen, members))
    go(scheduler, 2.0, *(PodSeen(with_node(pod, "n")) for pod in members))
    second = make_gang("second", 1, after=make_gang("first").key)
    go(scheduler, 3.0, GangSeen(second), PodSeen(make_members(1, "second", gpu=1)[0]))

    assert not bound(go(scheduler, 4.0, PodLost("default/first-1")))


def test_a_gang_that_starts_after_a_gang_of_gangs_does_not_once_that_has_fallen_short() -> None:
    scheduler = begin()
    pod = make_part_members("p", 1, gpu=1)[0]
    gangs = [make_whole(minimum=1), make_part("p", 1)]
    go(scheduler, 1.0, NodeSeen(make_node("n", gpu=1)), *map(GangSeen, gangs), PodSeen(pod))
    go(scheduler, 2.0, PodSeen(with_node(pod, "n")))
    second = make_gang("second", 1, after=whole_key("all"))
    go(scheduler, 3.0, GangSeen(second), PodSeen(make_members(1, "second", gpu=1)[0]))

    assert not bound(go(scheduler, 400.0, PodLost(pod.key)))


def test_a_gang_that_lost_a_part_by_withdrawal_is_released_in_time() -> None:
    scheduler = begin()
    pods = [make_part_members(f"p{i}", 1, gpu=1)[0] for i in range(2)]
    gangs = map(GangSeen, (make_whole(minimum=2), make_part("p0", 1), make_part("p1", 1)))
    go(scheduler, 1.0, NodeSeen(make_node("a", gpu=2)), *gangs, *map(PodSeen, pods))
    go(scheduler, 2.0, *(PodSeen(with_node(pod, "a")) for pod in pods))

    go(scheduler, 3.0, GangLost(make_part("p0", 1).key))

    assert set(evicted(go(scheduler, 400.0))) == {"p1-0"}


# Gangs of which some will do.


def test_a_part_that_does_not_fit_is_not_in_the_way_of_one_that_would_do_as_well() -> None:
    scheduler = begin()
    gangs = map(GangSeen, (make_whole(minimum=1), make_part("big", 1), make_part("small", 1)))
    pods = [*make_part_members("big", 1, gpu=4), *make_part_members("small", 1, gpu=1)]

    decisions = go(scheduler, 1.0, NodeSeen(make_node("a", gpu=2)), *gangs, *map(PodSeen, pods))

    assert set(bound(decisions)) == {"small-0"}


def test_a_part_deep_inside_starts_whole_or_not_at_all() -> None:
    scheduler = begin()
    inner = [make_part("p0", 1, parent="sub"), make_part("p1", 2, parent="sub")]
    gangs = map(GangSeen, (make_whole(minimum=1), make_whole("sub", 1, parent=whole_key("all")), *inner))
    pods = [*make_part_members("p0", 1, gpu=1), *make_part_members("p1", 2, gpu=1)]

    decisions = go(scheduler, 1.0, NodeSeen(make_node("n", gpu=2)), *gangs, *map(PodSeen, pods))

    assert set(bound(decisions)) == {"p0-0"}
    assert {"p1-0", "p1-1"} <= set(waiting(decisions))
    assert set(bound(go(scheduler, 400.0, NodeSeen(make_node("m", gpu=2))))) == {"p1-0", "p1-1"}
