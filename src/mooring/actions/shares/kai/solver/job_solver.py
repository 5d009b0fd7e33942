"""Make room for the next tasks of a job: solve it for one task, for two, and so on, each time with the victims so far.

A scenario is tried out node by node. The victims on the node are evicted, then jobs take their turns in KAI's order:
the pending tasks and the jobs of the victims are placed, so that a victim may move, or stay where it is.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mooring.actions.shares.kai.solver.jobs import JobView, Status, Task
from mooring.actions.shares.kai.solver.order import Turns
from mooring.actions.shares.kai.solver.placing import place_next
from mooring.actions.shares.kai.solver.scenarios import Scenario, VictimSet, grow_scenarios
from mooring.actions.shares.kai.solver.session import Session


@dataclass(frozen=True, slots=True)
class Approach:
    """What an action says of the victims that it takes."""

    candidates: Callable[[], Iterable[JobView]]
    """The jobs that may be victims."""
    accepts: Callable[[Scenario], bool]
    """Whether a solution is right, asked while it is tried out."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The victims of a solution: those without a place, and those that move."""

    lost: tuple[Task, ...]
    sets: tuple[VictimSet, ...]
    """The sets with which they were gathered."""


class Rejected:
    """The pending tasks have their places, but the action does not accept the solution."""


def solve(session: Session, view: JobView, approach: Approach) -> bool:
    """Make room for the next tasks of a job, and place them; if that cannot be, nothing is changed."""
    tasks = view.next_tasks(session.states)
    idle_nodes = find_feasible_nodes(session, view)
    solution = Solution((), ())
    for count in range(1, len(tasks) + 1):
        checkpoint = session.checkpoint()
        found = _solve_for(session, JobView(view.job, tuple(tasks[:count]), count), idle_nodes, solution, approach)
        if found is None:
            continue
        if count == len(tasks):
            return _is_whole(session, view)
        session.rollback(checkpoint)
        solution = found
    return False


def _is_whole(session: Session, view: JobView) -> bool:
    return sum(session.states[task.uid].status is not Status.PENDING for task in view.tasks) >= view.minimum


def find_feasible_nodes(session: Session, view: JobView) -> list[str]:
    """The nodes with idle GPUs, or such as are being released; all nodes for a job that can do without."""
    if any(not task.amount.gpus for task in view.tasks):
        return list(session.rooms)
    return [name for name, room in session.rooms.items() if room.idle_gpus() > 0 or room.releasing_gpus() > 0]


def _solve_for(
    session: Session, pending: JobView, idle_nodes: Sequence[str], before: Solution, approach: Approach
) -> Solution | None:
    nodes = dict.fromkeys(idle_nodes)
    nodes |= dict.fromkeys(session.states[task.uid].node for task in before.lost)
    candidates = Turns(session, approach.candidates(), for_victims=True)
    for scenario in grow_scenarios(session, pending, before.sets, candidates):
        checkpoint = session.checkpoint()
        found = _try_scenario(session, scenario, nodes, approach)
        if isinstance(found, Solution):
            return found
        session.rollback(checkpoint)
    return None


def _try_scenario(
    session: Session, scenario: Scenario, nodes: dict[str, None], approach: Approach
) -> Solution | Rejected | None:
    recorded = scenario.recorded_tasks
    latest = scenario.latest_job(session)
    if latest is None:
        if not recorded:
            return None
        for task in recorded:
            session.evict(task)
        return _simulate(session, scenario, recorded, nodes, approach)
    for node in sorted({session.states[task.uid].node for task in latest.tasks}):
        checkpoint = session.checkpoint()
        victims = [*recorded, *scenario.victims_with(session, node)]
        new_nodes = [home for task in victims[len(recorded) :] if (home := session.states[task.uid].node) not in nodes]
        nodes |= dict.fromkeys(new_nodes)
        for task in victims:
            session.evict(task)
        found = _simulate(session, scenario, victims, nodes, approach)
        if found is not None:
            # The nodes of a solution that was not accepted stay among those that later scenarios may use.
            return found
        for home in new_nodes:
            nodes.pop(home, None)
        session.rollback(checkpoint)
    return None


def _simulate(
    session: Session, scenario: Scenario, victims: Sequence[Task], nodes: Iterable[str], approach: Approach
) -> Solution | Rejected | None:
    if not _place_in_turn(session, scenario.pending, victims, list(nodes)):
        return None
    if not approach.accepts(scenario):
        return Rejected()
    lost = tuple(task for task in victims if session.states[task.uid].status in (Status.RELEASING, Status.NOMINATED))
    return Solution(lost, tuple(dict.fromkeys(scenario.set_of(task) for task in lost)))


def _place_in_turn(session: Session, pending: JobView, victims: Sequence[Task], nodes: Sequence[str]) -> bool:
    """Place the pending tasks and the victims' jobs, in order; say whether the pending tasks have places."""
    at_stake = {session.job_of[task.uid].uid for task in victims} | {pending.job.uid}
    waiting = [uid for uid in session.jobs if uid in at_stake or has_pending(session, session.views[uid])]
    turns = Turns(session, (pending if uid == pending.job.uid else session.views[uid] for uid in waiting))
    is_placed = False
    while at_stake:
        view = turns.pop()
        if view.job.uid not in at_stake:
            continue
        at_stake.remove(view.job.uid)
        placed = place_next(session, view, nodes, nominate_only=True)
        if view.job.uid == pending.job.uid:
            if not placed:
                return False
            is_placed = True
    return is_placed


def has_pending(session: Session, view: JobView) -> bool:
    return any(session.states[task.uid].status is Status.PENDING for task in view.tasks)
