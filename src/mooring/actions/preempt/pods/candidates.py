"""The pods that might have to go from some rows, and what their rows would be like without them.

Matrices are (victims, rows): line by line each row's victims in the order in which they are reprieved, padded to the
longest list.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.cost import Cost
from mooring.engine.plugin import Mask
from mooring.engine.shortcuts import Gone
from mooring.model.devices.cards import GPU, Sharing
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.cluster import Cluster
from mooring.state.effects import ShapeEffects
from mooring.state.nodes import PLACES
from mooring.state.remembered import Derived
from mooring.state.rows import NodeRows, Rows
from mooring.state.running import Matrix, RunningPods
from mooring.state.shapes import Shape

Amount: TypeAlias = tuple[str, str]
"""(`requested` or `nonzero`, resource)"""
Share: TypeAlias = Amount | ShapeEffects
"""Of which each pod has a share: an amount, or what pods count for to some filter."""


class ShapeAmounts:
    """What a pod of each shape takes of a resource, as columns over shapes; kept between decisions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: Derived[Amount, ShapeEffects] = Derived()

    def of(self, share: Share, shapes: Matrix) -> Matrix:
        effects = share if isinstance(share, ShapeEffects) else self._known.of(share, self._effects, share)
        return effects.at(shapes)

    def _effects(self, amount: Amount) -> ShapeEffects:
        return ShapeEffects(self._cluster.shapes, share_of(*amount))


def share_of(what: str, resource: str) -> Callable[[Shape], int]:
    if resource == PLACES:
        return lambda shape: 1
    if what == "nonzero" and resource in (CPU, MEMORY):
        return lambda shape: shape.nonzero[resource == MEMORY]
    if resource == GPU:
        return most_gpus_of
    return lambda shape: shape.request(resource)


def most_gpus_of(shape: Shape) -> int:
    """Whole GPUs that are free once a pod is gone: those that it asks for, and at most one for each of which it has a
    share. Who else is on that only trying tells (`GpuSharing`)."""
    request = shape.card_request
    shared = request.asks.get(Sharing.COUNTED, ()) if request is not None else ()
    return shape.request(GPU) + sum(ask.count for ask in shared)


class SupposedRows(NodeRows):
    """Some rows as they would be without some pods: filters by usage answer for that without knowing it."""

    __slots__ = ("_given_back", "gone")

    def __init__(
        self, rows: NodeRows, given_back: Callable[[Amount], NDArray[np.int64]], gone: Gone | None = None
    ) -> None:
        """`given_back` says how much of an amount each row gets back, `gone` what filters that count pods ask for."""
        super().__init__(rows._table, rows.index)
        self.gone = gone
        # What was gathered of the rows as they are serves every supposition about them.
        self._stacks, self._known = rows._stacks, rows._known
        self._given_back = given_back

    def requested(self, resource: str) -> NDArray[np.int64]:
        return super().requested(resource) - self._given_back(("requested", resource))

    def nonzero_requested(self, resource: str) -> NDArray[np.int64]:
        return super().nonzero_requested(resource) - self._given_back(("nonzero", resource))

    def stacked(self, what: str, resources: tuple[str, ...]) -> NDArray[Any]:
        found = super().stacked(what, resources)
        if what == "allocatable":
            return found
        taken = "requested" if what in ("requested", "free") else "nonzero"
        back = np.stack([self._given_back((taken, resource)) for resource in resources])
        return found - back if what == taken else found + back


