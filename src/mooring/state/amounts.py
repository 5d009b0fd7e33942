"""Amounts by kind, resource and row, as integers, which are the truth, and as floats, which are fast.

Vector arithmetic on floats costs a fraction of that on 64-bit integers. It is exact while amounts stay below LARGEST:
products with a percentage then still fit the 53 bits of a float. A resource that ever exceeds it is answered for in
integers from then on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InputError

LARGEST = 1 << 46
LARGEST_SUM = 1 << 62
"""No row may hold more: the next pod would not wrap around yet."""

ALLOCATABLE, REQUESTED, NONZERO, FREE, SPARE = range(5)
KINDS = {"allocatable": ALLOCATABLE, "requested": REQUESTED, "nonzero": NONZERO, "free": FREE, "spare": SPARE}
"""`nonzero` is what scoring counts as requested: every container takes at least a little CPU and memory. What is left
of the allocatable besides the requested is `free`, and besides the nonzero, `spare`."""


class ResourceColumns:
    """Some resources, by code, and where their lines are."""

    __slots__ = ("array", "at", "codes")

    def __init__(self, codes: tuple[int, ...]) -> None:
        self.codes = codes
        self.array = np.array(codes, np.intp)
        first, last = codes[0], codes[-1]
        # Neighbours in order, as cpu and memory are, are one slice.
        is_slice = codes == tuple(range(first, last + 1))
        self.at: slice | NDArray[np.intp] = slice(first, last + 1) if is_slice else self.array


class Taken:
    """What one pod takes, in the form in which it is added to a row at once: kind by kind, resource by resource."""

    __slots__ = ("floats", "integers", "largest", "lines")

    def __init__(self, requested: Mapping[int, int], nonzero: Mapping[int, int], lines: int) -> None:
        """Amounts by resource code, for so many resources as there are lines."""
        amounts = [kind.get(code, 0) for kind in (requested, nonzero) for code in range(lines)]
        self.lines = lines
        self.integers = np.array(amounts, np.int64)
        self.floats = np.array([*amounts, *(-amount for amount in amounts)], np.float64)
        self.largest = max(amounts)

    def changes(self, kind: int, lines: ResourceColumns) -> NDArray[np.float64]:
        """(resources, 1): what is added to some resources of a kind."""
        of_kind = self.floats[(kind - REQUESTED) * self.lines :][: self.lines]
        column: NDArray[np.float64] = of_kind[lines.at, np.newaxis]
        return column


class Difference:
    """What a pod takes more than another, or less, in the form in which it is added to a row at once."""

    __slots__ = ("floats", "integers", "largest", "lines")

    def __init__(self, old: Taken, new: Taken) -> None:
        self.lines = new.lines
        self.integers = new.integers - old.integers
        self.floats = new.floats - old.floats
        self.largest = new.largest


class Amounts:
    """(kinds, resource codes, rows); only the state writes to it."""

    __slots__ = (
        *("_flat_floats", "_flat_integers", "_floats", "_inexact", "_integers", "_room"),
        *("floats", "integers", "lines"),
    )

    def __init__(self, capacity: int) -> None:
        self._inexact = set[int]()
        """The codes of resources whose floats cannot be trusted."""
        self._room = LARGEST
        """So much may be taken of any row before some amount may be too large: looked up only when it is used up."""
        self._set(np.zeros((FREE, 4, capacity), np.int64), np.zeros((len(KINDS), 4, capacity)))

    def _set(self, integers: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
        self._integers, self._floats = integers, floats
        self.lines = int(integers.shape[1])
        """For how many resources there is room."""
        self.integers, self.floats = integers.view(), floats.view()
        self.integers.flags.writeable = self.floats.flags.writeable = False
        # One line a kind and resource: what a pod changes of a row is then one column.
        self._flat_integers = integers[REQUESTED:].reshape(-1, integers.shape[2])
        self._flat_floats = floats[REQUESTED:].reshape(-1, floats.shape[2])

    def reserve(self, codes: int, capacity: int) -> None:
        """Make room for so many resources and rows."""
        _, lines, columns = self._integers.shape
        if codes > lines or capacity > columns:
            shape = (max(lines, 2 * codes if codes > lines else 0), max(columns, capacity))
            integers, floats = np.zeros((FREE, *shape), np.int64), np.zeros((len(KINDS), *shape))
            integers[:, :lines, :columns], floats[:, :lines, :columns] = self._integers, self._floats
            self._set(integers, floats)

    # What nodes have.

    def put_allocatable(self, row: int, amounts: Mapping[int, int]) -> None:
        """A node has so much of some resources, by code, and nothing of the others."""
        there = self._integers[:, :, row]
        there[ALLOCATABLE] = 0
        for code, amount in amounts.items():
            there[ALLOCATABLE, code] = amount
            if amount > LARGEST:
                self._inexact.add(code)
        self._floats[:FREE, :, row] = there
        self._floats[FREE:, :, row] = there[ALLOCATABLE] - there[REQUESTED:]

    def put_many_allocatable(self, rows: slice | Sequence[int], amounts: NDArray[np.int64]) -> None:
        """Nodes on which no pod is have these amounts: (resource codes, rows), or (resource codes, 1) if all alike."""
        self._inexact.update(np.flatnonzero((amounts > LARGEST).any(axis=1)).tolist())
        for array, kinds in ((self._integers, (ALLOCATABLE,)), (self._floats, (ALLOCATABLE, FREE, SPARE))):
            array[:, :, rows] = 0
            for kind in kinds:
                array[kind][:, rows] = amounts

    def put_one(self, row: int, code: int, amount: int) -> None:
        """A node has so much of one resource."""
        there = self._integers[:, code, row]
        there[ALLOCATABLE] = amount
        self._floats[:FREE, code, row] = there
        self._floats[FREE:, code, row] = there[ALLOCATABLE] - there[REQUESTED:]

    # What pods take.

    def take(self, row: int, taken: Taken) -> None:
        """One pod comes to a row."""
        integers, floats = self._flat_integers[:, row], self._flat_floats[:, row]
        integers += taken.integers
        floats += taken.floats
        self._use_room(taken.largest)

    def give_back(self, row: int, taken: Taken) -> None:
        """One pod goes from a row."""
        integers, floats = self._flat_integers[:, row], self._flat_floats[:, row]
        integers -= taken.integers
        floats -= taken.floats

    def exchange(self, row: int, difference: Difference) -> None:
        """One pod on a row takes something else."""
        integers, floats = self._flat_integers[:, row], self._flat_floats[:, row]
        integers += difference.integers
        floats += difference.floats
        self._use_room(difference.largest)

    def take_many(self, rows: NDArray[np.intp], counts: NDArray[np.int64], taken: Taken) -> None:
        """So many equal pods come to each of some distinct rows."""
        self._flat_integers[:, rows] += taken.integers[:, np.newaxis] * counts
        self._flat_floats[:, rows] += taken.floats[:, np.newaxis] * counts
        self._use_room(taken.largest * int(counts.max(initial=0)))

    def _use_room(self, amount: int) -> None:
        self._room -= amount
        if self._room < 0:
            largest = self._integers[REQUESTED:].max(axis=(0, 2), initial=0).tolist()
            if max(largest) > LARGEST_SUM:
                found = f"{max(largest)} of a resource"
                raise InputError(f"the pods of one node: expected to take at most {LARGEST_SUM} in all, found {found}")
            self._inexact |= {code for code, found in enumerate(largest) if found > LARGEST}
            self._room = LARGEST - max(found for found in (0, *largest) if found <= LARGEST)

    # Reading.

    def is_exact(self, lines: ResourceColumns) -> bool:
        """Whether the floats of some resources can be trusted."""
        return not self._inexact or self._inexact.isdisjoint(lines.codes)

    def gather(self, kind: int, lines: ResourceColumns, rows: NDArray[np.intp] | int) -> NDArray[Any]:
        """(resources, rows): floats if they are exact for all of these resources, else integers.

        A number instead of rows stands for all rows up to there, which need not be copied.
        """
        if self.is_exact(lines):
            return _pick(self.floats[kind], lines, rows)
        if kind < FREE:
            return _pick(self.integers[kind], lines, rows)
        taken = REQUESTED if kind == FREE else NONZERO
        left: NDArray[Any] = self.gather(ALLOCATABLE, lines, rows) - self.gather(taken, lines, rows)
        return left


def exact_sum(column: NDArray[np.int64]) -> int:
    """The sum of a column over many rows, which may exceed an int64."""
    return (int((column >> 32).sum()) << 32) + int((column & 0xFFFFFFFF).sum())


def _pick(source: NDArray[Any], lines: ResourceColumns, rows: NDArray[np.intp] | int) -> NDArray[Any]:
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
