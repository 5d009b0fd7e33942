"""Gangs that want a place in the topology: all members in one domain, groups of them in domains of their own inside."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.domains import MemberKind, TooSmall, candidates, choose, choose_together
from mooring.actions.gangs.members import Group
from mooring.actions.gangs.room import Room, RoomColumns
from mooring.actions.gangs.search import Search
from mooring.actions.gangs.units import Unit, unit_of
from mooring.engine.answers import ShapeAnswers
from mooring.engine.queue import GangEntry
from mooring.model.topology import TopologyWish
from mooring.state.cluster import Cluster
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import Rows
from mooring.state.topology import TopologyTree
from mooring.state.topology_trees import TopologyTrees

MOST_PLACES = 64
"""How many domains are tried for members whose fit only trying can tell."""
CHOICES_A_PLACE = 200


class Located:
    """Finds places by columns; what columns cannot tell is tried, and taken back where it fails."""

    def __init__(self, rooms: RoomColumns) -> None:
        self._rooms = rooms
        self._trees: TopologyTrees | None = None
        self._cluster: Cluster | None = None

    def place(self, cluster: Cluster, gang: GangEntry, groups: Sequence[Group]) -> str | None:
        """Assume a place for every member; None if that succeeded, else why not, with nothing left behind."""
        unit = unit_of(gang.root, groups, cluster.gangs)
        allowed = self._pinned(cluster, gang, unit.wish)
        refused = self._place(cluster, unit, allowed)
        return None if refused is None else f"{refused.message} members"

    def tree(self, cluster: Cluster, wish: TopologyWish) -> TopologyTree:
        """The topology that a wish is about."""
        if self._trees is None or self._cluster is not cluster:
            self._trees, self._cluster = TopologyTrees(cluster), cluster
        related = cluster.related
        levels = {
            name: tuple(level.node_label for level in topology.spec.levels)
            for name, topology in related.topologies.items()
        }
        return self._trees.for_wish(wish, levels, related.hyper_nodes)

    def fits(self, cluster: Cluster, group: Group) -> Room:
        return self._rooms.of(group.profile, cluster, group.shape)

    def _pinned(self, cluster: Cluster, gang: GangEntry, wish: TopologyWish) -> Rows | None:
        """The rows of the domain in which other members run already; None where nothing binds it to one."""
        running = [record.row for part in cluster.gangs.parts_of(gang.root) for record in part.bound()]
        if not running or wish.required is None:
            return None
        tree = self.tree(cluster, wish)
        if tree.depth_of(wish.required) is None:
            return None
        codes = tree.codes(wish.required)
        return np.flatnonzero(codes == codes[running[0]])

    # A unit, inside some rows.

    def _place(self, cluster: Cluster, unit: Unit, among: Rows | None) -> TooSmall | None:
        tree = self.tree(cluster, unit.wish)
        if not unit.parts and self.fits(cluster, unit.groups[0]).is_exact:
            return self._by_counts(cluster, tree, unit, among)
        checkpoint = cluster.checkpoint()
        kinds = [self._kind(cluster, leaf, among) for leaf in _leaves(unit)]
        for candidate in islice(candidates(tree, kinds, unit.wish), MOST_PLACES):
            if self._try(cluster, unit, candidate.rows):
                cluster.commit(checkpoint)
                return None
        cluster.rollback(checkpoint)
        refused = choose_together(tree, kinds, unit.wish, lambda candidate: None)
        assert isinstance(refused, TooSmall)
        return refused

    def _kind(self, cluster: Cluster, leaf: Unit, among: Rows | None) -> MemberKind:
        fits = self.fits(cluster, leaf.groups[0]).counts
        if among is not None:
            inside = np.zeros_like(fits)
            inside[among] = fits[among]
            fits = inside
        return MemberKind(fits, leaf.size, leaf.wish)

    def _by_counts(self, cluster: Cluster, tree: TopologyTree, unit: Unit, among: Rows | None) -> TooSmall | None:
        """Members of one kind whose number on each row is known to fit: choose rows, and take them."""
        group = unit.groups[0]
        found = choose(tree, self.fits(cluster, group).counts, group.size, unit.wish, among=among)
        if isinstance(found, TooSmall):
            return found
        cluster.assume_many([entry.record for entry in group.entries], found.by_rank())
        return None

    def _try(self, cluster: Cluster, unit: Unit, rows: Rows) -> bool:
        """Try all of a unit in some rows: part by part, the scarcest first, then by search."""
        checkpoint = cluster.checkpoint()
        if all(self._place_part(cluster, part, rows) for part in self._scarcest_first(cluster, unit, rows)):
            cluster.commit(checkpoint)
            return True
        cluster.rollback(checkpoint)
        if len(unit.groups) == 1 or any(leaf.wish.levels for leaf in _leaves(unit)):
            return False  # a search knows nothing of the wishes inside
        allowed = np.zeros(cluster.nodes.end, np.bool_)
        allowed[rows] = True
        return Search(cluster, self._rooms, unit.groups, allowed, CHOICES_A_PLACE).run()

    def _place_part(self, cluster: Cluster, part: Unit, rows: Rows) -> bool:
        if part.parts or part.wish.levels or self.fits(cluster, part.groups[0]).is_exact:
            return self._place(cluster, part, rows) is None
        return self._one_by_one(cluster, part.groups[0], rows)

    def _scarcest_first(self, cluster: Cluster, unit: Unit, rows: Rows) -> list[Unit]:
        parts = unit.parts or (Unit(TopologyWish(topology=unit.wish.topology), unit.groups),)

        def share(part: Unit) -> float:
            counts = [self.fits(cluster, group).counts[rows].sum() / group.size for group in part.groups]
            return float(min(counts))

        return sorted(parts, key=share)

    def _one_by_one(self, cluster: Cluster, group: Group, rows: Rows) -> bool:
        allowed = np.zeros(cluster.nodes.end, np.bool_)
        allowed[rows] = True
        for entry in group.entries:
            row = choose_among(self.fits(cluster, group).answers, allowed)
            if row < 0:
                return False
            cluster.assume(entry.record.key, row)
        return True


def choose_among(answers: ShapeAnswers, allowed: NDArray[np.bool_]) -> int:
    """The best of some rows for one pod now, or -1."""
    rows = answers.feasible_rows()
    rows = rows[allowed[rows]]
    if not len(rows):
        return -1
    keys = answers.keys[rows]
    for score in answers.normalized_scores:
        keys = keys + (answers.normalized(score, rows) << TIE_BITS)
    return int(rows[keys.argmax()])


def _leaves(unit: Unit) -> list[Unit]:
    if not unit.parts:
        return [Unit(TopologyWish(slice_size=unit.wish.slice_size, slice_level=unit.wish.slice_level), unit.groups)]
    found: list[Unit] = []
    for part in unit.parts:
        found += [part] if not part.parts else _leaves(part)
    return found
