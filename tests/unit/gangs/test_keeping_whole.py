"""Gangs that lost something: completed, given time, or released, and never more of them than has to be."""

import pytest
from gang_builders import (
    bound,
    evicted,
    make_gang,
    make_members,
    make_part,
    make_part_members,
    make_whole,
    start,
    waiting,
)

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind
from mooring.model.events import Event, Failed, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.testing.builders import make_node
from mooring.testing.random_clusters import replaced, with_node, with_phase


def running(scheduler: Scheduler, *keys: str) -> list[Event]:
    """The world confirms that pods run where they were bound."""
    records = [scheduler.cluster.pods.records[PodKey(f"default/{key}")] for key in keys]
    return [PodSeen(with_node(record.pod, record.node_name)) for record in records]


def test_a_gang_that_is_being_released_is_evicted_once_though_its_pods_take_their_time() -> None:
    gang = make_gang(minimum=2, timeout_seconds=10)
    scheduler = start(gang, nodes=[make_node("a", gpu=3)], pods=make_members(3, gpu=1, node="a"))
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/train-0"), PodLost("default/train-1"))
    scheduler.cycle(2.0)
    assert set(evicted(scheduler.cycle(20.0))) == {"train-2"}

    terminating = replaced(make_members(3, gpu=1, node="a")[2], deletion_timestamp="2026-01-01T00:00:00Z")
    scheduler.handle(PodSeen(terminating))

    assert not evicted(scheduler.cycle(21.0))
    assert not evicted(scheduler.cycle(99.0))


def test_a_member_that_has_succeeded_is_not_missed() -> None:
    members = make_members(3, gpu=1, node="a")
    gang = make_gang(minimum=3, timeout_seconds=10, restarts_whole=True)
    scheduler = start(gang, nodes=[make_node("a", gpu=3)], pods=members)
    scheduler.cycle(1.0)

    scheduler.handle(PodSeen(with_phase(members[0], "Succeeded")))

    assert not evicted(scheduler.cycle(2.0))
    scheduler.handle(PodLost(members[0].key))  # its object is cleaned up
    assert not evicted(scheduler.cycle(99.0))


def test_beside_members_that_have_succeeded_only_the_others_are_needed_again() -> None:
    members = make_members(3, gpu=1)
    scheduler = start(make_gang(minimum=3), nodes=[make_node("a", gpu=3)], pods=members)
    scheduler.cycle(1.0)
    scheduler.handle(*running(scheduler, "train-0", "train-1", "train-2"))
    scheduler.handle(PodSeen(with_phase(with_node(members[0], "a"), "Succeeded")), PodLost(members[1].key))
    scheduler.cycle(2.0)

    scheduler.handle(PodSeen(members[1]))

    assert set(bound(scheduler.cycle(3.0))) == {"train-1"}


def test_a_member_that_comes_again_under_the_same_name_has_not_succeeded() -> None:
    members = make_members(2, gpu=1)
    scheduler = start(make_gang(minimum=2), nodes=[make_node("a", gpu=2)], pods=members)
    scheduler.cycle(1.0)
    scheduler.handle(*(PodSeen(with_phase(with_node(pod, "a"), "Succeeded")) for pod in members))
    scheduler.cycle(2.0)

    scheduler.handle(PodSeen(members[0]))
    assert set(bound(scheduler.cycle(3.0))) == {"train-0"}, "the other one has done its part"
    scheduler.handle(PodLost(members[0].key), PodSeen(members[0]), PodSeen(members[1]))
    assert set(bound(scheduler.cycle(4.0))) == {"train-0", "train-1"}


def test_a_gang_whose_members_may_go_one_by_one_goes_on_without_them() -> None:
    gang = make_gang(minimum=2, timeout_seconds=10, evicted_whole=False)
    scheduler = start(gang, nodes=[make_node("a", gpu=2)], pods=make_members(2, gpu=1, node="a"))
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/train-0"))

    assert not evicted(scheduler.cycle(2.0))
    assert not evicted(scheduler.cycle(99.0))


