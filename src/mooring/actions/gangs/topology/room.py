"""How much room there is for a gang in every domain of a topology, in columns, one a depth.

Room is counted in *units*: whole slices at the level of the slices and above it, single members below. Without slices a
unit is a member everywhere. A leader, where there is one, costs the domain that it sits in some units.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.model.topology.requests import TopologyRequest
from mooring.state.topology import TopologyTree

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

NEVER = 1 << 60
"""What a leader costs where it cannot sit: more than any domain has."""


@dataclass(frozen=True, slots=True)
class LevelRoom:
    """What the largest domain of one level holds."""

    level: str
    """Empty for the topology as a whole."""
    title: str
    domain: str
    """The largest one's path, empty if the level has no domain."""
    holds: int
    """Members; counted in whole slices where slices are smaller than the level."""
    domains: int


class Room:
    """Units of all domains, by depth; with slices, also what is left over in the best place for a last, smaller one."""

    def __init__(self, tree: TopologyTree, fits: Counts, leader_fits: Counts | None = None) -> None:
        """Count single members: `fits` on each row now, `leader_fits` beside the leader (-1: it has no place)."""
        self.tree = tree
        self.slice_size = 1
        self.slice_depth = tree.leaf
        members = np.maximum(fits[tree.rows], 0)
        self.members = self._all_depths(members)
        self.units = self.members
        self.spare: list[Counts] | None = None
        self.loss: list[Counts] | None = None
        if leader_fits is not None:
            beside = leader_fits[tree.rows]
            loss = np.where(beside >= 0, np.maximum(members - beside, 0), NEVER)
            self.loss = [loss]
            for depth in range(tree.leaf, -1, -1):
                self.loss.insert(0, tree.least(depth, self.loss[0], NEVER))

    def _all_depths(self, of_rows: Counts) -> list[Counts]:
        found = [of_rows]
        for depth in range(self.tree.leaf, -1, -1):
            found.insert(0, self.tree.sum_up(depth, found[0]))
        return found

    def sliced(self, size: int, depth: int) -> "Room":
        """The same room, counted in slices of which each is within one domain of a depth."""
        tree = self.tree
        room = Room.__new__(Room)
        room.tree, room.members, room.slice_size, room.slice_depth = tree, self.members, size, depth
        # A domain without a name is none that a slice could share.
        whole = np.where(tree.has_name[depth], self.members[depth] // size, 0)
        spare = np.where(tree.has_name[depth], self.members[depth] % size, 0)
        room.units = [whole, *self.members[depth + 1 :]]
        room.spare = [spare]
        room.loss = None
        if self.loss is not None:
            costs = self.loss[depth]
            left = np.where(tree.has_name[depth], (self.members[depth] - costs) // size, 0)
            room.loss = [np.where(costs < NEVER, whole - left, NEVER), *self.loss[depth + 1 :]]
        for above in range(depth - 1, -1, -1):
            room.units.insert(0, tree.sum_up(above, room.units[0]))
            room.spare.insert(0, tree.most(above, room.spare[0], 0))
            if room.loss is not None:
                room.loss.insert(0, tree.least(above, room.loss[0], NEVER))
        return room

    def held(self, depth: int) -> Counts:
        """Units that each domain holds, beside the leader if there is one; negative where that has no place."""
        units = self.units[depth]
        return units if self.loss is None else units - self.loss[depth]

    def wanted(self, need: int) -> int:
        """Units that so many members take, the last slice counted as a whole one."""
        return -(-need // self.slice_size)

    def holds(self, depth: int, need: int) -> Mask:
        """Which domains hold so many members. With slices, for the depths above theirs.

        The last slice may be smaller than the others: then what is left over somewhere is enough for it, after all
        whole slices have their places. Beside a leader it counts as a whole slice, to be on the safe side.
        """
        held = self.held(depth)
        enough: Mask = held >= self.wanted(need)
        rest = need % self.slice_size
        if rest and self.spare is not None and self.loss is None:
            enough = enough | ((held >= need // self.slice_size) & (self.spare[depth] >= rest))
        enough &= self.tree.has_name[depth]
        return enough

    def largest(self, depth: int, among: Mask | None = None) -> LevelRoom:
        """What the domain with the most room holds; of some, or of all that have a name."""
        tree = self.tree
        level = tree.levels[depth - 1] if depth else ""
        among = tree.has_name[depth] if among is None else among
        held = np.where(among, self.held(depth), -1)
        if not len(held):
            return LevelRoom(level, tree.titles[depth], "", 0, 0)
        domain = int(held.argmax())
        size = self.slice_size if depth <= self.slice_depth else 1
        holds = max(0, int(held[domain])) * size
        return LevelRoom(level, tree.titles[depth], tree.name(depth, domain), holds, int(among.sum()))


@dataclass(frozen=True, slots=True)
class Rooms:
    """Room for one kind of members, counted in what matters at each depth."""

    single: Room
    slices: Room | None

    def at(self, depth: int) -> Room:
        """Slices matter above their level only: who shares one domain of it, or a finer one, is not torn apart."""
        if self.slices is None or depth >= self.slices.slice_depth:
            return self.single
        return self.slices


def measure(
    tree: TopologyTree, fits: Counts, topology_request: TopologyRequest, leader_fits: Counts | None = None
) -> Rooms:
    """Count the room for members with a topology request, whose levels the topology has."""
    single = Room(tree, fits, leader_fits)
    if not topology_request.has_slices:
        return Rooms(single, None)
    depth = tree.depth_of(topology_request.slice_level or "")
    assert depth is not None, f"no level {topology_request.slice_level}"
    return Rooms(single, single.sliced(topology_request.slice_size, depth))
