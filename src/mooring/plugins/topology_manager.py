"""Nodes whose kubelet will admit the pod, by its Topology, CPU, Memory and Device Managers; well aligned ones first.

kube-scheduler looks at sums only: a pod that fits by its sums, but not on one NUMA node where the node's policy asks
for that, is bound and then refused by the kubelet, for ever again if a controller replaces it.
"""

import numpy as np

from mooring.engine.plugin import MAX_SCORE, SKIP, Change, Codes, Depends, PreFilter, PreScore, Scores, Skip
from mooring.engine.shortcuts import BesidesAmounts
from mooring.engine.verdict import Rejection
from mooring.model.numa.ask import PodAsk
from mooring.model.numa.kubelet import (
    SMT_ALIGNMENT_ERROR,
    TOPOLOGY_AFFINITY_ERROR,
    UNEXPECTED_ADMISSION_ERROR,
    Admitted,
    Refused,
)
from mooring.state.numa import NumaTable, ask_of_shape
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

REASONS = (TOPOLOGY_AFFINITY_ERROR, SMT_ALIGNMENT_ERROR, UNEXPECTED_ADMISSION_ERROR)
"""By code, from 1 on."""
EXPLAINED = {
    TOPOLOGY_AFFINITY_ERROR: "resources cannot be aligned on NUMA nodes",
    SMT_ALIGNMENT_ERROR: "not enough whole cores",
    UNEXPECTED_ADMISSION_ERROR: "not enough CPUs, memory or devices of its own",
}


class TopologyManager(BesidesAmounts, PreFilter, PreScore):
    depends_on = Depends.NODE | Depends.NODE_USAGE | Depends.RELATED
    helped_by = Change.NODE | Change.RELATED | Change.POD_GONE
    skip_is_settled = True
    reads = frozenset(("numa",))

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> NumaTable | Skip:
        return self._prepare(pod, cluster)

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> NumaTable | Skip:
        return self._prepare(pod, cluster)

    @staticmethod
    def _prepare(pod: Shape, cluster: ClusterView) -> NumaTable | Skip:
        return cluster.numa if cluster.numa.concerns(pod) else SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: NumaTable) -> Codes:
        answers = _answers(ask_of_shape(pod), nodes, prepared)
        return np.array([REASONS.index(a.reason) + 1 if isinstance(a, Refused) else 0 for a in answers], np.int64)

    def is_concerned_by(self, other: Shape) -> bool:
        return not ask_of_shape(other).is_nothing

    def rejection(self, pod: Shape, code: int) -> Rejection:
        reason = REASONS[code - 1]
        return Rejection((f"node(s) whose kubelet would refuse the pod: {reason}, {EXPLAINED[reason]}",))

    def score(self, pod: Shape, nodes: NodeRows, prepared: NumaTable) -> Scores:
        answers = _answers(ask_of_shape(pod), nodes, prepared)
        return np.array([_alignment(a) if isinstance(a, Admitted) else 0 for a in answers], np.int64)


def _answers(ask: PodAsk, nodes: NodeRows, table: NumaTable) -> list[Admitted | Refused | None]:
    on_row = table.on_row
    states = [on_row.get(row) for row in nodes.index.tolist()]
    return [None if state is None else state.answer(ask) for state in states]


def _alignment(admitted: Admitted) -> int:
    """100 where every container is on one NUMA node; a tenth less for each more, and half if that is not preferred."""
    worst = MAX_SCORE
    for share in admitted.containers:
        if share.affinity is not None:
            score = max(MAX_SCORE - 10 * (share.affinity.bit_count() - 1), 10)
            worst = min(worst, score if share.preferred else score // 2)
    return worst
