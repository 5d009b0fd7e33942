"""Taints keep pods away from nodes, unless the pod tolerates them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import Change, Depends, Mask, PreFilter, PreScore, Scores, normalize_by_highest
from mooring.model.api.nodes import Taint
from mooring.model.values.tolerations import is_tolerated, untolerated
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView


class TaintToleration(PreFilter, PreScore):
    depends_on = Depends.NODE
    helped_by = Change.NODE
    skip_is_settled = True
    reads = frozenset(("tolerations",))
    reason = "node(s) had untolerated taint(s)"
    unresolvable = True
    normalizes = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> NDArray[np.bool_]:
        """For each distinct set of taints: whether the pod tolerates all that forbid scheduling."""
        tolerations = pod.spec.tolerations or ()
        sets = cluster.taint_sets
        return np.array([not untolerated(tolerations, taints) for taints in sets], np.bool_)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: NDArray[np.bool_]) -> Mask:
        return prepared[nodes.taint_set]

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> NDArray[np.int64]:
        """For each distinct set of taints: how many that ask to stay away the pod does not tolerate."""
        tolerations = [t for t in pod.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
        return np.array(
            [
                sum(taint.effect == "PreferNoSchedule" and not is_tolerated(tolerations, taint) for taint in taints)
                for taints in cluster.taint_sets
            ],
            np.int64,
        )

    def score(self, pod: Shape, nodes: NodeRows, prepared: NDArray[np.int64]) -> Scores:
        return prepared[nodes.taint_set]

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest, reverse=True)

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: Any) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """One toleration opens the nodes on which only that taint is in the way."""
        tolerations = pod.spec.tolerations or ()
        opened: dict[Taint, list[int]] = {}
        for position, code in enumerate(nodes.taint_set.tolist()):
            in_the_way = untolerated(tolerations, nodes.taint_sets[code])
            if len(in_the_way) == 1:
                opened.setdefault(in_the_way[0], []).append(position)
        for taint, positions in opened.items():
            yield f"tolerate the taint {describe(taint)}", np.array(positions, np.intp)


def describe(taint: Taint) -> str:
    """A taint as kubectl writes it: key=value:effect."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
