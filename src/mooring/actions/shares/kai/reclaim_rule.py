"""Who may reclaim from whom by KAI's rules, asked in the middle of a what-if: earlier victims are gone already.

The reclaimer stays within its fair share of all that is shared. Where the ways of the two queues part, the victim's
side holds more than it may have (its limit, and of quota and fair share the larger), or more than its quota while the
reclaimer's side stays within its own. In the end, no queue above the reclaimer that exceeds its fair share is as
saturated (allocated / fair share) as one beside it that gave something back.
"""

import math
from collections.abc import Collection

from mooring.actions.shares.checks import TOLERANCE, Checks, Refusal
from mooring.actions.shares.jobs import Job, Members
from mooring.actions.shares.kai.queues import SHARED
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.queue_shares import QueueShares
from mooring.actions.shares.resources import UNLIMITED, Amount


class KaiRule:
    """By what queues hold of their fair shares and quotas."""

    def __init__(self, ledger: Ledger, shares: QueueShares, checks: Checks) -> None:
        self._ledger, self._shares, self._checks = ledger, shares, checks
        tree = self._tree = ledger.tree
        self._columns = [tree.resources.column_of[name] for name in SHARED if name in tree.resources.column_of]
        self._leaf = 0
        self._amount: Amount = {}

    def begin(self, job: Job, amount: Amount, short: Collection[int]) -> Refusal | None:
        self._leaf, self._amount = job.leaf, amount
        for column in self._columns:
            if column in amount and self._after(job.leaf, column) > self._fair(job.leaf, column) + TOLERANCE:
                return self._checks.beyond_deserved(job.leaf, column, amount[column])
        return None

    def may_take(self, victim: Job, amount: Amount) -> bool:
        mine, theirs = self._tree.ways_apart(self._leaf, victim.leaf)
        row = theirs[-1]
        if any(self._held(row, column) > self._allocatable(row, column) + TOLERANCE for column in self._columns):
            return True
        is_within = all(self._after(mine[-1], column) <= self._quota(mine[-1], column) for column in self._columns)
        return is_within and any(self._held(row, column) > self._quota(row, column) for column in self._columns)

    def is_right(self, victim: Job) -> bool:
        mine, theirs = self._tree.ways_apart(self._leaf, victim.leaf)
        for column in self._columns:
            ratio = self._saturation(mine[-1], column, self._after(mine[-1], column))
            beside = self._saturation(theirs[-1], column, self._held(theirs[-1], column))
            if ratio > 1 and self._fair(theirs[-1], column) > 0 and ratio >= beside:
                return False
        return True

    def took(self, victim: Job, left: Members) -> None:
        """Everything that this rule reads is in the ledger."""

    def end(self) -> None:
        """Nothing is kept."""

    def _held(self, row: int, column: int) -> int:
        return self._ledger.allocated_flat[row * self._ledger.width + column]

    def _after(self, row: int, column: int) -> int:
        """What a queue on the reclaimer's way would hold."""
        return self._held(row, column) + self._amount.get(column, 0)

    def _fair(self, row: int, column: int) -> float:
        return self._shares.deserves(row, column)

    def _quota(self, row: int, column: int) -> int:
        return int(self._tree.own_deserved[row, column])

    def _allocatable(self, row: int, column: int) -> float:
        limit = self._tree.capability_flat[row * self._ledger.width + column]
        return min(limit, max(self._quota(row, column), self._fair(row, column)))

    def _saturation(self, row: int, column: int, held: int) -> float:
        fair = self._fair(row, column)
        if fair >= UNLIMITED:
            return 0.0
        return held / fair if fair else (math.inf if held else 0.0)