def test_a_member_that_has_failed_is_missed() -> None:
    members = make_members(2, gpu=1, node="a")
    scheduler = start(make_gang(minimum=2, timeout_seconds=10), nodes=[make_node("a", gpu=2)], pods=members)
    scheduler.cycle(1.0)

    scheduler.handle(PodSeen(with_phase(members[0], "Failed")))
    scheduler.cycle(2.0)

    assert set(evicted(scheduler.cycle(13.0))) == {"train-1"}


def test_a_member_that_terminates_is_replaced_at_once() -> None:
    scheduler = start(make_gang(minimum=2), nodes=[make_node("a", gpu=3)], pods=make_members(2, gpu=1, node="a"))
    scheduler.cycle(1.0)
    leaving = replaced(make_members(2, gpu=1, node="a")[0], deletion_timestamp="2026-01-01T00:00:00Z")

    scheduler.handle(PodSeen(leaving), PodSeen(make_members(1, first=2, gpu=1)[0]))

    assert bound(scheduler.cycle(2.0)) == {"train-2": "a"}


def test_a_gang_that_runs_is_not_released_because_a_spare_member_is_slow_to_start() -> None:
    gang = make_gang(minimum=2, timeout_seconds=10)
    scheduler = start(gang, nodes=[make_node("a", gpu=3)], pods=make_members(2, gpu=1, node="a"))
    scheduler.cycle(1.0)
    scheduler.handle(PodSeen(make_members(1, first=2, gpu=1)[0]))
    assert set(bound(scheduler.cycle(2.0))) == {"train-2"}

    assert not evicted(scheduler.cycle(3.0))
    assert not evicted(scheduler.cycle(50.0))


def test_a_gang_that_ran_gets_its_time_though_a_replacement_has_not_started_yet() -> None:
    gang = make_gang(minimum=2, timeout_seconds=60)
    scheduler = start(gang, nodes=[make_node("a", gpu=2)], pods=make_members(2, gpu=1, node="a"))
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/train-0"), PodSeen(make_members(1, first=2, gpu=1)[0]))
    assert set(bound(scheduler.cycle(2.0))) == {"train-2"}

    scheduler.handle(PodLost("default/train-1"))

    assert not evicted(scheduler.cycle(3.0)), "it was whole before, and has time until 63"
    assert set(evicted(scheduler.cycle(70.0))) == {"train-2"}


def test_a_gang_that_starts_and_is_confirmed_late_is_released() -> None:
    scheduler = start(make_gang(minimum=2, timeout_seconds=10), nodes=[make_node("a", gpu=2)])
    scheduler.handle(*map(PodSeen, make_members(2, gpu=1)))
    assert len(bound(scheduler.cycle(1.0))) == 2
    scheduler.cycle(2.0)
    scheduler.handle(*running(scheduler, "train-0"))
    scheduler.cycle(3.0)

    assert evicted(scheduler.cycle(20.0)) == dict.fromkeys(
        ("train-0", "train-1"), "gang default/train did not start within 10s"
    )


def test_members_that_could_not_complete_their_gang_are_said_to_wait() -> None:
    scheduler = start(make_gang(minimum=2), nodes=[make_node("a", gpu=1), make_node("b", gpu=1)])
    members = make_members(3, gpu=1)
    scheduler.handle(PodSeen(with_node(members[0], "a")), PodSeen(with_node(members[1], "b")))
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/train-0"), PodSeen(with_node(make_members(1, "x", gpu=1)[0], "a")))
    scheduler.handle(PodSeen(members[2]))

    assert waiting(scheduler.cycle(2.0)) == {"train-2": "gang default/train: room for 0 of 1 members"}


