"""Two pods cannot hold the same host port of one node."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.state.rows import NodeRows
from mooring.state.shapes import HostPort, Shape
from mooring.state.views import ClusterView

ANY_ADDRESS = "0.0.0.0"


class NodePorts(PreFilter):
    depends_on = Depends.PODS  # the ports in use have no column that could foresee
    helped_by = Change.NODE | Change.POD_GONE
    skip_is_settled = True
    reason = "node(s) didn't have free ports for the requested pod ports"

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> tuple[HostPort, ...] | Skip:
        return pod.host_ports or SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: tuple[HostPort, ...]) -> Mask:
        taken = set[int]()
        for ip, protocol, port in prepared:
            for row, holders in nodes.used_ports(protocol, port).items():
                if ip == ANY_ADDRESS or ip in holders or ANY_ADDRESS in holders:
                    taken.add(row)
        return ~np.isin(nodes.index, list(taken)) if taken else np.ones(len(nodes), np.bool_)

    def remedies(
        self, pod: Shape, nodes: NodeRows, prepared: tuple[HostPort, ...]
    ) -> Iterator[tuple[str, NDArray[np.intp]]]:
        for wanted in prepared:
            others = tuple(port for port in prepared if port != wanted)
            blocked = ~self.filter(pod, nodes, (wanted,))
            alone = blocked & self.filter(pod, nodes, others) if others else blocked
            if alone.any():
                yield f"free the host port {wanted[2]}/{wanted[1]}", np.flatnonzero(alone)
