"""What each shape means to somebody, as a column over shapes: computed once a shape, gathered for many pods."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mooring.state.columns import Column
from mooring.state.shapes import Shape, ShapeTable


class ShapeEffects:
    """A number for each shape, extended as shapes appear."""

    __slots__ = ("_column", "_known", "_of", "_shapes", "any")

    def __init__(self, shapes: ShapeTable, of: Callable[[Shape], int]) -> None:
        self._shapes = shapes
        self._of = of
        self._column = Column(np.int64, max(64, len(shapes)))
        self._known = 0
        self.any = False
        """Whether any shape so far has an effect."""

    def of(self, shape_id: int) -> int:
        """The effect of one shape."""
        if shape_id >= self._known:
            self.values()
        return int(self._column.values[shape_id])

    def values(self) -> NDArray[np.int64]:
        """One effect a shape id."""
        count = len(self._shapes)
        if self._known < count:
            while len(self._column.values) < count:
                self._column.grow(2 * len(self._column.values))
            for shape_id in range(self._known, count):
                effect = self._of(self._shapes[shape_id])
                if effect:
                    self._column.writable[shape_id] = effect
                    self.any = True
            self._known = count
        return self._column.values


def sum_by_code(codes: NDArray[np.int32], amounts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Add up amounts by code, leaving out missing codes (-1)."""
    present = codes >= 0
    sums = np.zeros(length, np.int64)
    np.add.at(sums, codes[present], amounts[present])
    return sums
