"""Keys in blocks, so that the best of thousands is found by two short searches.

Each block holds positions of one group only: a whole group can then be made better or worse, or be ruled out, by one
number, without touching its keys. Of equal keys, the one at the lowest position is the best.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FEASIBLE_FROM = -(1 << 61)
INFEASIBLE = -(1 << 62)
"""Below any key, also after adding what a group is worth."""

BLOCK = 128
"""Positions a block: about the square root of the largest clusters we expect, so that both searches are short."""

Keys = NDArray[np.int64]


FEW_PODS = 64
"""For fewer choices than this, arranging keys in blocks costs more than searching all of them each time."""
FEW_GROUPS = 16
"""As many groups can be kept apart at little cost."""


def arrange(keys: Keys, group_of: NDArray[np.intp], groups: int, expected: int) -> "Arranged":
    """Keys in the form that suits so many choices."""
    if expected >= FEW_PODS:
        return Blocks(keys, group_of, groups)
    return GroupedKeys(keys, group_of, groups) if 1 < groups <= FEW_GROUPS else FlatKeys(keys, group_of, groups)


class FlatKeys:
    """One key a position, searched as a whole."""

    def __init__(self, keys: Keys, group_of: NDArray[np.intp], groups: int) -> None:
        self._group_of = group_of
        self._groups = max(groups, 1)
        self._keys = keys.copy()

    def put_all(self, keys: Keys) -> None:
        self._keys = keys.copy()

    def put(self, position: int, key: int) -> None:
        self._keys[position] = key

    def best(self, worth: Keys | None) -> int:
        """The position of the largest key, or -1 if none is feasible; `worth` is one a group."""
        if not len(self._keys):
            return -1
        keys = self._keys if worth is None else self._keys + worth[self._group_of]
        position = int(keys.argmax())
        return position if keys[position] >= FEASIBLE_FROM else -1

    def open_groups(self) -> NDArray[np.bool_]:
        """Which groups have a feasible position."""
        found = np.zeros(self._groups, np.bool_)
        found[self._group_of[self._keys >= FEASIBLE_FROM]] = True
        return found


class GroupedKeys:
    """The keys of each group by themselves, with the best of each at hand."""

    def __init__(self, keys: Keys, group_of: NDArray[np.intp], groups: int) -> None:
        self._group_of = group_of
        self._positions = [np.flatnonzero(group_of == group) for group in range(groups)]
        self.put_all(keys)

    def put_all(self, keys: Keys) -> None:
        self._keys = [keys[positions] for positions in self._positions]
        self._best = np.array([keys.max(initial=INFEASIBLE) for keys in self._keys], np.int64)

    def put(self, position: int, key: int) -> None:
        group = self._group_of.item(position)
        keys = self._keys[group]
        keys[self._positions[group].searchsorted(position)] = key
        self._best[group] = keys[keys.argmax()]

    def best(self, worth: Keys | None) -> int:
        """The position of the largest key, or -1 if none is feasible; `worth` is one a group."""
        return _best_position(self._best.copy() if worth is None else self._best + worth, self._first_of)

    def _first_of(self, group: int) -> int:
        return self._positions[group].item(self._keys[group].argmax())

    def open_groups(self) -> NDArray[np.bool_]:
        """Which groups have a feasible position."""
        return self._best >= FEASIBLE_FROM


class Blocks:
    """One key a position; `best` finds the largest, groups' worth included."""

    def __init__(self, keys: Keys, group_of: NDArray[np.intp], groups: int) -> None:
        sizes = np.bincount(group_of, minlength=max(groups, 1))
        blocks = -(-sizes // BLOCK)
        order = np.argsort(group_of, kind="stable") if groups > 1 else np.arange(len(keys))
        in_group = np.arange(len(keys)) - (np.cumsum(sizes) - sizes)[group_of[order]]
        slots = np.empty(len(keys), np.intp)
        slots[order] = (np.cumsum(blocks) - blocks)[group_of[order]] * BLOCK + in_group
        self._slot_of = slots
        self._position_of = np.zeros(int(blocks.sum()) * BLOCK, np.intp)
        self._position_of[slots] = np.arange(len(keys))
        self._group_of_block = np.repeat(np.arange(len(sizes)), blocks)
        self._groups = len(sizes)
        self.put_all(keys)

    def put_all(self, keys: Keys) -> None:
        flat = np.full(len(self._position_of), INFEASIBLE, np.int64)
        flat[self._slot_of] = keys
        self._keys = flat.reshape(-1, BLOCK)
        self._best = self._keys.max(axis=1) if len(self._keys) else np.zeros(0, np.int64)

    def put(self, position: int, key: int) -> None:
        block, slot = divmod(self._slot_of.item(position), BLOCK)
        keys = self._keys[block]
        keys[slot] = key
        self._best[block] = keys[keys.argmax()]

    def best(self, worth: Keys | None) -> int:
        """The position of the largest key, or -1 if none is feasible; `worth` is one a group."""
        if not len(self._best):
            return -1
        if worth is not None:
            return _best_position(self._best + worth[self._group_of_block], self._first_of)
        block = int(self._best.argmax())  # blocks are in the order of positions: the first is the best of equals
        return self._first_of(block) if self._best.item(block) >= FEASIBLE_FROM else -1

    def _first_of(self, block: int) -> int:
        return self._position_of.item(block * BLOCK + int(self._keys[block].argmax()))

    def open_groups(self) -> NDArray[np.bool_]:
        """Which groups have a feasible position."""
        found = np.zeros(self._groups, np.bool_)
        found[self._group_of_block[self._best >= FEASIBLE_FROM]] = True
        return found


Arranged: TypeAlias = FlatKeys | GroupedKeys | Blocks


def _best_position(best: Keys, first_of: Callable[[int], int]) -> int:
    """The lowest position with the largest key, given the best key of each part, and where in a part that is."""
    part = int(best.argmax())
    largest = best.item(part)
    if largest < FEASIBLE_FROM:
        return -1
    position = first_of(part)
    while True:
        best[part] = INFEASIBLE
        part = int(best.argmax())
        if best.item(part) < largest:
            return position
        position = min(position, first_of(part))
