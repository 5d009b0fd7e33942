"""May a queue have more? Every no comes with the queue, the resource and the amounts behind it, in words."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mooring.actions.shares.jobs import Job
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.queue_shares import QueueShares
from mooring.actions.shares.resources import NOTHING, Amount, volcano_units
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.tree import ROOT_ROW
from mooring.model.values.requests import PODS

TOLERANCE = 0.01
"""Deserved shares are fractions, and what is held is whole: by so little of a unit nobody is beyond a share."""


class Refusal(NamedTuple):
    """A no, as a value."""

    queue: str
    """The queue whose rule it is; the job's own, or one above it."""
    resource: str
    """Empty if it is not about one."""
    message: str
    again_at: float = math.inf
    """From when on it may be otherwise though nothing happens."""

    def __str__(self) -> str:
        return self.message


class Shortage(NamedTuple):
    """Where on the way from a leaf to the root there is too little, of what, and by how much."""

    row: int
    column: int
    missing: int


class Checks:
    """The questions that are asked before a queue gets more."""

    def __init__(self, ledger: Ledger, shares: QueueShares, settings: ShareSettings) -> None:
        self._tree = ledger.tree
        self._ledger = ledger
        self._shares = shares
        self._is_strict = settings.division.is_by_weight and settings.stays_within_deserved
        self._limits_all_let_in = settings.division.limits_let_in_by_cluster
        self._limits_firm = settings.division.limits_firm
        self._keeps_guarantees = settings.keeps_guarantees
        self._units: list[float] = volcano_units(ledger.tree.resources).tolist()
        self._pods = ledger.tree.resources.column_of.get(PODS)

    # Questions

    def overused(self, leaf: int) -> Refusal | None:
        """Where shares are strict: does the queue hold all that it deserves, of every resource?"""
        if not self._is_strict:
            return None
        width, held, deserved = self._ledger.width, self._ledger.allocated_flat, self._shares.deserved_flat
        for at in range(leaf * width, leaf * width + width):
            if deserved[at] - held[at] >= NOTHING / self._units[at - leaf * width]:
                return None
        name = self._tree.name(leaf)
        return Refusal(name, "", f"queue {name} holds all that it deserves")

    def closed(self, leaf: int) -> Refusal | None:
        name = self._tree.closed_by[leaf]
        return Refusal(name, "", f"queue {name} is not open") if name else None

    def allocatable(self, leaf: int, amount: Amount) -> Refusal | None:
        """May the queue hold so much more, by its own limits and by those of every queue above it?"""
        refusal = self.beyond_share(leaf, amount)
        if refusal is not None:
            return refusal
        shortages = self.shortages(leaf, amount)
        return self.describe(shortages, amount) if shortages else None

    def shortages(self, leaf: int, amount: Amount) -> list[Shortage]:
        """Everywhere that more would be held than can be, from the leaf upwards.

        By default that is the real capability of each queue alone. If guarantees are kept, no more is held or claimed
        than the capability, whoever holds it.
        """
        tree, width = self._tree, self._ledger.width
        if not self._keeps_guarantees:
            limits, held = tree.real_capability_flat, self._ledger.allocated_flat
            rows = ((row, column, value) for column, value in amount.items() for row in self._limiting(leaf, column))
            return [
                Shortage(row, column, missing)
                for row, column, value in rows
                if (missing := held[row * width + column] + value - limits[row * width + column]) > 0
            ]
        allocated, below = self._ledger.allocated_flat, self._ledger.below_flat
        capability, guarantee = tree.capability_flat, tree.guarantee_flat
        found = []
        for column, value in amount.items():
            change = value
            for row in self._limiting(leaf, column):
                at = row * width + column
                most = allocated[at] + value
                if change:
                    # Within its guarantee a queue claims nothing new, and may grow even where too much is claimed.
                    kept, before = guarantee[at], below[at]
                    after = before + change
                    claim = after if after > kept else kept
                    change = claim - (before if before > kept else kept)
                    if change and claim > most:
                        most = claim
                if most > capability[at]:
                    found.append(Shortage(row, column, most - capability[at]))
        return found

    def _limiting(self, leaf: int, column: int) -> Sequence[int]:
        """The queues, from a leaf upwards, that limit what it has of a resource: of places for pods only the root."""
        path = self._tree.paths[leaf]
        return path if column != self._pods else path[-1:]

    def enqueueable(self, leaf: int, minimum: Amount) -> Refusal | None:
        """May a job be let in that needs so much to be whole, beside what all others that are in need?

        Volcano's proportion limits each queue alone: one that others have left no room for lets its jobs in, and
        reclaims.
        """
        refusal = self.closed(leaf)
        if refusal is not None:
            return refusal
        width, limits = self._ledger.width, self._tree.real_capability_flat
        path = self._tree.paths[leaf]
        for row in path if self._limits_all_let_in else path[:-1]:
            for column, value in minimum.items():
                needed = self._ledger.minimums_flat[row * width + column]
                limit = limits[row * width + column]
                if needed + value > limit:
                    show, resource = self._show(column), self._tree.resources.names[column]
                    message = (
                        f"queue {self._tree.name(row)} can have {show(limit)} {resource}; jobs that were let in need"
                        f" {show(needed)}, and this one {show(value)}"
                    )
                    return Refusal(self._tree.name(row), resource, message)
        return None

    def overcommitted(self, job: Job, left: Mapping[int, int] | None) -> Refusal | None:
        """May a job be let in that needs so much, where only so much is left to promise? None: any amount is."""
        if left is None:
            return None
        for column, value in job.minimum_amount.items():
            rest = max(0, left.get(column, 0))
            if value > rest:
                show, resource = self._show(column), self._tree.resources.names[column]
                message = f"{show(rest)} {resource} is left for jobs to be let in for, and this one needs {show(value)}"
                return Refusal(job.demand.queue, resource, message)
        return None

    def beyond_share(self, leaf: int, amount: Amount) -> Refusal | None:
        """Where shares are strict: would the queue hold more than it deserves of something that is asked for?"""
        if not self._is_strict:
            return None
        width, held, deserved = self._ledger.width, self._ledger.allocated_flat, self._shares.deserved_flat
        for column, value in amount.items():
            at = leaf * width + column
            # Places for pods count in shares, but they limit no queue.
            if held[at] + value > deserved[at] and column != self._pods:
                return self.beyond_deserved(leaf, column, value)
        return None

    def firm(self, job: Job) -> Refusal | None:
        """With KAI's and Koordinator's: would jobs from which nothing can be taken hold more than the quota, or min, at
        some level?"""
        if not self._limits_firm or not job.demand.is_firm:
            return None
        width, tree = self._ledger.width, self._tree
        for row in tree.paths[job.leaf][:-1]:
            for column, value in job.amount(job.wanted).items():
                quota, resource = int(tree.own_deserved[row, column]), tree.resources.names[column]
                holds = self._ledger.firm_flat[row * width + column]
                if resource in tree.specs[row].deserved and holds + value > quota:
                    show, name = self._show(column), tree.name(row)
                    message = (
                        f"queue {name} has a quota of {show(quota)} {resource}, and its jobs that cannot be preempted"
                    )
                    return Refusal(name, resource, f"{message} hold {show(holds)}; {show(value)} more asked for")
        return None

    # Words

    def beyond_deserved(self, leaf: int, column: int, value: int) -> Refusal:
        at = leaf * self._ledger.width + column
        show, resource, name = self._show(column), self._tree.resources.names[column], self._tree.name(leaf)
        holds, deserves = self._ledger.allocated_flat[at], int(self._shares.deserved_flat[at] + TOLERANCE)
        message = f"queue {name} deserves {show(deserves)} {resource} and holds {show(holds)};"
        return Refusal(name, resource, f"{message} {show(value)} more asked for")

    def describe(self, shortages: Sequence[Shortage], amount: Amount) -> Refusal:
        """Say it of the first resource, and of the queue whose own limit it is: others only have it from above."""
        tree, column = self._tree, shortages[0].column
        value, rows = amount[column], [shortage.row for shortage in shortages if shortage.column == column]
        row = next((row for row in rows if tree.resources.names[column] in tree.specs[row].capability), rows[-1])
        at = row * self._ledger.width + column
        show, resource, name = self._show(column), tree.resources.names[column], tree.name(row)
        limits = tree.capability_flat if self._keeps_guarantees else tree.real_capability_flat
        limit, holds = limits[at], self._ledger.allocated_flat[at]
        has = "the cluster has" if row == ROOT_ROW and limit == tree.total[column] else f"queue {name} may hold"
        message = f"{has} {show(limit)} {resource}, {show(holds)} of it held; {show(value)} more asked for"
        kept = self._ledger.claim(row, column) - holds
        if holds + value <= limit and kept > 0:
            message += f", and {show(kept)} kept for guarantees"
        return Refusal(name, resource, message)

    def _show(self, column: int) -> Callable[[int], str]:
        return partial(self._tree.resources.show, column)
