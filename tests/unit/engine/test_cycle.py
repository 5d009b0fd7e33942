"""A cycle: what arrives is applied, what it may help is tried again, and what is decided is assumed."""

from typing import Any

import pytest

from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import Permit
from mooring.engine.verdict import Rejection
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Wait
from mooring.model.events import Event, Failed, NodeLost, NodeSeen, ObjectSeen, PodLost, PodSeen
from mooring.state.views import ClusterView, PodView
from mooring.testing.builders import (
    make_affinity,
    make_namespace,
    make_node,
    make_pod,
    make_pod_term,
    make_pods,
    make_profile,
    make_scheduler,
    make_selector,
    make_spread,
)
from mooring.testing.random_clusters import replaced

FULL = Wait(
    "default/new",
    "0/1 nodes are available: 1 Insufficient cpu. "
    "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
    ("NodeResourcesFit",),
)


def full_node_and_a_pod_that_waits(**given: Any) -> Scheduler:
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=1)], pods=[make_pod("old", cpu=1, node="a"), make_pod("new", cpu=1)], **given
    )
    assert scheduler.cycle(1.0) == [FULL]
    return scheduler


def after(scheduler: Scheduler, *events: Event, now: float = 2.0) -> list[Decision]:
    scheduler.handle(*events)
    return scheduler.cycle(now)


def test_a_pod_that_waits_is_not_tried_again_for_nothing() -> None:
    scheduler = full_node_and_a_pod_that_waits()

    assert after(scheduler) == []
    assert after(scheduler, ObjectSeen(make_namespace("other"))) == []
    assert after(scheduler, PodSeen(make_pod("elsewhere", node="b"))) == []


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(PodLost("default/old"), id="a pod is gone"),
        pytest.param(PodSeen(make_pod("old", cpu=1, node="a", phase="Succeeded")), id="a pod succeeds"),
        pytest.param(PodSeen(make_pod("old", cpu=1, node="a", phase="Failed")), id="a pod fails"),
        pytest.param(PodSeen(make_pod("old", cpu=0, node="a")), id="a pod shrinks in place"),
        pytest.param(NodeSeen(make_node("a", cpu=2)), id="the node grows"),
    ],
)
def test_a_pod_that_waits_for_room_gets_it_when(event: Event) -> None:
    assert after(full_node_and_a_pod_that_waits(), event) == [Bind("default/new", "a")]


def test_a_pod_that_waits_for_a_namespaces_label_is_tried_when_it_changes() -> None:
    near = make_pod_term(labels={"app": "db"}, namespace_selector=make_selector({"team": "a"}))
    scheduler = make_scheduler(
        nodes=[make_node("a")],
        pods=[
            make_pod("db", node="a", namespace="data", labels={"app": "db"}),
            make_pod("web", affinity=make_affinity(near=[near])),
        ],
        related=[make_namespace("default"), make_namespace("data")],
    )
    message = (
        "0/1 nodes are available: 1 node(s) didn't match pod affinity rules. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert scheduler.cycle(1.0) == [Wait("default/web", message, ("InterPodAffinity",))]

    decisions = after(scheduler, ObjectSeen(make_namespace("data", labels={"team": "a"})))

    assert decisions == [Bind("default/web", "a")]


def test_a_terminating_pod_makes_room_for_spreading() -> None:
    web = {"app": "web"}
    scheduler = make_scheduler(
        nodes=[make_node("a", zone="a"), make_node("b", zone="b", unschedulable=True)],
        pods=[
            make_pod("old", node="a", labels=web),
            make_pod("new", labels=web, spread=[make_spread(labels=web)]),
        ],
    )
    assert [type(decision) for decision in scheduler.cycle(1.0)] == [Wait]

    decisions = after(scheduler, PodSeen(make_pod("old", node="a", labels=web, terminating=True)))

    assert decisions == [Bind("default/new", "a")]


@pytest.mark.parametrize("profile", [None, make_profile("PodTopologySpread"), make_profile("NodeName")])
def test_the_first_node_takes_the_pods_that_waited_for_one(profile: dict[str, Any] | None) -> None:
    scheduler = make_scheduler(pods=[make_pod("pod")], profile=profile)
    assert scheduler.cycle(1.0) == [Wait("default/pod", "no nodes available to schedule pods", ())]

    assert after(scheduler, NodeSeen(make_node("a"))) == [Bind("default/pod", "a")]


def test_a_pod_updated_while_it_waits_is_placed_once_as_it_is_now() -> None:
    scheduler = make_scheduler(nodes=[make_node("a", cpu=4)])
    scheduler.handle(
        PodSeen(make_pod("pod", cpu=1)), PodSeen(make_pod("pod", cpu=1, priority=7)), PodSeen(make_pod("pod", cpu=3))
    )

    assert scheduler.cycle(1.0) == [Bind("default/pod", "a")]
    assert scheduler.cluster.rows().requested("cpu").tolist() == [3000]


def test_a_pod_lost_after_an_update_is_not_placed() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    scheduler.handle(PodSeen(make_pod("pod")), PodSeen(make_pod("pod", priority=30)), PodLost("default/pod"))

    assert scheduler.cycle(1.0) == []


def test_a_decision_confirmed_by_the_world_changes_nothing() -> None:
    scheduler = make_scheduler(nodes=[make_node("a", cpu=1)], pods=make_pods(2, cpu=1))
    first = scheduler.cycle(1.0)
    assert first[0] == Bind("default/pod-0", "a")

    assert after(scheduler, PodSeen(make_pod("pod-0", cpu=1, node="a"))) == []
    assert scheduler.cluster.rows().requested("cpu").tolist() == [1000]


def test_pods_of_a_lost_node_count_again_when_it_returns() -> None:
    scheduler = full_node_and_a_pod_that_waits()

    assert [type(d) for d in after(scheduler, NodeLost("a"), NodeSeen(make_node("b", cpu=1)))] == [Bind]
    scheduler.handle(NodeSeen(make_node("a", cpu=1)), PodSeen(make_pod("more", cpu=1)))

    message = (
        "0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )
    assert scheduler.cycle(3.0) == [Wait("default/more", message, ("NodeResourcesFit",))]


def test_at_most_so_many_pods_a_cycle() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")], pods=make_pods(5))

    assert [len(scheduler.cycle(float(now), at_most=2)) for now in range(4)] == [2, 2, 1, 0]


def test_a_batch_lets_nobody_pass_a_more_urgent_pod() -> None:
    near_web = make_affinity(near=[make_pod_term(labels={"app": "web"})])
    urgent = make_pod("urgent", cpu=1, priority=10, affinity=near_web)
    scheduler = make_scheduler(nodes=[make_node("a", cpu=2)], pods=[urgent])
    scheduler.cycle(1.0)

    scheduler.handle(*map(PodSeen, make_pods(2, prefix="web", cpu=1, labels={"app": "web"})))

    assert scheduler.cycle(9.0)[:2] == [Bind("default/web-0", "a"), Bind("default/urgent", "a")]


def test_a_pod_tried_in_vain_stays_behind_the_others_for_a_second() -> None:
    near_web = make_affinity(near=[make_pod_term(labels={"app": "web"})])
    urgent = make_pod("urgent", cpu=1, priority=10, affinity=near_web)
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=3)], pods=[urgent, *make_pods(2, prefix="web", cpu=1, labels={"app": "web"})]
    )

    placed = [decision.pod for decision in scheduler.cycle(1.0) if isinstance(decision, Bind)]

    assert placed == ["default/web-0", "default/web-1", "default/urgent"]


