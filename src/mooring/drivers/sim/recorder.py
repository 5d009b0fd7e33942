"""What becomes of a simulation, noted as it happens: columns that grow, amounts that are added up over time."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from mooring.drivers.sim.amounts import Asked, Held
from mooring.report.simulation.results import (
    WAITING,
    Amounts,
    Floats,
    Ints,
    Jobs,
    NodeChanges,
    Nodes,
    QueueAmounts,
    Run,
    Samples,
    Stays,
    Table,
    Texts,
    Totals,
    size_class,
)

TableT = TypeVar("TableT", bound=Table)
NEVER = float("nan")
CPU, MEMORY, GPU = "cpu", "memory", "gpu"
UNITS = {MEMORY: 1}
"""Memory is counted in bytes, everything else in thousandths."""


class Columns:
    """The columns of one table as it grows, of types that the table says."""

    def __init__(self, table: type[Table]) -> None:
        self.table = table
        self.of: dict[str, Any] = {}
        for field in fields(table):
            kind = field.type
            self.of[field.name] = array("d") if kind is Floats else array("q") if kind is Ints else []

    def add(self, *values: Any) -> int:
        """Add a row; return its number."""
        for column, value in zip(self.of.values(), values, strict=True):
            column.append(value)
        return len(next(iter(self.of.values()))) - 1

    def finish(self, type_: type[TableT]) -> TableT:
        return type_(**{name: _frozen(column) for name, column in self.of.items()})


def _frozen(column: Any) -> Any:
    if isinstance(column, array):
        return np.array(column, np.float64 if column.typecode == "d" else np.int64)
    texts: Texts = np.empty(len(column), np.object_)
    texts[:] = column
    return texts


class Level:
    """An amount over time: what it is now, and how much of it there has been, in amount-seconds."""

    __slots__ = ("_since", "now", "total")

    def __init__(self) -> None:
        self.now: float = 0
        self.total = 0.0
        self._since = 0.0

    def change(self, at: float, by: float) -> None:
        self.total += self.now * (at - self._since)
        self._since = at
        self.now += by

    def until(self, at: float) -> float:
        self.change(at, 0)
        return self.total


class Kind:
    """One resource, of one GPU model if it is a GPU."""

    __slots__ = ("allocated", "capacity", "used")

    def __init__(self) -> None:
        self.capacity, self.allocated, self.used = Level(), Level(), Level()


class QueueLevels:
    """What one queue has, and how many of its jobs run and wait."""

    __slots__ = ("cpu", "gpu", "jobs_running", "jobs_waiting", "memory")

    def __init__(self) -> None:
        self.cpu = self.memory = self.gpu = 0
        self.jobs_running = self.jobs_waiting = 0


class Recorder:
    """Notes everything that the results are made of. Times are seconds since the start of the simulation."""

    def __init__(self, fragmentation: Callable[[], float]) -> None:
        """`fragmentation` tells the GPUs that are of no use as the cluster is now."""
        self._fragmentation = fragmentation
        self.jobs, self.stays, self.nodes = Columns(Jobs), Columns(Stays), Columns(Nodes)
        self.node_changes, self.samples = Columns(NodeChanges), Columns(Samples)
        self.amounts, self.queue_amounts = Columns(Amounts), Columns(QueueAmounts)
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._queues: dict[str, QueueLevels] = {}
        self._nodes_up, self._nodes_used, self._price = Level(), Level(), Level()
        self._prices: list[float] = []
        self._models: list[str] = []
        self.most_nodes_used = 0
        self.pods_running = self.pods_waiting = self.jobs_running = self.jobs_waiting = 0
        self.preemptions = self.cycles = self.decisions = 0

    def _kind(self, resource: str, model: str = "") -> Kind:
        found = self._kinds.get((resource, model))
        if found is None:
            found = self._kinds[resource, model] = Kind()
        return found

    def queue(self, name: str) -> QueueLevels:
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = QueueLevels()
        return found

    def _kinds_of(self, asked: Asked | Held, model: str) -> list[tuple[Kind, int]]:
        found = [(self._kind(CPU), asked.cpu), (self._kind(MEMORY), asked.memory)]
        if asked.gpu:
            found.append((self._kind(GPU), asked.gpu))
            if model:
                found.append((self._kind(GPU, model), asked.gpu))
        found += [(self._kind(name), amount) for name, amount in asked.others.items()]
        return found

    # Nodes.

    def add_node(self, name: str, held: Held, price: float) -> int:
        self._prices.append(price)
        self._models.append(held.gpu_model)
        return self.nodes.add(name, held.gpu_model, held.gpu / 1000, held.cpu / 1000, float(held.memory), price)

    def node_changed(self, at: float, node: int, state: str) -> None:
        self.node_changes.add(at, node, state)

    def node_counts(self, at: float, node: int, held: Held, by: int) -> None:
        """A node comes up (1) or goes down (-1)."""
        for kind, amount in self._kinds_of(held, held.gpu_model):
            kind.capacity.change(at, by * amount)
        self._nodes_up.change(at, by)
        self._price.change(at, by * self._prices[node])

    def nodes_used(self, at: float, by: int) -> None:
        self._nodes_used.change(at, by)
        self.most_nodes_used = max(self.most_nodes_used, int(self._nodes_used.now))

    # Jobs and their pods.

    def add_job(
        self, name: str, queue: str, priority: int, asked: list[Asked], at: float, duration: float = NEVER
    ) -> int:
        """A job was submitted; its row."""
        gpus = sum(each.gpu for each in asked) / 1000
        cpus, memory = sum(each.cpu for each in asked) / 1000, float(sum(each.memory for each in asked))
        self.jobs_waiting += 1
        self.queue(queue).jobs_waiting += 1
        return self.jobs.add(
            *(name, queue, priority, size_class(gpus), len(asked), gpus, cpus, memory),
            *(at, NEVER, NEVER, WAITING, duration, 0, 0.0, 0.0),
        )

    def job_runs(self, queue: str, by: int) -> None:
        """A job has begun to run (1), or waits again (-1)."""
        levels = self.queue(queue)
        self.jobs_running += by
        self.jobs_waiting -= by
        levels.jobs_running += by
        levels.jobs_waiting -= by

    def job_left(self, queue: str, *, ran: bool) -> None:
        """A job is over."""
        levels = self.queue(queue)
        if ran:
            self.jobs_running -= 1
            levels.jobs_running -= 1
        else:
            self.jobs_waiting -= 1
            levels.jobs_waiting -= 1

    def bound(self, at: float, job: int, pod: int, node: int, asked: Asked) -> int:
        """A pod came to a node; the row of its stay."""
        self.pods_running += 1
        return self.stays.add(
            *(job, pod, node, at, NEVER, NEVER, "Running"),
            *(asked.gpu / 1000, asked.cpu / 1000, float(asked.memory)),
        )

    def holds(self, at: float, stay: int, asked: Asked, by: int) -> None:
        """A pod holds what it asks for of a node that is up (1), or no more (-1)."""
        for kind, amount in self._kinds_of(asked, self._models[self.stays.of["node"][stay]]):
            kind.allocated.change(at, by * amount)
        levels = self.queue(self.jobs.of["queue"][self.stays.of["job"][stay]])
        levels.cpu += by * asked.cpu
        levels.memory += by * asked.memory
        levels.gpu += by * asked.gpu

    def started(self, at: float, stay: int, asked: Asked) -> None:
        """The containers of a pod run."""
        self.stays.of["started"][stay] = at
        for kind, amount in self._kinds_of(asked, self._models[self.stays.of["node"][stay]]):
            kind.used.change(at, amount)

    def stopped(self, at: float, stay: int, asked: Asked) -> None:
        """They do not run any more."""
        for kind, amount in self._kinds_of(asked, self._models[self.stays.of["node"][stay]]):
            kind.used.change(at, -amount)

    def resized(self, at: float, stay: int, before: Asked, after: Asked) -> None:
        """Containers that run have other amounts from now on."""
        model = self._models[self.stays.of["node"][stay]]
        for sign, asked in ((-1, before), (1, after)):
            for kind, amount in self._kinds_of(asked, model):
                kind.used.change(at, sign * amount)

    def left(self, at: float, stay: int, outcome: str) -> None:
        """A pod is on its node no more."""
        self.pods_running -= 1
        self.stays.of["ended"][stay] = at
        self.stays.of["outcome"][stay] = outcome

    def evicted(self, job: int) -> None:
        """A pod of a job lost its node."""
        self.jobs.of["evictions"][job] += 1

    def lost(self, job: int, seconds: float, gpu: int) -> None:
        """A pod of a job lost so much work."""
        columns = self.jobs.of
        columns["lost"][job] += seconds
        columns["lost_gpu_seconds"][job] += seconds * gpu / 1000

    # Over time.

    def sample(self, at: float) -> None:
        """Note how things are at a moment of the grid."""
        self.samples.add(
            *(at, int(self._nodes_up.now), int(self._nodes_used.now), self.pods_running, self.pods_waiting),
            *(self.jobs_running, self.jobs_waiting, self._fragmentation(), self._price.until(at) / 3600),
        )
        for (resource, model), kind in self._kinds.items():
            unit = UNITS.get(resource, 1000)
            levels = (kind.capacity.now / unit, kind.allocated.now / unit, kind.used.now / unit)
            self.amounts.add(at, resource, model, *levels)
        for name, queue in self._queues.items():
            self.queue_amounts.add(
                *(at, name, queue.jobs_running, queue.jobs_waiting, self._dominant_share(queue)),
                *(queue.gpu / 1000, queue.cpu / 1000, float(queue.memory)),
            )

    def _dominant_share(self, queue: QueueLevels) -> float:
        pairs = ((queue.cpu, CPU), (queue.memory, MEMORY), (queue.gpu, GPU))
        shares = (
            amount / capacity for amount, resource in pairs if (capacity := self._kind(resource).capacity.now) > 0
        )
        return max(shares, default=0.0)

    def finish(self, policy: str, seed: int, horizon: float) -> Run:
        kinds = {key: kind for key, kind in self._kinds.items() if kind.capacity.until(horizon)}
        units = [UNITS.get(resource, 1000) for resource, _ in kinds]

        def integrals(levels: Iterable[Level]) -> tuple[float, ...]:
            return tuple(level.until(horizon) / unit for level, unit in zip(levels, units, strict=True))

        totals = Totals(
            resource=tuple(resource for resource, _ in kinds),
            model=tuple(model for _, model in kinds),
            capacity=integrals(kind.capacity for kind in kinds.values()),
            allocated=integrals(kind.allocated for kind in kinds.values()),
            used=integrals(kind.used for kind in kinds.values()),
            node_seconds_up=self._nodes_up.until(horizon),
            node_seconds_used=self._nodes_used.until(horizon),
            most_nodes_used=self.most_nodes_used,
            cost=self._price.until(horizon) / 3600,
            preemptions=self.preemptions,
            cycles=self.cycles,
            decisions=self.decisions,
        )
        return Run(
            policy,
            seed,
            horizon,
            self.jobs.finish(Jobs),
            self.stays.finish(Stays),
            self.nodes.finish(Nodes),
            self.node_changes.finish(NodeChanges),
            self.samples.finish(Samples),
            self.amounts.finish(Amounts),
            self.queue_amounts.finish(QueueAmounts),
            totals,
        )
