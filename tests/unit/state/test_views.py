"""Plugins read the cluster through a view, and cannot change it by that."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from mooring.model.events import PodSeen
from mooring.model.keys import PodKey
from mooring.state.shapes import Shape
from mooring.state.views import PodView
from mooring.testing.builders import RACK, make_cluster, make_namespace, make_node, make_pod


def test_a_view_shows_what_is_there_now() -> None:
    cluster = make_cluster(nodes=[make_node("a", rack="r1"), make_node("b", rack="r2")], related=[make_namespace("x")])
    view = cluster.view

    cluster.observe(PodSeen(make_pod("old", node="b")))
    cluster.observe(PodSeen(make_pod("new")))
    cluster.assume(PodKey("default/new"), 1)

    shapes, rows = view.bound_pods()
    assert ([view.shape(shape).namespace for shape in shapes.tolist()], rows.tolist()) == (["default"] * 2, [1, 1])
    assert [pod.key for pod in view.pods_on(1)] == ["default/old", "default/new"]
    assert (view.row_of("b"), view.row_of("c"), view.node_name(0), view.node_count, view.end) == (1, None, "a", 2, 2)
    assert [view.label_values(RACK)[code] for code in view.label_codes(RACK)[:2].tolist()] == ["r1", "r2"]
    assert view.rows(np.array([1], np.intp)).names == ["b"]
    assert view.pod("default/new") == PodView.of(cluster.pods.records[PodKey("default/new")])
    assert list(view.related.namespaces) == ["x"]


def test_nothing_can_be_changed_through_a_view() -> None:
    cluster = make_cluster(nodes=[make_node("a")], pods=[make_pod("pod", node="a")], related=[make_namespace("x")])
    view = cluster.view
    (pod,) = view.pods_on(0)

    with pytest.raises(FrozenInstanceError):
        pod.row = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="does not support item assignment"):
        view.related.namespaces["y"] = make_namespace("y")  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        view.label_codes(RACK)[0] = 1
    with pytest.raises(AttributeError):
        view.end = 7  # type: ignore[misc]
    changing = {
        "observe",
        "assume",
        "assume_many",
        "release",
        "checkpoint",
        "rollback",
        "commit",
        "amend",
        "replace_pod",
    }
    assert changing.isdisjoint(dir(view))


def test_effects_count_each_shape_once() -> None:
    cluster = make_cluster(
        nodes=[make_node("a")], pods=[make_pod(f"pod-{i}", cpu=1 + i % 2, node="a") for i in range(6)]
    )
    asked: list[int] = []

    def is_large(shape: Shape) -> int:
        asked.append(shape.id)
        return int(shape.request("cpu") > 1000)

    shapes, _ = cluster.view.bound_pods()
    counted = cluster.view.effects("large", is_large).at(shapes)

    assert (counted.sum(), len(asked)) == (3, 2)