class NotTheFirst(Permit):
    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | None:
        return Rejection(("not the first",)) if pod.key.endswith("-0") else None


def test_a_pod_refused_after_the_choice_does_not_hold_up_others_of_its_shape() -> None:
    profile = make_profile(args={"Batching": {"mode": "Fixed", "size": 1}})
    scheduler = make_scheduler(nodes=[make_node("a")], pods=make_pods(3), profile=profile, plugins=[NotTheFirst])

    placed = [decision.pod for decision in scheduler.cycle(1.0) if isinstance(decision, Bind)]

    assert placed == ["default/pod-1", "default/pod-2"]


def test_a_late_update_of_a_pod_just_bound_does_not_place_it_again() -> None:
    scheduler = make_scheduler(nodes=[make_node("a", cpu=1)], pods=[make_pod("pod", cpu=1)])
    assert scheduler.cycle(1.0) == [Bind("default/pod", "a")]

    assert after(scheduler, PodSeen(make_pod("pod", cpu=1, annotations={"note": "new"}))) == []


# Another scheduler goes on.


def test_a_pod_that_is_being_bound_keeps_its_room_under_the_next_scheduler() -> None:
    def world() -> Scheduler:
        profile = {"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}
        return make_scheduler(nodes=[make_node("a", cpu=1)], pods=[make_pod("new", cpu=1)], profile=profile)

    before, after = world(), world()
    assert before.cycle(1.0) == [Bind("default/new", "a")]
    after.take_over(before.underway())
    after.handle(PodSeen(make_pod("urgent", cpu=1, priority=9)))

    assert [type(decision) for decision in after.cycle(2.0)] == [Wait]
    assert after.underway() == before.underway()

    after.handle(Failed(Bind("default/new", ""), "its volume was not made"))
    assert Bind("default/urgent", "a") in after.cycle(30.0)


def test_a_pod_whose_bind_was_refused_waits_for_its_time_and_others_have_its_room() -> None:
    found = make_scheduler(nodes=[make_node("a", cpu=1)], pods=[make_pod("new", cpu=1)])
    assert found.cycle(1.0) == [Bind("default/new", "a")]

    found.handle(Failed(Bind("default/new", "a"), "refused", retry_after=20.0), PodSeen(make_pod("new", cpu=1)))
    assert found.cycle(2.0) == []
    assert found.next_wake(2.0) == 22.0
    found.handle(PodSeen(make_pod("other", cpu=1)))
    assert found.cycle(3.0) == [Bind("default/other", "a")]
    found.handle(PodSeen(make_pod("other", cpu=1, node="a")), PodLost("default/other"))
    assert found.cycle(21.0) == []
    assert found.cycle(22.0) == [Bind("default/new", "a")]


@pytest.mark.parametrize("change", ["gone", "another of its name", "no node", "bound"])
def test_what_came_to_nothing_before_is_not_taken_over(change: str) -> None:
    pods: dict[str, list[Pod]] = {
        "gone": [],
        "another of its name": [replaced(make_pod("new", cpu=1), uid="another")],
        "no node": [make_pod("new", cpu=1)],
        "bound": [make_pod("new", cpu=1, node="a")],
    }
    before = make_scheduler(nodes=[make_node("a", cpu=1)], pods=[make_pod("new", cpu=1)])
    before.cycle(1.0)
    after = make_scheduler(nodes=[make_node("b" if change == "no node" else "a", cpu=1)], pods=pods[change])
    after.take_over(before.underway())
    after.catch_up(2.0)

    assert after.underway() == []
