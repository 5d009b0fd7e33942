"""Gangs in the queue: who waits with whom, what brings them back, and what it costs others."""

from dataclasses import replace

import pytest
from gang_builders import (
    bound,
    make_gang,
    make_members,
    make_part,
    make_part_members,
    make_role,
    make_whole,
    start,
    waiting,
)

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind
from mooring.model.events import Failed, GangLost, GangSeen, NodeLost, NodeSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Role
from mooring.model.gangs.membership import VOLCANO_KIND
from mooring.state.waiting import Where
from mooring.testing.builders import make_affinity, make_node, make_pod, make_pod_term
from mooring.testing.random_clusters import with_node


def test_a_spare_member_that_waits_by_itself_waits_with_its_gang_again_once_that_is_short() -> None:
    scheduler = start(make_gang(minimum=3), nodes=[make_node("a", gpu=3), make_node("b", gpu=3)])
    members = make_members(4, gpu=1)
    scheduler.handle(*(PodSeen(with_node(pod, "a")) for pod in members[:3]))
    scheduler.handle(PodSeen(make_pod("other", gpu=3, node="b")), PodSeen(members[3]))
    assert set(waiting(scheduler.cycle(1.0))) == {"train-3"}

    scheduler.handle(PodLost("default/train-0"), PodLost("default/train-1"))

    assert not bound(scheduler.cycle(2.0)), "one member more would still not be enough"


def test_a_spare_member_does_not_start_a_gang_of_which_nothing_is_left() -> None:
    nodes = [make_node("a", gpu=2), make_node("b", gpu=1)]
    scheduler = start(make_gang(minimum=2), nodes=nodes, pods=make_members(3, gpu=1)[:2])
    scheduler.cycle(1.0)
    scheduler.handle(PodSeen(make_pod("other", gpu=1)), PodSeen(make_members(3, gpu=1)[2]))
    scheduler.cycle(2.0)

    scheduler.handle(PodLost("default/train-0"), PodLost("default/train-1"))

    assert not bound(scheduler.cycle(20.0))


def test_a_gang_that_loses_members_while_others_of_it_wait_for_room_is_not_completed_by_halves() -> None:
    """Its turn was about growing; now it is about being whole."""
    scheduler = start(make_gang(minimum=3), nodes=[make_node("a", gpu=3)], pods=make_members(5, gpu=1))
    assert len(bound(scheduler.cycle(1.0))) == 3

    scheduler.handle(*(PodLost(f"default/train-{i}") for i in range(3)))

    assert not bound(scheduler.cycle(30.0)), "two of three exist"


def test_a_gang_that_is_told_again_as_it_is_keeps_its_place_and_its_patience() -> None:
    gang = make_gang(minimum=2)
    scheduler = start(gang, nodes=[make_node("a", gpu=1)], pods=make_members(2, gpu=1))
    scheduler.cycle(1.0)
    (entry,) = scheduler.queue.gangs
    version = scheduler.cluster.gangs.version

    scheduler.handle(GangSeen(gang), *map(PodSeen, make_members(2, gpu=1)))
    assert scheduler.cycle(2.0) == []

    assert next(iter(scheduler.queue.gangs)) is entry
    assert (entry.attempts, entry.first_tried, entry.where) == (1, 1.0, Where.PARKED)
    assert scheduler.cluster.gangs.version == version


def test_a_gang_that_changes_has_waited_as_long_as_before() -> None:
    scheduler = start(make_gang(minimum=2), nodes=[make_node("a", gpu=1)], pods=make_members(2, gpu=1))
    scheduler.cycle(1.0)

    scheduler.handle(GangSeen(make_gang(minimum=2, priority=7)))
    scheduler.cycle(5.0)

    assert [entry.first_tried for entry in scheduler.queue.gangs] == [1.0]


def test_members_wait_until_the_gang_that_theirs_is_a_part_of_is_declared() -> None:
    pods = [*make_part_members("a", 2, gpu=1), *make_part_members("b", 2, gpu=1)]
    scheduler = start(make_part("a", 2), make_part("b", 2), nodes=[make_node("n", gpu=4)], pods=pods)
    assert scheduler.cycle(1.0) == []
    assert {rejection.reasons for _, rejection in scheduler.queue.gated()} == {("gang default/all is not declared",)}

    scheduler.handle(GangSeen(make_whole(minimum=2)))

    assert set(bound(scheduler.cycle(2.0))) == {"a-0", "a-1", "b-0", "b-1"}


def test_members_follow_their_gang_into_another() -> None:
    pods = make_part_members("a", 2, gpu=1)
    scheduler = start(
        make_whole("one", 2), make_whole("two", 1), make_part("a", 2, "one"), nodes=[make_node("n", gpu=4)]
    )
    scheduler.handle(*map(PodSeen, pods))
    assert not bound(scheduler.cycle(1.0))

    scheduler.handle(GangSeen(make_part("a", 2, "two")))

    assert set(bound(scheduler.cycle(2.0))) == {"a-0", "a-1"}


def test_gangs_that_are_parts_of_each_other_do_no_harm() -> None:
    one, two = make_whole("one", 1), make_whole("two", 1)
    circle = [make_part("a", 1, "one"), replace(one, parent=two.key), replace(two, parent=one.key)]
    scheduler = start(*circle, nodes=[make_node("n", gpu=1)], pods=make_part_members("a", 1, gpu=1))

    assert set(bound(scheduler.cycle(1.0))) == {"a-0"}


