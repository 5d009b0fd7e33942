"""Room that is kept for a gang: from whom, for how long, and what becomes of it."""

from dataclasses import replace
from typing import Any

import pytest
from gang_builders import NO_PREEMPTION, RACK, bound, make_gang, make_members, rack_nodes, start, waiting

from mooring.actions.batches import Batches, Outcome
from mooring.engine.cycle import Scheduler
from mooring.engine.queue.queue import Entry
from mooring.model.decisions import Wait
from mooring.model.events import GangLost, PodLost, PodSeen
from mooring.model.gangs.gang import Gang
from mooring.model.memory import Memory, moment
from mooring.model.topology.requests import TopologyRequest
from mooring.state.cluster import Cluster
from mooring.testing.builders import ZONE, make_node, make_pod, make_spread, written_down
from mooring.testing.random_clusters import replaced, with_node

PROFILE = {**NO_PREEMPTION, "pluginConfig": [{"name": "GangScheduling", "args": {"reserveAfterSeconds": 100}}]}


def started(*gangs: Gang, **given: Any) -> Scheduler:
    """A scheduler whose gangs have been refused at second 1, and so may have a reservation from 101 on."""
    scheduler = start(*(replace(gang, created=0.0) for gang in gangs), profile=PROFILE, **given)
    assert not bound(scheduler.cycle(1.0))
    return scheduler


def test_those_that_were_kept_out_come_back_when_the_gang_is_gone() -> None:
    busy = make_pod("busy", gpu=2, node="b")
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]
    scheduler = started(make_gang(minimum=4), nodes=nodes, pods=[busy, *make_members(4, gpu=1)])
    scheduler.handle(PodSeen(make_pod("small", gpu=1)))
    kept_out = waiting(scheduler.cycle(200.0))
    assert kept_out["small"] == "room is kept for gang default/train, which is ahead"

    scheduler.handle(GangLost(make_gang().key))

    assert bound(scheduler.cycle(201.0)) == {"small": "a"}


def test_a_gang_that_has_waited_since_before_we_came_gets_its_reservation_at_once() -> None:
    since = {"creation_timestamp": "1970-01-01T00:00:10Z"}
    members = [replaced(pod, **since) for pod in make_members(4, gpu=1)]
    pods = [make_pod("busy", gpu=2, node="b"), *members, replaced(make_pod("small", gpu=1), **since)]
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]

    early, late = (
        waiting(start(make_gang(minimum=4, created=0.0), nodes=nodes, pods=pods, profile=PROFILE).cycle(now))
        for now in (50.0, 200.0)
    )

    assert "small" not in early
    assert late["small"] == "room is kept for gang default/train, which is ahead"


def test_a_gang_that_was_kept_out_comes_back_when_the_one_ahead_is_gone() -> None:
    busy = make_pod("busy", gpu=2, node="b")
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]
    ahead, behind = make_gang("ahead", 4), make_gang("behind", 2)
    scheduler = started(ahead, behind, nodes=nodes, pods=[busy, *make_members(4, "ahead", gpu=1)])
    scheduler.handle(*map(PodSeen, make_members(2, "behind", gpu=1)))
    decisions = scheduler.cycle(200.0)
    assert not bound(decisions)
    said = waiting(decisions)
    assert said["behind-0"] == "gang default/behind: room is kept for gang default/ahead, which is ahead"
    assert said["ahead-0"] == "gang default/ahead: room for 2 of 4 members"

    scheduler.handle(GangLost(ahead.key))

    assert set(bound(scheduler.cycle(201.0))) == {"behind-0", "behind-1"}


def test_a_gang_that_could_never_fit_keeps_nothing_from_others() -> None:
    """Each of its groups would fit into the empty cluster, and all into two racks, but not into one."""
    gang = make_gang(minimum=4, topology_request=TopologyRequest(required=RACK))
    scheduler = started(gang, nodes=rack_nodes({"a1": 1, "a2": 1}), pods=make_members(4, gpu=1))

    scheduler.handle(PodSeen(make_pod("small", gpu=1)))

    assert set(bound(scheduler.cycle(200.0))) == {"small"}


