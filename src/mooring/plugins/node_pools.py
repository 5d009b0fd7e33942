"""Node pools as policy: nodes that belong to a team or a kind of work, and what others may do with them.

A pool is nodes with certain labels; its own pods are those of certain namespaces, or with certain labels.

- Dedicated: its nodes take its own pods alone, and its own pods go nowhere else.
- Shared: its own pods go there first and spill over to other nodes; others' pods come there last.
- Reserved: as shared, and a part of each node is kept for its own pods: others may not fill it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, SKIP, Change, Codes, Depends, PreFilter, Score, Scores, Skip
from mooring.engine.verdict import Rejection
from mooring.plugins.resource_scoring import Problem
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

OTHERS, ELSEWHERE, KEPT = 1, 2, 3
"""Codes: the pool is dedicated to others; the pod has a dedicated pool elsewhere; the rest of the node is kept."""
_REASONS = {
    OTHERS: "node(s) were in a pool dedicated to others",
    ELSEWHERE: "node(s) were outside of the pod's dedicated pool",
    KEPT: "node(s) kept the rest of their capacity for their pool",
}


class NodePool(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: str
    node_labels: dict[str, str]
    policy: Literal["Dedicated", "Shared", "Reserved"] = "Shared"
    namespaces: list[str] = []
    pod_labels: dict[str, str] = {}
    reserved_percent: int = 0
    """Of each node of a Reserved pool, what others may not fill."""

    def owns(self, pod: Shape) -> bool:
        """Whether a pod is one of its own: in one of its namespaces, with all of its labels."""
        if self.namespaces and pod.namespace not in self.namespaces:
            return False
        return all(pod.label(key) == value for key, value in self.pod_labels.items())

    def has(self, nodes: NodeRows) -> NDArray[np.bool_]:
        found = np.ones(len(nodes), np.bool_)
        for key, value in self.node_labels.items():
            found &= nodes.has_label(key, value)
        return found


class NodePoolsArgs(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pools: list[NodePool] = []

    def validate(self) -> Iterator[Problem]:
        names: set[str] = set()
        for index, pool in enumerate(self.pools):
            field = f"pools[{index}]"
            if not pool.name or pool.name in names:
                yield f"{field}.name", "a name of its own", f'"{pool.name}"'
            names.add(pool.name)
            if not pool.node_labels:
                yield f"{field}.nodeLabels", "at least one label", "none"
            if not pool.namespaces and not pool.pod_labels:
                yield field, "namespaces or podLabels, which say whose pool it is", "neither"
            if not 0 <= pool.reserved_percent <= 100:
                yield f"{field}.reservedPercent", "from 0 to 100", str(pool.reserved_percent)
            if bool(pool.reserved_percent) != (pool.policy == "Reserved"):
                yield (
                    f"{field}.reservedPercent",
                    "1 or more with policy Reserved, else none",
                    str(pool.reserved_percent),
                )


class NodePools(PreFilter, Score):
    depends_on = Depends.NODE | Depends.NODE_USAGE
    helped_by = Change.NODE | Change.POD_GONE
    args_type = NodePoolsArgs

    def __init__(self, args: Any = None) -> None:
        super().__init__(args)
        self.reads_pod_labels: Sequence[str] = sorted({key for pool in self.args.pools for key in pool.pod_labels})  # type: ignore[misc]

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> list[bool] | Skip:
        """Which of the pools are the pod's."""
        return [pool.owns(pod) for pool in self.args.pools] if self.args.pools else SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: list[bool]) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        confined = any(own and pool.policy == "Dedicated" for pool, own in zip(self.args.pools, prepared, strict=True))
        own_rows = np.zeros(len(nodes), np.bool_)
        for pool, own in zip(self.args.pools, prepared, strict=True):
            inside = pool.has(nodes)
            if own:
                own_rows |= inside
            elif pool.policy == "Dedicated":
                codes[inside] = OTHERS
            elif pool.policy == "Reserved":
                codes[inside & ~self._leaves_enough(pod, nodes, pool.reserved_percent)] = KEPT
        if confined:
            codes[~own_rows & (codes == 0)] = ELSEWHERE
        return codes

    def _leaves_enough(self, pod: Shape, nodes: NodeRows, percent: int) -> NDArray[np.bool_]:
        enough = np.ones(len(nodes), np.bool_)
        for name, wanted in pod.requests.items():
            if wanted:
                enough &= (nodes.free(name) - wanted) * 100 >= nodes.allocatable(name) * percent
        return enough

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection((_REASONS[code],), unresolvable=code != KEPT)

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        """The pod's own pools best, nodes of nobody next, pools of others last."""
        scores = np.full(len(nodes), MAX_SCORE // 2, np.int64)
        for pool in self.args.pools:
            scores[pool.has(nodes)] = MAX_SCORE if pool.owns(pod) else 0
        return scores
