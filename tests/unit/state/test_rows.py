"""Rows as plugins see them: read-only, in the order asked for, with usage that may be supposed."""

import numpy as np
import pytest

from mooring.state.rows import NodeRows
from mooring.testing.builders import GPU, ZONE, make_cluster, make_node, make_pod, make_taint


def test_answers_come_in_the_order_of_the_rows() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1), make_node("b", cpu=2), make_node("c", cpu=3)])

    rows = cluster.rows(np.array([2, 0], np.intp))

    assert rows.names == ["c", "a"]
    assert rows.allocatable("cpu").tolist() == [3000, 1000]


def test_columns_cannot_be_written() -> None:
    rows = make_cluster(nodes=[make_node("a")]).rows()

    for column in (rows.allocatable("cpu"), rows.requested("cpu"), rows._table.pod_count.values):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_supposed_pods_count_like_real_ones() -> None:
    cluster = make_cluster(nodes=[make_node("a", gpu=8)], pods=[make_pod("runs", gpu=2, node="a")])
    shape = cluster.shape_for(make_pod("more", cpu=1, gpu=1))

    rows = NodeRows(cluster.nodes, np.array([0, 0], np.intp), np.array([0, 3], np.int64), shape)

    assert rows.free(GPU).tolist() == [6, 3]
    assert rows.requested("cpu").tolist() == [0, 3000]
    assert rows.pod_count.tolist() == [1, 4]
    assert rows.nonzero_requested("cpu").tolist() == [100, 3100]


def test_labels_are_codes_with_minus_one_where_there_is_none() -> None:
    cluster = make_cluster(nodes=[make_node("a", zone="x"), make_node("b"), make_node("c", zone="y")])
    rows = cluster.rows()

    codes = rows.label_codes(ZONE).tolist()

    assert [rows.label_values(ZONE)[code] if code >= 0 else None for code in codes] == ["x", None, "y"]
    assert rows.has_label(ZONE, "y").tolist() == [False, False, True]
    assert rows.has_label(ZONE, "nowhere").tolist() == [False, False, False]


def test_equal_taints_share_a_code() -> None:
    taint = make_taint("dedicated", "gpu")
    cluster = make_cluster(nodes=[make_node("a", taints=[taint]), make_node("b"), make_node("c", taints=[taint])])
    rows = cluster.rows()

    codes = rows.taint_set.tolist()

    assert codes[0] == codes[2] != codes[1]
    assert rows.taint_sets[codes[0]] == (taint,)


def test_resources_nobody_has_are_zero_everywhere() -> None:
    assert make_cluster(nodes=[make_node("a")]).rows().free("example.com/nothing").tolist() == [0]