def test_a_gang_that_cannot_be_completed_is_tried_again_only_when_something_happened() -> None:
    scheduler = start(make_gang(minimum=2), nodes=[make_node("a", gpu=1), make_node("b", gpu=1)])
    members = make_members(3, gpu=1)
    scheduler.handle(PodSeen(with_node(members[0], "a")), PodSeen(with_node(members[1], "b")))
    scheduler.handle(PodSeen(members[2]))
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/train-0"), PodSeen(with_node(make_members(1, "x", gpu=1)[0], "a")))
    scheduler.cycle(2.0)
    (entry,) = scheduler.queue.gangs
    attempts = entry.attempts

    for now in range(3, 9):
        scheduler.cycle(float(now))

    assert entry.attempts == attempts


# Gangs of gangs.

PARTS = {part: make_part_members(part, 3, gpu=1) for part in ("a", "b")}


def test_of_a_gang_that_needs_one_of_its_parts_each_is_started_whole() -> None:
    gangs = [make_whole(minimum=1), make_part("a", 3), make_part("b", 3)]
    scheduler = start(*gangs, nodes=[make_node("n", gpu=5)], pods=[*PARTS["a"], *PARTS["b"]])

    assert set(bound(scheduler.cycle(1.0))) == {"a-0", "a-1", "a-2"}, "there is room for two of part b only"


def test_a_part_that_lacks_members_is_not_started_beside_one_that_runs() -> None:
    gangs = [make_whole(minimum=1), make_part("a", 3), make_part("b", 3)]
    scheduler = start(*gangs, nodes=[make_node("n", gpu=9)], pods=[*PARTS["a"], *PARTS["b"][:2]])
    assert set(bound(scheduler.cycle(1.0))) == {"a-0", "a-1", "a-2"}

    scheduler.handle(PodSeen(PARTS["b"][2]))

    assert set(bound(scheduler.cycle(2.0))) == {"b-0", "b-1", "b-2"}


@pytest.mark.parametrize(("minimum", "gone"), [(1, {"b-0", "b-1"}), (2, {"a-0", "a-1", "a-2", "b-0", "b-1"})])
def test_a_part_that_falls_short_takes_those_with_it_that_need_it(minimum: int, gone: set[str]) -> None:
    gangs = [make_whole(minimum=minimum, timeout_seconds=10), make_part("a", 3), make_part("b", 3)]
    pods = [with_node(pod, "n") for part in PARTS.values() for pod in part]
    scheduler = start(*gangs, nodes=[make_node("n", gpu=6)], pods=pods)
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/b-2"))
    assert not evicted(scheduler.cycle(2.0))

    assert set(evicted(scheduler.cycle(30.0))) == gone


def test_a_gang_of_which_a_whole_part_is_gone_is_released_in_time() -> None:
    gangs = [make_whole(minimum=2, timeout_seconds=10), make_part("a", 3), make_part("b", 3)]
    pods = [with_node(pod, "n") for part in PARTS.values() for pod in part]
    scheduler = start(*gangs, nodes=[make_node("n", gpu=6)], pods=pods)
    scheduler.cycle(1.0)

    scheduler.handle(*(PodLost(pod.key) for pod in PARTS["b"]))
    assert not evicted(scheduler.cycle(2.0))

    reasons = evicted(scheduler.cycle(30.0))
    assert set(reasons) == {"a-0", "a-1", "a-2"}
    assert set(reasons.values()) == {"gang default/a was not whole for 10s: 1 of 2 gangs missing in gang default/all"}


def test_gangs_of_gangs_of_gangs_count_level_by_level() -> None:
    """Two of three are needed at the top; one of them is a gang of gangs itself, that needs one of two."""
    inner = make_whole("inner", 1)
    gangs = [make_whole("all", 2), make_part("a", 1), make_part("b", 1, "inner"), make_part("c", 1, "inner")]
    gangs.append(type(inner)(inner.key, inner.name, 1, of_gangs=True, parent=make_whole("all").key))
    pods = [pod for part in "bc" for pod in make_part_members(part, 1, gpu=1)]
    scheduler = start(*gangs, nodes=[make_node("n", gpu=9)], pods=pods)
    assert not bound(scheduler.cycle(1.0)), "b and c are one gang of the two that are needed"

    scheduler.handle(*map(PodSeen, make_part_members("a", 1, gpu=1)))

    assert set(bound(scheduler.cycle(2.0))) == {"a-0", "b-0", "c-0"}