class Candidates:
    """Rows with their possible victims, and which of these are gone for now: all of them at first."""

    def __init__(
        self,
        running: RunningPods,
        shares: ShapeAmounts,
        rows: Rows,
        index: Matrix,
        gone: Mask,
        violating: Mask | None = None,
        cost: Cost | None = None,
    ) -> None:
        """`index` says where each victim is in the matrices of `running`, flattened; padding is never gone."""
        self._running = running
        self._shares = shares
        self.rows = rows
        self.index = index
        self.gone = gone
        self.violating = np.zeros(gone.shape, np.bool_) if violating is None else violating
        """Whose eviction would break a disruption budget."""
        self.cost = cost
        self._each: Derived[Share, Matrix] = Derived()
        self._back: Derived[Share, NDArray[np.int64]] = Derived()

    def __len__(self) -> int:
        return len(self.rows)

    # Who they are: gathered when asked for.

    @cached_property
    def slots(self) -> Matrix:
        return self._running.slots.ravel().take(self.index)

    @cached_property
    def priorities(self) -> Matrix:
        return self._running.priorities.ravel().take(self.index)

    @cached_property
    def starts(self) -> Matrix:
        return self._running.starts.ravel().take(self.index)

    @cached_property
    def shapes(self) -> Matrix:
        return self._running.shapes.ravel().take(self.index)

    @cached_property
    def budget_sets(self) -> Matrix:
        return self._running.budget_sets.ravel().take(self.index)

    @cached_property
    def lost(self) -> Matrix:
        """The workload that each would lose, in microseconds."""
        assert self.cost is not None
        return self.cost.lost(self.index)

    @property
    def ties(self) -> NDArray[np.int64]:
        ties: NDArray[np.int64] = self._running.cluster.nodes.tie.values[self.rows]
        return ties

    # Other crowds.

    def at(self, positions: NDArray[np.intp]) -> "Candidates":
        """Some of these rows, as a crowd of their own, narrowed to its longest list of victims."""
        if len(positions) == len(self):
            return self
        gone = self.gone[:, positions]
        used = int(np.flatnonzero(gone.any(axis=1))[-1]) + 1 if gone.any() else 0
        violating, index = self.violating[:used, positions], self.index[:used, positions]
        return Candidates(self._running, self._shares, self.rows[positions], index, gone[:used], violating, self.cost)

    def ordered(self, order: Matrix, positions: NDArray[np.intp] | None = None) -> "Candidates":
        """A copy with each row's victims in another order; only some rows', if their positions are given."""

        def moved(matrix: NDArray[Any]) -> NDArray[Any]:
            if positions is None:
                return np.take_along_axis(matrix, order, axis=0)
            copy = matrix.copy()
            copy[:, positions] = np.take_along_axis(matrix[:, positions], order, axis=0)
            return copy

        index, gone, violating = moved(self.index), moved(self.gone), moved(self.violating)
        return Candidates(self._running, self._shares, self.rows, index, gone, violating, self.cost)

    def with_gone(self, gone: Mask) -> "Candidates":
        """The same rows and victims with others of them gone."""
        other = Candidates(self._running, self._shares, self.rows, self.index, gone, self.violating, self.cost)
        # What was gathered about the victims and the rows serves both.
        other._each = self._each
        gathered = ("slots", "priorities", "starts", "shapes", "budget_sets", "lost", "nodes")
        other.__dict__.update({name: self.__dict__[name] for name in gathered if name in self.__dict__})
        return other

    # What the rows would be like.

    @cached_property
    def nodes(self) -> NodeRows:
        """The rows as they are."""
        return self._running.cluster.rows(self.rows)

    def share_of_each(self, share: Share) -> Matrix:
        """What each victim has."""
        found = self._each.get(share)
        return found if found is not None else self._each.put(share, self._shares.of(share, self.shapes))

    def given_back(self, share: Share) -> NDArray[np.int64]:
        """How much the rows get back from those that are gone."""
        found = self._back.get(share)
        if found is None:
            found = self._back.put(share, (self.share_of_each(share) * self.gone).sum(axis=0))
        return found

    def supposed(self) -> SupposedRows:
        """The rows without those that are gone."""
        return SupposedRows(self.nodes, self.given_back, self.given_back)

    def with_back(self, victim: int) -> SupposedRows:
        """The rows if the victim of this number, who is gone, were back; rows that have none so late are no use."""

        def given_back(share: Share) -> NDArray[np.int64]:
            others: NDArray[np.int64] = self.given_back(share) - self.share_of_each(share)[victim]
            return others

        return SupposedRows(self.nodes, given_back, given_back)

    def bring_back(self, victim: int, where: Mask) -> None:
        """Let the victim of this number stay on some rows."""
        where = where & self.gone[victim]
        self.gone[victim] &= ~where
        for share, back in self._back.items():
            back -= self.share_of_each(share)[victim] * where


Spared: TypeAlias = Callable[[Matrix], Mask]
"""Tells of pods, by their index in the matrices of `running`, whether they are no victims."""


def gather_crowd(
    running: RunningPods,
    shares: ShapeAmounts,
    rows: Rows,
    priority: int,
    spared: Spared | None = None,
    cost: Cost | None = None,
) -> Candidates:
    """The pods on some rows with less than this priority, the most important first; rows without any are left out."""
    below = running.count_below(rows, priority)
    rows, below = rows[below > 0], below[below > 0]
    numbers = np.arange(int(below.max()) if len(rows) else 0)[:, np.newaxis]
    gone = numbers < below
    # Each row is sorted by priority: those below come last.
    first = rows * running.priorities.shape[1] + running.counts[rows] - below
    index = np.where(gone, first + numbers, 0)
    if spared is not None:
        gone &= ~spared(index)
    has_least_lost = cost is not None and cost.has_least_lost
    candidates = Candidates(running, shares, rows, index, gone, cost=cost)
    if has_least_lost:
        # Of equal priority, who would lose the most is the most important.
        candidates = candidates.ordered(np.lexsort((-candidates.lost, -candidates.priorities, ~gone), axis=0))
    elif spared is not None:
        candidates = candidates.ordered(np.argsort(~gone, axis=0, kind="stable"))  # padding stays behind
    return candidates if spared is None else candidates.at(np.flatnonzero(candidates.gone.any(axis=0)))
