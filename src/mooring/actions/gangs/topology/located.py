"""Gangs that want a place in the topology: all members in one domain, groups of them in domains of their own inside."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.colocation import colocations_inside, sliced
from mooring.actions.gangs.members import Group, Unit, unit_of
from mooring.actions.gangs.room import Room, RoomColumns
from mooring.actions.gangs.search import PlacementSearch
from mooring.actions.gangs.topology.domains import (
    Home,
    MemberKind,
    TooSmall,
    candidates,
    choose,
    choose_together,
    must_have,
)
from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.binding import Steps
from mooring.engine.queue.queue import GangEntry
from mooring.model.topology.requests import TopologyRequest
from mooring.state.cluster import Cluster
from mooring.state.nodes import MISSING, TIE_BITS
from mooring.state.remembered import Derived
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
        self._trees: Derived[Cluster, TopologyTrees] = Derived(1)

    def place(self, cluster: Cluster, gang: GangEntry, groups: Sequence[Group], steps: Steps) -> str | None:
        """Assume a place for every member; None if that succeeded, else why not, with nothing left behind."""
        unit = unit_of(gang.root, groups, cluster.gangs)
        refused = self._place(cluster, unit, None, steps)
        return None if refused is None else refused.message

    def tree(self, cluster: Cluster, topology_request: TopologyRequest) -> TopologyTree:
        """The topology in which what a topology request insists on can be had: all nodes, if it insists on nothing."""
        return self._tree(cluster, [topology_request], is_strict=True)

    def tree_of(self, cluster: Cluster, unit: Unit) -> TopologyTree:
        """The same for a unit and all inside it."""
        return self._tree(cluster, unit.topology_requests(), is_strict=True)

    def _tree(self, cluster: Cluster, topology_requests: Sequence[TopologyRequest], *, is_strict: bool) -> TopologyTree:
        levels, insisted = (
            _levels(topology_requests),
            [must_have(topology_request) for topology_request in topology_requests],
        )
        needed = _levels(insisted)
        optional = [level for level in levels if level not in needed] if is_strict else None
        related = cluster.related
        known = {
            name: tuple(level.node_label for level in topology.spec.levels)
            for name, topology in related.topologies.items()
        }
        naming = insisted if is_strict and needed else topology_requests
        named = next((topology_request.topology for topology_request in naming if topology_request.topology), "")
        trees = self._trees.of(cluster, TopologyTrees, cluster)
        return trees.for_levels(levels, named, known, related.hyper_nodes, optional)

    def fits(self, cluster: Cluster, group: Group) -> Room:
        return self._rooms.of(group.profile, cluster, group.shape)

    # A unit, inside some rows.

    def _place(self, cluster: Cluster, unit: Unit, among: Rows | None, steps: Steps) -> TooSmall | None:
        """Place a unit among some rows, or all. What it only prefers keeps nobody waiting: where the nodes that have
        the levels it names do not hold it, those count too that lack what it could do without."""
        for topology_request in map(must_have, unit.topology_requests()):
            if topology_request.topology and topology_request.topology not in cluster.related.topologies:
                return TooSmall(unit.size, missing_topology=topology_request.topology)
        requested, strict = self._tree(cluster, unit.topology_requests(), is_strict=False), self.tree_of(cluster, unit)
        refused = self._place_in(cluster, requested, unit, among, steps)
        if refused is None or strict is requested:
            return refused
        return self._place_in(cluster, strict, unit, among, steps)

    def _place_in(
        self, cluster: Cluster, tree: TopologyTree, unit: Unit, among: Rows | None, steps: Steps
    ) -> TooSmall | None:
        """Place a unit in a topology; with the members that run already, as near to them as it can be."""
        refused: TooSmall | None = None
        for rows in _near(tree, unit, among):
            refused = self._place_among(cluster, tree, unit, rows, steps)
            if refused is None:
                return None
        assert refused is not None, "there is always some place to try"
        return replace(refused, home=refused.home or home_of(tree, unit))

    def _place_among(
        self, cluster: Cluster, tree: TopologyTree, unit: Unit, among: Rows | None, steps: Steps
    ) -> TooSmall | None:
        if not unit.parts and self.fits(cluster, unit.groups[0]).is_exact:
            return self._by_counts(cluster, tree, unit, among)
        kinds = [self._kind(cluster, tree, leaf, among) for leaf in _leaves(unit)]
        for candidate in islice(candidates(tree, kinds, unit.topology_request), MOST_PLACES):
            rows = candidate.rows if among is None else candidate.rows[np.isin(candidate.rows, among)]
            if self._try(cluster, tree, unit, rows, steps):
                return None
        refused = choose_together(tree, kinds, unit.topology_request, lambda candidate: None)
        assert isinstance(refused, TooSmall)
        return refused

    def _kind(self, cluster: Cluster, tree: TopologyTree, leaf: Unit, among: Rows | None) -> MemberKind:
        group = leaf.groups[0]
        counts = self.fits(cluster, group).counts
        fits = counts.copy()  # it follows what is tried
        for rows in (among, home_rows(tree, leaf)):
            if rows is not None:
                elsewhere = np.ones(len(fits), np.bool_)
                elsewhere[rows] = False
                fits[elsewhere] = 0
        home = home_of(tree, leaf)
        return MemberKind(
            fits, leaf.size, must_have(leaf.topology_request), role=group.role, home=home, asks=asks_of(group)
        )

    def _by_counts(self, cluster: Cluster, tree: TopologyTree, unit: Unit, among: Rows | None) -> TooSmall | None:
        """Members of one kind whose number on each row is known to fit: choose rows, and take them."""
        group = unit.groups[0]
        found = choose(tree, self.fits(cluster, group).counts, group.size, unit.topology_request, among=among)
        if isinstance(found, TooSmall):
            return found
        cluster.assume_many([entry.record for entry in group.entries], found.by_rank())
        return None

    def _try(self, cluster: Cluster, tree: TopologyTree, unit: Unit, rows: Rows, steps: Steps) -> bool:
        """Try all of a unit in some rows: part by part, the scarcest first, then by search."""
        with cluster.what_if() as trial:
            if all(self._place_part(cluster, part, rows, steps) for part in self._in_order(cluster, unit, rows)):
                trial.keep()
                return True
        colocated = colocations_inside(tree, unit)
        if colocated is None or any(self.fits(cluster, group).answers.has_steps for group in unit.groups):
            return False  # a search knows nothing of steps
        allowed = _mask(cluster, rows)
        if not PlacementSearch(
            cluster, self._rooms, colocated.groups, allowed, CHOICES_A_PLACE, colocations=colocated.colocations
        ).run():
            return False
        for group in colocated.groups:
            _put_in_rank_order(cluster, group, rows)
        return True

    def _place_part(self, cluster: Cluster, part: Unit, rows: Rows, steps: Steps) -> bool:
        if part.parts or part.topology_request.levels or self.fits(cluster, part.groups[0]).is_exact:
            return self._place(cluster, part, rows, steps) is None
        return self._one_by_one(cluster, part.groups[0], rows, steps)

    def _in_order(self, cluster: Cluster, unit: Unit, rows: Rows) -> list[Unit]:
        """The parts of a unit, the scarcest first; those of a single group are its slices, by rank."""
        if not unit.parts:
            return _slices(unit)

        def share(part: Unit) -> float:
            counts = [self.fits(cluster, group).counts[rows].sum() / group.size for group in part.groups]
            return float(min(counts))

        return sorted(unit.parts, key=share)

    def _one_by_one(self, cluster: Cluster, group: Group, rows: Rows, steps: Steps) -> bool:
        allowed = _mask(cluster, rows)
        for entry in group.entries:
            answers = self.fits(cluster, group).answers
            row = choose_among(answers, allowed)
            if row < 0:
                return False
            cluster.assume(entry.record.key, row)
            if answers.has_steps and steps.reserve(entry) is not None:
                return False
        if not self.fits(cluster, group).answers.has_steps:
            _put_in_rank_order(cluster, group, rows)
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


def _levels(topology_requests: Sequence[TopologyRequest]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(level for topology_request in topology_requests for level in topology_request.levels))


def asks_of(group: Group) -> Hashable:
    """What members take of a row; ports and volumes limit only those that have the same."""
    shape = group.shape
    if shape.host_ports or shape.has_volumes:
        return shape.id
    return tuple(sorted((name, amount) for name, amount in shape.requests.items() if amount))


def home_of(tree: TopologyTree, unit: Unit) -> Home | None:
    """The domain of the required level in which members of a unit run already, if any do."""
    required = unit.topology_request.required
    depth = tree.depth_of(required) if required else None
    if not required or not depth or not unit.running:
        return None
    domain = int(tree.codes(required)[unit.running[0].row])
    return Home(required, tree.titles[depth], "" if domain == MISSING else tree.name(depth, domain))


def home_rows(tree: TopologyTree, unit: Unit) -> Rows | None:
    """The rows of that domain; None if nobody is bound to any."""
    home = home_of(tree, unit)
    if home is None:
        return None
    codes = tree.codes(home.level)
    here = codes[unit.running[0].row]
    return np.flatnonzero((codes == here) & (here != MISSING))


def _near(tree: TopologyTree, unit: Unit, among: Rows | None) -> Iterator[Rows | None]:
    """Where to try a unit of which some members run: in their domain of the preferred level, of the next coarser one
    and so on, up to that of the required one, which they may not leave."""
    topology_request = unit.topology_request
    rows = [record.row for record in unit.running]
    required = tree.depth_of(topology_request.required) if topology_request.required else 0
    preferred = tree.depth_of(topology_request.preferred) if topology_request.preferred else None
    if not rows or required is None:
        yield among
        return
    for depth in range(max(preferred or required, required), max(required, 1) - 1, -1):
        codes = tree.codes(tree.levels[depth - 1])
        if codes[rows[0]] != MISSING or depth == required:
            there = np.flatnonzero((codes == codes[rows[0]]) & (codes != MISSING))
            yield there if among is None else among[np.isin(among, there)]
    if not required:
        yield among


def _put_in_rank_order(cluster: Cluster, group: Group, rows: Rows) -> None:
    """Let neighbours by rank be neighbours by place: members of one group are alike, so that they can change places."""
    position = np.zeros(cluster.nodes.end, np.intp)
    position[rows] = np.arange(len(rows))
    taken = np.array([entry.record.row for entry in group.entries], np.intp)
    ordered = taken[np.argsort(position[taken], kind="stable")]
    if (ordered != taken).any():
        for entry in group.entries:
            cluster.release(entry.record.key)
        cluster.assume_many([entry.record for entry in group.entries], ordered)


def _mask(cluster: Cluster, rows: Rows) -> NDArray[np.bool_]:
    allowed = np.zeros(cluster.nodes.end, np.bool_)
    allowed[rows] = True
    return allowed


def _slices(unit: Unit) -> list[Unit]:
    """A single group, slice by slice if it wants that, in order of rank."""
    topology_request = unit.topology_request
    if not topology_request.has_slices:
        return [Unit(TopologyRequest(topology=topology_request.topology), unit.groups)]
    in_slice = TopologyRequest(required=topology_request.slice_level, topology=topology_request.topology)
    return [Unit(in_slice, (group,)) for group in sliced(unit)]


def _leaves(unit: Unit) -> list[Unit]:
    if not unit.parts:
        topology_request = unit.topology_request
        own = TopologyRequest(
            slice_size=topology_request.slice_size,
            slice_level=topology_request.slice_level,
            topology=topology_request.topology,
        )
        return [Unit(own, unit.groups)]
    found: list[Unit] = []
    for part in unit.parts:
        found += [part] if not part.parts else _leaves(part)
    return found
