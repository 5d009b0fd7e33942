"""Nodes whose NUMA zones can hold the pod, as NodeResourceTopology objects tell; a plugin of scheduler-plugins."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from mooring.engine.plugin import MAX_SCORE, SKIP, Change, Codes, Depends, PreFilter, PreScore, Scores, Skip
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.model.numa.zones import SINGLE_NUMA_NODE, NodeZones, zones_of
from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from mooring.plugins.numa_zones import STRATEGIES, PodInZones, fewest_zones, pod_in_zones, score_zones
from mooring.plugins.resource_scoring import Problem, ResourceSpec
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

LEAST_ALLOCATED = "LeastAllocated"
LEAST_NUMA_NODES = "LeastNUMANodes"

ALWAYS_LISTED = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
"""What every node counts as having, be it nothing."""

REASONS = (
    "",
    "cannot align pod",
    "cannot align container",
    "cannot align init container",
    "cannot align sidecar container",
)
"""By code."""


class ScoringStrategy(KubeObject, forbid_unknown_fields=True):
    type: str = LEAST_ALLOCATED
    resources: list[ResourceSpec] = msgspec.field(default_factory=list)


class NodeResourceTopologyMatchArgs(KubeObject, forbid_unknown_fields=True):
    """As in a KubeSchedulerConfiguration; how the original caches has no meaning here."""

    api_version: str = ""
    kind: str = ""
    scoring_strategy: ScoringStrategy = msgspec.field(default_factory=ScoringStrategy)
    cache_resync_period_seconds: int = 0
    discard_reserved_nodes: bool = False
    cache: dict[str, Any] | None = None

    def validate(self) -> Iterator[Problem]:
        if self.scoring_strategy.type not in (*STRATEGIES, LEAST_NUMA_NODES):
            names = ", ".join((*STRATEGIES, LEAST_NUMA_NODES))
            yield "scoringStrategy.type", f"one of {names}", self.scoring_strategy.type


class NodeResourceTopologyMatch(PreFilter, PreScore):
    depends_on = Depends.NODE | Depends.RELATED
    helped_by = Change.NODE | Change.RELATED | Change.POD_GONE
    args_type = NodeResourceTopologyMatchArgs
    skip_is_settled = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> "_Prepared | Skip":
        found = pod_in_zones(pod.spec)
        if found.is_best_effort or not cluster.related.node_resource_topologies:
            return SKIP
        return _Prepared(found, cluster)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: "_Prepared") -> Codes:
        return np.array([self._refusal(row, prepared) for row in nodes.index], np.int64)

    def _refusal(self, row: int, prepared: "_Prepared") -> int:
        zones = prepared.zones(row)
        if zones is None or zones.policy != SINGLE_NUMA_NODE:
            return 0
        reason = prepared.pod.refusal(zones, prepared.allocatable(row))
        return REASONS.index(reason)

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection((REASONS[code],))

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> "_Prepared":
        return _Prepared(pod_in_zones(pod.spec), cluster)

    def score(self, pod: Shape, nodes: NodeRows, prepared: "_Prepared") -> Scores:
        return np.array([self._score(row, prepared) for row in nodes.index], np.int64)

    def _score(self, row: int, prepared: "_Prepared") -> int:
        if not prepared.pod.is_guaranteed:
            return MAX_SCORE
        zones = prepared.zones(row)
        if zones is None:
            return 0
        strategy = self.args.scoring_strategy
        if strategy.type == LEAST_NUMA_NODES:
            return fewest_zones(prepared.pod, zones)
        if zones.policy != SINGLE_NUMA_NODE:
            return 0
        weights = {resource.name: resource.weight or 1 for resource in strategy.resources}
        return score_zones(prepared.pod, zones, STRATEGIES[strategy.type], weights)


class _Prepared:
    def __init__(self, pod: PodInZones, cluster: ClusterView) -> None:
        self.pod = pod
        self._cluster = cluster
        self._topologies = cluster.related.node_resource_topologies

    def zones(self, row: int) -> NodeZones | None:
        found = self._topologies.get(self._cluster.node_name(row))
        return zones_of(found) if found else None

    def allocatable(self, row: int) -> frozenset[str]:
        return ALWAYS_LISTED | frozenset(self._cluster.node(row).status.allocatable or ())
