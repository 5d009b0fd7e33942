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
        if not room.fits(task) or (task.nodes is not None and node not in task.nodes):
            continue
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
    """The names of nodes, best first, those that are equally good by name."""
    found = list(rooms)
    lowest = min((_free(room, task) for room in found if _has(room, task)), default=0)
    highest = max((_free(room, task) for room in found if _has(room, task)), default=0)
    highest = max(highest, 0)

    def score(room: Room) -> float:
        value = AVAILABLE if room.fits_idle(task) else 0.0
        if room.has_shared_room(task):
            value += SHARED_GPU
        if not task.amount.gpus and not room.total.gpus:
            value += WITHOUT_GPUS
        if highest and _has(room, task):
            spread = highest - lowest
            value += DENSEST * (1 - (_free(room, task) - lowest) / spread) if spread else DENSEST
        return value

    return [room.name for room in sorted(found, key=lambda room: (-score(room), room.name))]


def _free(room: Room, task: Task) -> int:
    """What a node has free of what a task is packed by: GPUs, or CPU if it asks for none."""
    return room.free.gpus if task.amount.gpus else room.free.cpu


def _has(room: Room, task: Task) -> bool:
    return bool(room.total.gpus if task.amount.gpus else room.total.cpu)
