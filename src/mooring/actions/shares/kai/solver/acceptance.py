"""Which victims each of KAI's actions may take, and which solutions it accepts."""

import math
from collections.abc import Callable, Mapping

from mooring.actions.shares.kai.solver.job_solver import Approach
from mooring.actions.shares.kai.solver.jobs import Amount, Job, JobView, Status, Task, total_of
from mooring.actions.shares.kai.solver.queues import Holding, Queues
from mooring.actions.shares.kai.solver.scenarios import Scenario
from mooring.actions.shares.kai.solver.session import Session


def consolidation(session: Session, pending: Job) -> Approach:
    """Move preemptible jobs of any queue: each victim gets another place."""

    def candidates() -> list[JobView]:
        running = (view for view in _running(session) if view.job.uid != pending.uid)
        return [view for view in running if view.job.is_preemptible and view.job.may_move]

    def accepts(scenario: Scenario) -> bool:
        return all(session.states[task.uid].status is not Status.RELEASING for task in scenario.victims)

    return Approach(candidates, accepts)


def preemption(session: Session, pending: Job) -> Approach:
    """Evict jobs of lower priority in the same queue, once they have run for their minimum runtime."""

    def is_protected(job: Job) -> bool:
        runtimes = session.queues.tree.preempt_runtimes
        return _runs_less_than(session, job, runtimes[session.queues.leaf(job)])

    def candidates() -> list[JobView]:
        return [
            view
            for view in _running(session)
            if view.job.is_preemptible
            and view.job.queue == pending.queue
            and view.job.priority < pending.priority
            and (_is_elastic(view) or not is_protected(view.job))
        ]

    return Approach(candidates, lambda scenario: _keep_minimum(session, scenario, is_protected))


def reclaim(session: Session, pending: Job) -> Approach:
    """Evict jobs of other queues that hold more than they are entitled to."""
    holdings = dict(session.holdings)

    def is_protected(job: Job) -> bool:
        tree = session.queues.tree
        _, theirs = tree.ways_apart(session.queues.leaf(pending), session.queues.leaf(job))
        return _runs_less_than(session, job, tree.minimum_runtimes[theirs[-1]])

    def candidates() -> list[JobView]:
        return [
            view
            for view in _running(session)
            if view.job.is_preemptible
            and view.job.queue != pending.queue
            and (_is_elastic(view) or not is_protected(view.job))
        ]

    def accepts(scenario: Scenario) -> bool:
        return is_reclaimable(session, scenario, holdings) and _keep_minimum(session, scenario, is_protected)

    return Approach(candidates, accepts)


def may_reclaim(session: Session, job: Job, amount: Amount) -> bool:
    """Whether a queue stays within its fair share with its next job, and a firm job within quota."""
    leaf = session.queues.leaf(job)
    entitled, held = session.queues.entitled[leaf], session.holdings[leaf]
    if not entitled.is_within_fair_share(held.allocated.plus(amount)):
        return False
    return job.is_preemptible or entitled.is_within_quota(held.not_preemptible.plus(amount))


# Minimum runtimes


def _runs_less_than(session: Session, job: Job, seconds: float | None) -> bool:
    runs_for = session.runs_for[job.uid]
    return runs_for is not None and runs_for < (seconds or 0.0)


def _keep_minimum(session: Session, scenario: Scenario, is_protected: Callable[[Job], bool]) -> bool:
    """Whether every elastic job that is protected keeps its minimum."""
    for uid, victims in scenario.victims_by_job(session).items():
        view = session.views[uid]
        if not _is_elastic(view) or not is_protected(view.job):
            continue
        used = sum(session.states[task.uid].status is not Status.PENDING for task in view.tasks)
        if view.minimum > used - len(victims):
            return False
    return True


def _is_elastic(view: JobView) -> bool:
    return view.minimum < len(view.tasks)


def _running(session: Session) -> list[JobView]:
    return [view for view in session.views.values() if view.placed(session.states)]


# Reclaiming


def is_reclaimable(session: Session, scenario: Scenario, holdings: Mapping[int, Holding]) -> bool:
    """Whether queues may be deprived of the victims that have no other place, one after the other."""
    queues = session.queues
    job, amount = scenario.pending.job, total_of(task.amount for task in scenario.pending.tasks)
    remaining: dict[int, Amount] = {}
    involved: dict[int, set[int]] = {}
    for uid, victims in scenario.victims_by_job(session).items():
        leaf = queues.leaf(session.jobs[uid])
        mine, theirs = queues.tree.ways_apart(queues.leaf(job), leaf)
        for loss in _losses(session, session.jobs[uid], victims):
            held = remaining.get(theirs[-1], holdings[theirs[-1]].allocated)
            after = holdings[mine[-1]].allocated.plus(amount)
            if not _may_take(queues, mine[-1], theirs[-1], held, after):
                return False
            for row in queues.way_up(leaf):
                remaining[row] = remaining.get(row, holdings[row].allocated).minus(loss)
                involved.setdefault(row, set()).update(_resources(loss))
    return all(
        _stays_below(queues, row, remaining.get(row, holdings[row].allocated).plus(amount), remaining, involved, amount)
        and (job.is_preemptible or queues.entitled[row].is_within_quota(holdings[row].not_preemptible.plus(amount)))
        for row in queues.way_up(queues.leaf(job))
    )


def _losses(session: Session, job: Job, victims: list[Task]) -> list[Amount]:
    """What a job loses, bit by bit: its surplus tasks each by itself, then the others together."""
    chunks = [[task] for task in victims[job.minimum :]] + [victims[: job.minimum]]
    left = [[task for task in chunk if not session.states[task.uid].status.has_place] for chunk in chunks]
    return [total_of(task.amount for task in chunk) for chunk in left if chunk]


def _may_take(queues: Queues, mine: int, theirs: int, held: Amount, after: Amount) -> bool:
    """Whether a queue holds too much, or more than its quota while the other stays within its own."""
    entitled = queues.entitled[theirs]
    if any(most is not None and amount > most for amount, most in zip(held, entitled.allocatable, strict=True)):
        return True
    return queues.entitled[mine].is_within_quota(after) and not entitled.is_within_quota(held)


def _stays_below(
    queues: Queues,
    row: int,
    after: Amount,
    remaining: Mapping[int, Amount],
    involved: Mapping[int, set[int]],
    amount: Amount,
) -> bool:
    """Whether a queue beyond its fair share stays less saturated than every sibling that lost something."""
    fair = queues.entitled[row].fair
    for sibling, left in remaining.items():
        if sibling == row or queues.tree.parent[sibling] != queues.tree.parent[row]:
            continue
        their_fair = queues.entitled[sibling].fair
        for resource in involved[sibling] | _resources(amount):
            ratio = _saturation(after[resource], fair[resource])
            if ratio > 1 and their_fair[resource] > 0 and ratio >= _saturation(left[resource], their_fair[resource]):
                return False
    return True


def _saturation(held: int, fair: float) -> float:
    if not fair:
        return math.inf if held > 0 else 0.0
    return held / fair


def _resources(amount: Amount) -> set[int]:
    return {position for position, found in enumerate(amount) if found > 0}
