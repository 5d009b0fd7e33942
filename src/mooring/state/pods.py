"""Pods by slot: the shape and the row of each as columns, the rest as records.

Slots, like rows, are stable while a pod lives. Pods that wait have no row. Every binding and unbinding is written to a
log of changes, which is how answers kept by shape learn what to compute again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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

    def take_slot(self, slot: int) -> None:
        """Take a certain slot that is free: undo of `free_slot`."""
        self._free.remove(slot)

    def shrink_to(self, end: int) -> None:
        """Give up free slots at the end of the table: undo of `new_slot`, where that made the table longer."""
        while self.end > end and self._free and self._free[-1] == self.end - 1:
            self._free.pop()
            self.by_slot.pop()
            self.end -= 1

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

    MOST_VOID = 64
    """So many spans of undone changes are told apart."""

    def __init__(self) -> None:
        self.position = 0
        """One past the last change, counted from the beginning of time."""
        self.start = 0
        """The first change that is still known."""
        self._log = np.empty((3, 1024), np.int64)
        self._void: list[tuple[int, int]] = []
        """From where to where changes were undone with the rows on which they were."""

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
        if position < self.start or (self._void and self._is_void(position)):
            return None
        shapes, rows, signs = self._log[:, position - self.start : self.position - self.start]
        return shapes, rows, signs

    def rows_since(self, position: int) -> NDArray[np.intp] | None:
        """The rows of these alone."""
        if position < self.start or (self._void and self._is_void(position)):
            return None
        rows: NDArray[np.intp] = self._log[1, position - self.start : self.position - self.start]
        return rows

    def void(self, position: int) -> None:
        """What was written since a position has been undone, down to the rows: it is to be read as if nothing was.

        Readers that have read up to there go on; those in the middle of it start anew.
        """
        if position >= self.position:
            return
        self._void.append((position, self.position))
        if position < self.start or len(self._void) > self.MOST_VOID:
            self._void.clear()
            self.start = self.position
            return
        kept = position - self.start
        if kept:
            # Rows that exist: that they are looked at again does no harm.
            self._log[:, kept : self.position - self.start] = self._log[:, kept - 1 : kept]
            self._log[2, kept : self.position - self.start] = 0
        else:
            self.start = self.position
            self._void.clear()

    def _is_void(self, position: int) -> bool:
        """Whether a position is inside of what was undone."""
        return any(first < position < last for first, last in self._void)

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


PodRows = Mapping[PodKey, int]
"""Some pods, and the row of each."""


class _At(NamedTuple):
    shape: Shape
    row: int


class TentativePods:
    """The pods that hold rows and do not run yet, and those that are to leave for them, by shape.

    Filters ask for these in every cycle in which there are plans, and most of them have nothing to do with most shapes.
    The index is brought up to date by the pods that changed: with a thousand plans, a plan more costs no walk over the
    others. Only `Plans` writes to it; what it says follows from plans and pods.
    """

    def __init__(self, pods: PodTable) -> None:
        self._pods = pods
        self._holders: dict[PodKey, int] = {}
        """How many plans let a pod hold a row."""
        self._leaving: dict[PodKey, dict[Leaving, int]] = {}
        """By which evictions a pod leaves, and how many plans wait for each."""
        self._at: dict[PodKey, _At] = {}
        self._of_shape: dict[Shape, dict[PodKey, int]] = {}
        self._changed: set[PodKey] | None = None
        """The pods to look at again; None while there are no plans."""
        self._shapes_version = -1

    def is_own(self, watched: set[PodKey]) -> bool:
        """Whether a set of pods that changed is the one that this index looks into."""
        return watched is self._changed

    def count(self, holders: Iterable[PodKey], leaves: Iterable[Leaving], sign: int) -> None:
        """Take in (1) or leave out (-1) the pods of a plan."""
        if self._changed is None:
            self._changed = self._pods.watch()
        for key in holders:
            self._holders[key] = self._holders.get(key, 0) + sign
            if not self._holders[key]:
                del self._holders[key]
            self._changed.add(key)
        for leaving in leaves:
            counts = self._leaving.setdefault(leaving.key, {})
            counts[leaving] = counts.get(leaving, 0) + sign
            if not counts[leaving]:
                del counts[leaving]
            if not counts:
                del self._leaving[leaving.key]
            self._changed.add(leaving.key)
        if not self._holders and not self._leaving:
            self._pods.unwatch(self._changed)
            self._changed = None
            self._at.clear()
            self._of_shape.clear()

    def by_shape(self, shapes_version: int) -> Mapping[Shape, PodRows]:
        """Such pods with their rows, by shape. The version rises when pods are shaped anew."""
        if self._changed is None:
            return {}
        if shapes_version != self._shapes_version:
            self._shapes_version = shapes_version
            self._changed.update(self._at)
        for key in self._changed:
            self._look_at(key)
        self._changed.clear()
        return self._of_shape

    def _look_at(self, key: PodKey) -> None:
        before, now = self._at.get(key), self._found(key)
        if before == now:
            return
        if before is not None:
            others = self._of_shape[before.shape]
            del others[key], self._at[key]
            if not others:
                del self._of_shape[before.shape]
        if now is not None:
            self._of_shape.setdefault(now.shape, {})[key] = now.row
            self._at[key] = now

    def _found(self, key: PodKey) -> _At | None:
        """Where a pod counts that holds a row, or leaves for one that does; None if it does neither (any more)."""
        record = self._pods.records.get(key)
        if record is None or record.row == UNBOUND:
            return None
        holds = record.nominated and key in self._holders
        leaves = record.leaving is not None and record.leaving in self._leaving.get(key, ())
        return _At(record.shape, record.row) if holds or leaves else None
