"""Whose turn it is by fair shares, worked out from nothing before every turn: slow, and what `FairOrder` must equal."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.quota.fair_sharing import Shares
from mooring.actions.admit.quota.ledger import Ledger


class PlainTournament:
    def __init__(self, ledger: Ledger, shares: Shares) -> None:
        self._ledger = ledger
        self._shares = shares

    def __call__(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        by_root: dict[int, list[Entry]] = {}
        for entry in entries:
            by_root.setdefault(entry.queue.root, []).append(entry)
        for root, left in by_root.items():
            while left:
                winner = self._champion(root, left) if len(left) > 1 else left[0]
                left.remove(winner)
                yield winner

    def _champion(self, cohort: int, left: list[Entry]) -> Entry:
        """The best of a cohort: of its queues' entries, and of the best of each cohort in it."""
        tree = self._ledger.tree
        rivals = [entry for entry in left if tree.paths[entry.queue.node][1] == cohort]
        for child in tree.child_cohorts[cohort]:
            below = [entry for entry in left if child in tree.paths[entry.queue.node]]
            if below:
                rivals.append(self._champion(child, below))
        return min(rivals, key=lambda entry: self._standing(entry, cohort))

    def _standing(self, entry: Entry, cohort: int) -> tuple[Any, ...]:
        ledger, tree, usage = self._ledger, self._ledger.tree, entry.assignment.usage
        child = next(below for below, above in pairwise(tree.paths[entry.queue.node]) if above == cohort)
        with ledger.what_if():
            ledger.add_usage(entry.queue.node, usage)
            is_borrowing = any(tree.exceeds(child, column) for column, amount in usage.items() if amount > 0)
            share = self._shares.share(child)
        return is_borrowing, share, entry.pending.queue_order
