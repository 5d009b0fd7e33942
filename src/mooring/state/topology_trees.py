"""The topology trees in use, each kept until a node changes in something that it is built from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mooring.model.hypernodes import map_hypernodes
from mooring.model.meta import Labels
from mooring.model.nodes import Node
from mooring.model.topology import HyperNode, TopologyWish, tier_level, tier_of
from mooring.state.cluster import Cluster
from mooring.state.columns import Interner
from mooring.state.nodes import MISSING
from mooring.state.topology import LevelColumn, TopologyTree

HOSTNAME = "kubernetes.io/hostname"

LevelKeys = tuple[str, ...]


@dataclass(slots=True)
class _Kept:
    tree: TopologyTree
    nodes: list[Node | None]
    """The nodes that it was built from, by row."""
    version: int
    """How far it is known to be right, as `Cluster.nodes_version`."""
    source: tuple[HyperNode, ...] = ()


class TopologyTrees:
    """Makes trees for one cluster, and makes them again only where they would be others.

    Nodes come, change their capacity and are tainted all the time; a tree changes only with their names and labels.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_labels: dict[LevelKeys, _Kept] = {}
        self._by_hypernodes: _Kept | None = None

    def for_wish(
        self,
        wish: TopologyWish,
        topologies: Mapping[str, LevelKeys],
        hypernodes: Mapping[str, HyperNode],
    ) -> TopologyTree:
        """The tree that a wish is about; `topologies` are the Topology objects: by name, their keys coarse to fine.

        A wish that names no Topology is about the first, by name, that has all its levels. Is there none, its own
        levels make up a topology. A level that the tree lacks is for the reader of the tree to complain about.
        """
        return self.for_levels(wish.levels, wish.topology, topologies, hypernodes)

    def for_levels(
        self,
        levels: LevelKeys,
        topology: str,
        topologies: Mapping[str, LevelKeys],
        hypernodes: Mapping[str, HyperNode],
    ) -> TopologyTree:
        """The tree of some levels, coarse to fine, that one or more wishes name; see `for_wish`."""
        if any(tier_of(level) is not None for level in levels):
            return self.by_hypernodes(hypernodes)
        if topology in topologies:
            return self.by_labels(topologies[topology])
        if not topology:
            for _, keys in sorted(topologies.items()):
                if set(levels) <= set(keys):
                    return self.by_labels(keys)
        return self.by_labels(levels)

    def by_labels(self, keys: LevelKeys) -> TopologyTree:
        """The tree of some label keys, coarse to fine."""
        kept = self._by_labels.get(keys)
        if kept is None or not self._is_right(kept, lambda labels: tuple(labels.get(key) for key in keys)):
            kept = self._by_labels[keys] = self._keep(self._build_by_labels(keys))
        return kept.tree

    def by_hypernodes(self, hypernodes: Mapping[str, HyperNode]) -> TopologyTree:
        """The tree of all HyperNodes, one level a tier, the highest first."""
        source = tuple(hypernodes.values())
        kept = self._by_hypernodes
        if kept is None or kept.source != source or not self._is_right(kept, lambda labels: labels):
            kept = self._by_hypernodes = self._keep(self._build_by_hypernodes(source), source)
        return kept.tree

    def _keep(self, tree: TopologyTree, source: tuple[HyperNode, ...] = ()) -> _Kept:
        return _Kept(tree, list(self._cluster.nodes.nodes), self._cluster.nodes_version, source)

    def _is_right(self, kept: _Kept, read: Callable[[Labels], object]) -> bool:
        """Whether no node differs, in name or in what is read of its labels, from the one the tree was built from."""
        version = self._cluster.nodes_version
        now = self._cluster.nodes.nodes
        for row in set(self._cluster.node_changes[kept.version : version]):
            old = kept.nodes[row] if row < len(kept.nodes) else None
            new = now[row]
            if old is None or new is None or old.metadata.name != new.metadata.name:
                return False
            if read(old.metadata.labels or {}) != read(new.metadata.labels or {}):
                return False
        kept.version = version
        return True

    def _build_by_labels(self, keys: LevelKeys) -> TopologyTree:
        table = self._cluster.nodes
        rows = table.live_rows()
        columns = []
        for key in keys:
            label = table.label(key)
            # The interner goes on growing; a tree keeps what it was built from.
            columns.append(LevelColumn(key, level_title(key), label.codes[rows], tuple(label.interner.values)))
        return TopologyTree(columns, rows, [table.name(row) for row in rows.tolist()], capacity=table.capacity)

    def _build_by_hypernodes(self, hypernodes: tuple[HyperNode, ...]) -> TopologyTree:
        table = self._cluster.nodes
        rows = table.live_rows()
        nodes = [table.node(row) for row in rows.tolist()]
        found = map_hypernodes(hypernodes, {node.metadata.name: node.metadata.labels for node in nodes})
        columns = []
        for tier in found.tiers:
            interner = Interner()
            codes = np.full(len(rows), MISSING, np.int32)
            for index, node in enumerate(nodes):
                name = found.chains.get(node.metadata.name, {}).get(tier)
                if name is not None:
                    codes[index] = interner.code(name)
            title = found.titles.get(tier) or f"HyperNode of tier {tier}"
            columns.append(LevelColumn(tier_level(tier), title, codes, tuple(interner.values)))
        names = [node.metadata.name for node in nodes]
        return TopologyTree(columns, rows, names, capacity=table.capacity, with_gaps=True)


def level_title(key: str) -> str:
    """What a domain of a label key is called in a message.

    >>> level_title("topology.example.com/rack"), level_title("kubernetes.io/hostname")
    ('rack', 'node')
    """
    return "node" if key == HOSTNAME else key.rpartition("/")[2]
