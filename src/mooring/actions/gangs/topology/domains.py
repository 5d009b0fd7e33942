"""Choose domains of a topology for the members of a gang: near one another, in the tightest place that holds them.

`choose` is for members of one kind (and a leader); `candidates` and `choose_together` are for several kinds that share
a domain. All are pure: how many members fit on each row comes in as a column, rows and counts go out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.topology.groups import Candidate, MemberKind, candidates, choose_together
from mooring.actions.gangs.topology.room import NEVER, Counts, LevelRoom, Mask, Room, measure
from mooring.actions.gangs.topology.search import Home, TooSmall, depths_to_try, lacking, must_have, too_small
from mooring.errors import InvariantBroken
from mooring.model.topology.requests import TopologyRequest
from mooring.state.topology import Domains, TopologyTree

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
    positions, counts, leader = Descent.begin(room, depth, domain, need).to_rows()
    used = counts > 0
    return Assignment(
        tree.levels[depth - 1] if depth else "",
        tree.name(depth, domain),
        tree.rows[positions[used]],
        counts[used],
        leader=int(tree.rows[leader]) if room.loss is not None else NO_LEADER,
    )


# From one domain down to rows: level by level, as few domains as possible at each.


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Members on their way down: which domains of one depth take how many units."""

    room: Room
    need: int
    fits_whole: bool
    """Whether all slices have a whole slice's place; else the leftover of a domain takes the last, smaller one."""
    depth: int
    domains: Domains
    amounts: Counts
    leader: int
    last_slice: int = -1
    """The domain whose leftover takes the last slice, once it is known."""

    @classmethod
    def begin(cls, room: Room, depth: int, domain: int, need: int) -> "Descent":
        fits_whole = bool(room.held(depth)[domain] >= room.wanted(need))
        units = room.wanted(need) if fits_whole else need // room.slice_size
        begun = cls(room, need, fits_whole, depth, np.array([domain]), np.array([units], np.int64), domain)
        return begun._in_members() if depth == room.slice_depth else begun

    def to_rows(self) -> tuple[Domains, Counts, int]:
        """Go all the way down: the positions of the rows, in rank order, how many members each takes, the leader's."""
        tree, at = self.room.tree, self
        while at.depth <= tree.leaf:
            at = at._step()
        if at.last_slice < 0:
            return at.domains, at.amounts, at.leader
        order = _put_last(tree, at.domains, at.room.slice_depth, at.last_slice)
        return at.domains[order], at.amounts[order], at.leader

    def _step(self) -> "Descent":
        """Go down one level.

        Above the slices' level all that was chosen is one pool, as what matters is how many domains are used in all;
        below it each domain keeps what it got, or slices would be torn.
        """
        room, depth, leader = self.room, self.depth, self.leader
        children, owner = room.tree.children(depth, self.domains)
        wanted = self.amounts
        if depth < room.slice_depth:
            owner, wanted = np.zeros_like(owner), self.amounts.sum(keepdims=True)
        if room.loss is None:
            amounts = fill(owner, wanted, room.units[depth + 1][children], room.members[depth + 1][children])
        else:
            amounts, leader = self._seat_and_fill(children, owner, wanted, room.loss[depth + 1][children])
        used = amounts > 0
        if room.loss is not None:
            used |= children == leader
        if not self.fits_whole and depth < room.slice_depth:
            used[:] = True  # every unit is taken; the leftover may be in a domain that has none
        below = replace(self, depth=depth + 1, domains=children[used], amounts=amounts[used], leader=leader)
        return below._in_members() if below.depth == room.slice_depth else below

    def _seat_and_fill(self, children: Domains, owner: Domains, wanted: Counts, loss: Counts) -> tuple[Counts, int]:
        """The leader chooses first, and its domain keeps the members that fit beside it; then the others.

        Return how many each domain takes, and the leader's.
        """
        units, members = self.room.units[self.depth + 1][children], self.room.members[self.depth + 1][children]
        is_pool = self.depth < self.room.slice_depth
        mine = np.flatnonzero(is_pool | (self.domains[owner] == self.leader))
        group = owner[mine[0]]
        seat, beside = seat_leader(int(wanted[group]), units[mine], members[mine], loss[mine])
        chosen = mine[seat]
        left, wanted = units.copy(), wanted.copy()
        left[chosen] = 0
        wanted[group] -= beside
        amounts = fill(owner, wanted, left, members)
        amounts[chosen] = beside
        return amounts, int(children[chosen])

    def _in_members(self) -> "Descent":
        """At the slices' level, turn slices into members; the last slice may be smaller than the others."""
        room = self.room
        amounts = self.amounts * room.slice_size
        rest = self.need % room.slice_size
        if not rest:
            return replace(self, amounts=amounts)
        if self.fits_whole:
            amounts[np.flatnonzero(amounts)[-1]] -= room.slice_size - rest
            return replace(self, amounts=amounts)
        assert room.spare is not None
        spare = room.spare[room.slice_depth][self.domains]
        enough = np.flatnonzero(spare >= rest)
        last = enough[spare[enough].argmin()]
        amounts[last] += rest
        return replace(self, amounts=amounts, last_slice=int(self.domains[last]))


