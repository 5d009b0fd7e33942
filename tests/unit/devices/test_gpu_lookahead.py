"""What GpuLookahead expects of a node, and what it keeps for whom."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.bench.fragmentation_runs import policy_assembly
from mooring.errors import ConfigError
from mooring.model.decisions import Bind
from mooring.model.events import NodeSeen, PodSeen
from mooring.plugins.gpu_filling import Ints, fill, fill_at_once, fill_one_by_one
from mooring.plugins.gpu_fragmentation import TypicalPod
from mooring.plugins.gpu_lookahead import ARRIVALS, NEXT, ORDERS, Lookahead, by_gpus, drawn_orders, likely_needed
from mooring.testing.builders import make_node, make_pod

COUNT, MILLI, MODEL = (f"alibabacloud.com/gpu-{name}" for name in ("count", "milli", "card-model"))


def where(typical: list[TypicalPod], *pods: dict[str, Any], nodes: list[dict[str, Any]]) -> dict[str, str]:
    """By pod, the node that GpuLookahead chooses for it; of nodes that are as good, the first."""
    made = [
        make_node(
            node["name"],
            cpu=node.get("cpu", 64),
            resources={COUNT: node["gpus"]},
            labels={MODEL: node["model"]} if "model" in node else {},
        )
        for node in nodes
    ]
    coming = [
        make_pod(
            pod["name"],
            cpu=pod.get("cpu", 1),
            annotations={MILLI: str(pod["milli"]), COUNT: str(pod.get("gpus", 1))} if pod.get("milli") else {},
        )
        for pod in pods
    ]
    scheduler = policy_assembly("GpuLookahead", typical).new_scheduler(seed=None)
    scheduler.handle(*map(NodeSeen, made), *map(PodSeen, coming))
    decisions = scheduler.cycle(1.0)
    return {found.pod.partition("/")[2]: found.node for found in decisions if isinstance(found, Bind)}


def test_what_typical_pods_fill_is_not_lost_and_what_none_of_them_fits_is() -> None:
    halves = Lookahead([TypicalPod(cpu_milli=1000, gpu_milli=500, gpu_count=1)])
    cpu, left = np.array([8000, 1000, 0]), np.array([[1000, 400], [1000, 400], [1000, 400]])
    in_the_end, for_the_next = np.array([400, 900, 1400]), np.array([400, 400, 1400])

    assert halves.of(cpu, left).tolist() == (in_the_end + NEXT * for_the_next).tolist()


def test_whole_nodes_are_kept_for_pods_with_many_gpus() -> None:
    """Somebody would fill the idle node some day; a GPU of the other is as good for a pod with one."""
    typical = [
        TypicalPod(gpu_milli=1000, gpu_count=1, weight=9),
        TypicalPod(gpu_milli=1000, gpu_count=8, weight=1),
    ]
    first, second = {"name": "a", "milli": 1000}, {"name": "b", "milli": 1000}

    found = where(typical, first, second, nodes=[{"name": "idle", "gpus": 8}, {"name": "small", "gpus": 4}])

    assert found == {"a": "small", "b": "small"}


def test_what_the_next_pod_has_no_use_for_goes_by_gpus_that_are_asked_for() -> None:
    classes = [
        TypicalPod(cpu_milli=1),
        TypicalPod(gpu_milli=500, gpu_count=1, weight=4),
        TypicalPod(gpu_milli=1000, gpu_count=8),
    ]

    assert [(pod.gpu_count, pod.weight) for pod in by_gpus(classes)] == [(1, 2000), (8, 8000)]
    assert by_gpus(classes[:1]) == classes[:1]


def test_pods_without_gpus_go_where_cpu_is_to_spare() -> None:
    """Eight cores a GPU are what the GPUs of `tight` need; `ample` has more of them than its GPU will ever use."""
    typical = [TypicalPod(cpu_milli=8000, gpu_milli=1000, gpu_count=1)]
    nodes = [{"name": "tight", "gpus": 2, "cpu": 16}, {"name": "ample", "gpus": 1, "cpu": 32}]

    assert where(typical, {"name": "p", "cpu": 8}, nodes=nodes) == {"p": "ample"}


def test_models_that_others_insist_on_are_left_to_them() -> None:
    typical = [
        TypicalPod(gpu_milli=1000, gpu_count=1),
        TypicalPod(gpu_milli=1000, gpu_count=1, gpu_models=("T4",)),
    ]
    nodes = [{"name": "wanted", "gpus": 1, "model": "T4"}, {"name": "any", "gpus": 1, "model": "G2"}]

    assert where(typical, {"name": "p", "milli": 1000}, nodes=nodes) == {"p": "any"}
    assert where(typical[:1], {"name": "p", "milli": 1000}, nodes=nodes) == {"p": "wanted"}  # the first of two alike


def test_how_much_of_a_model_is_needed_goes_by_what_is_asked_for_and_what_there_is() -> None:
    classes = [
        TypicalPod(gpu_milli=1000, gpu_count=1, weight=3),
        TypicalPod(gpu_milli=1000, gpu_count=1, gpu_models=("T4", "P100"), weight=1),
        TypicalPod(gpu_milli=500, gpu_count=1, gpu_models=("A10",), weight=8),
    ]

    assert likely_needed(classes, {"G2": 70, "T4": 20, "P100": 10}) == pytest.approx(
        {"T4": 100 / 8 / 30, "P100": 100 / 8 / 30}
    )
    assert likely_needed(classes, {"G2": 90, "A10": 10})["A10"] == 1.0


def test_orders_have_each_class_as_often_as_it_is_frequent() -> None:
    orders = drawn_orders([TypicalPod(weight=3), TypicalPod(weight=1)])

    assert orders.shape == (ORDERS, ARRIVALS)
    assert {int((order == 1).sum()) for order in orders} <= {ARRIVALS // 4, ARRIVALS // 4 + 1}
    assert len({order.tobytes() for order in orders}) == ORDERS


@st.composite
def fillings(draw: st.DrawFn) -> tuple[Ints, ...]:
    """States of nodes, classes of pods, which kinds of nodes these may use, and orders in which they come."""
    amount = st.integers(0, 1000)
    states, classes, width = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rows = [
        [draw(st.integers(0, 9000)), draw(st.integers(0, 1)), *(draw(amount) for _ in range(width))]
        for _ in range(states)
    ]
    cards = -np.sort(-np.array([row[2:] for row in rows], np.int64), axis=1)
    pods = [[draw(st.integers(0, 3000)), draw(st.integers(1, 1000)), draw(st.integers(1, 3))] for _ in range(classes)]
    access = [[draw(st.integers(0, 1)) for _ in range(classes)] for _ in range(2)]
    orders = [[draw(st.integers(0, classes - 1)) for _ in range(6)] for _ in range(3)]
    columns = [row[0] for row in rows], cards, [row[1] for row in rows], pods, access, orders
    return tuple(np.ascontiguousarray(column, np.int64) for column in columns)


@given(fillings())
def test_both_ways_of_filling_find_the_same(filling: tuple[Ints, ...]) -> None:
    cpu, left, kinds, pods, access, orders = filling

    at_once = fill_at_once(cpu, left, kinds, pods, access, orders)

    assert at_once.tolist() == fill_one_by_one(cpu, left, kinds, pods, access, orders).tolist()
    assert (at_once <= left.sum(axis=1) * len(orders)).all()


def test_the_compiled_way_finds_the_same() -> None:
    pytest.importorskip("numba")
    cpu, left = np.array([9000, 4000]), np.array([[1000, 800, 300], [1000, 1000, 1000]])
    pods, access = np.array([[1000, 500, 1], [2000, 1000, 2], [500, 300, 1]]), np.ones((1, 3), np.int64)
    orders = np.array([[0, 1, 2, 0, 2, 1], [1, 2, 2, 0, 1, 0]])
    given_to = cpu, left, np.zeros(2, np.int64), pods, access, orders

    assert fill(worthwhile=True)(*given_to).tolist() == fill_at_once(*given_to).tolist()


def test_no_class_of_pods_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"typicalPods: expected at least one class of pods, found none"):
        where([], nodes=[])
