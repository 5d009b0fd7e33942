"""Who may reclaim from whom. Both rules are asked in the middle of a what-if: earlier victims are gone already.

By deserved shares: the reclaimer stays within what it deserves of everything that it is short of and deserves at all,
and a victim's queue, with every queue above it up to where the two ways meet, holds more than it deserves of such a
resource. Whoever is at or below its share gives nothing. Since every step takes from somebody above their share for
somebody below theirs, two queues never take from each other in turns.

By hierarchical dominant shares: after the move, the reclaimer's queue still stands before the victim's, and where their
ways part its side still holds less, by weight. Standing before alone would not do: whoever can use more stands before
whoever cannot, even with more in hand, and the two would take the same thing from each other for ever.
"""

from collections.abc import Collection
from typing import Protocol

from mooring.actions.shares.checks import TOLERANCE, Checks, Refusal
from mooring.actions.shares.hdrf import HierarchicalShares
from mooring.actions.shares.jobs import Job, Members
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.queue_shares import QueueShares
from mooring.actions.shares.resources import Amount


class ReclaimRule(Protocol):
    """One way to settle who may take from whom."""

    def begin(self, job: Job, amount: Amount, short: Collection[int]) -> Refusal | None:
        """Look at the reclaimer: it wants so much, and is short of these columns, or just of nodes if of none."""

    def may_take(self, victim: Job, amount: Amount) -> bool:
        """Whether the victim may lose so much now."""

    def is_right(self, victim: Job) -> bool:
        """Whether what was taken from this victim is still the reclaimer's by right, after all that was taken."""

    def took(self, victim: Job, left: Members) -> None:
        """The victim has so many members left in the what-if."""

    def end(self) -> None:
        """The what-if is over."""


class DeservedRule:
    """By what queues hold of what they deserve."""

    def __init__(self, ledger: Ledger, shares: QueueShares, checks: Checks) -> None:
        self._ledger = ledger
        self._shares = shares
        self._checks = checks
        self._leaf = 0
        self._amount: Amount = {}
        self._entitled: list[int] = []

    def begin(self, job: Job, amount: Amount, short: Collection[int]) -> Refusal | None:
        self._leaf, self._amount, self._entitled = job.leaf, amount, []
        beyond = None
        for column in short or amount:
            if self._is_within(job.leaf, column):
                self._entitled.append(column)
                continue
            beyond = self._checks.beyond_deserved(job.leaf, column, amount[column])
            # What its share names it may not exceed; what it does not name may come along with what it does.
            if short and self._shares.deserves(job.leaf, column):
                return beyond
        return None if self._entitled else beyond

    def _is_within(self, row: int, column: int) -> bool:
        at = row * self._ledger.width + column
        return self._ledger.allocated_flat[at] + self._amount[column] <= self._shares.deserved_flat[at]

    def may_take(self, victim: Job, amount: Amount) -> bool:
        width, held, deserved = self._ledger.width, self._ledger.allocated_flat, self._shares.deserved_flat
        mine, theirs = self._ledger.tree.ways_apart(self._leaf, victim.leaf)
        return any(
            column in amount
            and all(self._is_within(row, column) for row in mine)
            and all(held[row * width + column] > deserved[row * width + column] + TOLERANCE for row in theirs)
            for column in self._entitled
        )

    def is_right(self, victim: Job) -> bool:
        mine, _ = self._ledger.tree.ways_apart(self._leaf, victim.leaf)
        return any(all(self._is_within(row, column) for row in mine) for column in self._entitled)

    def took(self, victim: Job, left: Members) -> None:
        """Everything that this rule reads is in the ledger."""

    def end(self) -> None:
        """Nothing is kept."""


class HierarchicalRule:
    """By hierarchical dominant shares, which are moved along with the what-if."""

    def __init__(self, shares: HierarchicalShares) -> None:
        self._shares = shares
        self._leaf = 0
        self._touched: dict[str, Job] = {}
        self._left: dict[str, Members] = {}

    def begin(self, job: Job, amount: Amount, short: Collection[int]) -> Refusal | None:
        self._leaf = job.leaf
        self._touched[job.key] = job
        held = dict(job.held_amount)
        for column, value in amount.items():
            held[column] = held.get(column, 0) + value
        self._shares.put_job(job.key, job.leaf, held, job.asked)
        return None

    def may_take(self, victim: Job, amount: Amount) -> bool:
        before = victim.amount(self._left.get(victim.key, tuple(victim.held)))
        after = {column: value - amount.get(column, 0) for column, value in before.items()}
        self._shares.put_job(victim.key, victim.leaf, after, victim.asked)
        may = self._shares.comes_first(self._leaf, victim.leaf) and self.is_right(victim)
        self._shares.put_job(victim.key, victim.leaf, before, victim.asked)
        return may

    def is_right(self, victim: Job) -> bool:
        return self._shares.holds_less(self._leaf, victim.leaf)

    def took(self, victim: Job, left: Members) -> None:
        self._touched[victim.key] = victim
        self._left[victim.key] = left
        self._shares.put_job(victim.key, victim.leaf, victim.amount(left), victim.asked)

    def end(self) -> None:
        # Victims before the reclaimer, which came first: so a resource that is used up stays so all the time.
        for job in reversed(self._touched.values()):
            self._shares.put_job(job.key, job.leaf, job.held_amount, job.asked)
        self._touched.clear()
        self._left.clear()
