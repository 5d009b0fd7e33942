"""Amounts by kind, resource and row, as integers, which are the truth, and as floats, which are fast.

Vector arithmetic on floats costs a fraction of that on 64-bit integers. It is exact while amounts stay below LARGEST:
products with a percentage then still fit the 53 bits of a float. A resource that ever exceeds it is answered for in
integers from then on.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 46

ALLOCATABLE, REQUESTED, NONZERO = range(3)
KINDS = {"allocatable": ALLOCATABLE, "requested": REQUESTED, "nonzero": NONZERO}
"""`nonzero` is what scoring counts as requested: every container takes at least a little CPU and memory."""


class Lines:
    """Some resources, by code, and where their lines are."""

    __slots__ = ("at", "codes")

    def __init__(self, codes: tuple[int, ...]) -> None:
        self.codes = codes
        first, last = codes[0], codes[-1]
        # Neighbours in order, as cpu and memory are, are one slice.
        is_slice = codes == tuple(range(first, last + 1))
        self.at: slice | NDArray[np.intp] = slice(first, last + 1) if is_slice else np.array(codes, np.intp)


class Taken:
    """What one pod takes of each resource, by code: requested, and as scoring counts it."""

    __slots__ = ("amounts", "codes", "largest")

    def __init__(self, amounts: NDArray[np.int64]) -> None:
        self.amounts = amounts
        """(2, codes)"""
        self.codes = amounts.shape[1]
        self.largest = int(amounts.max(initial=0))


class Amounts:
    """(kinds, resource codes, rows); only the state writes to it."""

    __slots__ = ("_floats", "_inexact", "_integers", "_room", "floats", "integers")

    def __init__(self, capacity: int) -> None:
        self._inexact = set[int]()
        """The codes of resources whose floats cannot be trusted."""
        self._room = LARGEST
        """So much may be taken of any row before some amount may be too large: looked up only when it is used up."""
        self._set(np.zeros((len(KINDS), 4, capacity), np.int64), np.zeros((len(KINDS), 4, capacity)))

    def _set(self, integers: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
        self._integers, self._floats = integers, floats
        self.integers, self.floats = integers.view(), floats.view()
        self.integers.flags.writeable = self.floats.flags.writeable = False

    def reserve(self, codes: int, capacity: int) -> None:
        """Make room for so many resources and rows."""
        kinds, lines, columns = self._integers.shape
        if codes > lines or capacity > columns:
            shape = (kinds, max(lines, 2 * codes if codes > lines else 0), max(columns, capacity))
            integers, floats = np.zeros(shape, np.int64), np.zeros(shape)
            integers[:, :lines, :columns], floats[:, :lines, :columns] = self._integers, self._floats
            self._set(integers, floats)

    # What nodes have.

    def put_allocatable(self, code: int, row: int, amount: int) -> None:
        self._integers[ALLOCATABLE, code, row] = amount
        self._floats[ALLOCATABLE, code, row] = amount
        if amount > LARGEST:
            self._inexact.add(code)

    def clear_allocatable(self, row: int) -> None:
        self._integers[ALLOCATABLE, :, row] = 0
        self._floats[ALLOCATABLE, :, row] = 0

    # What pods take.

    def take(self, row: int, taken: Taken) -> None:
        """One pod comes to a row."""
        there = self._integers[REQUESTED:, : taken.codes, row]
        there += taken.amounts
        self._floats[REQUESTED:, : taken.codes, row] = there
        self._use_room(taken.largest)

    def give_back(self, row: int, taken: Taken) -> None:
        """One pod goes from a row."""
        there = self._integers[REQUESTED:, : taken.codes, row]
        there -= taken.amounts
        self._floats[REQUESTED:, : taken.codes, row] = there

    def take_many(self, rows: NDArray[np.intp], counts: NDArray[np.int64], taken: Taken) -> None:
        """So many equal pods come to each of some distinct rows."""
        for kind, amounts in zip((REQUESTED, NONZERO), taken.amounts.tolist(), strict=True):
            for code, amount in enumerate(amounts):
                if amount:
                    total = self._integers[kind, code, rows] + counts * amount
                    self._integers[kind, code, rows] = total
                    self._floats[kind, code, rows] = total
        self._use_room(taken.largest * int(counts.max(initial=0)))

    def _use_room(self, amount: int) -> None:
        self._room -= amount
        if self._room < 0:
            largest = self._integers[REQUESTED:].max(axis=(0, 2), initial=0).tolist()
            self._inexact |= {code for code, found in enumerate(largest) if found > LARGEST}
            self._room = LARGEST - max(found for found in (0, *largest) if found <= LARGEST)

    # Reading.

    def gather(self, kind: int, lines: Lines, rows: NDArray[np.intp] | int) -> NDArray[Any]:
        """(resources, rows): floats if they are exact for all of these resources, else integers.

        A number instead of rows stands for all rows up to there, which need not be copied.
        """
        is_exact = not self._inexact or self._inexact.isdisjoint(lines.codes)
        source: NDArray[Any] = (self.floats if is_exact else self.integers)[kind]
        if isinstance(rows, int):
            return source[lines.at, :rows]
        if isinstance(lines.at, slice):
            return source[lines.at].take(rows, axis=1)
        return source[lines.at[:, np.newaxis], rows]


class AmountColumn:
    """One line of the amounts, read as a column."""

    __slots__ = ("_code", "_cube", "_kind")

    def __init__(self, cube: Amounts, kind: int, code: int) -> None:
        self._cube = cube
        self._kind = kind
        self._code = code

    @property
    def values(self) -> NDArray[np.int64]:
        line: NDArray[np.int64] = self._cube.integers[self._kind, self._code]
        return line
