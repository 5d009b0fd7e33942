"""Queues as a tree, and what each may hold by right of its place in it, as columns.

A row per queue, the root in row 0, parents before their children, siblings next to each other by name. For every
queue q with parent p:

    guarantee        what is kept for it: its own, but at least the sum of its children's
    capability       the most it may hold: its own where it is named, else its parent's; of the root at most the cluster
    real_capability  the most it can reach: max(0, real_capability(p) - guarantees of p's children) + guarantee,
                     and at most its capability
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.resources import UNLIMITED, Columns, ResourceTable, Row, flat
from mooring.errors import InvariantBroken
from mooring.model.api.volcano_queue import ROOT

ROOT_ROW = 0
NO_PARENT = -1


class CutOff(NamedTuple):
    """A queue to which no path leads from the root, and why."""

    spec: QueueSpec
    why: str


class Limits(NamedTuple):
    """What queues may hold, with so much in the cluster in all."""

    total: Row
    capability: Columns
    real_capability: Columns
    capability_flat: "memoryview[int]"
    real_capability_flat: "memoryview[int]"


class QueueTree:
    """Everything about queues that does not change while jobs come and go."""

    def __init__(self, specs: Iterable[QueueSpec], resources: ResourceTable, total: Mapping[str, int]) -> None:
        self.resources = resources
        self.specs, cut_off = _in_order(specs)
        self.cut_off = {spec.name: CutOff(spec, why) for spec, why in cut_off}
        """Queues to which no path leads from the root; they are not in the tree."""
        self.row_of = {spec.name: row for row, spec in enumerate(self.specs)}
        self.parent = [
            NO_PARENT if row == ROOT_ROW else self.row_of[spec.parent or ROOT] for row, spec in enumerate(self.specs)
        ]
        self.children: list[range] = self._find_children()
        self.paths = [self._path(row) for row in range(len(self.specs))]
        """For each queue: itself, its parent, ..., the root."""
        self.leaves = [row for row, below in enumerate(self.children) if not below and row != ROOT_ROW]
        self.closed_by = [self._find_closed(row) for row in range(len(self.specs))]
        """For each queue: the first, from itself upwards, that is not open; empty if all are."""
        self.minimum_runtimes = self._inherit([spec.minimum_runtime_seconds for spec in self.specs])
        """For each queue: how long its jobs run before anything is reclaimed from them; None where nobody says."""
        self.preempt_runtimes = self._inherit([spec.preempt_runtime_seconds for spec in self.specs])
        self.own_deserved = self._columns([spec.deserved for spec in self.specs])
        self.guarantee = _raised(self._columns([spec.guarantee for spec in self.specs]), self.children)
        self.guarantee_flat = flat(self.guarantee)
        self._limits = self._limits_with(total)

    def __len__(self) -> int:
        return len(self.specs)

    def name(self, row: int) -> str:
        return self.specs[row].name

    def set_total(self, total: Mapping[str, int]) -> None:
        """The cluster has so much in all from now on; every resource must be one of the table's."""
        self._limits = self._limits_with(total)

    def _limits_with(self, total: Mapping[str, int]) -> "Limits":
        in_all = self.resources.row(total)
        capability, real_capability = np.empty_like(self.guarantee), np.empty_like(self.guarantee)
        for row in range(len(self)):
            own = self.resources.row(self.specs[row].capability, missing=UNLIMITED)
            parent = self.parent[row]
            above = in_all if parent == NO_PARENT else capability[parent]
            capability[row] = np.minimum(own, above)
        real_capability[ROOT_ROW] = capability[ROOT_ROW]
        for row in range(len(self)):
            below = slice(self.children[row].start, self.children[row].stop)
            free = np.maximum(0, real_capability[row] - _saturating_sum(self.guarantee[below]))
            real_capability[below] = np.minimum(free + self.guarantee[below], capability[below])
        return Limits(in_all, capability, real_capability, flat(capability), flat(real_capability))

    @property
    def total(self) -> Row:
        """What the cluster has in all."""
        return self._limits.total

    @property
    def capability(self) -> Columns:
        return self._limits.capability

    @property
    def real_capability(self) -> Columns:
        return self._limits.real_capability

    @property
    def capability_flat(self) -> "memoryview[int]":
        return self._limits.capability_flat

    @property
    def real_capability_flat(self) -> "memoryview[int]":
        return self._limits.real_capability_flat

    def ways_apart(self, first: int, second: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """From each of two queues upwards, those that are not above the other as well."""
        one, other = self.paths[first], self.paths[second]
        shared = 0
        while shared < min(len(one), len(other)) and one[-1 - shared] == other[-1 - shared]:
            shared += 1
        return one[: len(one) - shared], other[: len(other) - shared]

    # Building

    def _find_children(self) -> list[range]:
        starts, counts = [0] * len(self.specs), [0] * len(self.specs)
        for row in reversed(range(1, len(self.specs))):
            starts[self.parent[row]] = row
            counts[self.parent[row]] += 1
        return [range(start, start + count) for start, count in zip(starts, counts, strict=True)]

    def _path(self, row: int) -> tuple[int, ...]:
        path = [row]
        while self.parent[path[-1]] != NO_PARENT:
            path.append(self.parent[path[-1]])
        return tuple(path)

    def _find_closed(self, row: int) -> str:
        return next((self.name(above) for above in self.paths[row] if not self.specs[above].is_open), "")

    def _inherit(self, own: Sequence[float | None]) -> list[float | None]:
        """What each queue says, else what the nearest above it does."""
        found: list[float | None] = []
        for row, given in enumerate(own):
            above = None if row == ROOT_ROW else found[self.parent[row]]
            found.append(above if given is None else given)
        return found

    def _columns(self, amounts: Sequence[Mapping[str, int]]) -> Columns:
        return np.array([self.resources.row(found) for found in amounts], dtype=np.int64)


def _raised(guarantee: Columns, children: Sequence[range]) -> Columns:
    """Guarantees that are at least the sum of those of the children."""
    raised = guarantee.copy()
    for row in reversed(range(len(children))):
        below = children[row]
        if below:
            raised[row] = np.maximum(raised[row], _saturating_sum(raised[below.start : below.stop]))
    return raised


def _saturating_sum(columns: Columns) -> Columns:
    """Sums by column, at most UNLIMITED: a few absurd amounts must not wrap around to negative ones."""
    exact = columns.sum(axis=0)
    overflows = columns.sum(axis=0, dtype=np.float64) >= UNLIMITED
    return np.where(overflows, UNLIMITED, exact)


def _in_order(specs: Iterable[QueueSpec]) -> tuple[tuple[QueueSpec, ...], list[CutOff]]:
    """The root, then level by level the children of one queue after those of another, by name; and what is cut off."""
    by_name: dict[str, QueueSpec] = {}
    for spec in specs:
        if spec.name in by_name:
            raise InvariantBroken(f"there are two queues named {spec.name}")
        by_name[spec.name] = spec
    root = by_name.pop(ROOT, QueueSpec(ROOT))
    children: dict[str, list[QueueSpec]] = {}
    for name in sorted(by_name):
        children.setdefault(by_name[name].parent or ROOT, []).append(by_name[name])
    ordered = [root]
    for spec in ordered:  # grows while it is walked
        ordered += children.pop(spec.name, [])
    cut_off = (spec for found in children.values() for spec in found)
    return tuple(ordered), [CutOff(spec, _why_cut_off(spec, by_name)) for spec in cut_off]


def _why_cut_off(spec: QueueSpec, by_name: Mapping[str, QueueSpec]) -> str:
    """Why no path leads from the root to a queue: one above it is missing, or queues are above each other."""
    above = [spec.name]
    while (parent := by_name[above[-1]].parent) in by_name and parent not in above:
        above.append(parent)
    if parent in above:
        return f"queue {spec.name} is not used: {' is below '.join([*above[above.index(parent) :], parent])}"
    return f"queue {spec.name} is not used: {' is below '.join([*above, parent])}, which does not exist"
