"""A pod that names its node goes there or nowhere."""

import numpy as np

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView


class NodeName(PreFilter):
    depends_on = Depends.NODE
    helped_by = Change.NODE
    skip_is_settled = True
    reads = frozenset(("node_name",))
    reason = "node(s) didn't match the requested node name"
    unresolvable = True

    def narrow(self, pod: Shape) -> frozenset[str] | None:
        return frozenset((pod.node_name,)) if pod.node_name else None

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> int | Skip:
        """The row of the node asked for."""
        if not pod.node_name:
            return SKIP
        row = cluster.row_of(pod.node_name)
        return -1 if row is None else row

    def filter(self, pod: Shape, nodes: NodeRows, prepared: int) -> Mask:
        return np.equal(nodes.index, prepared)
