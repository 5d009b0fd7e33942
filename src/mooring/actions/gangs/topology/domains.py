"""Choose domains of a topology for the members of a gang: near one another, in the tightest place that holds them.

`choose` is for members of one kind (and a leader); `candidates` and `choose_together` are for several kinds that share
a domain. All are pure: how many members fit on each row comes in as a column, rows and counts go out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.topology.descent import Descent
from mooring.actions.gangs.topology.groups import Candidate, MemberKind, candidates, choose_together
from mooring.actions.gangs.topology.room import Counts, LevelRoom, Mask, Room, measure
from mooring.actions.gangs.topology.search import Home, TooSmall, depths_to_try, lacking, must_have, too_small
from mooring.model.topology.requests import TopologyRequest
from mooring.state.topology import TopologyTree

__all__ = [
    "Assignment",
    "Candidate",
    "Home",
    "LevelRoom",
    "MemberKind",
    "TooSmall",
    "candidates",
    "choose",
    "choose_together",
    "fits_by_level",
    "must_have",
]

NO_LEADER = -1


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Where members go: so many to each row, in rank order, so that neighbours by rank are near each other."""

    level: str
    """The level of which all share one domain; empty if there is none such."""
    domain: str
    """That domain's path."""
    rows: NDArray[np.intp]
    counts: Counts
    leader: int = NO_LEADER
    """The leader's row, where there is one."""

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(row, how many), in rank order"""
        return zip(self.rows.tolist(), self.counts.tolist(), strict=True)

    def by_rank(self) -> NDArray[np.intp]:
        """The row of each member."""
        return np.repeat(self.rows, self.counts)


def choose(
    tree: TopologyTree,
    fits: Counts,
    need: int,
    topology_request: TopologyRequest,
    *,
    leader_fits: Counts | None = None,
    among: NDArray[np.intp] | None = None,
) -> Assignment | TooSmall:
    """Choose rows for `need` members, of which `fits[row]` fit on a row now.

    Required: all in one domain of that level. Preferred, if the topology has it: from that level upward to the first
    that has a domain for all; at last, unless a level is required, over several of the coarsest. Of several domains the
    tightest is taken, in the tightest surroundings, which leaves large blocks whole. Inside it, members go to as few
    domains as possible at each level.

    `leader_fits[row]` says how many members fit beside the leader, who is not one of them; -1: it has no place there.
    `among`: these rows only, such as `tree.rows_of` the domain in which other members run already.
    """
    missing = lacking(tree, topology_request)
    if missing:
        return TooSmall(need, missing_level=missing)
    if among is not None:
        fits, leader_fits = _only(among, fits, 0), None if leader_fits is None else _only(among, leader_fits, -1)
    if need <= 0 and leader_fits is None:
        return Assignment("", "", tree.rows[:0], np.zeros(0, np.int64))
    rooms = measure(tree, fits, topology_request, leader_fits)
    for depth in depths_to_try(tree, topology_request):
        room = rooms.at(depth)
        enough = room.holds(depth, need)
        if enough.any():
            return _assign(room, depth, _tightest(room, depth, enough), need)
    return too_small(tree, rooms, need, topology_request)


def fits_by_level(
    tree: TopologyTree,
    fits: Counts,
    topology_request: TopologyRequest | None = None,
    among: NDArray[np.intp] | None = None,
) -> tuple[LevelRoom, ...]:
    """What the largest domain of each level holds, coarse to fine, the topology as a whole in front.

    `among`: of the domains only that have some of these rows.
    """
    rooms = measure(
        tree,
        fits,
        TopologyRequest() if topology_request is None or lacking(tree, topology_request) else topology_request,
    )
    inside = tree.has_name if among is None else _having(tree, among)
    return tuple(rooms.at(depth).largest(depth, inside[depth]) for depth in range(tree.leaf + 1))


def _having(tree: TopologyTree, rows: NDArray[np.intp]) -> list[Mask]:
    """By depth: the domains that have a name and some of these rows."""
    found = [np.isin(tree.rows, rows)]
    for depth in range(tree.leaf, -1, -1):
        found.insert(0, tree.most(depth, found[0].astype(np.int64), 0) > 0)
    return [mask & named for mask, named in zip(found, tree.has_name, strict=True)]


def _only(rows: NDArray[np.intp], column: Counts, otherwise: int) -> Counts:
    found = np.full_like(column, otherwise)
    found[rows] = column[rows]
    return found


def _tightest(room: Room, depth: int, enough: Mask) -> int:
    """The domain with the least room; of equals the one whose surroundings have the least, then the first by path."""
    found = np.flatnonzero(enough)
    around = found
    columns = [room.held(depth), room.members[depth], *(room.units[above] for above in range(depth - 1, -1, -1))]
    for step, column in enumerate(columns):
        if len(found) == 1:
            break
        if step >= 2:
            around = room.tree.parents[depth - step + 2][around]
        sizes = column[around]
        least = sizes == sizes.min()
        found, around = found[least], around[least]
    return int(found[0])


def _assign(room: Room, depth: int, domain: int, need: int) -> Assignment:
    """Spread the members inside one domain, level by level, down to rows."""
    tree = room.tree
    descent = Descent(room, depth, domain, need)
    positions, counts = descent.to_rows()
    used = counts > 0
    return Assignment(
        tree.levels[depth - 1] if depth else "",
        tree.name(depth, domain),
        tree.rows[positions[used]],
        counts[used],
        leader=int(tree.rows[descent.leader]) if room.loss is not None else NO_LEADER,
    )
