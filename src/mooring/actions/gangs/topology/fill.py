"""Spread a number over domains, as few and as full as possible, for many parents at once.

The rule is Kueue's BestFit: take the largest domains whole until what remains fits into one, and put it into the
smallest that holds it. Of equals, the one with less room left for single members, then the first by path.
"""

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.topology.room import NEVER, Counts
from mooring.errors import InvariantBroken


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