def _put_last(tree: TopologyTree, positions: Domains, depth: int, domain: int) -> Domains:
    """The order in which a domain's rows come last, and at every level above it the domain that it is in.

    The smaller slice must be the last by rank, or it would shift all others across the borders of their domains.
    """
    near = np.zeros(len(positions), np.int64)
    while depth:
        start, end = tree.span(depth, domain)
        near += (positions >= start) & (positions < end)
        domain = int(tree.parents[depth][domain])
        depth -= 1
    return np.argsort(near, kind="stable")


def fill(owner: NDArray[np.intp], wanted: Counts, units: Counts, members: Counts) -> Counts:
    """How many units each domain takes, such that those of owner i take `wanted[i]` together.

    Domains come in path order, those of one owner next to each other; every owner has some, with room for all it wants.
    """
    order = np.lexsort((members, -units, owner))  # stable: of equals, the first by path stays in front
    sizes, owners = units[order], owner[order]
    first = np.searchsorted(owners, np.arange(len(wanted)))
    before = np.cumsum(sizes) - sizes
    remaining = (wanted + before[first])[owners] - before
    # Sizes fall, so once one holds what remains, all after it do: nothing is left for them.
    is_whole = sizes < remaining
    last = first + np.add.reduceat(is_whole, first, dtype=np.intp)
    if (last == np.append(first[1:], len(owners))).any():
        raise InvariantBroken("more members were to be spread over domains than these hold")
    rest = remaining[last]
    holding = np.add.reduceat(sizes >= rest[owners], first, dtype=np.intp)
    tightest = np.maximum(last, _first_equal(owners, sizes)[first + holding - 1])
    taken = np.where(is_whole, sizes, 0)
    taken[tightest] = rest
    found = np.empty_like(taken)
    found[order] = taken
    return found


def _first_equal(owners: NDArray[np.intp], sizes: Counts) -> NDArray[np.intp]:
    """For each place, the first of the run of equal ones that it is in."""
    starts = np.ones(len(sizes), np.bool_)
    starts[1:] = (owners[1:] != owners[:-1]) | (sizes[1:] != sizes[:-1])
    places = np.where(starts, np.arange(len(sizes)), 0)
    found: NDArray[np.intp] = np.maximum.accumulate(places)
    return found


def seat_leader(wanted: int, units: Counts, members: Counts, loss: Counts) -> tuple[int, int]:
    """Choose the domain for the leader among those of one owner; how many of the wanted units stay with it there.

    One that holds all of them beside the leader, the tightest; else the one that holds most. Never one where the leader
    costs so much that the others no longer make up for it.
    """
    able = np.flatnonzero((loss < NEVER) & (units.sum() - loss >= wanted))
    if not len(able):
        raise InvariantBroken("a leader was to be seated where it has no place")
    held = units[able] - loss[able]
    whole = held >= wanted
    if whole.any():
        able, held = able[whole], held[whole]
        best = np.lexsort((members[able], held))[0]
        return int(able[best]), wanted
    best = np.lexsort((members[able], -held))[0]
    return int(able[best]), int(held[best])