def test_room_is_kept_in_one_rack_for_a_gang_that_wants_one() -> None:
    """Rack a2 is emptier, and large enough: so what becomes free in rack a1 is for others."""
    where = ("a1", "a1", "a1", "a2")
    busy = [make_pod(f"busy-{i}", gpu=1, node=f"{rack}-0") for i, rack in enumerate(where)]
    gang = make_gang(minimum=4, topology_request=TopologyRequest(required=RACK))
    scheduler = started(gang, nodes=rack_nodes({"a1": 1, "a2": 1}, gpu=4), pods=[*busy, *make_members(4, gpu=1)])

    scheduler.handle(*(PodSeen(make_pod(f"small-{i}", gpu=1)) for i in range(3)))
    placed = bound(scheduler.cycle(200.0))
    assert list(placed.values()) == ["a1-0"]

    scheduler.handle(PodLost("default/busy-3"))
    assert set(bound(scheduler.cycle(201.0)).values()) == {"a2-0"}


def test_nobody_who_stays_takes_what_is_left_of_a_node_that_the_gang_will_need_whole() -> None:
    """The gang starts when `busy` has ended; until then one that says no end would block its node."""
    busy = make_pod("busy", gpu=3, node="a", annotations={"mooring.dev/duration": "1h"})
    scheduler = started(make_gang(minimum=1), nodes=[make_node("a", gpu=4)], pods=[busy, *make_members(1, gpu=4)])

    scheduler.handle(PodSeen(make_pod("endless", gpu=1)))
    assert not bound(scheduler.cycle(200.0))
    short = make_pod("short", gpu=1, annotations={"mooring.dev/duration": "10m"})
    scheduler.handle(PodSeen(short))
    assert set(bound(scheduler.cycle(201.0))) == {"short"}


def test_a_pod_that_waits_for_its_start_to_be_told_does_not_put_off_the_gang() -> None:
    """`busy` ends an hour after it was first seen, not an hour after whenever that is looked at."""
    busy = make_pod("busy", gpu=4, node="a", annotations={"mooring.dev/duration": "1h"})
    nodes = [make_node("a", gpu=4), make_node("b", gpu=1)]
    scheduler = started(make_gang(minimum=5), nodes=nodes, pods=[busy, *make_members(5, gpu=1)])
    scheduler.handle(PodSeen(make_pod("first", gpu=1)))
    assert not bound(scheduler.cycle(200.0))

    scheduler.handle(PodSeen(make_pod("late", gpu=1, annotations={"mooring.dev/duration": "50m"})))

    assert not bound(scheduler.cycle(1400.0)), "it would end at 4400, and busy does at 3800"


def test_a_gang_that_stays_behind_is_brought_forward_before_others_take_its_room() -> None:
    busy = [make_pod(f"busy-{i}", gpu=1, node="a") for i in range(2)]
    scheduler = started(make_gang(minimum=2), nodes=[make_node("a", gpu=2)], pods=[*busy, *make_members(2, gpu=1)])
    scheduler.handle(PodSeen(make_pod("one", gpu=1)))
    scheduler.cycle(200.0)

    scheduler.handle(PodLost("default/busy-0"))
    assert not bound(scheduler.cycle(200.5)), "tried a moment ago, it stays behind, and its room is kept all the same"
    scheduler.handle(PodLost("default/busy-1"), PodSeen(make_pod("two", gpu=1)))
    assert set(bound(scheduler.cycle(200.6))) == {"train-0", "train-1"}


