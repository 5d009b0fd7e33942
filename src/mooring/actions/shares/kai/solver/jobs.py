"""What KAI decides on: nodes, and pod groups as jobs with their tasks. Plain values, from any source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

ONE_GPU = 1000
"""GPUs are counted in thousandths, because a task may ask for a part of one."""


class Amount(NamedTuple):
    """What KAI counts of a task, a node or a queue."""

    gpus: int = 0
    """In thousandths."""
    cpu: int = 0
    """In thousandths."""
    memory: int = 0
    """In bytes."""

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.gpus + other.gpus, self.cpu + other.cpu, self.memory + other.memory)

    def minus(self, other: "Amount") -> "Amount":
        return Amount(self.gpus - other.gpus, self.cpu - other.cpu, self.memory - other.memory)

    def fits(self, room: "Amount") -> bool:
        return self.gpus <= room.gpus and self.cpu <= room.cpu and self.memory <= room.memory


NOTHING = Amount()


def total_of(amounts: Iterable[Amount]) -> Amount:
    total = NOTHING
    for amount in amounts:
        total = total.plus(amount)
    return total


class Status(Enum):
    """What is known of a task in the middle of a decision."""

    PENDING = "pending"
    RUNNING = "running"
    BOUND = "bound"
    """It is bound to a node in this round."""
    NOMINATED = "nominated"
    """It has a place on a node that others have yet to leave."""
    RELEASING = "releasing"
    """It was evicted."""

    @property
    def has_place(self) -> bool:
        """Whether it has a node, or will have one."""
        return self is Status.RUNNING or self is Status.BOUND or self is Status.NOMINATED

    @property
    def is_allocated(self) -> bool:
        """Whether it has a node now."""
        return self in (Status.RUNNING, Status.BOUND)


@dataclass(frozen=True, slots=True)
class Task:
    """A pod of a job."""

    uid: str
    amount: Amount
    node: str = ""
    """Where it runs; empty if it waits."""
    gpu: str = ""
    """Which GPU of the node, if it has a part of one."""
    nodes: frozenset[str] | None = None
    """The nodes that it may be on; None: all."""

    @property
    def is_part(self) -> bool:
        """Whether it asks for a part of a GPU."""
        return 0 < self.amount.gpus < ONE_GPU


@dataclass(frozen=True, slots=True)
class Job:
    """A pod group."""

    uid: str
    queue: str
    tasks: tuple[Task, ...]
    minimum: int
    priority: int = 0
    is_preemptible: bool = True
    may_move: bool = True
    """Whether consolidation may take it, if it is preemptible."""
    created: float = 0.0
    runs_for_seconds: float | None = None
    """How long ago it started; None if it never did."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node, with what it has for the tasks of jobs."""

    name: str
    total: Amount


@dataclass(frozen=True, slots=True)
class TaskState:
    """Where a task is in the middle of a decision."""

    status: Status
    node: str = ""
    gpu: str = ""
    is_virtual: bool = False
    """Whether it became so in a solution that is being tried out, and can be given another place in it."""
    evicted_from: "TaskState | None" = None
    """What it was before it was evicted in such a solution."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job, or some of its tasks taken for a job of their own."""

    job: Job
    tasks: tuple[Task, ...]
    minimum: int

    @classmethod
    def whole(cls, job: Job) -> "JobView":
        return cls(job, job.tasks, job.minimum)

    def without(self, uids: Iterable[str]) -> "JobView":
        gone = frozenset(uids)
        return JobView(self.job, tuple(task for task in self.tasks if task.uid not in gone), self.minimum)

    def placed(self, states: Mapping[str, TaskState]) -> int:
        """How many of its tasks have a place."""
        return sum(states[task.uid].status.has_place for task in self.tasks)

    def standing(self, states: Mapping[str, TaskState]) -> int:
        """Whether it has fewer tasks than its minimum (-1), as many (0) or more (1)."""
        placed = self.placed(states)
        return (placed > self.minimum) - (placed < self.minimum)

    def allocated(self, states: Mapping[str, TaskState]) -> Amount:
        """What its tasks hold now, without those that are only nominated."""
        return total_of(task.amount for task in self.tasks if states[task.uid].status.is_allocated)

    def next_tasks(self, states: Mapping[str, TaskState]) -> list[Task]:
        """The tasks that are placed together next: as many as its minimum lacks, else one.

        Among them are tasks that were evicted in a solution that is being tried out.
        """
        waiting = [
            task
            for task in self.tasks
            if (state := states[task.uid]).status is Status.PENDING
            or (state.status is Status.RELEASING and state.is_virtual)
        ]
        waiting.sort(key=lambda task: task.uid)
        lacking = self.minimum - self.placed(states)
        return waiting[: lacking if lacking > 0 else 1]

    def next_amount(self, states: Mapping[str, TaskState]) -> Amount:
        return total_of(task.amount for task in self.next_tasks(states))

    def next_victims(self, states: Mapping[str, TaskState]) -> list[Task]:
        """The tasks that are evicted together first: the last beyond its minimum, else all."""
        placed = [task for task in self.tasks if states[task.uid].status.has_place]
        placed.sort(key=lambda task: task.uid, reverse=True)
        return placed[:1] if len(placed) > self.minimum else placed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a task in a round."""

    word: str
    """running, bound, nominated, moved, evicted or pending."""
    node: str = ""
    gpu: str = field(default="", compare=False)
