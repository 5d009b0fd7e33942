"""One round of KAI: its actions, each on what those before it have decided."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.kai.solver.acceptance import consolidation, may_reclaim, preemption, reclaim
from mooring.actions.shares.kai.solver.job_solver import has_pending, solve
from mooring.actions.shares.kai.solver.jobs import Amount, Job, JobView, Node, Outcome, Status, total_of
from mooring.actions.shares.kai.solver.order import Turns
from mooring.actions.shares.kai.solver.placing import place_next
from mooring.actions.shares.kai.solver.queues import divide, is_firm_over_quota
from mooring.actions.shares.kai.solver.session import Session


class KaiAction(Enum):
    """KAI's actions by their names, in the order in which it runs them."""

    ALLOCATE = "allocate"
    CONSOLIDATION = "consolidation"
    RECLAIM = "reclaim"
    PREEMPT = "preempt"


Decisions = dict[str, tuple[Outcome, ...]]
"""By job, what becomes of its tasks."""


def open_session(nodes: Sequence[Node], specs: Iterable[QueueSpec], jobs: Sequence[Job]) -> Session:
    """Begin a round: the fair shares of queues are those of now until its end."""
    demand: dict[str, Amount] = {}
    for job in jobs:
        asked = total_of(task.amount for task in job.tasks)
        demand[job.queue] = demand.get(job.queue, Amount()).plus(asked)
    return Session(nodes, divide(specs, total_of(node.total for node in nodes), demand), jobs)


def run_round(session: Session, actions: Iterable[KaiAction]) -> Decisions:
    """Run some actions, and say what becomes of every task."""
    for action in actions:
        RUN[action](session)
    return {uid: tuple(session.outcome(task) for task in job.tasks) for uid, job in session.jobs.items()}


def allocate(session: Session) -> None:
    """Place jobs in order, a few tasks at a time; what lacks only room that is being released is nominated."""
    turns = Turns(session, waiting_jobs(session))
    nodes = list(session.rooms)
    while turns:
        view = turns.pop()
        never_ran = not any(session.states[task.uid].status.is_allocated for task in view.tasks)
        if not place_next(session, view, nodes, nominate_only=False):
            continue
        if never_ran and any(session.states[task.uid].status.is_allocated for task in view.tasks):
            session.start(view.job)
        session.commit()
        if has_pending(session, view):
            turns.push(view)


def consolidate(session: Session) -> None:
    """Move preemptible jobs so that preemptible jobs that wait have room."""
    views = (view for view in waiting_jobs(session) if view.job.is_preemptible)
    _make_room(session, views, lambda view: consolidate_for(session, view))


def consolidate_for(session: Session, view: JobView) -> bool:
    """Move preemptible jobs so that one job has room, if there are enough GPUs in all."""
    free = sum(room.idle_gpus() + room.releasing_gpus() for room in session.rooms.values())
    if free < view.next_amount(session.states).gpus:
        return False
    return solve(session, view, consolidation(session, view.job))


def reclaim_shares(session: Session) -> None:
    """Give queues within their fair shares what others hold beyond theirs."""

    def attempt(view: JobView) -> bool:
        if not may_reclaim(session, view.job, view.next_amount(session.states)):
            return False
        return solve(session, view, reclaim(session, view.job))

    _make_room(session, waiting_jobs(session), attempt)


def preempt(session: Session) -> None:
    """Give jobs the room of less important ones in their own queues."""

    def attempt(view: JobView) -> bool:
        amount = view.next_amount(session.states)
        if is_firm_over_quota(session.queues, session.holdings, view.job, amount):
            return False
        return solve(session, view, preemption(session, view.job))

    _make_room(session, waiting_jobs(session), attempt)


def _make_room(session: Session, views: Iterable[JobView], attempt: Callable[[JobView], bool]) -> None:
    turns = Turns(session, views)
    while turns:
        checkpoint = session.checkpoint()
        if attempt(turns.pop()):
            session.commit()
        else:
            session.rollback(checkpoint)


def waiting_jobs(session: Session) -> list[JobView]:
    """The jobs with tasks that wait, and with enough tasks to start."""
    return [
        view
        for view in session.views.values()
        if has_pending(session, view)
        and sum(session.states[task.uid].status is not Status.RELEASING for task in view.tasks) >= view.minimum
    ]


RUN: dict[KaiAction, Callable[[Session], None]] = {
    KaiAction.ALLOCATE: allocate,
    KaiAction.CONSOLIDATION: consolidate,
    KaiAction.RECLAIM: reclaim_shares,
    KaiAction.PREEMPT: preempt,
}
