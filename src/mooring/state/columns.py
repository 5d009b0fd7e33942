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
