"""What extenders have answered about a pod: the core does no I/O, so the driver asks before, and notes it on the pod.

The note is an annotation that exists in the state alone: which nodes they let a pod have, and what they think of them.
"""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, PreScore, Scores, Skip
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

ANSWER = "mooring.dev/extenders"


class ExtenderAnswer(msgspec.Struct, omit_defaults=True):
    """What all extenders of interest say about one pod."""

    nodes: list[str]
    """The nodes that none of them refused."""
    scores: dict[str, int] = {}
    """From 0 to 100, by node."""


_decode = msgspec.json.Decoder(ExtenderAnswer).decode


class Extenders(PreFilter, PreScore):
    depends_on = Depends.NODE
    helped_by = Change.NODE
    reads_pod_annotations = (ANSWER,)
    reason = "node(s) didn't satisfy extenders"
    skip_is_settled = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> NDArray[np.bool_] | Skip:
        """Which rows they let the pod have; no word of theirs, no matter."""
        said = pod.annotation(ANSWER)
        if said is None:
            return SKIP
        allowed = np.zeros(cluster.end, np.bool_)
        for name in _decode(said).nodes:
            row = cluster.row_of(name)
            if row is not None:
                allowed[row] = True
        return allowed

    def filter(self, pod: Shape, nodes: NodeRows, prepared: NDArray[np.bool_]) -> Mask:
        return prepared[nodes.index]

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> NDArray[np.int64] | Skip:
        said = pod.annotation(ANSWER)
        found: dict[str, Any] = _decode(said).scores if said is not None else {}
        if not found:
            return SKIP
        scores = np.zeros(cluster.end, np.int64)
        for name, score in found.items():
            row = cluster.row_of(name)
            if row is not None:
                scores[row] = score
        return scores

    def score(self, pod: Shape, nodes: NodeRows, prepared: NDArray[np.int64]) -> Scores:
        return prepared[nodes.index]
