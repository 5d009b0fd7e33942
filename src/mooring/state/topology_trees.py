"""The topology trees in use, each kept until a node changes in something that it is built from."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from mooring.model.api.meta import Labels
from mooring.model.api.nodes import Node
from mooring.model.topology.hypernodes import map_hypernodes
from mooring.model.topology.requests import HyperNode, tier_level, tier_of
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
        self._by_labels: dict[tuple[LevelKeys, LevelKeys], _Kept] = {}
        self._by_hypernodes: dict[bool, _Kept] = {}

    def for_levels(
        self,
        levels: LevelKeys,
        topology: str,
        topologies: Mapping[str, LevelKeys],
        hypernodes: Mapping[str, HyperNode],
        optional: Collection[str] | None = None,
    ) -> TopologyTree:
        """The tree of some levels, coarse to fine, that topology requests name; `topologies` has their keys by name.

        Requests that name no Topology are about the first, by name, that has all levels. Is there none, their own
        levels make up a topology. One that is named and does not exist has no nodes: nothing stands in for it. A level
        that the tree lacks is for the reader of the tree to complain about.

        With `optional` levels, the tree has also nodes that lack these; if nothing else is asked for, all nodes.
        """
        needed = levels if optional is None else tuple(level for level in levels if level not in optional)
        is_free = optional is not None and not needed
        if any(tier_of(level) is not None for level in levels):
            return self.by_hypernodes(hypernodes, everywhere=is_free)
        if topology and topology not in topologies:
            return self.by_labels(()) if is_free else self._nowhere()
        sought = set(needed or levels)
        having = (keys for _, keys in sorted(topologies.items()) if sought <= set(keys))
        keys = topologies[topology] if topology else next(having, None)
        if keys is not None:
            return self.by_labels(keys, keys if is_free else ())
        return self.by_labels(levels, tuple(optional or ()))

    def by_labels(self, keys: LevelKeys, optional: LevelKeys = ()) -> TopologyTree:
        """The tree of some label keys, coarse to fine, some of which nodes may lack."""
        kept = self._by_labels.get((keys, optional))
        if kept is None or not self._is_right(kept, lambda labels: tuple(labels.get(key) for key in keys)):
            kept = self._by_labels[keys, optional] = self._keep(self._build_by_labels(keys, optional))
        return kept.tree

    def by_hypernodes(self, hypernodes: Mapping[str, HyperNode], *, everywhere: bool = False) -> TopologyTree:
        """The tree of all HyperNodes, one level a tier, the highest first; of all nodes if `everywhere`."""
        source = tuple(hypernodes.values())
        kept = self._by_hypernodes.get(everywhere)
        if kept is None or kept.source != source or not self._is_right(kept, lambda labels: labels):
            kept = self._keep(self._build_by_hypernodes(source, everywhere=everywhere), source)
            self._by_hypernodes[everywhere] = kept
        return kept.tree

    def _nowhere(self) -> TopologyTree:
        rows = self._cluster.nodes.live_rows()[:0]
        return TopologyTree((), rows, (), capacity=self._cluster.nodes.capacity)

    def _keep(self, tree: TopologyTree, source: tuple[HyperNode, ...] = ()) -> _Kept:
        return _Kept(tree, list(self._cluster.nodes.nodes), self._cluster.nodes_version, source)

    def _is_right(self, kept: _Kept, read: Callable[[Labels], object]) -> bool:
        """Whether no node differs, in name or in what is read of its labels, from the one the tree was built from."""
        version = self._cluster.nodes_version
        now = self._cluster.nodes.nodes
        changed = self._cluster.nodes_changed_since(kept.version)
        if changed is None:
            return False
        for row in changed:
            old = kept.nodes[row] if row < len(kept.nodes) else None
            new = now[row]
            if old is None or new is None or old.metadata.name != new.metadata.name:
                return False
            if read(old.metadata.labels or {}) != read(new.metadata.labels or {}):
                return False
        kept.version = version
        return True

    def _build_by_labels(self, keys: LevelKeys, optional: LevelKeys) -> TopologyTree:
        table = self._cluster.nodes
        rows = table.live_rows()
        columns = []
        for key, title in zip(keys, level_titles(keys), strict=True):
            label = table.label(key)
            # The interner goes on growing; a tree keeps what it was built from.
            columns.append(LevelColumn(key, title, label.codes[rows], tuple(label.interner.values)))
        names = [table.name(row) for row in rows.tolist()]
        return TopologyTree(columns, rows, names, capacity=table.capacity, optional=optional)

    def _build_by_hypernodes(self, hypernodes: tuple[HyperNode, ...], *, everywhere: bool) -> TopologyTree:
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
        optional = [column.key for column in columns] if everywhere else ()
        return TopologyTree(columns, rows, names, capacity=table.capacity, with_gaps=True, optional=optional)


def level_titles(keys: LevelKeys) -> list[str]:
    """What the domains of some label keys are called, by the whole key where a shorter title would mean two things.

    >>> level_titles(("a.example/rack", "b.example/rack", "example.com/node", "kubernetes.io/hostname"))
    ['a.example/rack', 'b.example/rack', 'example.com/node', 'node']
    """
    short = [level_title(key) for key in keys]
    taken = Counter([*short, "topology", "node"])
    return [title if taken[title] == 1 or key == HOSTNAME else key for key, title in zip(keys, short, strict=True)]


def level_title(key: str) -> str:
    """What a domain of a label key is called in a message.

    >>> level_title("topology.example.com/rack"), level_title("kubernetes.io/hostname")
    ('rack', 'node')
    """
    return "node" if key == HOSTNAME else key.rpartition("/")[2]
