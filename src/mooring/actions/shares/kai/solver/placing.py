"""Give the next tasks of a job their places, all or none: pack nodes, and prefer room that is idle."""

from collections.abc import Iterable, Sequence

from mooring.actions.shares.kai.solver.jobs import JobView, Status, Task, total_of
from mooring.actions.shares.kai.solver.queues import is_over_capacity
from mooring.actions.shares.kai.solver.room import Room
from mooring.actions.shares.kai.solver.session import Session

AVAILABLE = 100.0
"""The score of a node where a task can start at once."""
SHARED_GPU = 1000.0
"""The score of a node where a GPU in parts has room."""
WITHOUT_GPUS = 10.0
"""The score of a node without GPUs, for a task that asks for none."""
DENSEST = 9.0
"""The score of the node with the least room."""


def place_next(session: Session, view: JobView, nodes: Sequence[str], *, nominate_only: bool) -> bool:
    """Place the next tasks of a job on some of the nodes; if any has none, nothing is changed."""
    tasks = view.next_tasks(session.states)
    amount = total_of(task.amount for task in tasks)
    if is_over_capacity(session.queues, session.holdings, view.job, amount):
        return False
    checkpoint = session.checkpoint()
    for task in tasks:
        if not _place(session, task, nodes, nominate_only=nominate_only):
            session.rollback(checkpoint)
            return False
    if not nominate_only and _waits(session, view):
        session.nominate_all(tasks)
    return True


def _waits(session: Session, view: JobView) -> bool:
    """Whether a job cannot start yet, because some of its tasks are only nominated."""
    statuses = [session.states[task.uid].status for task in view.tasks]
    return Status.NOMINATED in statuses and sum(status.is_allocated for status in statuses) < view.minimum


def _place(session: Session, task: Task, nodes: Sequence[str], *, nominate_only: bool) -> bool:
    for node in rank_nodes(task, (session.rooms[name] for name in nodes)):
        room = session.rooms[node]
        gpu = session.gpu_for(task, node)
        if gpu is None:
            continue
        if not nominate_only and _starts_at_once(room, task, gpu):
            session.bind(task, node, gpu)
        else:
            session.nominate(task, node, gpu)
        return True
    return False


def _starts_at_once(room: Room, task: Task, gpu: str) -> bool:
    shared = room.shared.get(gpu)
    return room.fits_idle(task) and (shared is None or shared.is_idle_for(task.amount.gpus))


def rank_nodes(task: Task, rooms: Iterable[Room]) -> list[str]:
    """The names of the nodes that a task fits, best first, those that are equally good by name."""
    wants, allowed = task.amount, task.nodes
    # What a node has free of what a task is packed by: GPUs, or CPU if it asks for none.
    packed_by = 0 if wants.gpus else 1
    found = [(room, room.idle[packed_by] + room.releasing[packed_by], bool(room.total[packed_by])) for room in rooms]
    known = [free for _, free, is_known in found if is_known]
    lowest, highest = min(known, default=0), max(max(known, default=0), 0)
    spread = highest - lowest
    ranked: list[tuple[float, str]] = []
    for room, free, is_known in found:
        if free < wants[packed_by] and not task.is_part:
            continue
        if not room.fits(task) or (allowed is not None and room.name not in allowed):
            continue
        score = AVAILABLE if room.fits_idle(task) else 0.0
        if room.has_shared_room(task):
            score += SHARED_GPU
        if not wants.gpus and not room.total.gpus:
            score += WITHOUT_GPUS
        if highest and is_known:
            score += DENSEST * (1 - (free - lowest) / spread) if spread else DENSEST
        ranked.append((-score, room.name))
    return [name for _, name in sorted(ranked)]
