"""Nominations that the world knows of and this scheduler does not: after a restart, or from another scheduler."""

from preemption_builders import gang_scheduler, make_gang, make_member, make_running

from mooring.model.api.meta import Condition
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Wait
from mooring.model.events import PodLost, PodSeen
from mooring.testing.builders import make_node, make_pod, make_scheduler


def leaving(name: str, node: str, *, cpu: int = 2) -> Pod:
    """A pod that was preempted, and has not gone yet."""
    pod = make_running(name, node, cpu=cpu)
    pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    pod.status.conditions = [Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")]
    return pod


def nominated(pod: Pod, node: str) -> Pod:
    pod.status.nominated_node_name = node
    return pod


def binds(decisions: list[Decision]) -> list[Decision]:
    return [found for found in decisions if isinstance(found, Bind)]


def test_room_that_was_being_made_before_a_restart_is_held_until_the_victims_are_gone() -> None:
    urgent = nominated(make_pod("urgent", cpu=2, priority=10), "a")
    scheduler = make_scheduler(nodes=[make_node("a", cpu=3)], pods=[leaving("victim", "a"), urgent])

    first = scheduler.cycle(1.0)
    scheduler.handle(PodSeen(make_pod("small", cpu=1, priority=10)), PodSeen(make_pod("large", cpu=2, priority=10)))
    second = scheduler.cycle(2.0)
    scheduler.handle(PodLost("default/victim"))
    third = scheduler.cycle(3.0)

    said = "not eligible due to a terminating pod on the nominated node."
    message = f"0/1 nodes are available: 1 Insufficient cpu. preemption: {said}"
    assert first == [Wait("default/urgent", message, ("NodeResourcesFit",), "a")]
    assert binds(second) == [], "even what fits beside the victim would not fit beside the one it makes room for"
    assert set(binds(third)) == {Bind("default/urgent", "a"), Bind("default/small", "a")}


def test_a_pod_whose_nominated_node_will_not_do_even_then_is_not_held_back_by_it() -> None:
    urgent = nominated(make_pod("urgent", cpu=4, priority=10), "a")
    nodes = [make_node("a", cpu=3), make_node("b", cpu=4)]
    scheduler = make_scheduler(nodes=nodes, pods=[leaving("victim", "a"), make_running("other", "b", cpu=4), urgent])

    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/victim"), PodLost("default/other"))

    assert binds(scheduler.cycle(2.0)) == [Bind("default/urgent", "b")]


def test_a_nominated_pod_goes_to_its_node_though_another_would_score_higher() -> None:
    nodes = [make_node("busy", cpu=8), make_node("idle", cpu=8)]
    running = make_running("other", "busy", cpu=4)
    pods = [nominated(make_pod("first", cpu=2), "busy"), make_pod("second", cpu=2)]

    decisions = make_scheduler(nodes=nodes, pods=[running, *pods]).cycle(1.0)

    assert binds(decisions) == [Bind("default/first", "busy"), Bind("default/second", "idle")]


def test_a_nominated_pod_goes_elsewhere_if_its_node_is_taken() -> None:
    nodes = [make_node("full", cpu=2), make_node("idle", cpu=8)]
    pods = [make_running("other", "full", cpu=2), nominated(make_pod("pod", cpu=2), "full")]

    assert binds(make_scheduler(nodes=nodes, pods=pods).cycle(1.0)) == [Bind("default/pod", "idle")]


def test_the_room_of_a_gang_is_held_as_a_whole() -> None:
    members = [make_member(f"train-{i}", "train", cpu=2, priority=10) for i in range(2)]
    scheduler = gang_scheduler(
        nodes=[make_node("a", cpu=2), make_node("b", cpu=2)],
        pods=[leaving("x", "a"), leaving("y", "b"), nominated(members[0], "b"), nominated(members[1], "a")],
        gangs=[make_gang("train", 2)],
    )

    first = scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/x"), PodSeen(make_pod("other", cpu=2, priority=10)))
    second = scheduler.cycle(2.0)
    scheduler.handle(PodLost("default/y"))
    third = scheduler.cycle(3.0)

    assert {found.pod: found.nominated_node for found in first if isinstance(found, Wait)} == {
        "default/train-0": "b",
        "default/train-1": "a",
    }
    assert binds(second) == []
    assert binds(third) == [Bind("default/train-0", "b"), Bind("default/train-1", "a")]
