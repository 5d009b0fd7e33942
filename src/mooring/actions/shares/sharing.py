"""Shares of a cluster among tenants' queues: who is next, who may have more, and who has to give back.

A driver tells what happened (`add`, `remove`, `release`, `set_total`) and runs cycles:

1. `start_cycle(now)`: work out anew what queues deserve; everybody may be tried again.
2. `next_job()`: the best queue's best job and what to place of it, or None when nobody is left. Answer each offer with
   `allocate` (it has its place) or `refuse` (no node takes it).
3. `find_victims(key, now)`: for a job that was refused though its queue holds less than it deserves.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mooring.actions.shares.cache import ShareCache
from mooring.actions.shares.checks import TOLERANCE, Refusal
from mooring.actions.shares.demands import JobDemand, QueueSpec
from mooring.actions.shares.jobs import Job, Members, refuse_demand
from mooring.actions.shares.order import job_key
from mooring.actions.shares.past import DecayedUse
from mooring.actions.shares.preempt_victims import PreemptWithinQueue
from mooring.actions.shares.reclaim_victims import Fits, Reclaim, Reclamation
from mooring.actions.shares.resources import Amount, Columns, ResourceTable
from mooring.actions.shares.settings import ShareSettings
from mooring.errors import InvariantBroken
from mooring.state.shares import PastUse
from mooring.state.undo import UndoLog


@dataclass(frozen=True, slots=True)
class Offer:
    """A turn: place so many members of this job, all of them or none."""

    job: str
    queue: str
    members: Members
    has_others: bool = False
    """Whether members of other roles may do instead, where no node takes these."""


@dataclass(frozen=True, slots=True)
class QueueReport:
    """How a queue stands; amounts by resource name."""

    share: float
    """The highest part that it holds of what it deserves."""
    allocated: dict[str, int]
    deserved: dict[str, int]
    guarantee: dict[str, int]
    real_capability: dict[str, int]
    demand: dict[str, int]


class Sharing:
    """Decides on shares; time comes in as an argument."""

    def __init__(
        self,
        queues: Iterable[QueueSpec],
        total: Mapping[str, int],
        settings: ShareSettings,
        *,
        log: UndoLog,
        parts: Mapping[str, int] | None = None,
    ) -> None:
        """`log` is the one by which what is tried out is undone; `parts` tells of which resources amounts are parts."""
        self._log = log
        self.settings = settings
        self.queues = tuple(queues)
        self.total = dict(total)
        named = {
            name for spec in self.queues for part in (spec.capability, spec.deserved, spec.guarantee) for name in part
        }
        table = ResourceTable(sorted(named | set(total)), parts)
        self.cache = ShareCache(self.queues, table, total, self.settings, self._log)
        self._past: DecayedUse | None = None
        if self.settings.half_life_seconds is not None:
            width = self.cache.resources.width
            self._past = DecayedUse(len(self.cache.tree), width, self.settings.half_life_seconds, self.settings.k_value)
        self._is_stale = True
        self._unfinished: Job | None = None
        """The job whose turn goes on: no node takes some of its members, and others may do instead."""
        self._searches = [Reclaim] if self.settings.reclaims or not self.settings.preempts else []
        self._searches += [PreemptWithinQueue] if self.settings.preempts else []

    # Cycles

    def pass_time(self, now: float) -> None:
        """What is held was held until now: to be called before what has changed since is taken in."""
        if self._past is not None:
            self._past.observe(now, self.cache.ledger.allocated, self.cache.tree.total)
            self._is_stale = True

    def start_cycle(self, now: float) -> None:
        """Work out anew what queues deserve, if anything that matters has changed, and let everybody try again."""
        self.pass_time(now)
        self._divide()
        self._unfinished = None
        self.cache.bring_back()

    def _divide(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        past = None if self._past is None else self._past.past
        cache = self.cache
        cache.set_deserved(self.settings.division.deserved(cache.tree, cache.ledger.demand, past))

    def next_job(self) -> Offer | None:
        """The next turn: of the best queue the best job that the queue's limits, and those above it, let grow."""
        cache, checks = self.cache, self.cache.checks
        while True:
            unfinished, self._unfinished = self._unfinished, None
            leaf = cache.order.best() if unfinished is None else unfinished.leaf
            if leaf is None:
                return None
            refusal = checks.closed(leaf) or checks.overused(leaf)
            if refusal is not None:
                cache.set_aside(leaf, refusal.message)
                continue
            job = cache.heaps[leaf].head()
            assert job is not None, "a queue takes part only while somebody is in its line"
            members = job.next_members()
            refusal = checks.allocatable(leaf, job.amount(members))
            if refusal is not None and job.turns:
                members = job.next_members(partial(self._may_have, leaf))
                refusal = None if any(members) else refusal
            refusal = refusal or checks.firm(job) or cache.grouping.refuse(job)
            if refusal is None:
                return Offer(job.key, cache.tree.name(leaf), members, bool(job.turns))
            cache.park(job, refusal.message)

    def _may_have(self, leaf: int, amount: Amount) -> bool:
        return self.cache.checks.allocatable(leaf, amount) is None

    def refuse(self, key: str, why: str, most_held: Mapping[int, int] | None = None) -> None:
        """The job does not get a place in this cycle.

        `most_held`: of these roles no more than so many members find a node; others may do instead.
        """
        job, limits = self._job(key), most_held or {}
        if job.turns and any(job.most_held.get(role, most + 1) > most for role, most in limits.items()):
            self.cache.limit(job, limits, why)
            self._unfinished = job if job.heap_key is not None else None
        else:
            self.cache.park(job, why)

    def allocate(self, key: str, members: Members | None = None, now: float | None = None) -> None:
        """So many members of the job have their place: all that it wants next, if nothing else is said."""
        job = self._job(key)
        members = job.wanted if members is None else members
        if members is not job.wanted:
            missing = tuple(role.members - held for role, held in zip(job.demand.roles, job.held, strict=True))
            if any(more > left for more, left in zip(members, missing, strict=True)):
                raise InvariantBroken(f"job {key} has {missing} members without a place and cannot place {members}")
        if not self.cache.is_parked(key):  # why others of it wait stays true when one is backfilled
            job.refusal = ""
        if job.started is None:
            job.started = now
        self.cache.change(job, members, 1)

    def release(self, key: str, members: Members | None = None) -> None:
        """So many members of the job are gone: all that it holds, if nothing is said. They wait for the next cycle."""
        job = self._job(key)
        members = tuple(job.held) if members is None else members
        if any(held < fewer for held, fewer in zip(job.held, members, strict=True)):
            raise InvariantBroken(f"job {key} holds {tuple(job.held)} members and cannot release {members}")
        self.cache.change(job, members, -1)
        if not job.held_members:
            job.started = None
        self.cache.park(job, "its place was taken or given up in this cycle")

    def find_victims(self, key: str, now: float, fits: Fits | None = None) -> Reclamation | Refusal:
        """Who has to go, so that a job gets its next members placed: first those whose queues hold more than they
        deserve, if its own is within its share; then less important jobs of its own queue.

        `fits` tells whether they would find nodes if these victims were gone; without it amounts alone decide. It must
        not turn to no when more victims are given. Nothing is changed: to carry it out, `release` the victims and
        `allocate` the job.
        """
        self._divide()
        refusals: list[Refusal] = []
        for search in self._searches:
            found = search(self.cache, self.settings).find(self._job(key), now, fits)
            if not isinstance(found, Refusal):
                return found
            refusals.append(found)
        return min(refusals, key=lambda refusal: refusal.again_at)

    # Jobs

    def add(self, demand: JobDemand) -> str:
        """Take in a job, with what it holds. Say why if it cannot wait in any queue."""
        if demand.key in self.cache.jobs:
            raise InvariantBroken(f"job {demand.key} is there already")
        reason = self._refuse_queue(demand.queue) or refuse_demand(demand)
        if reason:
            return reason
        self._widen(
            {name for role in demand.roles for name in role.request} | {*demand.leaving, *(demand.min_resources or ())}
        )
        self.cache.put(demand)
        self._is_stale = True
        return ""

    def put(self, demand: JobDemand) -> str:
        """Take in a job, or what has become of it. Say why if it cannot wait in any queue."""
        known = self.cache.jobs.get(demand.key)
        if known is not None:
            if _as_demand(known) == demand:
                return ""
            self.remove(demand.key)
        return self.add(demand)

    def why_beyond_limits(self, queue: str, amounts: Mapping[str, int]) -> str:
        """Why a queue may not hold so much more, by its own limits and those above it; empty if it may."""
        leaf, known = self.cache.tree.row_of.get(queue), self.cache.resources
        if leaf is None:
            return ""
        amount = known.amount({name: value for name, value in amounts.items() if known.knows([name])})
        shortages = self.cache.checks.shortages(leaf, amount)
        return self.cache.checks.describe(shortages, amount).message if shortages else ""

    def _refuse_queue(self, name: str) -> str:
        row = self.cache.tree.row_of.get(name)
        if row is None:
            cut_off = self.cache.tree.cut_off.get(name)
            return f"queue {name} does not exist" if cut_off is None else cut_off.why
        if row not in self.cache.heaps:
            return f"queue {name} has queues below it, and jobs wait in those"
        return ""

    def remove(self, key: str) -> None:
        """The job is done or deleted."""
        self._job(key)
        self.cache.drop(key)
        self._is_stale = True

    def forget(self, key: str) -> None:
        """The job is gone, if it was ever there."""
        if key in self.cache.jobs:
            self.remove(key)

    def with_queues(self, queues: Iterable[QueueSpec]) -> "Sharing":
        """The same without any job for other queues; what those of the same name had in the past counts on."""
        new = Sharing(queues, self.total, self.settings, log=self._log, parts=self.cache.resources.parts)
        if self._past is not None and new._past is not None:
            rows = {
                new.cache.tree.row_of[name]: row
                for name, row in self.cache.tree.row_of.items()
                if name in new.cache.tree.row_of
            }
            columns = {
                new.cache.resources.column_of[name]: column
                for name, column in self.cache.resources.column_of.items()
                if name in new.cache.resources.column_of
            }
            new._past.take_over(self._past, rows, columns)
        return new

    def past_use(self) -> PastUse | None:
        """What the queues had in the past; None if that does not count, or nothing was counted yet."""
        if self._past is None or self._past.as_of is None:
            return None
        names, rows = self.cache.resources.names, self.cache.tree.row_of
        used, available = self._past.sums()
        held, total = self.cache.ledger.allocated, self.cache.tree.total
        return PastUse(
            as_of=self._past.as_of,
            used={queue: found for queue, row in rows.items() if (found := _by_name(names, used[row]))},
            available=_by_name(names, available),
            held={queue: found for queue, row in rows.items() if (found := _by_name(names, held[row]))},
            total=_by_name(names, total),
        )

    def resume(self, use: PastUse, now: float) -> None:
        """Go on from what the queues had until a moment; what they held then, they held until now."""
        if self._past is None:
            return
        self._widen({*use.available, *use.total})
        cache = self.cache
        columns, shape = cache.resources.column_of, cache.ledger.allocated.shape
        used, held = np.zeros(shape), np.zeros(shape, np.int64)
        available, total = np.zeros(shape[1]), np.zeros(shape[1], np.int64)
        for name, column in columns.items():
            available[column], total[column] = use.available.get(name, 0.0), use.total.get(name, 0)
            for queue, row in cache.tree.row_of.items():
                used[row, column] = use.used.get(queue, {}).get(name, 0.0)
                held[row, column] = use.held.get(queue, {}).get(name, 0)
        self._past.resume(use.as_of, used, available)
        self._past.observe(now, held, total)
        self._is_stale = True

    def set_total(self, total: Mapping[str, int]) -> None:
        """The cluster has so much in all from now on."""
        self.total = dict(total)
        self._widen(total)
        self.cache.set_total(total)
        self._is_stale = True

    def _widen(self, names: Iterable[str]) -> None:
        """Begin a new cache if there are resources that the present one has no columns for."""
        known = self.cache.resources
        if known.knows(names):
            return
        jobs = self.demands()
        table = ResourceTable([*known.names, *sorted(set(names) - set(known.names))], known.parts)
        self.cache = ShareCache(self.queues, table, self.total, self.settings, self._log)
        for demand in jobs:
            self.cache.put(demand)
        if self._past is not None:
            self._past.widen(table.width)
        self._is_stale = True

    # Being let in

    def enqueueable(self, key: str) -> Refusal | None:
        """Whether there will be room for the job to be whole, at every level, beside all that were let in before it."""
        job = self._job(key)
        return self.cache.checks.enqueueable(job.leaf, job.minimum_amount)

    def enqueue_waiting(self, idle: Mapping[str, int] | None = None) -> list[str]:
        """Let in those who wait to be let in, best queue and best job first, as far as there will be room.

        `idle`: and for no more than this, together with those that were let in before and do not run yet.
        """
        cache = self.cache
        if not cache.outside:
            return []
        self._divide()
        waiting: dict[int, list[Job]] = {}
        for job in cache.outside.values():
            waiting.setdefault(job.leaf, []).append(job)
        let_in = []
        left = None if idle is None else self._left_to_promise(idle)
        # Being let in changes nobody's share, so each queue has its turn once, with all its jobs.
        for leaf in cache.in_order(waiting):
            for job in sorted(waiting[leaf], key=lambda job: job_key(job, self.settings)):
                refusal = self.enqueueable(job.key) or cache.checks.overcommitted(job, left)
                if refusal is None:
                    cache.enqueue(job)
                    if left is not None:
                        left.subtract(job.minimum_amount)
                    let_in.append(job.key)
                job.refusal = "" if refusal is None else refusal.message
        return let_in

    def _left_to_promise(self, idle: Mapping[str, int]) -> Counter[int]:
        """What is idle without what was promised to jobs that were let in, by column."""
        column_of = self.cache.resources.column_of
        left = Counter({column_of[name]: amount for name, amount in idle.items() if name in column_of})
        for job in self.cache.jobs.values():
            if job.is_enqueued and job.demand.min_resources:
                held = job.held_amount
                left.subtract(
                    {column: max(0, value - held.get(column, 0)) for column, value in job.minimum_amount.items()}
                )
        return left

    # Answers

    def wanted(self, key: str) -> Members:
        """What a job is to have next: all that it needs to be whole, then one member at a time."""
        return self._job(key).wanted

    def is_let_in(self, key: str) -> bool:
        """Whether the job may have anything at all: not, if it says what it needs and waits for room for that."""
        return self._job(key).is_enqueued

    def why_outside(self, key: str) -> str:
        """Why a job is not let in, as of the last try; empty if it is."""
        job = self._job(key)
        closed = self.cache.checks.closed(job.leaf)
        if closed is not None:
            return closed.message
        return "" if job.is_enqueued else job.refusal

    def is_closed(self, queue: str) -> bool:
        """Whether the queue, or one above it, takes no jobs."""
        return bool(self.cache.tree.closed_by[self.cache.tree.row_of[queue]])

    def why(self, key: str) -> str:
        """Why a job waits, as of its last try; empty if it was not refused."""
        job = self._job(key)
        if not job.wants_more:
            return ""
        return job.refusal or self.cache.aside.get(job.leaf, "")

    def report(self, queue: str) -> QueueReport:
        self._divide()
        cache = self.cache
        if queue in cache.tree.cut_off:
            return QueueReport(0.0, {}, {}, {}, {}, {})
        row = cache.tree.row_of[queue]

        def by_name(columns: Columns) -> dict[str, int]:
            return dict(zip(cache.resources.names, columns[row].tolist(), strict=False))

        whole = (cache.shares.deserved + TOLERANCE).astype(np.int64)

        return QueueReport(
            share=cache.shares[row],
            allocated=by_name(cache.ledger.allocated),
            deserved=by_name(whole),
            guarantee=by_name(cache.tree.guarantee),
            real_capability=by_name(cache.tree.real_capability),
            demand=by_name(cache.ledger.demand),
        )

    def demands(self) -> list[JobDemand]:
        """All jobs as they stand now: given to another `Sharing` of the same queues, it goes on from here."""
        return [_as_demand(job) for job in self.cache.jobs.values()]

    def _job(self, key: str) -> Job:
        job = self.cache.jobs.get(key)
        if job is None:
            raise InvariantBroken(f"job {key} is not known")
        return job


def _by_name(names: Sequence[str], row: npt.NDArray[Any]) -> dict[str, Any]:
    """What is not 0 of a row."""
    return {name: value for name, value in zip(names, row.tolist(), strict=False) if value}


def _as_demand(job: Job) -> JobDemand:
    """The job as it stands now, to be taken in again."""
    roles = tuple(replace(role, held=held) for role, held in zip(job.demand.roles, job.held, strict=True))
    turns = tuple(job.turns)
    return replace(job.demand, roles=roles, turns=turns, started=job.started, is_enqueued=job.is_enqueued)
