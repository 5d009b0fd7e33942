"""What each shape means to somebody, as a column over shapes: computed once a shape, gathered for many pods.

Most services speak of their own pods only, by a label's value. So who can be meant at all is looked up by labels
(`ShapeTable.selected_by`, `ShapeTable.speaking_of`) instead of asking about every shape: with a thousand services that
would be a million questions.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.state.shapes import Shape, ShapeTable

Among = Callable[[], Sequence[Sequence[Shape]]]
"""Finds lists of shapes, each in order of appearance; they grow as long as no shape is forgotten."""

FEW = 4
"""Up to so many shapes with an effect, comparing is cheaper than a column over all shapes, in time and in memory;"""
SMALL = 256
"""unless there are so few shapes."""


class ShapeEffects:
    """A number for each shape, extended as shapes appear."""

    __slots__ = ("_among", "_column", "_effect_of", "_epoch", "_find", "_known", "_looked_at", "_of", "_shapes")

    def __init__(self, shapes: ShapeTable, of: Callable[[Shape], int], among: Among | None = None) -> None:
        """`among` finds the shapes that can have an effect at all; None: all."""
        self._shapes = shapes
        self._of = of
        self._find = among or (lambda: (shapes.known,))
        self._start_anew()
        self.catch_up()

    def _start_anew(self) -> None:
        self._epoch = self._shapes.epoch
        self._looked_at = 0
        """How many shapes there were when somebody last asked."""
        self._among = self._find()
        self._known = [0] * len(self._among)
        """How far each of the lists has been looked at."""
        self._effect_of: dict[int, int] = {}
        self._column = np.zeros(0, np.int64)

    def catch_up(self) -> None:
        """Look at the shapes that appeared; at all of them if some were forgotten."""
        shapes = self._shapes
        if self._epoch != shapes.epoch:
            self._start_anew()
        if self._looked_at == len(shapes.known):
            return
        self._looked_at = len(shapes.known)
        for index, found in enumerate(self._among):
            known = self._known[index]
            if known == len(found):
                continue
            self._known[index] = len(found)
            for shape in found[known:]:
                if effect := self._of(shape):
                    self._effect_of[shape.id] = effect
                    self._column = self._column[:0]

    @property
    def any(self) -> bool:
        """Whether any shape so far has an effect; true to the last time that somebody asked for one."""
        return bool(self._effect_of)

    def of(self, shape_id: int) -> int:
        """The effect of one shape."""
        self.catch_up()
        return self._effect_of.get(shape_id, 0)

    def at(self, shapes: NDArray[np.integer]) -> NDArray[np.int64]:
        """The effect of each of some shapes, by id: of many pods at once."""
        self.catch_up()
        if len(self._effect_of) > FEW or len(self._shapes) <= SMALL:
            return self.values().take(shapes)
        found = np.zeros(shapes.shape, np.int64)
        for shape_id, effect in self._effect_of.items():
            found[shapes == shape_id] = effect
        return found

    def values(self) -> NDArray[np.int64]:
        """One effect a shape id."""
        self.catch_up()
        if len(self._column) < len(self._shapes):
            column = np.zeros(max(64, 2 * len(self._shapes)), np.int64)
            column[list(self._effect_of)] = list(self._effect_of.values())
            column.flags.writeable = False
            self._column = column
        return self._column


class EffectStore:
    """Effects that several askers share: what is asked of shapes depends on labels and terms, not on who asks."""

    MOST_KEPT = 10_000

    def __init__(self, shapes: ShapeTable) -> None:
        self._shapes = shapes
        self._version: tuple[int, ...] = ()
        self._known: dict[Hashable, ShapeEffects] = {}

    def get(
        self,
        key: Hashable,
        of: Callable[[Shape], int],
        version: tuple[int, ...],
        among: Among | None = None,
    ) -> ShapeEffects:
        """The effects behind a key, computed by `of` if they are not known for this version of everything else.

        With `among`, only the shapes in the lists that it finds are asked about.
        """
        if version != self._version or len(self._known) >= self.MOST_KEPT:
            self._version = version
            self._known.clear()
        effects = self._known.get(key)
        if effects is None:
            effects = self._known[key] = ShapeEffects(self._shapes, of, among)
        effects.catch_up()  # shapes may have appeared since somebody last asked: `any` must speak of them too
        return effects


def sum_by_code(codes: NDArray[np.int32], amounts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Add up amounts by code, leaving out missing codes (-1)."""
    present = codes >= 0
    sums = np.zeros(length, np.int64)
    np.add.at(sums, codes[present], amounts[present])
    return sums
