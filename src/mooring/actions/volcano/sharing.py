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

from mooring.actions.elastic_quota.runtime import runtime_quotas
from mooring.actions.kai.tree_shares import kai_shares
from mooring.actions.volcano.book import Book
from mooring.actions.volcano.capacity import deserved_by_spec
from mooring.actions.volcano.checks import TOLERANCE, Refusal
from mooring.actions.volcano.demands import JobDemand, QueueSpec
from mooring.actions.volcano.jobs import Job, Members, refuse_demand
from mooring.actions.volcano.order import job_key
from mooring.actions.volcano.past import PastUse
from mooring.actions.volcano.preempt_victims import PreemptWithinQueue
from mooring.actions.volcano.proportion import deserved_by_weight, deserved_in_rounds
from mooring.actions.volcano.reclaim_victims import Fits, Reclaim, Reclamation
from mooring.actions.volcano.resources import Amount, Columns, ResourceTable
from mooring.actions.volcano.settings import Division, ShareSettings
from mooring.errors import InvariantBroken
from mooring.model.memory import SharedUse, moment
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
        settings: ShareSettings | None = None,
        *,
        log: UndoLog,
        parts: Mapping[str, int] | None = None,
    ) -> None:
        """`log` is the one by which what is tried out is undone; `parts` tells of which resources amounts are parts."""
        self._log = log
        self.settings = settings or ShareSettings()
        self._queues = tuple(queues)
        self._total = dict(total)
        named = {
            name for spec in self._queues for part in (spec.capability, spec.deserved, spec.guarantee) for name in part
        }
        table = ResourceTable(sorted(named | set(total)), parts)
        self.book = Book(self._queues, table, total, self.settings, self._log)
        self._past: PastUse | None = None
        if self.settings.half_life_seconds is not None:
            width = self.book.resources.width
            self._past = PastUse(len(self.book.tree), width, self.settings.half_life_seconds, self.settings.k_value)
        self._is_stale = True
        self._searches = [Reclaim] if self.settings.reclaims or not self.settings.preempts else []
        self._searches += [PreemptWithinQueue] if self.settings.preempts else []

    # Cycles

    def pass_time(self, now: float) -> None:
        """What is held was held until now: to be called before what has changed since is taken in."""
        if self._past is not None:
            self._past.observe(now, self.book.ledger.allocated, self.book.tree.total)
            self._is_stale = True

    def start_cycle(self, now: float) -> None:
        """Work out anew what queues deserve, if anything that matters has changed, and let everybody try again."""
        self.pass_time(now)
        self._divide()
        self.book.bring_back()

    def _divide(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        book = self.book
        if self.settings.division in (Division.CAPACITY, Division.GUARANTEED):
            book.set_deserved(deserved_by_spec(book.tree).astype(np.float64))
        elif self.settings.division is Division.RUNTIME:
            book.set_deserved(runtime_quotas(book.tree, book.ledger.demand))
        elif self.settings.division is Division.KAI:
            past = None if self._past is None else self._past.past
            book.set_deserved(kai_shares(book.tree, book.ledger.demand, past))
        elif self.settings.division is Division.PROPORTION and self._past is None:
            book.set_deserved(deserved_in_rounds(book.tree, book.ledger.demand))
        else:
            past = None if self._past is None else self._past.past
            book.set_deserved(deserved_by_weight(book.tree, book.ledger.demand, past).astype(np.float64))

    def next_job(self) -> Offer | None:
        """The next turn: of the best queue the best job that the queue's limits, and those above it, let grow."""
        book, checks = self.book, self.book.checks
        while True:
            leaf = book.order.best()
            if leaf is None:
                return None
            refusal = checks.closed(leaf) or checks.overused(leaf)
            if refusal is not None:
                book.set_aside(leaf, refusal.message)
                continue
            job = book.lines[leaf].head()
            assert job is not None, "a queue takes part only while somebody is in its line"
            members = job.next_members()
            refusal = checks.allocatable(leaf, job.amount(members))
            if refusal is not None and job.turns:
                members = job.next_members(partial(self._may_have, leaf))
                refusal = None if any(members) else refusal
            refusal = refusal or checks.firm(job) or book.applications.refuse(job)
            if refusal is None:
                return Offer(job.key, book.tree.name(leaf), members, bool(job.turns))
            book.park(job, refusal.message)

    def _may_have(self, leaf: int, amount: Amount) -> bool:
        return self.book.checks.allocatable(leaf, amount) is None

    def refuse(self, key: str, why: str, most_held: Mapping[int, int] | None = None) -> None:
        """The job does not get a place in this cycle.

        `most_held`: of these roles no more than so many members find a node; others may do instead.
        """
        job, limits = self._job(key), most_held or {}
        if job.turns and any(job.most_held.get(role, most + 1) > most for role, most in limits.items()):
            self.book.limit(job, limits, why)
        else:
            self.book.park(job, why)

    def allocate(self, key: str, members: Members | None = None, now: float | None = None) -> None:
        """So many members of the job have their place: all that it wants next, if nothing else is said."""
        job = self._job(key)
        members = job.wanted if members is None else members
        if members is not job.wanted:
            missing = tuple(role.members - held for role, held in zip(job.demand.roles, job.held, strict=True))
            if any(more > left for more, left in zip(members, missing, strict=True)):
                raise InvariantBroken(f"job {key} has {missing} members without a place and cannot place {members}")
        if not self.book.is_parked(key):  # why others of it wait stays true when one is backfilled
            job.refusal = ""
        if job.started is None:
            job.started = now
        self.book.change(job, members, 1)

    def release(self, key: str, members: Members | None = None) -> None:
        """So many members of the job are gone: all that it holds, if nothing is said. They wait for the next cycle."""
        job = self._job(key)
        members = tuple(job.held) if members is None else members
        if any(held < fewer for held, fewer in zip(job.held, members, strict=True)):
            raise InvariantBroken(f"job {key} holds {tuple(job.held)} members and cannot release {members}")
        self.book.change(job, members, -1)
        if not job.held_members:
            job.started = None
        self.book.park(job, "its place was taken or given up in this cycle")

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
            found = search(self.book, self.settings).find(self._job(key), now, fits)
            if not isinstance(found, Refusal):
                return found
            refusals.append(found)
        return min(refusals, key=lambda refusal: refusal.again_at)

    # Jobs

    def add(self, demand: JobDemand) -> str:
        """Take in a job, with what it holds. Say why if it cannot wait in any queue."""
        if demand.key in self.book.jobs:
            raise InvariantBroken(f"job {demand.key} is there already")
        reason = self._refuse_queue(demand.queue) or refuse_demand(demand)
        if reason:
            return reason
        self._widen(
            {name for role in demand.roles for name in role.request} | {*demand.leaving, *(demand.min_resources or ())}
        )
        self.book.put(demand)
        self._is_stale = True
        return ""

    def put(self, demand: JobDemand) -> str:
        """Take in a job, or what has become of it. Say why if it cannot wait in any queue."""
        known = self.book.jobs.get(demand.key)
        if known is not None:
            if _as_demand(known) == demand:
                return ""
            self.remove(demand.key)
        return self.add(demand)

    def _refuse_queue(self, name: str) -> str:
        row = self.book.tree.row_of.get(name)
        if row is None:
            return f"queue {name} does not exist"
        if row not in self.book.lines:
            return f"queue {name} has queues below it, and jobs wait in those"
        return ""

    def remove(self, key: str) -> None:
        """The job is done or deleted."""
        self._job(key)
        self.book.drop(key)
        self._is_stale = True

    def forget(self, key: str) -> None:
        """The job is gone, if it was ever there."""
        if key in self.book.jobs:
            self.remove(key)

    def with_queues(self, queues: Iterable[QueueSpec]) -> "Sharing":
        """The same without any job for other queues; what those of the same name had in the past counts on."""
        new = Sharing(queues, self._total, self.settings, log=self._log, parts=self.book.resources.parts)
        if self._past is not None and new._past is not None:
            rows = {
                new.book.tree.row_of[name]: row
                for name, row in self.book.tree.row_of.items()
                if name in new.book.tree.row_of
            }
            columns = {
                new.book.resources.column_of[name]: column
                for name, column in self.book.resources.column_of.items()
                if name in new.book.resources.column_of
            }
            new._past.take_over(self._past, rows, columns)
        return new

    def remembered(self) -> SharedUse | None:
        """What the queues had in the past; None if nobody looks back, or nothing was counted yet."""
        if self._past is None or self._past.as_of is None:
            return None
        names, rows = self.book.resources.names, self.book.tree.row_of
        used, available = self._past.sums()
        held, total = self.book.ledger.allocated, self.book.tree.total
        return SharedUse(
            as_of=moment(self._past.as_of),
            used={queue: found for queue, row in rows.items() if (found := _by_name(names, used[row]))},
            available=_by_name(names, available),
            held={queue: found for queue, row in rows.items() if (found := _by_name(names, held[row]))},
            total=_by_name(names, total),
        )

    def recall(self, use: SharedUse, now: float) -> None:
        """Go on from what the queues had before a restart; what they held then, they held until now."""
        if self._past is None:
            return
        self._widen({*use.available, *use.total})
        book = self.book
        columns, shape = book.resources.column_of, book.ledger.allocated.shape
        used, held = np.zeros(shape), np.zeros(shape, np.int64)
        available, total = np.zeros(shape[1]), np.zeros(shape[1], np.int64)
        for name, column in columns.items():
            available[column], total[column] = use.available.get(name, 0.0), use.total.get(name, 0)
            for queue, row in book.tree.row_of.items():
                used[row, column] = use.used.get(queue, {}).get(name, 0.0)
                held[row, column] = use.held.get(queue, {}).get(name, 0)
        self._past.resume(use.as_of.timestamp(), used, available)
        self._past.observe(now, held, total)
        self._is_stale = True

    def set_total(self, total: Mapping[str, int]) -> None:
        """The cluster has so much in all from now on."""
        self._total = dict(total)
        self._widen(total)
        self.book.set_total(total)
        self._is_stale = True

    def _widen(self, names: Iterable[str]) -> None:
        """Begin a new book if there are resources that the present one has no columns for."""
        known = self.book.resources
        if known.knows(names):
            return
        jobs = self.demands()
        table = ResourceTable([*known.names, *sorted(set(names) - set(known.names))], known.parts)
        self.book = Book(self._queues, table, self._total, self.settings, self._log)
        for demand in jobs:
            self.book.put(demand)
        if self._past is not None:
            self._past.widen(table.width)
        self._is_stale = True

    # Being let in

    def enqueueable(self, key: str) -> Refusal | None:
        """Whether there will be room for the job to be whole, at every level, beside all that were let in before it."""
        job = self._job(key)
        return self.book.checks.enqueueable(job.leaf, job.minimum_amount)

    def enqueue_waiting(self, idle: Mapping[str, int] | None = None) -> list[str]:
        """Let in those who wait to be let in, best queue and best job first, as far as there will be room.

        `idle`: and for no more than this, together with those that were let in before and do not run yet.
        """
        book = self.book
        if not book.outside:
            return []
        self._divide()
        waiting: dict[int, list[Job]] = {}
        for job in book.outside.values():
            waiting.setdefault(job.leaf, []).append(job)
        let_in = []
        left = None if idle is None else self._left_to_promise(idle)
        # Being let in changes nobody's share, so each queue has its turn once, with all its jobs.
        for leaf in book.in_order(waiting):
            for job in sorted(waiting[leaf], key=lambda job: job_key(job, self.settings)):
                refusal = self.enqueueable(job.key) or book.checks.overcommitted(job, left)
                if refusal is None:
                    book.enqueue(job)
                    if left is not None:
                        left.subtract(job.minimum_amount)
                    let_in.append(job.key)
                job.refusal = "" if refusal is None else refusal.message
        return let_in

    def _left_to_promise(self, idle: Mapping[str, int]) -> Counter[int]:
        """What is idle without what was promised to jobs that were let in, by column."""
        column_of = self.book.resources.column_of
        left = Counter({column_of[name]: amount for name, amount in idle.items() if name in column_of})
        for job in self.book.jobs.values():
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
        closed = self.book.checks.closed(job.leaf)
        if closed is not None:
            return closed.message
        return "" if job.is_enqueued else job.refusal

    def is_closed(self, queue: str) -> bool:
        """Whether the queue, or one above it, takes no jobs."""
        return bool(self.book.tree.closed_by[self.book.tree.row_of[queue]])

    def why(self, key: str) -> str:
        """Why a job waits, as of its last try; empty if it was not refused."""
        job = self._job(key)
        if not job.wants_more:
            return ""
        return job.refusal or self.book.aside.get(job.leaf, "")

    def report(self, queue: str) -> QueueReport:
        self._divide()
        book, row = self.book, self.book.tree.row_of[queue]

        def by_name(columns: Columns) -> dict[str, int]:
            return dict(zip(book.resources.names, columns[row].tolist(), strict=False))

        whole = (book.shares.deserved + TOLERANCE).astype(np.int64)

        return QueueReport(
            share=book.shares[row],
            allocated=by_name(book.ledger.allocated),
            deserved=by_name(whole),
            guarantee=by_name(book.tree.guarantee),
            real_capability=by_name(book.tree.real_capability),
            demand=by_name(book.ledger.demand),
        )

    def demands(self) -> list[JobDemand]:
        """All jobs as they stand now: given to another `Sharing` of the same queues, it goes on from here."""
        return [_as_demand(job) for job in self.book.jobs.values()]

    def _job(self, key: str) -> Job:
        job = self.book.jobs.get(key)
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