def test_a_starting_gang_is_not_released_while_a_refused_bind_is_tried_again() -> None:
    """To release it is to delete the members that are bound."""
    gang = make_gang(minimum=2)
    scheduler = start(gang, nodes=[make_node("a", gpu=2)], pods=make_members(2, gpu=1))
    assert len(bound(scheduler.cycle(1.0))) == 2

    scheduler.handle(Failed(Bind("default/train-0", "a"), "conflict", retry_after=0.5))
    assert not evicted(scheduler.cycle(1.1))
    again = scheduler.cycle(1.7)

    assert bound(again) == {"train-0": "a"}
    assert not evicted(again)


def test_a_starting_gang_is_released_when_binds_are_refused_for_long() -> None:
    gang = make_gang(minimum=2)
    scheduler = start(gang, nodes=[make_node("a", gpu=2)], pods=make_members(2, gpu=1))
    assert len(bound(scheduler.cycle(1.0))) == 2
    released: dict[str, str] = {}
    for second in range(2, 40):
        scheduler.handle(Failed(Bind("default/train-0", "a"), "denied", retry_after=30.0))
        released = evicted(scheduler.cycle(float(second)))
        if released:
            break

    assert set(released) == {"train-1"}
    assert second > 30


def test_a_failed_bind_of_a_spare_member_does_not_let_it_run_without_its_gang() -> None:
    """The gang is released in the cycle in which the spare member comes back."""
    gang = make_gang(minimum=2, timeout_seconds=10)
    scheduler = start(gang, nodes=[make_node("a", gpu=3)], pods=make_members(3, gpu=1))
    assert len(bound(scheduler.cycle(1.0))) == 3
    scheduler.cycle(2.0)

    scheduler.handle(Failed(Bind("default/train-2", "")))
    decisions = scheduler.cycle(20.0)

    assert set(evicted(decisions)) == {"train-0", "train-1"}
    assert not bound(decisions)


def test_a_restart_does_not_begin_the_time_of_a_partial_gang_anew() -> None:
    def started() -> Scheduler:
        gang = make_gang(minimum=2, timeout_seconds=10)
        return start(gang, nodes=[make_node("a", gpu=1)], pods=make_members(1, gpu=1, node="a"))

    first, second = started(), started()
    assert not evicted(first.cycle(1.0))
    second.recall(first.remembered())

    assert not evicted(second.cycle(8.0))
    assert set(evicted(second.cycle(11.5))) == {"train-0"}


def test_a_partial_gang_is_looked_at_again_when_its_own_time_is_up() -> None:
    gang = make_gang(minimum=2, timeout_seconds=10)
    scheduler = start(gang, nodes=[make_node("a", gpu=1)], pods=make_members(1, gpu=1, node="a"))
    scheduler.cycle(1.0)

    wake = scheduler.next_wake(1.0)

    assert wake is not None and wake == pytest.approx(11.0)
    assert set(evicted(scheduler.cycle(wake))) == {"train-0"}


def test_a_gang_that_was_completed_after_a_restart_has_all_of_its_time_again() -> None:
    gang = make_gang(minimum=2, timeout_seconds=10)
    members = make_members(2, gpu=1, node="a")
    first = start(gang, nodes=[make_node("a", gpu=2)], pods=members[:1])
    first.cycle(1.0)
    second = start(gang, nodes=[make_node("a", gpu=2)], pods=members)
    second.recall(first.remembered())
    second.cycle(8.0)

    second.handle(PodLost(members[1].key))

    assert not evicted(second.cycle(12.0))
    assert set(evicted(second.cycle(22.5))) == {"train-0"}
