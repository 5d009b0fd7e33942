"""Pods by slot: the shape and the row of each as columns, the rest as records.

Slots, like rows, are stable while a pod lives. Pods that wait have no row. Every binding and unbinding is written to a
log of changes, which is how answers kept by shape learn what to compute again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.state.columns import Column
from mooring.state.shapes import Shape

UNBOUND = -1


@dataclass(frozen=True, eq=False, slots=True)
class Leaving:
    """A pod that is being evicted, until the world shows that it is gone."""

    key: PodKey
    uid: str


@dataclass(slots=True)
class PodRecord:
    """One pod and where it stands."""

    key: PodKey
    pod: Pod
    slot: int
    shape: Shape
    row: int = UNBOUND
    node_name: str = ""
    """The node it is bound to, also while that node is not (or no longer) known."""
    assumed: bool = False
    """Bound by a decision of ours that the world has not confirmed yet."""
    leaving: Leaving | None = None
    """Set while it is being evicted."""
    nominated: bool = False
    """Holds room that is being made for it, or kept: it has a row, and does not run."""
    gathered: Mapping[str, Any] | None = None
    """While it is assumed: by plugin, what those that reserve something for it had gathered."""

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0


class PodTable:
    """All pods; only the cluster writes to it."""

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.end = 0
        self.records: dict[PodKey, PodRecord] = {}
        self.by_slot: list[PodRecord | None] = []
        self.shape = Column(np.int32, capacity)
        self.row = Column(np.int32, capacity, fill=UNBOUND)
        self.on_row: dict[int, set[int]] = {}
        """row -> the slots bound to it; rows without pods are absent."""
        self.with_volumes: dict[int, int] = {}
        """slot -> row of the bound pods that have volumes."""
        self._free = list[int]()
        self.watchers = list[set[PodKey]]()

    def watch(self) -> set[PodKey]:
        """A set that collects from now on which pods came to a row, went from one or were seen anew; empty it at will.

        A what-if that is rolled back shows as changes, too: whoever watches looks at the facts again.
        """
        changed = set[PodKey]()
        self.watchers.append(changed)
        return changed

    def unwatch(self, changed: set[PodKey]) -> None:
        """Nobody looks into a set any more that `watch` gave."""
        self.watchers = [watcher for watcher in self.watchers if watcher is not changed]

    def changed(self, keys: Iterable[PodKey]) -> None:
        for watcher in self.watchers:
            watcher.update(keys)

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

    MOST_KEPT = 1 << 15
    """Of 24 bytes each. Who is further behind than half of these has most rows to look at again anyway."""

    def __init__(self) -> None:
        self.position = 0
        """One past the last change, counted from the beginning of time."""
        self.start = 0
        """The first change that is still known."""
        self._log = np.empty((3, 1024), np.int64)

    def append(self, shape_id: int, row: int, sign: int) -> None:
        at = self._room(1)
        log = self._log
        log[0, at], log[1, at], log[2, at] = shape_id, row, sign
        self.position += 1

    def extend(self, shape_id: int, rows: NDArray[np.intp]) -> None:
        """Pods of one shape came to rows."""
        at = self._room(len(rows))
        end = at + len(rows)
        self._log[0, at:end], self._log[1, at:end], self._log[2, at:end] = shape_id, rows, 1
        self.position += len(rows)

    def since(self, position: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]] | None:
        """(shapes, rows, signs) since a position; None if that is no longer known."""
        if position < self.start:
            return None
        shapes, rows, signs = self._log[:, position - self.start : self.position - self.start]
        return shapes, rows, signs

    def rows_since(self, position: int) -> NDArray[np.intp] | None:
        """The rows of these alone."""
        if position < self.start:
            return None
        rows: NDArray[np.intp] = self._log[1, position - self.start : self.position - self.start]
        return rows

    def _room(self, count: int) -> int:
        """Where to write the next so many changes."""
        used = self.position - self.start
        if used + count > self._log.shape[1]:
            kept = min(used, self.MOST_KEPT // 2)  # whoever is further behind starts anew
            grown = np.empty((3, max(1024, 2 * (kept + count))), np.int64)
            grown[:, :kept] = self._log[:, used - kept : used]
            self._log = grown
            self.start = self.position - kept
            used = kept
        return used
