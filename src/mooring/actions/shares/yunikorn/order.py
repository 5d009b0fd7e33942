"""YuniKorn's order of queues: at every level the most important, of those the one that holds least of its guarantee, or
of the most it may have.

How important a queue is follows from what waits in it. With `application.sort.priority: disabled` of the queue above,
it counts only where two hold the same.
"""

from collections.abc import Mapping, Sequence

from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.order import JobHeap
from mooring.actions.shares.resources import UNLIMITED
from mooring.actions.shares.tournament import Key, Tournament
from mooring.actions.shares.tree import ROOT_ROW
from mooring.actions.shares.yunikorn.fair_order import queue_share
from mooring.actions.shares.yunikorn.priorities import seen_from_outside


class YuniKornOrder:
    """The order of the leaf queues that take part."""

    def __init__(self, ledger: Ledger, heaps: Mapping[int, JobHeap]) -> None:
        self._ledger = ledger
        self._heaps = heaps
        tree = self._tree = ledger.tree
        names = tree.resources.names
        self._fair_max = [
            {name: float(most) for name, most in zip(names, row, strict=False) if most < UNLIMITED}
            for row in tree.capability.tolist()
        ]
        self._tournament = Tournament(tree.parent, self._key)
        self.rebuild, self.update, self.best = (
            self._tournament.rebuild,
            self._tournament.update,
            self._tournament.best,
        )

    def _key(self, row: int, best: Key | None) -> Key:
        if row == ROOT_ROW:
            return ()
        spec, share = self._tree.specs[row], self._share(row)
        priority = seen_from_outside(spec.applications, self._priority_inside(row, best))
        above = self._tree.specs[self._tree.parent[row]].applications
        standing = (-priority, share) if above.sorts_by_priority else (share, -priority)
        return (*standing, spec.created, spec.name, priority)

    def _priority_inside(self, row: int, best: Key | None) -> int:
        """The highest priority of what waits in a queue; the best of those below has it if they are ordered by that."""
        if best is None:
            return self._heaps[row].priority or 0
        if self._tree.specs[row].applications.sorts_by_priority:
            return int(best[-1])
        keys = (self._tournament.key(child) for child in self._tree.children[row])
        return max(int(key[-1]) for key in keys if key is not None)

    def _share(self, row: int) -> float:
        width, names = self._ledger.width, self._tree.resources.names
        held = self._ledger.allocated_flat[row * width : (row + 1) * width]
        amounts = {name: float(amount) for name, amount in zip(names, held, strict=False)}
        guaranteed = {name: float(amount) for name, amount in self._tree.specs[row].deserved.items()}
        return queue_share(amounts, guaranteed, self._fair_max[row])

    def victim_key(self, leaf: int, way: Sequence[int]) -> Key:
        """Who gives back first is smallest: those that hold most of their guarantee."""
        spec = self._tree.specs[leaf]
        return (tuple(-self._share(row) for row in reversed(way)), -spec.created, spec.name)
