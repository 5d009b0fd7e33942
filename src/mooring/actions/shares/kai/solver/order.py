"""KAI's order: which queue is next, and which of its jobs; and for victims the reverse."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mooring.actions.shares.kai.solver.heap import Heap
from mooring.actions.shares.kai.solver.jobs import NOTHING, Amount, JobView, total_of
from mooring.actions.shares.kai.solver.queues import Entitlement
from mooring.actions.shares.kai.solver.session import Session
from mooring.actions.shares.tree import ROOT_ROW

JobKey = tuple[int, int, float, str]


def job_key(session: Session, view: JobView) -> JobKey:
    """Order the jobs of a queue: priority, then those below their minimum, then age."""
    return -view.job.priority, view.standing(session.states), view.job.created, view.job.uid


@dataclass(frozen=True, slots=True)
class Contender:
    """A queue with what its next job changes."""

    entitled: Entitlement
    held: Amount
    more: Amount
    """What its next job asks for."""
    less: Amount
    """What was held by the victims taken from it, and by the next one."""


class Turns:
    """Jobs that wait for their turn: a heap of jobs a queue, and a heap of queues at every queue above.

    A queue is compared again with those beside it once it is first among them and a job of it was taken or put back.
    What other queues gain or lose meanwhile does not move it.
    """

    def __init__(self, session: Session, views: Iterable[JobView], *, for_victims: bool = False) -> None:
        self._session, self._for_victims = session, for_victims
        tree = self._tree = session.queues.tree
        self._jobs: dict[int, Heap[JobView]] = {}
        self._below: dict[int, Heap[int]] = {}
        self._changed: set[int] = set()
        """The queues that have to be compared again."""
        self._taken: dict[int, list[JobView]] = {}
        for view in views:
            leaf = session.queues.leaf(view.job)
            if leaf not in self._jobs:
                self._jobs[leaf] = Heap(self._job_goes_first)
            self._jobs[leaf].push(view)
        for row in reversed(range(len(tree))):  # those below first
            active = [child for child in tree.children[row] if self._is_active(child)]
            if active or row == ROOT_ROW:
                self._below[row] = Heap(self._queue_goes_first)
                for child in active:
                    self._below[row].push(child)

    def __bool__(self) -> bool:
        return self._is_active(ROOT_ROW)

    def push(self, view: JobView) -> None:
        """Put a job back."""
        leaf = self._session.queues.leaf(view.job)
        way = self._tree.paths[leaf]
        for above, row in pairwise(reversed(way)):
            if row not in self._jobs and row not in self._below:
                if row == leaf:
                    self._jobs[row] = Heap(self._job_goes_first)
                else:
                    self._below[row] = Heap(self._queue_goes_first)
                self._below[above].push(row)
        self._jobs[leaf].push(view)
        self._changed.update(way)

    def pop(self) -> JobView:
        """Take the next job of the next queue."""
        leaf = ROOT_ROW
        while leaf not in self._jobs:
            below = self._below[leaf]
            while below.peek() in self._changed:
                self._changed.discard(below.peek())
                below.fix_first()
            leaf = below.peek()
        view = self._jobs[leaf].pop()
        if self._for_victims:
            self._taken.setdefault(leaf, []).append(view)
        self._leave(leaf)
        return view

    def _leave(self, leaf: int) -> None:
        """Take out the queues that have no jobs left."""
        way = self._tree.paths[leaf]
        for row, above in pairwise(way):
            if self._is_active(row):
                self._changed.add(row)
                continue
            self._below[above].pop()
            self._changed.discard(row)
            self._jobs.pop(row, None)
            self._below.pop(row, None)

    def _is_active(self, row: int) -> bool:
        return bool(self._jobs.get(row) or self._below.get(row))

    def _job_goes_first(self, one: JobView, other: JobView) -> bool:
        is_first = job_key(self._session, one) < job_key(self._session, other)
        return is_first != self._for_victims

    def _queue_goes_first(self, one: int, other: int) -> bool:
        if not self._is_active(one):
            return not self._for_victims
        if not self._is_active(other):
            return self._for_victims
        is_first = goes_first(self._contender(one), self._contender(other), self._session.queues.total)
        return is_first != self._for_victims

    def _contender(self, row: int) -> Contender:
        session, leaf = self._session, row
        while leaf not in self._jobs:
            leaf = self._below[leaf].next()
        view = self._jobs[leaf].next()
        more = less = NOTHING
        if self._for_victims:
            less = total_of(victim.allocated(session.states) for victim in (*self._taken.get(leaf, ()), view))
        else:
            more = view.next_amount(session.states)
        return Contender(session.queues.entitled[row], session.holdings[row].allocated, more, less)


def goes_first(one: Contender, other: Contender, total: Amount) -> bool:
    """Whether one queue comes before another; of two that are alike in all, the older, then by name."""
    mine, theirs = _standing(one, total), _standing(other, total)
    if mine != theirs:
        return mine < theirs
    most, other_most = one.entitled.allocatable, other.entitled.allocatable
    if (smaller := _is_at_most(most, other_most)) != _is_at_most(other_most, most):
        return smaller
    return (one.entitled.created, one.entitled.name) < (other.entitled.created, other.entitled.name)


def _standing(contender: Contender, total: Amount) -> tuple[bool, bool, int, bool, float, float]:
    entitled, held = contender.entitled, contender.held
    after = held.plus(contender.more)
    return (
        all(fair < amount for fair, amount in zip(entitled.fair, held, strict=True)),
        not entitled.is_within_quota(after),
        -entitled.priority,
        any(most == 0 and amount > 0 for most, amount in zip(entitled.allocatable, after, strict=True)),
        entitled.dominant_share(after.minus(contender.less), total),
        entitled.dominant_share(held, total),
    )


def _is_at_most(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    return all(
        bound is None or (amount is not None and amount <= bound) for amount, bound in zip(one, other, strict=True)
    )
