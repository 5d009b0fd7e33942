"""Rows of nodes that do not exist yet, and rows that are closed: for asking what would be with them, and for plans.

Versions go back to what they were when a trial is undone, so that answers from before it are still good. Inside, every
version is a number of its own: what is asked about the larger cluster is kept apart from what is asked otherwise. What
a trial keeps is the cluster as it is once all trials have ended.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InvariantBroken
from mooring.model.api.nodes import Node
from mooring.model.devices.card_dialects import cards_of
from mooring.model.node_offer import NodeOffer
from mooring.model.numa.nodes import kubelet_of_annotations

if TYPE_CHECKING:
    from mooring.state.cluster import Cluster

SERIES = 1 << 40
"""Each change of the rows in a trial begins a series of version numbers of its own."""


class OfferedRows:
    """Opens and closes rows of a cluster; everything is on its undo log."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._opened = 0
        """How many nodes on offer have been given a name; a trial that is undone gives the names back."""
        self.series = 0
        """Rises with every change of the rows."""
        self.trial = 0
        """The outermost trial in which it did so last."""
        self._last_series = 0

    def open(self, offer: NodeOffer, count: int) -> NDArray[np.intp]:
        """Let there be so many more nodes of a kind; return their rows."""
        cluster = self._cluster
        nodes, end = cluster.nodes, cluster.nodes.end
        self._renew_versions()
        named = self._named(offer, count)
        opened = nodes.open(named, cards_of(offer.node, None, None))
        cluster.log.note(nodes.shut, opened, end)
        rows = np.array(opened, np.intp)
        if offer.slices:
            pools = cluster.published.pools_of_offer(offer)
            for row, node in zip(rows.tolist(), named, strict=True):
                cluster.log.note(cluster.devices.put, row, [])
                cluster.devices.put(row, [(f"{node.metadata.name}/{name}", pool) for name, pool in pools])
        kubelet = kubelet_of_annotations(offer.node.metadata.annotations or {})
        if kubelet is not None:
            for row in rows.tolist():
                cluster.log.note(cluster.numa.describe, row, None, ())
                cluster.numa.describe(row, kubelet, ())
        cluster.offer_extended(*rows.tolist())
        return rows

    def close(self, rows: Sequence[int]) -> None:
        """Let there be no nodes on some rows; no pod may be there."""
        cluster = self._cluster
        busy = next((row for row in rows if cluster.pods.on_row.get(row)), None)
        if busy is not None:
            raise InvariantBroken(f"node {cluster.nodes.name(busy)} has pods")
        self._renew_versions()
        for row in [row for row in rows if row in cluster.numa.on_row]:
            cluster.log.note(cluster.numa.describe, row, cluster.numa.on_row[row].kubelet, ())
            cluster.numa.describe(row, None, ())
        cluster.log.note(cluster.nodes.show, cluster.nodes.hide(list(rows)))
        for row in [row for row in rows if row in cluster.devices.on_row]:
            cluster.log.note(cluster.devices.put, row, cluster.devices.pools_of(row))
            cluster.devices.put(row, [])

    def _named(self, offer: NodeOffer, count: int) -> list[Node]:
        """Nodes of one kind, each with a name and a host name of its own."""
        begin, known = offer.node.metadata.name, self._cluster.nodes.row_of
        claims = self._cluster.related.node_claims
        made: list[Node] = []
        while len(made) < count:
            name = f"{begin}-{self._opened}"
            self._opened += 1
            if name not in known and name not in claims:
                made.append(offer.node_named(name))
        return made

    def _renew_versions(self) -> None:
        cluster = self._cluster
        own = self.series, self.trial, self._opened
        versions = cluster.nodes_version, cluster.nodes.version, cluster.devices.version
        cluster.log.note(self._set_versions, own, versions, cluster.pod_changes.position)
        self._last_series += 1
        number = self._last_series * SERIES
        self.series, self.trial = self._last_series, cluster.log.outermost
        cluster.nodes_version = cluster.nodes.version = number

    def _set_versions(self, own: tuple[int, int, int], versions: tuple[int, int, int], position: int) -> None:
        """Undo: the rows are what they were, and so is every pod: nothing has happened since."""
        cluster = self._cluster
        self.series, self.trial, self._opened = own
        cluster.nodes_version, cluster.nodes.version, cluster.devices.version = versions
        cluster.pod_changes.void(position)
