"""KAI's order of queues: at every level of the tree, with the next job of each side counted in.

1. Who holds less than its fair share of something, before those who hold more of everything.
2. Who stays within its quota.
3. The higher priority.
4. Who is entitled to all that it would hold.
5. The smaller part of what it may have, with the next job, then without.
6. Who may have less; then the oldest, then by name.
"""

from collections.abc import Callable, Sequence

from mooring.actions.shares.kai.queues import SHARED
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.queue_shares import QueueShares
from mooring.actions.shares.resources import Amount
from mooring.actions.shares.tournament import Key, Tournament

NOT_ENTITLED = 1000.0
"""How many times the cluster counts what is held of something to which nobody is entitled."""


class KaiOrder:
    """The order of the leaf queues that take part."""

    def __init__(self, ledger: Ledger, shares: QueueShares, next_amount: Callable[[int], Amount]) -> None:
        """`next_amount` tells what the next job of a leaf asks for."""
        self._ledger, self._shares, self._next_amount = ledger, shares, next_amount
        tree = self._tree = ledger.tree
        self._columns = [tree.resources.column_of[name] for name in SHARED if name in tree.resources.column_of]
        self._quota = tree.own_deserved.tolist()
        self._tournament = Tournament(tree.parent, self._key)
        self.rebuild, self.update, self.best = (
            self._tournament.rebuild,
            self._tournament.update,
            self._tournament.best,
        )

    def _key(self, row: int, best: Key | None) -> Key:
        leaf = row if best is None else best[-1]
        more, width, spec = self._next_amount(leaf), self._ledger.width, self._tree.specs[row]
        fair, quota = self._shares.deserved[row].tolist(), self._quota[row]
        is_over, is_within, is_entitled, share, share_before, may_have = True, True, True, 0.0, 0.0, []
        for column in self._columns:
            held = self._ledger.allocated_flat[row * width + column]
            after = held + more.get(column, 0)
            limit = min(self._tree.capability_flat[row * width + column], max(quota[column], fair[column]))
            is_over &= held > fair[column]
            is_within &= after <= quota[column]
            is_entitled &= limit > 0 or after == 0
            total = float(self._tree.total[column]) or 1.0
            share = max(share, after / limit if limit > 0 else NOT_ENTITLED * after / total)
            share_before = max(share_before, held / limit if limit > 0 else NOT_ENTITLED * held / total)
            may_have.append(limit)
        standing = (is_over, not is_within, -spec.priority, not is_entitled, share, share_before, tuple(may_have))
        return (*standing, spec.created, spec.name, leaf)

    def victim_key(self, leaf: int, way: Sequence[int]) -> Key:
        """Who gives back first is smallest: the reverse of the order, without a next job."""
        spec = self._tree.specs[leaf]
        return (spec.priority, tuple(-self._share(row) for row in reversed(way)), -spec.created, spec.name)

    def _share(self, row: int) -> float:
        fair, width = self._shares.deserved[row].tolist(), self._ledger.width
        held = [(self._ledger.allocated_flat[row * width + column], fair[column]) for column in self._columns]
        return max((amount / part if part > 0 else float(amount) for amount, part in held), default=0.0)
