"""Rows with the units that have pods on them, line by line in the order in which they may stay after all.

As `crowd.py`, but a line may stand for several pods of a gang, and for those of its pods that run elsewhere.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.gangs.pool import NOBODY as NO_UNIT
from mooring.actions.preempt.gangs.pool import Numbers, Pool
from mooring.actions.preempt.pods.candidates import Amount, ShapeAmounts, SupposedRows
from mooring.actions.preempt.pods.choice import LOWEST_PRIORITY, NOBODY
from mooring.actions.preempt.pods.reprieve import AskedFilter, passes_all
from mooring.engine.plugin import Mask
from mooring.state.remembered import Derived
from mooring.state.rows import NodeRows, Rows
from mooring.state.running import NOT_STARTED, Matrix
from mooring.state.shapes import Shape


class Pairs(NamedTuple):
    """A unit and a row on which it has pods: parallel columns."""

    units: Numbers
    positions: Numbers
    of_pod: Numbers
    """Of each pod of the pool: its pair, or -1 if its row is not among them."""


def pair_up(pool: Pool, rows: Rows) -> Pairs:
    position_of = np.full(pool.running.cluster.nodes.capacity, -1, np.int64)
    position_of[rows] = np.arange(len(rows))
    positions = position_of[pool.rows]
    here = np.flatnonzero(positions >= 0)
    keys, inverse = np.unique(pool.unit[here] * len(rows) + positions[here], return_inverse=True)
    of_pod = np.full(len(pool.rows), -1, np.int64)
    of_pod[here] = inverse
    return Pairs(keys // max(1, len(rows)), keys % max(1, len(rows)), of_pod)


class UnitCandidates:
    """(lines, rows) of units, all of them gone at first."""

    def __init__(self, pool: Pool, shares: ShapeAmounts, rows: Rows) -> None:
        self.pool = pool
        self.rows = rows
        self._shares = shares
        self._pairs = pairs = pair_up(pool, rows)
        self._each: Derived[Amount, Matrix] = Derived()
        rank = pool.importance()
        over = pool.over_budget(pairs.units, pairs.positions, rank)
        # Whom a budget protects may stay first; a gang's surplus never before its core, which may be on the same row.
        turn = np.where(over > 0, 0, 1)
        core = self._pair_of_core()
        for _ in range(2):
            turn = np.where(core >= 0, np.maximum(turn, turn[core]), turn)
        order = np.lexsort((rank[pairs.units], turn, pairs.positions))
        counts = np.bincount(pairs.positions, minlength=len(rows))
        line = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.pair = np.full((int(counts.max(initial=0)), len(rows)), -1, np.int64)
        """Which pair stands where; -1 for padding."""
        self.pair[line, pairs.positions[order]] = order
        self.gone: Mask = self.pair >= 0
        line_of = np.zeros(len(order), np.int64)
        line_of[order] = line
        self._core_line = np.where(self.gone & (core[self.pair] >= 0), line_of[core[self.pair]], -1)
        self.over: Matrix = np.where(self.gone, over[self.pair], 0)

    def _pair_of_core(self) -> Numbers:
        """Of each pair: that of the core that it belongs to, on the same row; -1 for none."""
        units, positions = self._pairs.units, self._pairs.positions
        keys = units * len(self.rows) + positions  # ascending, as pairs are
        core = self.pool.core[units]
        wanted = core * len(self.rows) + positions
        at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
        return np.where((core != NO_UNIT) & (keys[at] == wanted), at, -1) if len(keys) else at

    @cached_property
    def units(self) -> Matrix:
        """The number of each line's unit; NO_UNIT for padding."""
        return np.where(self.pair >= 0, self._pairs.units[self.pair], NO_UNIT)

    @cached_property
    def nodes(self) -> NodeRows:
        return self.pool.running.cluster.rows(self.rows)

    def _share(self, amount: Amount) -> Matrix:
        """What each line's pods on its row take."""
        found = self._each.get(amount)
        if found is None:
            shares = np.zeros(len(self._pairs.units), np.int64)
            here = self._pairs.of_pod >= 0
            np.add.at(shares, self._pairs.of_pod[here], self._shares.of(amount, self.pool.shapes[here]))
            found = self._each.put(amount, np.where(self.pair >= 0, shares[self.pair], 0))
        return found

    def supposed(self, without: int | None = None) -> SupposedRows:
        """The rows without those that are gone; with the line of this number back."""

        def given_back(amount: Amount) -> NDArray[np.int64]:
            share = self._share(amount)
            back: NDArray[np.int64] = (share * self.gone).sum(axis=0)
            return back if without is None else back - share[without] * self.gone[without]

        return SupposedRows(self.nodes, given_back)

    def reprieve(self, filters: list[AskedFilter], shape: Shape) -> None:
        """Bring back every unit, in order, with which the pod still fits and whose core stays."""
        columns = np.arange(len(self.rows))
        for line in range(len(self.gone)):
            may_stay = passes_all(filters, shape, self.supposed(without=line))
            core = self._core_line[line]
            may_stay &= (core < 0) | ~self.gone[core, columns]
            self.gone[line] &= ~may_stay

    def costs(self) -> list[Numbers]:
        """One value a row for each criterion, in order: see `choice.py`."""
        pool, gone = self.pool, self.gone
        core_gone = (self._core_line >= 0) & np.take_along_axis(gone, np.maximum(self._core_line, 0), axis=0)
        counted = gone & ~core_gone  # a gang's surplus goes with it, and is counted there
        priorities = np.where(gone, pool.priorities[self.units], NOBODY)
        highest = priorities.max(axis=0)
        sizes = np.where(counted, pool.sizes[self.units], 0)
        is_highest = gone & (priorities == highest)
        return [
            np.where(gone, self.over, 0).sum(axis=0),
            highest,
            np.where(counted, pool.lost[self.units], 0).sum(axis=0),
            (sizes * (np.where(counted, priorities, 0) + LOWEST_PRIORITY)).sum(axis=0),
            sizes.sum(axis=0),
            ~np.where(is_highest, pool.starts[self.units], NOT_STARTED).min(axis=0, initial=NOT_STARTED),
            ~self.pool.running.cluster.nodes.tie.values[self.rows],
        ]

    def needs(self, position: int) -> list[int]:
        """Of each line of a row: the line that has to stay for it to stay; negative for none."""
        needed: list[int] = self._core_line[self.pair[:, position] >= 0, position].tolist()
        return needed


def without_all(pool: Pool, shares: ShapeAmounts, rows: Rows) -> SupposedRows:
    """Some rows as they would be without anybody of the pool."""

    def given_back(amount: Amount) -> NDArray[np.int64]:
        back = np.zeros(pool.running.cluster.nodes.capacity, np.int64)
        np.add.at(back, pool.rows, shares.of(amount, pool.shapes))
        return back[rows]

    return SupposedRows(pool.running.cluster.rows(rows), given_back)
