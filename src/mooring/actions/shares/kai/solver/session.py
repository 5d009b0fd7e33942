"""One round in the making: where every task is, what nodes have left and what queues hold, with undo.

What is tried out is rolled back by the log of what was there before. So only a round that is being decided holds a
session; nothing keeps one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mooring.actions.shares.kai.solver.jobs import (
    NOTHING,
    Amount,
    Job,
    JobView,
    Node,
    Outcome,
    Status,
    Task,
    TaskState,
)
from mooring.actions.shares.kai.solver.queues import Holding, Queues
from mooring.actions.shares.kai.solver.room import WHOLE, Occupant, Room

K = TypeVar("K")
V = TypeVar("V")


class Session:
    """What a round has decided so far."""

    def __init__(
        self, nodes: Iterable[Node], queues: Queues, jobs: Iterable[Job], held: Mapping[int, Amount] | None = None
    ) -> None:
        """`held`: what each queue holds in all, by row, if there are more jobs than these."""
        self.queues = queues
        self.jobs = {job.uid: job for job in jobs}
        self.views = {uid: JobView.whole(job) for uid, job in self.jobs.items()}
        self.job_of = {task.uid: job for job in self.jobs.values() for task in job.tasks}
        self.runs_for = {uid: job.runs_for_seconds for uid, job in self.jobs.items()}
        """How long each job has been running, in seconds."""
        self.rooms = {node.name: Room(node.name, node.total, idle=node.total) for node in nodes}
        self.states: dict[str, TaskState] = {}
        self.holdings = {row: Holding((held or {}).get(row, NOTHING)) for row in range(len(queues.tree))}
        self._log: list[tuple[dict[Any, Any], Any, Any]] = []
        for job in self.jobs.values():
            for task in job.tasks:
                self._start(task)
                if task.node and held is None:
                    self._count(job, task.amount)
        self.commit()

    def _start(self, task: Task) -> None:
        if not task.node:
            self.states[task.uid] = TaskState(Status.PENDING)
            return
        state = TaskState(Status.RUNNING, task.node, task.gpu)
        self.states[task.uid] = state
        self.rooms[task.node] = self.rooms[task.node].put(task.uid, Occupant(task.amount, state.status, state.gpu))

    # Trying out

    def checkpoint(self) -> int:
        return len(self._log)

    def rollback(self, checkpoint: int) -> None:
        while len(self._log) > checkpoint:
            table, key, before = self._log.pop()
            table[key] = before

    def commit(self) -> None:
        """Make all that was tried out so: evicted tasks get no other place in this round."""
        for uid in [key for table, key, _ in self._log if table is self.states]:
            self.states[uid] = replace(self.states[uid], evicted_from=None, is_virtual=False)
        self._log.clear()

    def _set(self, table: dict[K, V], key: K, value: V) -> None:
        self._log.append((table, key, table[key]))
        table[key] = value

    # Changes

    def evict(self, task: Task) -> None:
        """Evict a task from where it is, or will be."""
        before = self.states[task.uid]
        state = replace(before, status=Status.RELEASING, is_virtual=True, evicted_from=before)
        room = self.rooms[before.node].take(task.uid)
        self._set(self.rooms, before.node, room.put(task.uid, Occupant(task.amount, state.status, state.gpu)))
        self._set(self.states, task.uid, state)
        self._count(self.job_of[task.uid], _negative(task.amount))

    def bind(self, task: Task, node: str, gpu: str) -> None:
        self._enter(task, TaskState(Status.BOUND, node, gpu, is_virtual=True))

    def nominate(self, task: Task, node: str, gpu: str) -> None:
        """Give a task a place that others have yet to leave; a task that was evicted from this very node stays."""
        before = self.states[task.uid]
        occupant = self.rooms[node].tasks.get(task.uid)
        if occupant is not None and before.evicted_from is not None and (not gpu or gpu == occupant.gpu):
            self._stay(task, before.evicted_from)
            return
        state = TaskState(Status.NOMINATED, node, gpu, is_virtual=True, evicted_from=before.evicted_from)
        self._enter(task, state)

    def nominate_all(self, tasks: Iterable[Task]) -> None:
        """Have tasks that were bound wait with others of their job that cannot be bound yet."""
        for task in tasks:
            state = self.states[task.uid]
            if state.status is Status.BOUND:
                room = self.rooms[state.node].take(task.uid)
                nominated = replace(state, status=Status.NOMINATED)
                occupant = Occupant(task.amount, nominated.status, nominated.gpu)
                self._set(self.rooms, state.node, room.put(task.uid, occupant))
                self._set(self.states, task.uid, nominated)

    def _enter(self, task: Task, state: TaskState) -> None:
        room = self.rooms[state.node]
        self._set(self.rooms, state.node, room.put(task.uid, Occupant(task.amount, state.status, state.gpu)))
        self._set(self.states, task.uid, state)
        self._count(self.job_of[task.uid], task.amount)

    def _stay(self, task: Task, before: TaskState) -> None:
        room = self.rooms[before.node].take(task.uid)
        self._set(self.rooms, before.node, room.put(task.uid, Occupant(task.amount, before.status, before.gpu)))
        self._set(self.states, task.uid, before)
        self._count(self.job_of[task.uid], task.amount)

    def _count(self, job: Job, amount: Amount) -> None:
        for row in self.queues.way_up(self.queues.leaf(job)):
            self._set(self.holdings, row, self.holdings[row].changed(job, amount))

    def start(self, job: Job) -> None:
        """Note that a job starts now."""
        self._set(self.runs_for, job.uid, 0.0)

    # Reading

    def new_gpu(self, task: Task, node: str) -> str:
        """A name for a GPU of which a task is the first to have a part."""
        name = f"{node}/{task.uid}"
        while name in self.rooms[node].shared:
            name += "+"
        return name

    def gpu_for(self, task: Task, node: str) -> str | None:
        """The GPU that a task gets a part of; empty if it asks for whole ones, and None if there is none."""
        if not task.is_part:
            return WHOLE
        found = self.rooms[node].best_gpu(task)
        return self.new_gpu(task, node) if found == WHOLE else found

    def outcome(self, task: Task) -> Outcome:
        state = self.states[task.uid]
        if state.status is Status.PENDING:
            return Outcome("pending")
        if state.status is Status.RELEASING:
            return Outcome("evicted")
        if state.status is Status.NOMINATED and task.node:
            return Outcome("moved", state.node, state.gpu)
        return Outcome(state.status.value, state.node, state.gpu)


def _negative(amount: Amount) -> Amount:
    return Amount(-amount.gpus, -amount.cpu, -amount.memory)
