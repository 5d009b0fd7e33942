"""What each shape means to somebody, as a column over shapes: computed once a shape, gathered for many pods."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.state.columns import Column
from mooring.state.shapes import Shape, ShapeTable


class ShapeEffects:
    """A number for each shape, extended as shapes appear."""

    __slots__ = ("_among", "_column", "_known", "_of", "_shapes", "any")

    def __init__(self, shapes: ShapeTable, of: Callable[[Shape], int], among: Sequence[Shape]) -> None:
        """`among` are the shapes that can have an effect at all, in order of appearance."""
        self._shapes = shapes
        self._of = of
        self._among = among
        self._column = Column(np.int64, max(64, len(shapes)))
        self._known = 0
        self.any = False
        """Whether any shape so far has an effect; true to the last call of `values`."""
        self.values()

    def of(self, shape_id: int) -> int:
        """The effect of one shape."""
        return self.values().item(shape_id)

    def values(self) -> NDArray[np.int64]:
        """One effect a shape id."""
        while len(self._column.values) < len(self._shapes):
            self._column.grow(2 * len(self._column.values))
        while self._known < len(self._among):
            shape = self._among[self._known]
            self._known += 1
            effect = self._of(shape)
            if effect:
                self._column.writable[shape.id] = effect
                self.any = True
        return self._column.values


class EffectStore:
    """Effects that several askers share: what is asked of shapes depends on labels and terms, not on who asks."""

    MOST_KEPT = 10_000

    def __init__(self, shapes: ShapeTable) -> None:
        self._shapes = shapes
        self._version: tuple[int, ...] = ()
        self._known: dict[Hashable, ShapeEffects] = {}

    def get(
        self, key: Hashable, of: Callable[[Shape], int], version: tuple[int, ...], *, with_pod_affinity: bool = False
    ) -> ShapeEffects:
        """The effects behind a key, computed by `of` if they are not known for this version of everything else.

        With `with_pod_affinity`, only shapes that have terms about other pods are asked about.
        """
        if version != self._version or len(self._known) >= self.MOST_KEPT:
            self._version = version
            self._known.clear()
        effects = self._known.get(key)
        if effects is None:
            among = self._shapes.with_pod_affinity if with_pod_affinity else self._shapes.all
            effects = self._known[key] = ShapeEffects(self._shapes, of, among)
        effects.values()  # shapes may have appeared since somebody last asked: `any` must speak of them too
        return effects


def sum_by_code(codes: NDArray[np.int32], amounts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Add up amounts by code, leaving out missing codes (-1)."""
    present = codes >= 0
    sums = np.zeros(length, np.int64)
    np.add.at(sums, codes[present], amounts[present])
    return sums
