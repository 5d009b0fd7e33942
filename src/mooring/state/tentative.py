"""The pods that hold rows and do not run yet, and those that are to leave for them, by shape.

Filters ask for these in every cycle in which there are plans, and most of them have nothing to do with most shapes. So
they are indexed by shape, and the index is brought up to date by the pods that changed: with a thousand plans, a plan
more costs no walk over the others.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mooring.model.keys import PodKey
from mooring.state.pods import UNBOUND, Leaving, PodTable
from mooring.state.shapes import Shape

PodRows = Mapping[PodKey, int]
"""Some pods, and the row of each."""


class _At(NamedTuple):
    shape: Shape
    row: int


class TentativePods:
    """An index over the plans that hold rows; only `Plans` writes to it. What it says follows from plans and pods."""

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
