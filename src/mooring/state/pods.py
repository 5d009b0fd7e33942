"""Pods by slot: the shape and the row of each as columns, the rest as records.

Slots, like rows, are stable while a pod lives. Pods that wait have no row. Every binding and unbinding is written to a
log of changes, which is how answers kept by shape learn what to compute again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.model.pods import Pod
from mooring.state.columns import Column
from mooring.state.shapes import Shape

UNBOUND = -1


@dataclass(slots=True)
class PodRecord:
    """One pod and where it stands."""

    key: str
    pod: Pod
    slot: int
    shape: Shape
    row: int = UNBOUND
    node_name: str = ""
    """The node it is bound to, also while that node is not (or no longer) known."""
    assumed: bool = False
    """Bound by a decision of ours that the world has not confirmed yet."""

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0


class PodTable:
    """All pods; only the cluster writes to it."""

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.end = 0
        self.records: dict[str, PodRecord] = {}
        self.by_slot: list[PodRecord | None] = []
        self.shape = Column(np.int32, capacity)
        self.row = Column(np.int32, capacity, fill=UNBOUND)
        self.on_row: dict[int, set[int]] = {}
        """row -> the slots bound to it; rows without pods are absent."""
        self.with_volumes: dict[int, int] = {}
        """slot -> row of the bound pods that have volumes."""
        self._free = list[int]()

    def __len__(self) -> int:
        return len(self.records)

    def new_slot(self) -> int:
        if self._free:
            return self._free.pop()
        slot = self.end
        self.end += 1
        self.by_slot.append(None)
        if slot == self.capacity:
            self.capacity *= 2
            self.shape.grow(self.capacity)
            self.row.grow(self.capacity)
        return slot

    def free_slot(self, slot: int) -> None:
        self.by_slot[slot] = None
        self._free.append(slot)

    def on(self, row: int) -> Iterator[PodRecord]:
        """The pods bound to a row, in slot order."""
        for slot in sorted(self.on_row.get(row, ())):
            record = self.by_slot[slot]
            assert record is not None
            yield record

    def bound(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The shapes and the rows of all bound pods, as two columns."""
        rows = self.row.values[: self.end]
        is_bound = rows != UNBOUND
        return self.shape.values[: self.end][is_bound], rows[is_bound]


class PodChanges:
    """Which pods came to and went from which rows, in order; readers remember how far they have read."""

    COMPACT_AT = 1_000_000

    def __init__(self) -> None:
        self.start = 0
        """The position of the first entry still kept."""
        self._shapes = list[int]()
        self._rows = list[int]()
        self._signs = list[int]()

    @property
    def position(self) -> int:
        return self.start + len(self._rows)

    def append(self, shape_id: int, row: int, sign: int) -> None:
        if len(self._rows) >= self.COMPACT_AT:
            self._drop_older_half()
        self._shapes.append(shape_id)
        self._rows.append(row)
        self._signs.append(sign)

    def extend(self, shape_id: int, rows: list[int]) -> None:
        self._shapes.extend([shape_id] * len(rows))
        self._rows.extend(rows)
        self._signs.extend([1] * len(rows))
        if len(self._rows) >= self.COMPACT_AT:
            self._drop_older_half()

    def rows_since(self, position: int) -> list[int] | None:
        """The rows touched since a position; None if that is no longer known."""
        return None if position < self.start else self._rows[position - self.start :]

    def since(
        self, position: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]] | None:
        """(shapes, rows, signs) since a position; None if that is no longer known."""
        if position < self.start:
            return None
        at = position - self.start
        return (
            np.array(self._shapes[at:], np.intp),
            np.array(self._rows[at:], np.intp),
            np.array(self._signs[at:], np.int64),
        )

    def _drop_older_half(self) -> None:
        half = len(self._rows) // 2
        self.start += half
        del self._shapes[:half], self._rows[:half], self._signs[:half]
