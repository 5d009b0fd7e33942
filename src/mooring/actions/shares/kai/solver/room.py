"""What a node has for tasks: whole GPUs, and GPUs that several tasks share.

`idle` is what nobody has. `releasing` is what evicted tasks will leave, less what was nominated there, so that the sum
of the two is what can be nominated. GPUs in parts count in neither, but in `shared`; a shared GPU that all its tasks
leave counts as a whole one that is being released.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mooring.actions.shares.kai.solver.jobs import NOTHING, ONE_GPU, Amount, Status, Task

WHOLE = ""
"""In place of a shared GPU: one that no task has."""


@dataclass(frozen=True, slots=True)
class SharedGpu:
    """A GPU in parts, in thousandths."""

    used: int = 0
    """By tasks that have it, leave it, or will come to it."""
    releasing: int = 0
    """By those that leave it, less those that will come."""
    allocated: int = 0
    """By those that have it or leave it."""
    is_marked: bool = False
    """Whether the node counts it among the whole GPUs that are being released."""

    @property
    def is_left_by_all(self) -> bool:
        return self.used != 0 and self.releasing == self.used

    def fits(self, part: int) -> bool:
        has_room = ONE_GPU - self.allocated + self.releasing >= part
        return self.used != 0 and has_room and self.allocated != self.releasing

    def is_idle_for(self, part: int) -> bool:
        return self.allocated > 0 and ONE_GPU - self.allocated >= part


@dataclass(frozen=True, slots=True)
class Occupant:
    """A task on a node."""

    amount: Amount
    status: Status
    gpu: str


@dataclass(frozen=True, slots=True)
class Room:
    """A node in the middle of a decision. Every change makes a new one."""

    name: str
    total: Amount
    idle: Amount
    releasing: Amount = NOTHING
    used_gpus: int = 0
    tasks: Mapping[str, Occupant] = field(default_factory=dict)
    shared: Mapping[str, SharedGpu] = field(default_factory=dict)

    @property
    def free(self) -> Amount:
        """What can be nominated."""
        return self.idle.plus(self.releasing)

    def put(self, uid: str, occupant: Occupant) -> "Room":
        """Add a task. If it is there already, what it has stays as it is, such as on the GPU that it leaves."""
        whole = occupant.amount._replace(gpus=0) if occupant.gpu else occupant.amount
        idle, releasing = self.idle, self.releasing
        if occupant.status is Status.RELEASING:
            idle, releasing = idle.minus(whole), releasing.plus(whole)
        elif occupant.status is Status.NOMINATED:
            releasing = releasing.minus(whole)
        else:
            idle = idle.minus(whole)
        room = replace(
            self,
            idle=idle,
            releasing=releasing,
            used_gpus=self.used_gpus + whole.gpus,
            tasks={**self.tasks, uid: occupant},
        )
        return room._put_on_gpu(occupant) if occupant.gpu else room

    def take(self, uid: str) -> "Room":
        """Remove a task."""
        occupant = self.tasks[uid]
        whole = occupant.amount._replace(gpus=0) if occupant.gpu else occupant.amount
        idle, releasing = self.idle, self.releasing
        if occupant.status is Status.RELEASING:
            idle, releasing = idle.plus(whole), releasing.minus(whole)
        elif occupant.status is Status.NOMINATED:
            releasing = releasing.plus(whole)
        else:
            idle = idle.plus(whole)
        room = replace(
            self,
            idle=idle,
            releasing=releasing,
            used_gpus=self.used_gpus - whole.gpus,
            tasks={other: found for other, found in self.tasks.items() if other != uid},
        )
        return room._take_from_gpu(occupant) if occupant.gpu else room

    # Fitting

    def fits_idle(self, task: Task) -> bool:
        """Whether a task can be bound, by what evicted tasks have not yet left."""
        return self._fits(task, self.idle)

    def fits(self, task: Task) -> bool:
        """Whether a task can be nominated."""
        return self._fits(task, self.free)

    def _fits(self, task: Task, room: Amount) -> bool:
        if not task.is_part:
            return task.amount.fits(room)
        if not task.amount._replace(gpus=0).fits(room):
            return False
        return room.gpus >= ONE_GPU or self.has_shared_room(task)

    def has_shared_room(self, task: Task) -> bool:
        """Whether a GPU that others share has room for a part of it."""
        return task.is_part and any(gpu.fits(task.amount.gpus) for gpu in self.shared.values())

    def best_gpu(self, task: Task) -> str | None:
        """The GPU for a part of one: the fullest with room, else a whole one, else None."""
        part = task.amount.gpus
        fitting = [(-gpu.used, name) for name, gpu in self.shared.items() if gpu.fits(part)]
        if fitting:
            return min(fitting)[1]
        whole_gpus = int(self.idle.gpus / ONE_GPU) + int(self.releasing.gpus / ONE_GPU)
        return WHOLE if whole_gpus > 0 else None

    # Sums of whole and shared GPUs

    def idle_gpus(self) -> int:
        shared = (ONE_GPU - gpu.allocated for gpu in self.shared.values() if gpu.allocated > 0)
        return self.idle.gpus + sum(shared)

    def releasing_gpus(self) -> int:
        parts = (gpu.releasing for gpu in self.shared.values() if gpu.releasing > 0 and not gpu.is_left_by_all)
        return self.releasing.gpus + sum(parts)

    # Shared GPUs

    def _used_count(self, shared: Mapping[str, SharedGpu]) -> int:
        """The GPUs that tasks have, whole or in parts, in thousandths."""
        return self.used_gpus + ONE_GPU * sum(gpu.used > 0 for gpu in shared.values())

    def _with_gpu(self, name: str, gpu: SharedGpu, *, idle: int = 0, releasing: int = 0) -> "Room":
        return replace(
            self,
            shared={**self.shared, name: gpu},
            idle=self.idle._replace(gpus=self.idle.gpus + idle),
            releasing=self.releasing._replace(gpus=self.releasing.gpus + releasing),
        )

    def _put_on_gpu(self, occupant: Occupant) -> "Room":
        part, before = occupant.amount.gpus, self.shared.get(occupant.gpu, SharedGpu())
        gpu = replace(before, used=before.used + part)
        if occupant.status is Status.NOMINATED:
            takes_whole = before.used == before.releasing
            gpu = replace(gpu, releasing=gpu.releasing - part)
            return self._with_gpu(occupant.gpu, gpu, releasing=-ONE_GPU if takes_whole else 0)
        gpu = replace(gpu, allocated=gpu.allocated + part)
        used = self._used_count({**self.shared, occupant.gpu: gpu})
        opens = -ONE_GPU if self.total.gpus < self.idle.gpus + used else 0
        if occupant.status is Status.RELEASING:
            gpu = replace(gpu, releasing=gpu.releasing + part)
            if gpu.used != gpu.releasing:
                return self._with_gpu(occupant.gpu, gpu)
            freed = 0 if gpu.is_marked else ONE_GPU
            return self._with_gpu(occupant.gpu, replace(gpu, is_marked=True), idle=opens, releasing=freed)
        freed = -ONE_GPU if gpu.is_marked else 0
        is_first = gpu.used <= part
        return self._with_gpu(
            occupant.gpu, replace(gpu, is_marked=False), idle=opens if is_first else 0, releasing=freed
        )

    def _take_from_gpu(self, occupant: Occupant) -> "Room":
        part, before = occupant.amount.gpus, self.shared[occupant.gpu]
        gpu = replace(before, used=before.used - part)
        if occupant.status is Status.NOMINATED:
            gpu = replace(gpu, releasing=gpu.releasing + part)
            took_whole = before.used == before.releasing or (gpu.used == 0 and gpu.releasing == 0)
            return self._with_gpu(occupant.gpu, gpu, releasing=ONE_GPU if took_whole else 0)
        gpu = replace(gpu, allocated=gpu.allocated - part)
        used = self._used_count({**self.shared, occupant.gpu: gpu})
        closes = ONE_GPU if gpu.used <= 0 and self.total.gpus >= self.idle.gpus + used else 0
        if occupant.status is Status.RELEASING:
            gpu = replace(gpu, releasing=gpu.releasing - part)
            if gpu.used > 0:
                return self._with_gpu(occupant.gpu, gpu)
            freed = -ONE_GPU if gpu.is_marked else 0
            return self._with_gpu(occupant.gpu, replace(gpu, is_marked=False), idle=closes, releasing=freed)
        marks = gpu.is_left_by_all and not gpu.is_marked
        gpu = replace(gpu, is_marked=gpu.is_marked or marks)
        return self._with_gpu(occupant.gpu, gpu, idle=closes, releasing=ONE_GPU if marks else 0)
