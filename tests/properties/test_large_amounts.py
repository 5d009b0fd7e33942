"""Amounts of any size: sums never wrap around, and no node is given more than it has."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.assembly import assemble
from mooring.errors import InputError
from mooring.model.decisions import Bind
from mooring.model.loading.manifests import build_manifests
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import MOST_OF_A_NODE
from mooring.state.amounts import exact_sum
from mooring.testing.builders import make_node, make_pod

SUFFIXES = ("", "m", "k", "Gi", "Ti", "Pi", "Ei", "E", "e30")
amounts = st.builds(lambda number, suffix: f"{number}{suffix}", st.integers(0, 2**20), st.sampled_from(SUFFIXES))
near_the_limit = st.integers(MOST_OF_A_NODE - 3, MOST_OF_A_NODE + 3).map(str)
resources = st.fixed_dictionaries({"cpu": amounts, "memory": amounts | near_the_limit})


def pod(name: str, requests: dict[str, str], on: str = "") -> dict[str, Any]:
    containers = [{"name": "main", "image": "x", "resources": {"requests": requests}}]
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": on, "containers": containers}}


def node(name: str, allocatable: dict[str, str]) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {**allocatable, "pods": "99"}}}


@given(st.lists(resources, min_size=1, max_size=3), st.lists(resources, max_size=6), st.lists(resources, max_size=4))
def test_no_node_is_given_more_than_it_has(
    nodes: list[dict[str, str]], running: list[dict[str, str]], pending: list[dict[str, str]]
) -> None:
    given_nodes = {f"n{index}": found for index, found in enumerate(nodes)}
    bound = {f"b{index}": (f"n{index % len(nodes)}", found) for index, found in enumerate(running)}
    waiting = {f"p{index}": found for index, found in enumerate(pending)}
    documents = [
        *(node(name, found) for name, found in given_nodes.items()),
        *(pod(name, found, on) for name, (on, found) in bound.items()),
        *(pod(name, found) for name, found in waiting.items()),
    ]
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests(documents), 0.0)

    decisions = scheduler.cycle(0.0)

    taken: dict[str, list[dict[str, str]]] = defaultdict(list)
    for on, found in bound.values():
        taken[on].append(found)
    asked: dict[tuple[str, str], int] = defaultdict(int)
    for decision in decisions:
        if isinstance(decision, Bind):
            found = waiting[decision.pod.rpartition("/")[2]]
            taken[decision.node].append(found)
            for resource, text in found.items():
                asked[decision.node, resource] += parse_quantity(text)
    for name, resource in (where for where, amount in asked.items() if amount):
        placed = sum(parse_quantity(found[resource]) for found in taken[name])
        assert placed <= parse_quantity(given_nodes[name][resource])


def test_bound_pods_beyond_64_bits_leave_no_room() -> None:
    """Two bound pods of 5Ei wrapped around, and a pending one of 2Ei was placed beside them."""
    documents = [
        node("a", {"cpu": "4", "memory": "7Ei"}),
        *(pod(name, {"memory": "5Ei"}, "a") for name in ("one", "two")),
        pod("three", {"memory": "2Ei"}),
    ]
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests(documents), 0.0)

    assert [decision for decision in scheduler.cycle(0.0) if isinstance(decision, Bind)] == []


def test_as_many_pods_as_columns_can_hold_are_counted_exactly_and_the_next_is_refused() -> None:
    scheduler = assemble().new_scheduler()
    cluster = scheduler.cluster
    pods = [make_pod(f"p{index}", cpu="1", memory="1Pi", node="a") for index in range(4100)]
    scheduler.load(build_manifests([make_node("a"), *pods[:4096]]), 0.0)

    assert int(cluster.nodes.requested("memory")[0]) == 4096 * 2**50
    with pytest.raises(InputError, match="the pods of one node"):
        scheduler.load(build_manifests([make_node("a"), *pods]), 0.0)


@given(st.lists(st.integers(-(2**62), 2**62), max_size=20))
def test_sums_over_rows_are_exact(numbers: list[int]) -> None:
    assert exact_sum(np.array(numbers, np.int64)) == sum(numbers)
