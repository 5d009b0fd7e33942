"""Scenarios: ever more victims for the same pending tasks, in the reverse order of jobs, until there may be room.

What was found to be needed for fewer of the tasks is in every scenario from the start: those victims are recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mooring.actions.shares.kai.solver.jobs import Job, JobView, Task
from mooring.actions.shares.kai.solver.order import Turns
from mooring.actions.shares.kai.solver.session import Session

VictimSet = tuple[Task, ...]
"""Tasks of one job that were gathered together."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Pending tasks as a job of their own, and the victims so far."""

    pending: JobView
    recorded: tuple[VictimSet, ...]
    gathered: tuple[VictimSet, ...] = ()
    """In the order in which they were added."""

    @property
    def recorded_tasks(self) -> list[Task]:
        return [task for found in self.recorded for task in found]

    @property
    def victims(self) -> list[Task]:
        return [task for found in (*self.recorded, *self.gathered) for task in found]

    def victims_by_job(self, session: Session) -> dict[str, list[Task]]:
        by_job: dict[str, list[Task]] = {}
        for task in self.victims:
            by_job.setdefault(session.job_of[task.uid].uid, []).append(task)
        return by_job

    def latest_job(self, session: Session) -> Job | None:
        return session.job_of[self.gathered[-1][0].uid] if self.gathered else None

    def victims_with(self, session: Session, node: str) -> list[Task]:
        """All gathered tasks of the jobs that have a gathered task on this node."""
        jobs = {
            session.job_of[task.uid].uid
            for found in self.gathered
            for task in found
            if session.states[task.uid].node == node
        }
        return [task for found in self.gathered for task in found if session.job_of[task.uid].uid in jobs]

    def set_of(self, task: Task) -> VictimSet:
        """The set with which a victim was gathered."""
        return next(found for found in (*self.recorded, *self.gathered) if task in found)


def grow_scenarios(
    session: Session, pending: JobView, recorded: Sequence[VictimSet], candidates: Turns
) -> Iterator[Scenario]:
    """Yield every scenario that passes the quick test: at first with the recorded victims only."""
    scenario = Scenario(pending, tuple(recorded))
    known = frozenset(task.uid for task in scenario.recorded_tasks)
    room = {name: found.idle_gpus() + found.releasing_gpus() for name, found in session.rooms.items()}
    for task in scenario.recorded_tasks:
        room[session.states[task.uid].node] += task.amount.gpus
    if may_have_room(pending, room):
        yield scenario
    while candidates:
        view = candidates.pop()
        victims = tuple(view.next_victims(session.states))
        if not known.isdisjoint(task.uid for task in victims):
            rest = view.without(known)
            if rest.tasks:
                candidates.push(rest)
            continue
        if len(victims) < view.placed(session.states):
            candidates.push(view.without(task.uid for task in victims))
        if victims:
            scenario = Scenario(pending, scenario.recorded, (*scenario.gathered, victims))
            for task in victims:
                room[session.states[task.uid].node] += task.amount.gpus
        if may_have_room(pending, room):
            yield scenario


def may_have_room(pending: JobView, room: Mapping[str, int]) -> bool:
    """Test quickly whether the tasks fit onto as many nodes, those with most GPUs once all victims are gone."""
    nodes = sorted(room.values(), reverse=True)[: len(pending.tasks)]
    taken = [0] * len(nodes)
    for gpus in sorted((task.amount.gpus for task in pending.tasks if task.amount.gpus), reverse=True):
        for position, most in enumerate(nodes):
            if most < gpus:
                return False
            if most - taken[position] >= gpus:
                taken[position] += gpus
                break
        else:
            return False
    return True