def test_a_gang_that_is_helped_while_room_is_held_for_it_is_tried_again() -> None:
    """It has to spread over zones with others like it, and one of these comes to the other zone after its turn."""
    alike: dict[str, Any] = {"labels": {"app": "x"}}
    nodes = [make_node("a", gpu=1, zone="zone-a"), make_node("b", zone="zone-b")]
    member = make_members(1, gpu=1, spread=[make_spread(ZONE, **alike)], **alike)
    scheduler = started(make_gang(minimum=1), nodes=nodes, pods=[make_pod("busy", node="a", **alike), *member])

    scheduler.handle(PodSeen(make_pod("other", node_selector={ZONE: "zone-b"}, **alike)))

    assert bound(scheduler.cycle(200.0)) == {"other": "b", "train-0": "a"}
    assert len(scheduler.cluster.pods.on_row) == 2


def test_holding_its_room_does_not_use_up_the_turns_of_others() -> None:
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]
    pods = [make_pod("busy", gpu=2, node="b"), *make_members(4, gpu=1)]
    scheduler = started(make_gang(minimum=4), nodes=nodes, pods=pods)
    scheduler.handle(PodSeen(make_pod("other", cpu="1")))

    assert list(bound(scheduler.cycle(200.0, at_most=1))) == ["other"]


@pytest.mark.faults
def test_what_is_held_is_let_go_of_even_if_something_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = make_pod("busy", gpu=2, node="b")
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]
    scheduler = started(make_gang(minimum=4), nodes=nodes, pods=[busy, *make_members(4, gpu=1)])
    scheduler.handle(PodSeen(make_pod("small", gpu=1)))

    place = Batches.place

    def fail(self: Batches, cluster: Cluster, batch: list[Entry], **given: Any) -> Outcome:
        if batch[0].record.key != "default/small":
            return place(self, cluster, batch, **given)
        assert sum(len(slots) for slots in cluster.pods.on_row.values()) == 5, "room is held"
        raise RuntimeError("a plugin's fault")

    monkeypatch.setattr(Batches, "place", fail)
    decisions = scheduler.cycle(200.0)

    assert Wait("default/small", "error: RuntimeError: a plugin's fault", ("Mooring",)) in decisions
    assert [fault.turn for fault in scheduler.take_faults()] == ["default/small"]
    assert sum(len(slots) for slots in scheduler.cluster.pods.on_row.values()) == 1


@pytest.mark.parametrize(("created", "is_kept_out"), [("00:00:01", True), ("00:03:00", False)])
def test_a_gang_has_waited_as_long_as_before_a_restart_and_another_of_its_name_has_not(
    created: str, is_kept_out: bool
) -> None:
    members = [replaced(pod, creation_timestamp=f"1970-01-01T{created}Z") for pod in make_members(4, gpu=1)]
    nodes, busy = [make_node("a", gpu=2), make_node("b", gpu=2)], make_pod("busy", gpu=2, node="b")
    before = started(make_gang(minimum=4), nodes=nodes, pods=[busy, *make_members(4, gpu=1)])
    remembered = written_down(before.remembered())
    assert remembered == Memory(gangs_waiting_since={make_gang().key: moment(1.0)})

    # What a watch shows waits since now.
    after = start(make_gang(minimum=4), nodes=nodes, profile=PROFILE)
    after.recall(remembered)
    assert after.remembered() == remembered  # before anything has come
    after.handle(*map(PodSeen, [busy, *members, make_pod("small", gpu=1)]))
    said = waiting(after.cycle(200.0))

    assert ("small" in said) is is_kept_out


def test_a_gang_that_has_started_or_is_gone_is_not_remembered_as_waiting() -> None:
    nodes = [make_node("a", gpu=4)]
    remembered = Memory(gangs_waiting_since={make_gang().key: moment(1.0), make_gang("gone").key: moment(1.0)})
    running = [with_node(pod, "a") for pod in make_members(4, gpu=1)]
    scheduler = start(make_gang(minimum=4), nodes=nodes, profile=PROFILE)
    scheduler.recall(remembered)
    scheduler.handle(*map(PodSeen, running))
    scheduler.cycle(200.0)

    assert scheduler.remembered() == Memory()
