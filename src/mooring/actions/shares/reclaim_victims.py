"""Reclaim: what a queue holds beyond its share goes back to one that starves within its own.

This is not preemption by priority: whose job is more important does not matter, only who holds more than they deserve.

Victims are taken one by one until the reclaimer's next members fit, all in a what-if:

1. Members that gangs can do without come first; whole gangs only if these are not enough.
2. Queues nearest to the reclaimer's in the tree come first, then those of lower priority, then those that hold most of
   what they deserve, as of that moment.
3. Within a queue jobs go in the reverse of their order: the lowest priority first. Of whole gangs with equal priority
   that one goes first of which most is of use.

A victim must be preemptible and must have run for its queue's minimum runtime (which with KAI's queues protects no
members that a gang can do without), no queue from it to where the ways meet
may be exempt from reclaiming or fall below its guarantee, and the rule (`reclaim_rules.py`) must agree. In the end,
whoever is not needed after all stays: without any one of the victims the others are not enough.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from mooring.actions.shares.cache import ShareCache
from mooring.actions.shares.checks import Refusal, Shortage
from mooring.actions.shares.jobs import Job, Members
from mooring.actions.shares.order import job_key
from mooring.actions.shares.reclaim_rules import HierarchicalRule, ReclaimRule
from mooring.actions.shares.resources import Amount
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.tournament import Key
from mooring.actions.shares.tree import ROOT_ROW


@dataclass(frozen=True, slots=True)
class Victim:
    """Members of a job that have to go."""

    job: str
    queue: str
    members: Members
    """How many, by role."""
    is_whole: bool
    """Whether the job as such goes, and not just what it can do without."""


@dataclass(frozen=True, slots=True)
class Reclamation:
    """Room for so many members of a job, once these victims are gone; in the order in which they were chosen."""

    job: str
    queue: str
    members: Members
    victims: tuple[Victim, ...]


TOO_SHORT = "what could be taken for it has not run for long enough yet"

Fits: TypeAlias = Callable[[Sequence[Victim]], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """What is taken at once: one member that the gang can do without, or all that is left of it."""

    job: Job
    members: Members
    amount: Amount
    is_whole: bool


class Reclaim:
    """One search for victims."""

    def __init__(self, cache: ShareCache, settings: ShareSettings) -> None:
        self._cache = cache
        self._settings = settings
        self._rule = self._make_rule()
        self._taken: list[Unit] = []
        self._left: dict[str, list[int]] = {}
        """Members that victims have left in the what-if."""
        self._ripe_at = math.inf
        """When the first of those will have run for long enough that have not yet."""

    def _make_rule(self) -> ReclaimRule:
        cache = self._cache
        if cache.hierarchical is not None:
            return HierarchicalRule(cache.hierarchical)
        return self._settings.division.make_rule(cache)

    def find(self, job: Job, now: float, fits: Fits | None) -> Reclamation | Refusal:
        cache = self._cache
        self._job, self._now, self._fits = job, now, fits
        self._amount = job.amount(job.wanted)
        refusal = self._refuse()
        if refusal is not None:
            return refusal
        try:
            with cache.ledger.what_if():
                if not self._is_enough():
                    short = sorted({shortage.column for shortage in self._shortages()})
                    refusal = self._rule.begin(job, self._amount, short) or self._too_soon()
                    if refusal is not None:
                        return refusal
                    if not self._take_until_enough():
                        return self._nobody_left()
                    self._spare()
                    if not all(self._rule.is_right(unit.job) for unit in self._taken):
                        return self._nobody_left()
                return Reclamation(job.key, cache.tree.name(job.leaf), job.wanted, self._victims())
        finally:
            for leaf in {cache.jobs[key].leaf for key in self._left}:
                cache.shares.update(leaf)
            self._rule.end()

    # The reclaimer

    def _refuse(self) -> Refusal | None:
        """Whatever others give back, the job cannot have it."""
        job, checks = self._job, self._cache.checks
        if not job.wants_more:
            return Refusal(job.demand.queue, "", f"job {job.key} has all its members")
        if job.is_whole and not self._settings.takes_for_spares:
            return Refusal(job.demand.queue, "", f"job {job.key} is whole without them")
        if job.demand.takes_from_nobody:
            return Refusal(job.demand.queue, "", "it takes from nobody: its preemptionPolicy is Never")
        refusal = checks.closed(job.leaf) or self._beyond_share() or checks.firm(job)
        refusal = refusal or self._cache.grouping.refuse(job)
        if refusal is not None:
            return refusal
        own = [shortage for shortage in self._shortages() if self._is_own(shortage.row)]
        return checks.describe(own, self._amount) if own else None

    def _beyond_share(self) -> Refusal | None:
        return self._cache.checks.beyond_share(self._job.leaf, self._amount)

    def _is_own(self, row: int) -> bool:
        """Whether a queue's limit is the reclaimer's own: nothing that others give back would help."""
        return row == self._job.leaf

    def _too_soon(self) -> Refusal | None:
        job = self._job
        delay = self._cache.tree.specs[job.leaf].reclaim_delay_seconds
        ripe_at = job.demand.created + delay
        if self._now >= ripe_at:
            return None
        message = f"what others hold beyond their shares is taken for it once it has waited for {delay:g} s"
        return Refusal(job.demand.queue, "", message, ripe_at)

    def _shortages(self) -> list[Shortage]:
        return self._cache.checks.shortages(self._job.leaf, self._amount)

    def _is_enough(self) -> bool:
        if self._shortages():
            return False
        return self._fits is None or self._fits(self._victims())

    def _nobody_left(self) -> Refusal:
        queue = self._job.demand.queue
        message = f"what others hold beyond their shares is not enough for job {self._job.key}"
        return Refusal(queue, "", TOO_SHORT if self._ripe_at < math.inf else message, self._ripe_at)

    # Taking

    def _take_until_enough(self) -> bool:
        leaves = self._leaves()
        while True:
            before = len(self._taken)
            with_surplus = [leaf for leaf in leaves if any(job.spare for job in self._cache.holders[leaf].values())]
            if self._take(with_surplus, self._surplus_units) or self._take(leaves, self._whole_units):
                return True
            if len(self._taken) == before:
                return False

    def _take(self, leaves: list[int], units_of: Callable[[list[Job]], Iterable[Unit]]) -> bool:
        """Take what is allowed of these units, queue by queue, until it is enough."""
        # A queue's key only gets worse while it gives, so one that is out of date is noticed when it comes to the top.
        heap = [(self._key(leaf), leaf) for leaf in leaves]
        heapify(heap)
        units: dict[int, deque[Unit]] = {}
        while heap:
            key, leaf = heappop(heap)
            current = self._key(leaf)
            if current > key:
                heappush(heap, (current, leaf))
                continue
            if leaf not in units:
                units[leaf] = deque(units_of(self._candidates(leaf)))
            if self._take_one(units[leaf]) and self._is_enough():
                return True
            if units[leaf]:
                heappush(heap, (self._key(leaf), leaf))
        return False

    def _key(self, leaf: int) -> Key:
        mine, theirs = self._cache.tree.ways_apart(self._job.leaf, leaf)
        return (len(mine), *self._cache.order.victim_key(leaf, theirs))

    def _leaves(self) -> list[int]:
        """The queues that anything may be taken from."""
        tree, found = self._cache.tree, []
        fence = next((row for row in tree.paths[self._job.leaf] if tree.specs[row].is_fence), ROOT_ROW)
        for leaf, holders in self._cache.holders.items():
            if holders and leaf != self._job.leaf and fence in tree.paths[leaf]:
                _, theirs = tree.ways_apart(self._job.leaf, leaf)
                if all(tree.specs[row].is_reclaimable for row in theirs):
                    found.append(leaf)
        return found

    def _candidates(self, leaf: int) -> list[Job]:
        """The jobs of a queue that anything may be taken from, best first."""
        jobs = [job for job in self._cache.holders[leaf].values() if self._may_be_victim(job)]
        return sorted(jobs, key=lambda job: job_key(job, self._settings))

    def _may_be_victim(self, job: Job) -> bool:
        if not job.demand.is_preemptible:
            return False
        if not self._cache.grouping.may_take(self._job, job):
            return False
        return not self._settings.division.protects_starters or self._has_run(job)

    def _has_run(self, job: Job) -> bool:
        """Whether it has run for as long as its queue, or the settings, see to at least."""
        minimum = self._minimum_runtime(job)
        if job.started is None or self._now - job.started >= minimum:
            return True
        self._ripe_at = min(self._ripe_at, job.started + minimum)
        return False

    def _minimum_runtime(self, job: Job) -> float:
        """That of the queue where the ways to the two jobs part, on the victim's side, or of one above it."""
        _, theirs = self._cache.tree.ways_apart(self._job.leaf, job.leaf)
        seconds = self._cache.tree.minimum_runtimes[theirs[-1]]
        return self._settings.minimum_runtime_seconds if seconds is None else seconds

    def _surplus_units(self, jobs: list[Job]) -> Iterable[Unit]:
        for job in reversed(jobs):
            for members in job.surplus(self._left.get(job.key, job.held)):
                yield Unit(job, members, job.amount(members), is_whole=False)

    def _whole_units(self, jobs: list[Job]) -> Iterable[Unit]:
        units = []
        for job in reversed(jobs):
            members = tuple(self._left.get(job.key, job.held))
            if any(members) and self._has_run(job):
                units.append(Unit(job, members, job.amount(members), is_whole=True))
        return sorted(units, key=lambda unit: (unit.job.demand.priority, -self._use(unit.amount)))

    def _use(self, amount: Amount) -> float:
        """Which part of an amount is of use to the reclaimer, over the resources that it asks for."""
        asked = [(amount.get(column, 0), value) for column, value in self._amount.items()]
        offered = sum(given / value for given, value in asked)
        return sum(min(given, value) / value for given, value in asked) / offered if offered else 0.0

    def _take_one(self, units: "deque[Unit]") -> bool:
        """Take the first unit that may go; those before it are out."""
        while units:
            unit = units.popleft()
            if self._helps(unit) and self._keeps_guarantees(unit) and self._rule.may_take(unit.job, unit.amount):
                self._move(unit, -1)
                self._taken.append(unit)
                return True
        return False

    def _helps(self, unit: Unit) -> bool:
        path = self._cache.tree.paths[unit.job.leaf]
        shortages = self._shortages()
        if not shortages:  # amounts suffice, but there is no place yet
            return any(column in unit.amount for column in self._amount)
        return any(shortage.row in path and shortage.column in unit.amount for shortage in shortages)

    def _keeps_guarantees(self, unit: Unit) -> bool:
        ledger, tree = self._cache.ledger, self._cache.tree
        _, theirs = tree.ways_apart(self._job.leaf, unit.job.leaf)
        for row in theirs:
            for column, value in unit.amount.items():
                at = row * ledger.width + column
                if ledger.allocated_flat[at] - value < tree.guarantee_flat[at]:
                    return False
        return True

    def _move(self, unit: Unit, sign: int) -> None:
        cache, job = self._cache, unit.job
        if sign > 0:
            cache.ledger.add(job.leaf, unit.amount)
        else:
            cache.ledger.remove(job.leaf, unit.amount)
        cache.shares.update(job.leaf)
        left = self._left.setdefault(job.key, list(job.held))
        for index, count in enumerate(unit.members):
            left[index] += sign * count
        self._rule.took(job, tuple(left))

    # Sparing

    def _spare(self) -> None:
        """Let stay whoever is not needed after all, the last taken first: they are worth most."""
        for unit in reversed(self._taken[:]):
            index = self._taken.index(unit)
            if not unit.is_whole and any(other.is_whole and other.job is unit.job for other in self._taken):
                continue  # without its gang a member is of no use
            del self._taken[index]
            self._move(unit, 1)
            if not self._is_enough() or not all(self._rule.is_right(other.job) for other in self._taken):
                self._taken.insert(index, unit)
                self._move(unit, -1)

    def _victims(self) -> tuple[Victim, ...]:
        """What was taken, by job, in the order of the last of it."""
        found: dict[str, Victim] = {}
        for unit in self._taken:
            job = unit.job
            before = found.pop(job.key, None)
            members = unit.members
            if before is not None:
                members = tuple(one + other for one, other in zip(before.members, members, strict=True))
            found[job.key] = Victim(job.key, job.demand.queue, members, unit.is_whole)
        return tuple(found.values())
