"""What a plugin gathers before it filters is its own, through all its steps, until the pod is bound or is not."""

from typing import ClassVar

import numpy as np
import pytest

import mooring.plugin
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind
from mooring.model.events import Failed, PodSeen
from mooring.plugin import (
    SKIP,
    ClusterView,
    Depends,
    Event,
    Mask,
    NodeRows,
    Permit,
    PodView,
    PostBind,
    PreFilter,
    PreScore,
    Rejection,
    Reserve,
    Scores,
    Shape,
    Skip,
)
from mooring.testing.builders import make_node, make_pod, make_profile, make_scheduler


class Tickets(PreFilter, Reserve, Permit, PostBind):
    """Draws a ticket before it filters, and shows it at every step."""

    shown: ClassVar[list[tuple[str, object, int]]] = []
    refuses: ClassVar[bool] = False

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> tuple[str, int] | Skip:
        return ("ticket", len(cluster.bound_pods()[1])) if pod.request("cpu") else SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: tuple[str, int]) -> Mask:
        return nodes.free("cpu") >= 0

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> list[Event]:
        self.shown.append(("reserve", pod.prepared, len(cluster.bound_pods()[1])))
        return []

    def unreserve(self, pod: PodView, cluster: ClusterView, row: int) -> list[Event]:
        self.shown.append(("unreserve", pod.prepared, row))
        return []

    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | None:
        self.shown.append(("permit", pod.prepared, row))
        return Rejection(("not today",)) if self.refuses else None

    def post_bind(self, pod: PodView, cluster: ClusterView, row: int) -> None:
        self.shown.append(("post_bind", pod.prepared, row))


class Doubtful(Tickets):
    refuses = True


TICKET = ("ticket", 0)


@pytest.fixture(autouse=True)
def _nothing_is_shown() -> None:
    Tickets.shown.clear()


def one_pod(*plugins: type[Tickets], cached: bool = True) -> Scheduler:
    pods = [make_pod("one", cpu=1)]
    return make_scheduler(nodes=[make_node("a")], pods=pods, plugins=list(plugins), cached=cached)


@pytest.mark.parametrize("cached", [True, False])
def test_it_is_there_in_the_steps_after_the_choice(cached: bool) -> None:
    pods = [make_pod("one", cpu=1), make_pod("best-effort", cpu=0)]
    scheduler = make_scheduler(nodes=[make_node("a")], pods=pods, plugins=[Tickets], cached=cached)

    scheduler.cycle(0.0)

    assert Tickets.shown == [
        ("reserve", TICKET, 1),
        ("permit", TICKET, 0),
        ("post_bind", TICKET, 0),
        ("reserve", None, 2),
        ("permit", None, 0),
        ("post_bind", None, 0),
    ]


def test_it_is_there_when_a_refusal_takes_back_what_was_reserved() -> None:
    one_pod(Doubtful).cycle(0.0)

    assert Tickets.shown == [("reserve", TICKET, 1), ("permit", TICKET, 0), ("unreserve", TICKET, 0)]


def test_it_is_there_when_the_world_refuses_to_bind() -> None:
    scheduler = one_pod(Tickets)
    scheduler.cycle(0.0)
    Tickets.shown.clear()

    scheduler.handle(Failed(Bind("default/one", "")))
    scheduler.cycle(1.0)

    assert Tickets.shown == [("unreserve", TICKET, 0), *[(step, TICKET, row) for step, row in STEPS]]


STEPS = [("reserve", 1), ("permit", 0), ("post_bind", 0)]


def test_it_is_given_up_when_the_world_has_bound_the_pod() -> None:
    scheduler = one_pod(Tickets)
    assert scheduler.cycle(0.0) == [Bind("default/one", "a")]
    (record,) = scheduler.cluster.pods.records.values()
    assert record.gathered == {"Tickets": TICKET}

    scheduler.handle(PodSeen(make_pod("one", cpu=1, node="a")))
    scheduler.cycle(1.0)

    assert record.gathered is None


class Quietest(PreFilter, PreScore):
    """Nodes with the fewest pods, counted once for both."""

    depends_on = Depends.NODE_USAGE | Depends.PODS

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> dict[int, int] | Skip:
        if not pod.request("cpu"):
            return SKIP
        return {row: len(list(cluster.pods_on(row))) for row in range(cluster.end)}

    def filter(self, pod: Shape, nodes: NodeRows, prepared: dict[int, int]) -> Mask:
        return np.array([prepared[row] < 3 for row in nodes.index.tolist()], np.bool_)

    def score(self, pod: Shape, nodes: NodeRows, prepared: dict[int, int]) -> Scores:
        return np.array([100 - 50 * prepared[row] for row in nodes.index.tolist()], np.int64)


@pytest.mark.parametrize("cached", [True, False])
def test_it_is_there_when_nodes_are_scored(cached: bool) -> None:
    nodes = [make_node("busy", cpu=64), make_node("quiet", cpu=2)]
    running = [make_pod(f"runs-{i}", cpu=1, node="busy") for i in range(2)]
    pods = [*running, make_pod("new", cpu=1)]
    only = make_profile("NodeResourcesFit", "Quietest")
    scheduler = make_scheduler(nodes=nodes, pods=pods, profile=only, plugins=[Quietest], cached=cached)

    assert scheduler.cycle(0.0) == [Bind("default/new", "quiet")]


def test_what_the_engine_needs_for_speed_is_not_in_the_public_contracts() -> None:
    public = [getattr(mooring.plugin, name) for name in mooring.plugin.__all__]
    contracts = [found for found in public if isinstance(found, type) and issubclass(found, mooring.plugin.Plugin)]

    assert contracts
    assert {"in_one_go", "room", "passes", "asks_for", "filter_without"}.isdisjoint(
        name for contract in contracts for name in dir(contract)
    )
