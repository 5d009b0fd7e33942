"""Node pools as policy: nodes that belong to a team or a kind of work, and what others may do with them.

A pool is nodes with certain labels; its own pods are those of certain namespaces or priority classes, or with certain
labels.

- Dedicated: its nodes take its own pods alone, and its own pods go nowhere else.
- Shared: its own pods go there first and spill over to other nodes; others' pods come there last.
- Reserved: as shared, and a part of each node is kept for its own pods: others together may not use it.

Those that spilled over go back by an action of its own (`actions/move_back`), where a pool asks for that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.config.node_pools import NodePool, NodePoolsArgs
from mooring.engine.node_pools import has_rows, owns
from mooring.engine.plugin import MAX_SCORE, SKIP, Change, Codes, Depends, PreFilter, Score, Scores, Skip
from mooring.engine.shortcuts import BesidesAmounts, ForeseenRoom
from mooring.engine.verdict import Rejection
from mooring.state.nodes import PLACES
from mooring.state.partial_usage import PartialUsage
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
MOST = 1 << 40
"""More pods than any row takes."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a pod stands to the pools."""

    own: list[NodePool]
    closed: list[NodePool]
    """Dedicated to others."""
    kept: list[tuple[NodePool, PartialUsage]]
    """Reserved for others, each with what all that are not its own use of every row."""

    @property
    def is_confined(self) -> bool:
        return any(pool.policy == "Dedicated" for pool in self.own)


class NodePools(PreFilter, Score, ForeseenRoom, BesidesAmounts):
    depends_on = Depends.NODE | Depends.NODE_USAGE
    helped_by = Change.NODE | Change.POD_GONE
    args_type = NodePoolsArgs
    foresees = True

    def __init__(self, args: Any = None) -> None:
        super().__init__(args)
        pools: list[NodePool] = self.args.pools
        self.reads_pod_labels = sorted({key for pool in pools for key in pool.pod_labels})  # type: ignore[misc]
        self.reads_pod_priority_class = any(pool.priority_classes for pool in pools)  # type: ignore[misc]
        self._reserved = [pool for pool in pools if pool.policy == "Reserved"]
        if not self._reserved:
            self.depends_on = Depends.NODE  # type: ignore[misc]

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Standing | Skip:
        """Which of the pools are the pod's, and what others use of those that are kept."""
        if not self.args.pools:
            return SKIP
        others = [pool for pool in self.args.pools if not owns(pool, pod)]
        return Standing(
            own=[pool for pool in self.args.pools if owns(pool, pod)],
            closed=[pool for pool in others if pool.policy == "Dedicated"],
            kept=[(pool, _usage_of_others(pool, cluster)) for pool in others if pool.policy == "Reserved"],
        )

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Standing) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        codes[self.room(pod, nodes, prepared) < 1] = KEPT
        codes[_any_of(prepared.closed, nodes)] = OTHERS
        if prepared.is_confined:
            # Whatever else is in the way there: no place outside of its pool is of use to it.
            codes[~_any_of(prepared.own, nodes)] = ELSEWHERE
        return codes

    def room(self, pod: Shape, nodes: NodeRows, prepared: Standing) -> NDArray[np.int64]:
        """How many such pods each row takes beside what it keeps for its pools' own."""
        room = np.full(len(nodes), MOST, np.int64)
        for pool, used in prepared.kept:
            inside = has_rows(pool, nodes)
            if inside.any():
                room[inside] = np.minimum(room, _room_beside(pod, nodes, pool.reserved_percent, used))[inside]
        return room

    def is_concerned_by(self, other: Shape) -> bool:
        """Only who is a stranger somewhere makes room for strangers by going."""
        return any(not owns(pool, other) for pool in self._reserved)

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection((_REASONS[code],), unresolvable=code != KEPT)

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        """The pod's own pools best, nodes of nobody next, pools of others last."""
        scores = np.full(len(nodes), MAX_SCORE // 2, np.int64)
        for pool in self.args.pools:
            if not owns(pool, pod):
                scores[has_rows(pool, nodes)] = 0
        for pool in self.args.pools:
            if owns(pool, pod):
                scores[has_rows(pool, nodes)] = MAX_SCORE
        return scores


def _usage_of_others(pool: NodePool, cluster: ClusterView) -> PartialUsage:
    return cluster.usage_of_some(("NodePools", msgspec.json.encode(pool)), lambda shape: not owns(pool, shape))


def _any_of(pools: list[NodePool], nodes: NodeRows) -> NDArray[np.bool_]:
    found = np.zeros(len(nodes), np.bool_)
    for pool in pools:
        found |= has_rows(pool, nodes)
    return found


def _room_beside(pod: Shape, nodes: NodeRows, percent: int, used: PartialUsage) -> NDArray[np.int64]:
    """How many more such pods may come to each row if all that are not the pool's own leave so much of it.

    Who asks for nothing of a resource has no part in using it up.
    """
    room = np.full(len(nodes), MOST, np.int64)
    wanted: Mapping[str, int] = {**pod.requests, PLACES: 1}
    for name, amount in wanted.items():
        if not amount:
            continue
        there = nodes.allocatable(name)
        allowed = there // 100 * (100 - percent) + there % 100 * (100 - percent) // 100  # no product that overflows
        taken = used.of(name, nodes.index)
        if nodes.further_pods is not None:
            taken += nodes.further_pods * amount
        np.minimum(room, (allowed - taken) // amount, out=room)
    return room