def test_a_pod_that_names_another_gang_waits_with_that_one() -> None:
    scheduler = start(make_gang("one", 2), make_gang("two", 1), nodes=[make_node("n", gpu=1)])
    scheduler.handle(PodSeen(make_pod("p", gpu=1, annotations={"mooring.dev/gang-name": "one"})))
    assert not bound(scheduler.cycle(1.0))

    scheduler.handle(PodSeen(make_pod("p", gpu=1, annotations={"mooring.dev/gang-name": "two"})))

    assert set(bound(scheduler.cycle(2.0))) == {"p"}


def test_a_gang_that_waits_for_another_starts_when_the_world_has_started_that() -> None:
    first = make_gang("first", 1)
    second = make_gang("second", 1, after=first.key)
    scheduler = start(first, second, nodes=[make_node("n", gpu=4)], pods=make_members(1, "second", gpu=1))
    assert not bound(scheduler.cycle(1.0))

    scheduler.handle(PodSeen(with_node(make_members(1, "first", gpu=1)[0], "n")))

    assert set(bound(scheduler.cycle(2.0))) == {"second-0"}


def test_a_refused_gang_costs_others_one_try_of_those_a_cycle_has() -> None:
    pods = [*make_members(8, gpu=1), make_pod("small", gpu=1)]
    scheduler = start(make_gang(minimum=8, created=0.0), nodes=[make_node("n", gpu=2)], pods=pods)

    assert set(bound(scheduler.cycle(1.0, at_most=3))) == {"small"}


def test_nobody_is_said_to_wait_who_is_bound_in_the_same_cycle() -> None:
    """The gang is refused first, and helped by a pod that is bound after it."""
    near = make_affinity(near=[make_pod_term(labels={"app": "db"})])
    pods = [*make_members(2, gpu=1, affinity=near, priority=5), make_pod("db", labels={"app": "db"})]
    scheduler = start(make_gang(minimum=2), nodes=[make_node("n", gpu=2)], pods=pods)

    decisions = scheduler.cycle(1.0)

    assert set(bound(decisions)) == {"db", "train-0", "train-1"}
    assert not waiting(decisions)


def test_a_gang_that_falls_short_while_it_stays_behind_is_counted_once_when_it_is_back() -> None:
    pods = [*make_members(2, gpu=1), make_pod("other", gpu=1, node="n")]
    scheduler = start(make_gang(minimum=2), nodes=[make_node("n", gpu=2)], pods=pods)
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/other"))
    scheduler.cycle(1.4, at_most=0)
    assert [entry.where for entry in scheduler.queue.gangs] == [Where.BACKOFF]
    scheduler.handle(PodLost("default/train-1"))
    scheduler.cycle(1.6, at_most=0)
    scheduler.cycle(30.0, at_most=0)
    assert [entry.where for entry in scheduler.queue.gangs] == [Where.GATHERING]

    scheduler.handle(PodSeen(make_members(2, gpu=1)[1]))
    scheduler.cycle(31.0, at_most=0)

    assert len(scheduler.queue) == 1
    assert len(bound(scheduler.cycle(32.0))) == 2
    assert len(scheduler.queue) == 0


def test_nothing_is_left_in_the_queue_of_a_gang_that_is_gone() -> None:
    scheduler = start(make_gang(minimum=2), nodes=[make_node("n", gpu=1)], pods=make_members(2, gpu=1))
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/train-0"), PodLost("default/train-1"), GangLost(make_gang().key))
    scheduler.cycle(2.0)

    assert (len(scheduler.queue), list(scheduler.queue.gangs)) == (0, [])
    assert not scheduler.cluster.gangs.records


def test_a_pod_whose_node_is_lost_before_its_bind_fails_waits_again() -> None:
    scheduler = start(nodes=[make_node("a", gpu=1)], pods=[make_pod("p", gpu=1)])
    assert bound(scheduler.cycle(1.0)) == {"p": "a"}

    scheduler.handle(NodeLost("a"), Failed(Bind("default/p", "")), NodeSeen(make_node("b", gpu=1)))

    assert bound(scheduler.cycle(2.0)) == {"p": "b"}


@pytest.mark.parametrize("is_changed", [False, True])
def test_only_a_node_that_changes_brings_back_those_who_wait(is_changed: bool) -> None:
    scheduler: Scheduler = start(make_gang(minimum=2), nodes=[make_node("n", gpu=1)], pods=make_members(2, gpu=1))
    scheduler.cycle(1.0)

    scheduler.handle(NodeSeen(make_node("n", gpu=1, labels={"new": "label"} if is_changed else None)))

    assert bool(waiting(scheduler.cycle(20.0))) == is_changed


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (1, "gang default/train waits for its members: 1 of 3 exist"),
        (3, "gang default/train waits for its members: 0 of 1 leader members exist"),
    ],
)
def test_a_gang_says_which_members_it_lacks(workers: int, said: str) -> None:
    roles = (Role("leader", 1), Role("worker", 2))
    gang = make_gang(minimum=3, kind=VOLCANO_KIND, roles=roles)
    scheduler = start(gang, nodes=[make_node("a", gpu=4)], pods=make_role("worker", workers, gpu=1))

    scheduler.cycle(1.0)

    assert {rejection.reasons for _, rejection in scheduler.queue.gated()} == {(said,)}
