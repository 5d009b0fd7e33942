"""Preemption as a part of the cycle: evictions, the room that is held, and what becomes of them."""

from preemption_builders import make_running

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.events import NodeLost, NodeSeen, PodLost, PodSeen
from mooring.testing.builders import make_node, make_pod, make_profile, make_scheduler

FULL = "0/1 nodes are available: 1 Insufficient cpu."


def scheduler_with_victim() -> Scheduler:
    return make_scheduler(
        nodes=[make_node("a", cpu=2)],
        pods=[make_running("victim", "a", cpu=2), make_pod("urgent", cpu=2, priority=10)],
    )


def evict(pod: str = "victim", preemptor: str = "urgent") -> Evict:
    return Evict(f"default/{pod}", "a", f"default/{preemptor}", f"Preempted by pod uid-default-{preemptor} on node a")


def nominated(pod: str = "urgent") -> Wait:
    message = f"{FULL} preemption: found a potential placement for pod on node a, preempting 1 victims"
    return Wait(f"default/{pod}", message, ("NodeResourcesFit",), "a")


def test_a_pod_waits_for_its_victims_to_go_and_is_bound_then() -> None:
    scheduler = scheduler_with_victim()

    assert scheduler.cycle(1.0) == [evict(), nominated()]
    assert scheduler.cycle(2.0) == []
    scheduler.handle(PodLost("default/victim"))

    assert scheduler.cycle(3.0) == [Bind("default/urgent", "a")]


def test_nobody_else_takes_the_room_that_is_made() -> None:
    scheduler = scheduler_with_victim()
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/victim"), PodSeen(make_pod("latecomer", cpu=1)))

    decisions = scheduler.cycle(2.0)

    assert Bind("default/urgent", "a") in decisions
    assert [decision.pod for decision in decisions if isinstance(decision, Wait)] == ["default/latecomer"]


def test_the_room_is_held_although_the_world_still_shows_the_pod_as_waiting() -> None:
    scheduler = scheduler_with_victim()
    scheduler.cycle(1.0)
    seen = make_pod("urgent", cpu=2, priority=10)
    seen.status.nominated_node_name = "a"

    scheduler.handle(PodSeen(seen))
    assert [d for d in scheduler.cycle(2.0) if not isinstance(d, Wait)] == []
    scheduler.handle(PodLost("default/victim"))

    assert scheduler.cycle(3.0) == [Bind("default/urgent", "a")]


def test_a_pod_seen_as_waiting_when_its_victims_are_gone_is_bound_once() -> None:
    scheduler = scheduler_with_victim()
    scheduler.cycle(1.0)
    scheduler.handle(PodSeen(make_pod("urgent", cpu=2, priority=10)), PodLost("default/victim"))

    assert scheduler.cycle(2.0) == [Bind("default/urgent", "a")]
    assert scheduler.cycle(3.0) == []


def test_two_pods_share_victims_that_leave_room_for_both() -> None:
    pods = [
        make_running("victim", "a", cpu=2),
        make_pod("first", cpu=1, priority=10),
        make_pod("second", cpu=1, priority=10),
    ]
    scheduler = make_scheduler(nodes=[make_node("a", cpu=2)], pods=pods)

    decisions = scheduler.cycle(1.0)

    assert [d for d in decisions if isinstance(d, Evict)] == [evict(preemptor="first")]
    scheduler.handle(PodLost("default/victim"))
    assert scheduler.cycle(2.0) == [Bind("default/first", "a"), Bind("default/second", "a")]


def test_a_still_more_urgent_pod_takes_over_the_room() -> None:
    scheduler = scheduler_with_victim()
    scheduler.cycle(1.0)
    scheduler.handle(PodSeen(make_pod("most-urgent", cpu=2, priority=20)))

    assert [d for d in scheduler.cycle(2.0) if isinstance(d, Evict)] == []
    scheduler.handle(PodLost("default/victim"))

    decisions = scheduler.cycle(3.0)
    assert [d for d in decisions if isinstance(d, Bind)] == [Bind("default/most-urgent", "a")]
    assert [d.pod for d in decisions if isinstance(d, Wait)] == ["default/urgent"]


def test_a_pod_whose_node_is_lost_while_room_was_made_is_placed_elsewhere() -> None:
    scheduler = scheduler_with_victim()
    scheduler.cycle(1.0)
    scheduler.handle(NodeLost("a"), NodeSeen(make_node("b", cpu=2)))

    binds: list[Decision] = [d for now in (2.0, 3.0) for d in scheduler.cycle(now) if isinstance(d, Bind)]

    assert binds == [Bind("default/urgent", "b")]


def test_a_pod_whose_lost_node_comes_back_stays_where_it_went_instead() -> None:
    scheduler = scheduler_with_victim()
    scheduler.cycle(1.0)
    scheduler.handle(NodeLost("a"), NodeSeen(make_node("b", cpu=2)))
    for now in (2.0, 3.0):
        scheduler.cycle(now)

    scheduler.handle(PodLost("default/victim"), NodeSeen(make_node("a", cpu=2)))
    scheduler.cycle(4.0)

    cluster = scheduler.cluster
    assert [record.key for record in cluster.pods.on(cluster.nodes.row_of["b"])] == ["default/urgent"]
    assert not list(cluster.pods.on(cluster.nodes.row_of["a"]))


def test_who_is_refused_takes_its_victims_before_anybody_behind_it_is_placed() -> None:
    """Else the latecomer would start in the gap, beside those that have to go for the urgent one, and go with them."""
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=4)],
        pods=[
            make_running("victim", "a", cpu=3),
            make_pod("latecomer", cpu=1, priority=5),
            make_pod("urgent", cpu=4, priority=10),
        ],
    )

    decisions = scheduler.cycle(1.0)

    assert [d.pod for d in decisions if isinstance(d, Evict)] == ["default/victim"]
    assert not [d for d in decisions if isinstance(d, Bind)]
    assert [d.pod for d in decisions if isinstance(d, Wait)] == ["default/latecomer", "default/urgent"]


def test_a_pod_that_is_deleted_meanwhile_leaves_its_room_to_others() -> None:
    scheduler = scheduler_with_victim()
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/urgent"), PodLost("default/victim"), PodSeen(make_pod("other", cpu=2)))

    assert scheduler.cycle(2.0) == [Bind("default/other", "a")]


def test_a_pod_that_is_refused_is_not_tried_again_for_nothing() -> None:
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=2)],
        pods=[make_running("equal", "a", cpu=2, priority=10), make_pod("urgent", cpu=2, priority=10)],
    )

    said = f"{FULL} preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    assert scheduler.cycle(1.0) == [Wait("default/urgent", said, ("NodeResourcesFit",))]
    assert scheduler.cycle(2.0) == []


def test_without_the_plugin_nobody_is_evicted() -> None:
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=2)],
        pods=[make_running("victim", "a", cpu=2), make_pod("urgent", cpu=2, priority=10)],
        profile=make_profile("NodeResourcesFit"),
    )

    assert scheduler.cycle(1.0) == [Wait("default/urgent", FULL, ("NodeResourcesFit",))]
