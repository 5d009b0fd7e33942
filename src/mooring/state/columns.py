"""Growing NumPy columns that only the state may write."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Column:
    """One value a row, growing by doubling; `values` is for reading, `writable` for the state alone."""

    __slots__ = ("_array", "fill", "values")

    def __init__(self, dtype: DTypeLike, capacity: int, fill: Any = 0) -> None:
        self.fill = fill
        self._set(np.full(capacity, fill, dtype))

    def _set(self, array: NDArray[Any]) -> None:
        self._array = array
        self.values = array.view()
        self.values.flags.writeable = False

    @property
    def writable(self) -> NDArray[Any]:
        return self._array

    def grow(self, capacity: int) -> None:
        grown = np.full(capacity, self.fill, self._array.dtype)
        grown[: len(self._array)] = self._array
        self._set(grown)


class Exactness:
    """Whether the amounts of a resource are small enough for exact arithmetic in floats; once lost, it stays lost."""

    __slots__ = ("holds",)

    LARGEST = 1 << 46
    """Products with a percentage still fit the 53 bits of a float."""

    def __init__(self) -> None:
        self.holds = True


class AmountColumn(Column):
    """A column of whole amounts, with the same numbers as floats beside it.

    Vector arithmetic on floats is several times faster than on 64-bit integers.
    """

    __slots__ = ("_floats", "exactness", "floats")

    def __init__(self, capacity: int, exactness: Exactness) -> None:
        self.exactness = exactness
        super().__init__(np.int64, capacity)

    def _set(self, array: NDArray[Any]) -> None:
        super()._set(array)
        self._floats = array.astype(np.float64)
        self.floats = self._floats.view()
        self.floats.flags.writeable = False

    def put(self, row: int, amount: int) -> None:
        self._array[row] = amount
        self._floats[row] = amount
        if amount > Exactness.LARGEST:
            self.exactness.holds = False

    def add(self, row: int, amount: int) -> None:
        self.put(row, int(self._array[row]) + amount)

    def add_many(self, rows: NDArray[np.intp], amounts: NDArray[np.int64]) -> None:
        """Add to distinct rows."""
        total = self._array[rows] + amounts
        self._array[rows] = total
        self._floats[rows] = total
        if len(total) and int(total.max()) > Exactness.LARGEST:
            self.exactness.holds = False


class Interner:
    """Small integer codes for values, in order of first appearance."""

    __slots__ = ("code_of", "values")

    def __init__(self) -> None:
        self.code_of: dict[Any, int] = {}
        self.values: list[Any] = []

    def code(self, value: Any) -> int:
        found = self.code_of.get(value)
        if found is None:
            found = self.code_of[value] = len(self.values)
            self.values.append(value)
        return found

    def __len__(self) -> int:
        return len(self.values)
