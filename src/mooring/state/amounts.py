"""Amounts by resource and row, as integers, which are the truth, and as floats, which are fast.

Vector arithmetic on floats costs a fraction of that on 64-bit integers. It is exact while amounts stay below LARGEST:
products with a percentage then still fit the 53 bits of a float. A resource that ever exceeds it is answered for in
integers from then on.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 46


class AmountMatrix:
    """One line a resource code, one value a row; only the state writes to it."""

    __slots__ = ("_floats", "_inexact", "_integers", "floats", "integers")

    def __init__(self, capacity: int, inexact: set[int]) -> None:
        """`inexact` collects the codes of resources whose floats cannot be trusted; matrices share it."""
        self._inexact = inexact
        self._set(np.zeros((4, capacity), np.int64), np.zeros((4, capacity)))

    def _set(self, integers: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
        self._integers, self._floats = integers, floats
        self.integers, self.floats = integers.view(), floats.view()
        self.integers.flags.writeable = self.floats.flags.writeable = False

    def reserve(self, codes: int, capacity: int) -> None:
        """Make room for so many resources and rows."""
        lines, columns = self._integers.shape
        if codes > lines or capacity > columns:
            shape = (max(lines, 2 * codes if codes > lines else 0), max(columns, capacity))
            integers, floats = np.zeros(shape, np.int64), np.zeros(shape)
            integers[:lines, :columns], floats[:lines, :columns] = self._integers, self._floats
            self._set(integers, floats)

    def put(self, code: int, row: int, amount: int) -> None:
        self._integers[code, row] = amount
        self._floats[code, row] = amount
        if amount > LARGEST:
            self._inexact.add(code)

    def add(self, code: int, row: int, amount: int) -> None:
        self.put(code, row, self._integers.item(code, row) + amount)

    def add_many(self, code: int, rows: NDArray[np.intp], amounts: NDArray[np.int64]) -> None:
        """Add to distinct rows."""
        total = self._integers[code, rows] + amounts
        self._integers[code, rows] = total
        self._floats[code, rows] = total
        if len(total) and int(total.max()) > LARGEST:
            self._inexact.add(code)

    def clear_row(self, row: int) -> None:
        self._integers[:, row] = 0
        self._floats[:, row] = 0

    def gather(self, codes: tuple[int, ...], rows: NDArray[np.intp]) -> NDArray[Any]:
        """(resources, rows): floats if they are exact for all of these resources, else integers."""
        source = self.floats if self._inexact.isdisjoint(codes) else self.integers
        first, last = codes[0], codes[-1]
        if codes == tuple(range(first, last + 1)):  # neighbours in order, as cpu and memory are: one slice has them
            return source[first : last + 1].take(rows, axis=1)
        picked: NDArray[Any] = source[np.ix_(np.array(codes), rows)]
        return picked
