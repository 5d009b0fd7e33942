"""How many members of each kind fit where, and what each level of the topology would have to hold of them."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.members import Group, Unit
from mooring.actions.gangs.topology.domains import LevelRoom, fits_by_level
from mooring.actions.gangs.topology.located import Located, asks_of, choose_among, home_rows
from mooring.state.cluster import Cluster
from mooring.state.topology import TopologyTree

MOST_TRIED = 64
"""On how many nodes members are tried one after the other, where columns cannot tell how many a node takes."""


@dataclass(frozen=True)
class LevelNeed:
    """A level of the topology: what its largest domain holds, and what one domain would have to hold."""

    room: LevelRoom
    needed: int | None
    """Members that have to share a domain of this level; None if none have to."""

    @property
    def level(self) -> str:
        return self.room.level

    @property
    def title(self) -> str:
        return self.room.title

    @property
    def domain(self) -> str:
        return self.room.domain

    @property
    def domains(self) -> int:
        return self.room.domains

    @property
    def holds(self) -> int:
        return self.room.holds


@dataclass(frozen=True)
class GroupRoom:
    """Members of one role and shape, and the room there is for them."""

    role: str
    requests: dict[str, int]
    waiting: int
    needed: int
    fitting: int
    """How many of those needed fit if no other group were there."""
    nodes: tuple[tuple[str, int], ...]
    """The nodes with room, and for how many, the roomiest first."""
    levels: tuple[LevelNeed, ...] = ()
    """Coarse to fine, the topology as a whole in front."""


def group_room(cluster: Cluster, located: Located, whole: Unit, group: Group, needed: Set[str]) -> GroupRoom:
    """The room for one group of a gang; only where members run that the others have to join, if there are such."""
    chain = _chain(whole, group)
    tree = located.tree_of(cluster, whole)
    room = located.fits(cluster, group)
    among = next((rows for unit in reversed(chain) if (rows := home_rows(tree, unit)) is not None), None)
    counts = room.counts.copy() if among is None else _only(among, room.counts)
    wanted = _count(group, needed)
    if room.is_exact or room.answers.has_steps:
        fitting = int(np.minimum(counts, max(wanted, 1)).sum().clip(max=wanted))
    else:
        fitting = _fitting_together(cluster, located, group, wanted, counts > 0)
        _try_each(cluster, located, group, counts)
    rows = np.flatnonzero(counts)
    rows = rows[np.argsort(-counts[rows], kind="stable")]
    return GroupRoom(
        role=group.role,
        requests=dict(group.shape.requests),
        waiting=group.size,
        needed=wanted,
        fitting=fitting,
        nodes=tuple((cluster.nodes.name(row), int(min(counts[row], group.size))) for row in rows.tolist()),
        levels=_levels(tree, chain, group, needed, counts, among),
    )


def _levels(
    tree: TopologyTree,
    chain: Sequence[Unit],
    group: Group,
    needed: Set[str],
    counts: NDArray[np.int64],
    among: NDArray[np.intp] | None,
) -> tuple[LevelNeed, ...]:
    if not any(unit.topology_request.levels for unit in chain) or not tree.leaf:
        return ()
    rooms = fits_by_level(tree, counts, chain[-1].topology_request, among)
    return tuple(LevelNeed(room, _needed_at(tree, chain, group, needed, depth)) for depth, room in enumerate(rooms))


def _needed_at(tree: TopologyTree, chain: Sequence[Unit], group: Group, needed: Set[str], depth: int) -> int | None:
    """How many members like those of a group have to share one domain of a depth, by the outermost who ask for it."""
    for unit in chain:
        required = tree.depth_of(unit.topology_request.required) if unit.topology_request.required else 0
        if required is not None and depth <= required:
            return sum(_count(found, needed) for found in unit.groups if asks_of(found) == asks_of(group))
    topology_request = chain[-1].topology_request
    slices = tree.depth_of(topology_request.slice_level or "") if topology_request.has_slices else None
    return min(topology_request.slice_size, _count(group, needed)) if slices is not None and depth <= slices else None


def _chain(unit: Unit, group: Group) -> list[Unit]:
    """The units that a group is in, from outside to inside."""
    found = [unit]
    while found[-1].parts:
        inside = [part for part in found[-1].parts if any(_is_same(member, group) for member in part.groups)]
        if not inside:
            break
        found.append(inside[0])
    return found


def _is_same(one: Group, other: Group) -> bool:
    return one.part is other.part and one.role == other.role and one.shape is other.shape


def _count(group: Group, needed: Set[str]) -> int:
    return sum(entry.record.key in needed for entry in group.entries)


def _only(rows: NDArray[np.intp], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.zeros_like(counts)
    rows = rows[rows < len(counts)]
    found[rows] = counts[rows]
    return found


# Members that keep one another out, which no column can tell.


def _fitting_together(cluster: Cluster, located: Located, group: Group, wanted: int, allowed: NDArray[np.bool_]) -> int:
    fitting = 0
    with cluster.what_if():
        for entry in group.entries[:wanted]:
            row = choose_among(located.fits(cluster, group).answers, allowed)
            if row < 0:
                break
            cluster.assume(entry.record.key, row)
            fitting += 1
    return fitting


def _try_each(cluster: Cluster, located: Located, group: Group, counts: NDArray[np.int64]) -> None:
    """Lower the counts of the roomiest rows to what each takes, alone, one member after the other."""
    rows = np.flatnonzero(counts)
    for row in rows[np.argsort(-counts[rows], kind="stable")][:MOST_TRIED].tolist():
        alone = np.zeros(len(counts), np.bool_)
        alone[row] = True
        counts[row] = _fitting_together(cluster, located, group, int(min(counts[row], group.size)), alone)
