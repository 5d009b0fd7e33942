"""Checks of what filters say of nodes as they would be: preemption asks about all at once, and tries nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.engine.asking import ask_filter_without
from mooring.engine.plugin import SKIP, Plugin
from mooring.engine.shortcuts import CountedRoom, SupposingFilter
from mooring.engine.verdict import Rejection
from mooring.state.cluster import Cluster
from mooring.state.effects import ShapeEffects
from mooring.state.shapes import Shape
from mooring.testing.asking import asked_shapes, names, prepare
from mooring.testing.promise_checks import pods_come_and_go
from mooring.testing.random_clusters import Choose, one_in
from mooring.testing.situations import Situation

ROUNDS, PODS_A_ROUND = 6, 6
"""Few pods that go make a difference to a filter: each cluster is asked about several times, with others running."""


def check_a_filter_knows_what_it_would_say_without_some_pods(plugin: Plugin, situation: Situation) -> None:
    """`filter_without` says of each row what `filter` says once these pods are gone from it, and no others."""
    if not isinstance(plugin, SupposingFilter):
        return
    cluster, choose = situation.cluster(plugin), situation.choose()
    shapes = asked_shapes(cluster)
    for _ in range(ROUNDS):
        for shape in shapes:
            prepared = prepare(plugin, cluster, shape).for_filter
            if prepared is not SKIP and not isinstance(prepared, Rejection):
                _check_suppositions(plugin, situation, cluster, shape, prepared, choose)
        pods_come_and_go(cluster, choose, PODS_A_ROUND)


def _check_suppositions(
    plugin: SupposingFilter, situation: Situation, cluster: Cluster, shape: Shape, prepared: Any, choose: Choose
) -> None:
    rows = cluster.nodes.live_rows()
    going = [[record for record in cluster.pods.on(row) if not one_in(choose, 3)] for row in rows.tolist()]

    def gone(effects: ShapeEffects) -> NDArray[np.int64]:
        return np.array([sum(effects.of(record.shape.id) for record in some) for some in going], np.int64)

    supposed = ask_filter_without(plugin, shape, cluster.rows(), prepared, gone).tolist()
    for position, some in enumerate(going):
        with cluster.what_if():
            for record in some:
                cluster.release(record.key)
            there = cluster.rows(rows[position : position + 1])
            real = int(prepare(plugin, cluster, shape).codes(there)[0])
        assert supposed[position] == real, (
            f"{plugin.name}.filter_without says {supposed[position]} of {names(cluster, there.index)} without "
            f"{[record.key for record in some]}, and filter then says {real}{situation.about(shape)}"
        )


def check_what_a_filter_asks_for_is_all_that_it_checks(plugin: Plugin, situation: Situation) -> None:
    """Where `asks_for` names amounts, a row passes if it has them free, and only then."""
    if not isinstance(plugin, CountedRoom):
        return
    cluster = situation.cluster(plugin)
    nodes = cluster.rows()
    for shape in asked_shapes(cluster):
        prepared = prepare(plugin, cluster, shape)
        if prepared.for_filter is SKIP or isinstance(prepared.for_filter, Rejection):
            continue
        asked = plugin.asks_for(shape, prepared.for_filter)
        has_all = np.ones(len(nodes), np.bool_)
        for name, amount in asked.items():
            has_all &= nodes.free(name) >= amount
        passed = prepared.codes(nodes) == 0
        assert (has_all == passed).all(), (
            f"{plugin.name}.asks_for names {asked}, and filter answers otherwise for "
            f"{names(cluster, nodes.index[has_all != passed])}{situation.about(shape)}"
        )
