"""The way of a gang's members from one domain down to rows: level by level, as few domains as possible at each."""

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.topology.room import NEVER, Counts, Room
from mooring.errors import InvariantBroken
from mooring.state.topology import Domains, TopologyTree


class Descent:
    """Members on their way down: which domains of one depth take how many units."""

    def __init__(self, room: Room, depth: int, domain: int, need: int) -> None:
        self.room, self.depth, self.need = room, depth, need
        self.domains: Domains = np.array([domain])
        self.leader = domain
        self.last_slice = -1
        """The domain whose leftover takes the last, smaller slice; -1 if it has a whole slice's place."""
        self._fits_whole = bool(room.held(depth)[domain] >= room.wanted(need))
        units = room.wanted(need) if self._fits_whole else need // room.slice_size
        self.amounts: Counts = np.array([units], np.int64)
        if depth == room.slice_depth:
            self._to_members()

    def to_rows(self) -> tuple[Domains, Counts]:
        """Go all the way down: the positions of the rows, in rank order, and how many members each takes."""
        tree = self.room.tree
        while self.depth <= tree.leaf:
            self._step()
        if self.last_slice < 0:
            return self.domains, self.amounts
        order = _put_last(tree, self.domains, self.room.slice_depth, self.last_slice)
        return self.domains[order], self.amounts[order]

    def _step(self) -> None:
        """Go down one level.

        Above the slices' level all that was chosen is one pool, as what matters is how many domains are used in all;
        below it each domain keeps what it got, or slices would be torn.
        """
        room, depth = self.room, self.depth
        children, owner = room.tree.children(depth, self.domains)
        wanted = self.amounts
        if depth < room.slice_depth:
            owner, wanted = np.zeros_like(owner), self.amounts.sum(keepdims=True)
        if room.loss is None:
            amounts = fill(owner, wanted, room.units[depth + 1][children], room.members[depth + 1][children])
        else:
            amounts = self._seat_and_fill(children, owner, wanted, room.loss[depth + 1][children])
        used = amounts > 0
        if room.loss is not None:
            used |= children == self.leader
        if not self._fits_whole and depth < room.slice_depth:
            used[:] = True  # every unit is taken; the leftover may be in a domain that has none
        self.domains, self.amounts, self.depth = children[used], amounts[used], depth + 1
        if self.depth == room.slice_depth:
            self._to_members()

    def _seat_and_fill(self, children: Domains, owner: Domains, wanted: Counts, loss: Counts) -> Counts:
        """The leader chooses first, and its domain keeps the members that fit beside it; then the others."""
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
        self.leader = int(children[chosen])
        return amounts

    def _to_members(self) -> None:
        """At the slices' level, turn slices into members; the last slice may be smaller than the others."""
        room = self.room
        self.amounts = self.amounts * room.slice_size
        rest = self.need % room.slice_size
        if not rest:
            return
        if self._fits_whole:
            last = np.flatnonzero(self.amounts)[-1]
            self.amounts[last] -= room.slice_size - rest
            return
        assert room.spare is not None
        spare = room.spare[room.slice_depth][self.domains]
        enough = np.flatnonzero(spare >= rest)
        last = enough[spare[enough].argmin()]
        self.amounts[last] += rest
        self.last_slice = int(self.domains[last])


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
