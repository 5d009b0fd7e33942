"""The pods that might have to go from some rows, and what their rows would be like without them.

Matrices are (rows, victims): each row's victims in the order in which they are reprieved, padded to the longest list.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.running import NO_POD, Matrix, RunningPods
from mooring.engine.plugin import Mask
from mooring.model.requests import CPU, MEMORY
from mooring.state.cluster import Cluster
from mooring.state.effects import ShapeEffects
from mooring.state.nodes import NodeTable
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape

Amount = tuple[str, str]
"""(`requested` or `nonzero`, resource)"""


class Shares:
    """What a pod of each shape takes of a resource, as columns over shapes; kept between decisions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Amount, ShapeEffects] = {}

    def of(self, amount: Amount, shapes: Matrix) -> Matrix:
        effects = self._known.get(amount)
        if effects is None:
            shape_table = self._cluster.shapes
            effects = self._known[amount] = ShapeEffects(shape_table, _share_of(*amount), shape_table.all)
        return effects.values()[shapes]


def _share_of(what: str, resource: str) -> Callable[[Shape], int]:
    if what == "nonzero" and resource in (CPU, MEMORY):
        return lambda shape: shape.nonzero[resource == MEMORY]
    return lambda shape: shape.request(resource)


class SupposedRows(NodeRows):
    """Some rows as they would be without some pods: filters by usage answer for that without knowing it."""

    __slots__ = ("_given_back", "_left", "_supposed")

    def __init__(
        self, table: NodeTable, index: Rows, given_back: Callable[[Amount], NDArray[np.int64]], left: NDArray[np.int64]
    ) -> None:
        """`given_back` says how much of an amount each row gets back, `left` how many pods are gone from it."""
        super().__init__(table, index)
        self._given_back = given_back
        self._left = left
        self._supposed: dict[tuple[str, tuple[str, ...]], NDArray[Any]] = {}

    def requested(self, resource: str) -> NDArray[np.int64]:
        return super().requested(resource) - self._given_back(("requested", resource))

    def nonzero_requested(self, resource: str) -> NDArray[np.int64]:
        return super().nonzero_requested(resource) - self._given_back(("nonzero", resource))

    def stacked(self, what: str, resources: tuple[str, ...]) -> NDArray[Any]:
        found = super().stacked(what, resources)
        if what == "allocatable":
            return found
        supposed = self._supposed.get((what, resources))
        if supposed is None:
            supposed = found - np.stack([self._given_back((what, resource)) for resource in resources])
            self._supposed[what, resources] = supposed
        return supposed

    @property
    def pod_count(self) -> NDArray[np.int64]:
        return super().pod_count - self._left


@dataclass
class Crowd:
    """Rows with their possible victims, and which of these are gone for now: all of them at first."""

    table: NodeTable
    shares: Shares
    rows: Rows
    counts: NDArray[np.int64]
    """How many victims each row has."""
    slots: Matrix
    priorities: Matrix
    starts: Matrix
    shapes: Matrix
    budget_sets: Matrix
    violating: Mask
    """Whose eviction would break a disruption budget."""
    gone: Mask
    _each: dict[Amount, Matrix] = field(default_factory=dict)
    _back: dict[Amount, NDArray[np.int64]] = field(default_factory=dict)
    _left: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, positions: NDArray[np.intp]) -> "Crowd":
        """Some of these rows, as a crowd of their own, narrowed to its longest list of victims."""
        counts = self.counts[positions]
        width = int(counts.max()) if len(counts) else 0
        narrowed = [
            found[positions, :width]
            for found in (self.slots, self.priorities, self.starts, self.shapes, self.budget_sets)
        ]
        violating, gone = self.violating[positions, :width], self.gone[positions, :width]
        return Crowd(self.table, self.shares, self.rows[positions], counts, *narrowed, violating, gone)

    def ordered(self, order: Matrix) -> "Crowd":
        """The same with each row's victims in another order."""
        moved = [
            np.take_along_axis(found, order, axis=1)
            for found in (self.slots, self.priorities, self.starts, self.shapes, self.budget_sets)
        ]
        violating = np.take_along_axis(self.violating, order, axis=1)
        gone = np.take_along_axis(self.gone, order, axis=1)
        return Crowd(self.table, self.shares, self.rows, self.counts, *moved, violating, gone)

    # What the rows would be like.

    def _of_each(self, amount: Amount) -> Matrix:
        found = self._each.get(amount)
        if found is None:
            found = self._each[amount] = self.shares.of(amount, self.shapes)
        return found

    def given_back(self, amount: Amount) -> NDArray[np.int64]:
        """How much of an amount the rows get back from those that are gone."""
        found = self._back.get(amount)
        if found is None:
            found = self._back[amount] = np.where(self.gone, self._of_each(amount), 0).sum(axis=1)
        return found

    def left(self) -> NDArray[np.int64]:
        """How many victims are gone from each row."""
        if self._left is None:
            self._left = self.gone.sum(axis=1)
        return self._left

    def supposed(self) -> SupposedRows:
        """The rows without those that are gone."""
        return SupposedRows(self.table, self.rows, self.given_back, self.left())

    def with_back(self, positions: NDArray[np.intp], victim: int) -> SupposedRows:
        """Some of the rows if their victim of this number, who is gone, were back."""

        def given_back(amount: Amount) -> NDArray[np.int64]:
            return self.given_back(amount)[positions] - self._of_each(amount)[positions, victim]

        return SupposedRows(self.table, self.rows[positions], given_back, self.left()[positions] - 1)

    def bring_back(self, positions: NDArray[np.intp], victim: int) -> None:
        """Let the victim of this number stay on some rows."""
        self.gone[positions, victim] = False
        for amount, back in self._back.items():
            back[positions] -= self._of_each(amount)[positions, victim]
        self.left()[positions] -= 1


def gather_crowd(running: RunningPods, shares: Shares, rows: Rows, priority: int) -> Crowd:
    """The pods on some rows with less than this priority, the most important first; rows without any are left out."""
    below = (running.priorities[rows] < priority).sum(axis=1)
    rows, below = rows[below > 0], below[below > 0]
    width = int(below.max()) if len(rows) else 0
    numbers = np.arange(width)
    is_pod = numbers < below[:, np.newaxis]
    # Each row is sorted by priority: those below come last.
    columns = np.where(is_pod, (running.counts[rows] - below)[:, np.newaxis] + numbers, 0)
    lines = rows[:, np.newaxis]
    return Crowd(
        running.cluster.nodes,
        shares,
        rows,
        below,
        running.slots[lines, columns],
        np.where(is_pod, running.priorities[lines, columns], NO_POD),
        running.starts[lines, columns],
        running.shapes[lines, columns],
        running.budget_sets[lines, columns],
        np.zeros(is_pod.shape, np.bool_),
        is_pod,
    )
