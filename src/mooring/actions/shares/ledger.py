"""Who holds how much: the only thing about shares that changes with every decision.

Columns of one row a queue:

    allocated  what the jobs below hold
    claimed    what cannot go to anybody else: max(guarantee, allocated) of a leaf, max(guarantee, sum of the
               children's claims) above it
    demand     what the jobs below ask for in all, held or not
    minimums   what the jobs below need to be whole, of those that may start; so what exceeds a minimum counts for
               nobody who wants to be let in

A queue may grow as long as claims stay within the capability at every level. That keeps everybody's guarantee free,
whoever else is busy. A change runs along one path, leaf to root.
"""

from collections.abc import Mapping

import numpy as np

from mooring.actions.shares.resources import Amount, Columns, flat
from mooring.actions.shares.tree import ROOT_ROW, QueueTree
from mooring.state.undo import Trial, UndoLog


class Ledger:
    """Amounts by queue; what is added and removed is noted in the one log, so that a what-if can be undone."""

    def __init__(self, tree: QueueTree, log: UndoLog) -> None:
        self.tree = tree
        self.width = tree.resources.width
        shape = (len(tree), self.width)
        self.allocated: Columns = np.zeros(shape, dtype=np.int64)
        self.demand: Columns = np.zeros(shape, dtype=np.int64)
        self.firm: Columns = np.zeros(shape, dtype=np.int64)
        """What is held by jobs from which nothing can be taken."""
        self.minimums: Columns = np.zeros(shape, dtype=np.int64)
        self._below: Columns = np.zeros(shape, dtype=np.int64)
        """What is claimed without the queue's own guarantee."""
        for row in reversed(range(1, len(tree))):
            self._below[tree.parent[row]] += np.maximum(tree.guarantee[row], self._below[row])
        self.allocated_flat, self.below_flat = flat(self.allocated), flat(self._below)
        self.firm_flat = flat(self.firm)
        self.minimums_flat, self._demand_flat = flat(self.minimums), flat(self.demand)
        self.log = log

    @property
    def claimed(self) -> Columns:
        return np.maximum(self.tree.guarantee, self._below)

    def free(self) -> Columns:
        """What the cluster has left, shape (resources,)."""
        left: Columns = self.tree.total - self.allocated[ROOT_ROW]
        return left

    # What is held

    def add(self, leaf: int, amount: Amount) -> None:
        self.log.note(self._move, leaf, amount, -1)
        self._move(leaf, amount, 1)

    def remove(self, leaf: int, amount: Amount) -> None:
        self.add(leaf, {column: -value for column, value in amount.items()})

    def _move(self, leaf: int, amount: Amount, sign: int) -> None:
        allocated, below, guarantee = self.allocated_flat, self.below_flat, self.tree.guarantee_flat
        path, width = self.tree.paths[leaf], self.width
        for column, value in amount.items():
            value *= sign
            change = value
            for row in path:
                at = row * width + column
                allocated[at] += value
                if change:
                    before = below[at]
                    after = below[at] = before + change
                    kept = guarantee[at]
                    change = (after if after > kept else kept) - (before if before > kept else kept)

    def claim(self, row: int, column: int) -> int:
        at = row * self.width + column
        return max(self.below_flat[at], self.tree.guarantee_flat[at])

    def what_if(self) -> Trial:
        """Try something out: what is added and removed inside is undone unless it is kept."""
        return Trial(self.log)

    # What is asked for

    def add_demand(self, leaf: int, amount: Amount, sign: int = 1) -> None:
        _add_along(self._demand_flat, self.tree.paths[leaf], self.width, amount, sign)

    def add_firm(self, leaf: int, amount: Amount, sign: int = 1) -> None:
        _add_along(self.firm_flat, self.tree.paths[leaf], self.width, amount, sign)

    def add_minimum(self, leaf: int, amount: Amount, sign: int = 1) -> None:
        _add_along(self.minimums_flat, self.tree.paths[leaf], self.width, amount, sign)


def _add_along(
    columns: "memoryview[int]", path: tuple[int, ...], width: int, amount: Mapping[int, int], sign: int
) -> None:
    for column, value in amount.items():
        for row in path:
            columns[row * width + column] += sign * value
