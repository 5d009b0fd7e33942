"""Users' own PostFilter plugins: asked about pods that no node takes, before anybody is evicted."""

from collections.abc import Mapping

from mooring.engine.plugin import PostFilter
from mooring.engine.verdict import Rejection
from mooring.model.decisions import Evict, Wait
from mooring.state.views import ClusterView, PodView
from mooring.testing.builders import make_node, make_pod, make_scheduler


class DrainsSoon(PostFilter):
    """Knows that one node is about to be emptied."""

    def post_filter(self, pod: PodView, cluster: ClusterView, refusals: Mapping[str, Rejection]) -> str | None:
        return "b" if refusals["b"].reasons == ("Insufficient cpu",) and pod.key.endswith("/patient") else None


def test_a_pod_waits_for_the_node_that_a_plugin_makes_room_on_and_nobody_is_evicted() -> None:
    running = [make_pod(f"old-{node}", cpu=1, priority=1, node=node) for node in ("a", "b")]
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=1), make_node("b", cpu=1)],
        pods=[*running, make_pod("patient", cpu=1, priority=9)],
        plugins=[DrainsSoon],
    )

    message = "0/2 nodes are available: 2 Insufficient cpu."
    assert scheduler.cycle(1.0) == [Wait("default/patient", message, ("NodeResourcesFit",), "b")]


def test_where_the_plugin_has_nothing_to_offer_pods_of_lower_priority_go() -> None:
    running = [make_pod(f"old-{node}", cpu=1, priority=1, node=node) for node in ("a", "b")]
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=1), make_node("b", cpu=1)],
        pods=[*running, make_pod("urgent", cpu=1, priority=9)],
        plugins=[DrainsSoon],
    )

    assert [type(decision) for decision in scheduler.cycle(1.0)] == [Evict, Wait]
