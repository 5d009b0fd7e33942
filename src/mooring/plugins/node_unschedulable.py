"""Cordoned nodes take no pods but those that tolerate it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.model.values.tolerations import UNSCHEDULABLE, is_tolerated
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView


class NodeUnschedulable(PreFilter):
    depends_on = Depends.NODE
    helped_by = Change.NODE
    skip_is_settled = True
    reads = frozenset(("tolerations",))
    reason = "node(s) were unschedulable"
    unresolvable = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Skip | None:
        return SKIP if is_tolerated(pod.spec.tolerations or (), UNSCHEDULABLE) else None

    def filter(self, pod: Shape, nodes: NodeRows, prepared: None) -> Mask:
        return ~nodes.unschedulable

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: Any) -> Iterator[tuple[str, NDArray[np.intp]]]:
        yield "uncordon the node", np.arange(len(nodes))
