"""Asking a plugin the way the engine asks it, for checks and references."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from mooring.engine.asking import ask_filter, ask_pre_filter, ask_pre_score, ask_score, normalized
from mooring.engine.plugin import (
    SKIP,
    Codes,
    Filter,
    FilterAnswers,
    Plugin,
    PreFilter,
    PreScore,
    Score,
    ScoreAnswers,
    Scores,
)
from mooring.engine.verdict import Rejection
from mooring.model.events import PodSeen
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape

EVERY_ROW_REFUSED = -1
"""The code of all rows where a plugin refuses the pod before it looks at nodes."""


def can_filter(plugin: Plugin) -> bool:
    return isinstance(plugin, Filter | PreFilter)


def can_score(plugin: Plugin) -> bool:
    return isinstance(plugin, Score | PreScore)


@dataclass
class Prepared:
    """What a plugin has gathered for one pod."""

    plugin: Plugin
    shape: Shape
    for_filter: Any = None
    for_score: Any = None

    def codes(self, nodes: NodeRows) -> Codes:
        """The filter's answers: 0 where the node will do."""
        if self.for_filter is SKIP:
            return np.zeros(len(nodes), np.int64)
        if isinstance(self.for_filter, Rejection):
            return np.full(len(nodes), EVERY_ROW_REFUSED, np.int64)
        assert isinstance(self.plugin, FilterAnswers)
        return ask_filter(self.plugin, self.shape, nodes, self.for_filter)

    def raw(self, nodes: NodeRows) -> Scores | None:
        """Raw scores; None if the plugin has nothing to say."""
        if self.for_score is SKIP:
            return None
        assert isinstance(self.plugin, ScoreAnswers)
        return ask_score(self.plugin, self.shape, nodes, self.for_score)

    def final(self, nodes: NodeRows) -> Scores:
        """Scores brought into 0..100 over these rows; 0 where the plugin has nothing to say."""
        raw = self.raw(nodes)
        if raw is None:
            return np.zeros(len(nodes), np.int64)
        assert isinstance(self.plugin, ScoreAnswers)
        return normalized(self.plugin, raw)

    def answers(self, nodes: NodeRows) -> dict[str, list[int]]:
        """All that the plugin says about some rows, in comparable form."""
        found = {}
        if can_filter(self.plugin):
            found["filter"] = self.codes(nodes).tolist()
        if can_score(self.plugin):
            found["score"] = self.final(nodes).tolist()
        return found


def prepare(plugin: Plugin, cluster: Cluster, shape: Shape, feasible: NodeRows | None = None) -> Prepared:
    """Let a plugin gather what it needs; all nodes count as feasible unless some are given."""
    prepared = Prepared(plugin, shape)
    if isinstance(plugin, PreFilter):
        prepared.for_filter = ask_pre_filter(plugin, shape, cluster)
    if isinstance(plugin, PreScore):
        prepared.for_score = ask_pre_score(plugin, shape, cluster, cluster.rows() if feasible is None else feasible)
    return prepared


def fresh_answers(plugin: Plugin, cluster: Cluster, shape: Shape) -> dict[str, list[int]]:
    """What a plugin says about all nodes now, gathered anew."""
    return prepare(plugin, cluster, shape).answers(cluster.rows())


def waiting(cluster: Cluster) -> list[PodRecord]:
    return [r for r in cluster.pods.records.values() if r.row == UNBOUND and not r.node_name]


def bound(cluster: Cluster) -> list[PodRecord]:
    return [r for r in cluster.pods.records.values() if r.row != UNBOUND]


def asked_shapes(cluster: Cluster) -> list[Shape]:
    """One of each shape that waits."""
    return list({record.shape.id: record.shape for record in waiting(cluster)}.values())


def another_pod(cluster: Cluster, shape: Shape, number: int) -> PodRecord:
    """One more waiting pod of a shape, in the cluster."""
    pod = shape.sample
    metadata = replace(pod.metadata, name=f"another-{shape.id}-{number}")
    found = replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=shape.node_name))
    cluster.observe(PodSeen(found))
    return cluster.pods.records[found.key]


def rows_of(cluster: Cluster) -> Iterator[Rows]:
    """Each live row alone."""
    for row in cluster.nodes.live_rows().tolist():
        yield np.array([row], np.intp)


def names(cluster: Cluster, rows: Rows) -> list[str]:
    return [cluster.nodes.name(row) for row in rows.tolist()]
