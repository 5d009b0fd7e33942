"""The results of one simulation as tables: columns of equal length, one row a job, a stay, a node or a moment.

    run = Run(policy="packing", seed=1, ...)
    run.jobs.ended - run.jobs.submitted        # completion times, nan for what has not ended
    run.stays.node                             # row numbers of run.nodes.name

Times are seconds since the start of the simulation; nan stands for what has not happened by its end. Amounts are in
Kubernetes' units (CPUs, bytes, GPUs) as floats. Files of raw results (`--results`) have these columns by these names.
"""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Texts = NDArray[np.object_]

FINISHED, FAILED, RUNNING, WAITING = "Finished", "Failed", "Running", "Waiting"
"""What jobs are at the end. A job that was interrupted and has not started again is Waiting."""
EVICTED, NODE_LOST = "Evicted", "NodeLost"
"""How stays end besides Finished and Failed; one that has not ended is Running."""
UP, DOWN, CORDONED = "Up", "Down", "Cordoned"
"""What nodes are."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length, each an array."""

    name: ClassVar[str]
    """Of the file."""

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """All columns by name, in order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))


@dataclass(frozen=True)
class Jobs(Table):
    """One row a job, in the order of their arrival."""

    name: ClassVar[str] = "jobs"
    job: Texts
    """namespace/name"""
    queue: Texts
    """The queue that it was submitted to, a LocalQueue as namespace/name; its namespace if it names none."""
    priority: Ints
    size_class: Texts
    """By its GPUs: `0`, `<1`, `1`, `2-8`, `9-64` or `>64`."""
    pods: Ints
    gpus: Floats
    """Of all its pods together, parts of GPUs included."""
    cpus: Floats
    memory: Floats
    """Bytes"""
    submitted: Floats
    started: Floats
    """When all its pods ran for the first time."""
    ended: Floats
    state: Texts
    """Finished, Failed, Running or Waiting."""
    ideal: Floats
    """Seconds from start to end if nothing interrupts it; nan if it never ran and does not say how long it works."""
    evictions: Ints
    """How often a pod of it lost its node: by preemption, by a taint or with the node."""
    lost: Floats
    """Pod-seconds of work that were done and lost: what came after the last checkpoint."""
    lost_gpu_seconds: Floats


@dataclass(frozen=True)
class Stays(Table):
    """One row for each time that a pod was on a node, in the order in which they were bound."""

    name: ClassVar[str] = "stays"
    job: Ints
    """Row of Jobs."""
    pod: Ints
    """Number of the pod within its job, from 0."""
    node: Ints
    """Row of Nodes."""
    bound: Floats
    started: Floats
    """When its containers ran."""
    ended: Floats
    """When it left the node; of a node that failed, when the cluster gave it up."""
    outcome: Texts
    """Finished, Failed, Evicted, NodeLost, or Running if it has not ended."""
    gpus: Floats
    cpus: Floats
    memory: Floats


@dataclass(frozen=True)
class Nodes(Table):
    """One row a node that there ever was."""

    name: ClassVar[str] = "nodes"
    node: Texts
    gpu_model: Texts
    """Empty: no GPUs, or nobody says which."""
    gpus: Floats
    cpus: Floats
    memory: Floats
    price: Floats
    """Per hour, in whichever currency the scenario has."""


@dataclass(frozen=True)
class NodeChanges(Table):
    """One row for each change of a node: from then on it is so."""

    name: ClassVar[str] = "node_changes"
    time: Floats
    node: Ints
    """Row of Nodes."""
    state: Texts
    """Up, Down (failed, or reclaimed) or Cordoned."""


@dataclass(frozen=True)
class Samples(Table):
    """One row a moment of a regular grid: how the cluster was then."""

    name: ClassVar[str] = "samples"
    time: Floats
    nodes_up: Ints
    nodes_used: Ints
    """Those with a pod of a job on them."""
    pods_running: Ints
    """On a node, those included that are about to start."""
    pods_waiting: Ints
    jobs_running: Ints
    jobs_waiting: Ints
    fragmentation: Floats
    """GPUs that are idle and of no use to typical pods (see plugins/gpu_fragmentation.py)."""
    cost: Floats
    """Of all nodes that were up, so far."""


@dataclass(frozen=True)
class Amounts(Table):
    """One row for each sample, resource and GPU model."""

    name: ClassVar[str] = "amounts"
    time: Floats
    resource: Texts
    """`cpu`, `memory`, `gpu` or an extended resource by its name."""
    model: Texts
    """Of GPUs; empty for other resources, and for all models together."""
    capacity: Floats
    """Of nodes that are up."""
    allocated: Floats
    """Requested by pods on nodes that are up."""
    used: Floats
    """Requested by pods whose containers run."""


@dataclass(frozen=True)
class QueueAmounts(Table):
    """One row for each sample and queue."""

    name: ClassVar[str] = "queues"
    time: Floats
    queue: Texts
    jobs_running: Ints
    jobs_waiting: Ints
    dominant_share: Floats
    """The largest of its shares of the cluster's CPU, memory and GPUs."""
    gpus: Floats
    cpus: Floats
    memory: Floats


@dataclass(frozen=True)
class Totals:
    """What has to be added up as time passes: integrals of amounts over time, by resource and GPU model."""

    resource: tuple[str, ...]
    model: tuple[str, ...]
    capacity: tuple[float, ...]
    """Amount-seconds: of CPUs, CPU-seconds."""
    allocated: tuple[float, ...]
    used: tuple[float, ...]
    node_seconds_up: float
    node_seconds_used: float
    most_nodes_used: int
    """Of all moments: the nodes that were needed, as they were used."""
    cost: float
    preemptions: int
    """Pods evicted for somebody else's sake."""
    cycles: int
    decisions: int


@dataclass(frozen=True)
class Run:
    """Everything that one simulation gave."""

    policy: str
    seed: int
    horizon: float
    """Seconds that were simulated."""
    jobs: Jobs
    stays: Stays
    nodes: Nodes
    node_changes: NodeChanges
    samples: Samples
    amounts: Amounts
    queues: QueueAmounts
    totals: Totals

    def held_until(self) -> Floats:
        """By stay: until when the pod held what it asked for. On a node that is down it holds nothing."""
        stays, changes = self.stays, self.node_changes
        until: Floats = np.where(np.isnan(stays.ended), self.horizon, stays.ended)
        is_down = changes.state == DOWN
        for node in np.unique(changes.node[is_down]):
            of_node = changes.node == node
            down, up = changes.time[of_node & is_down], changes.time[of_node & ~is_down]
            rows = np.flatnonzero(stays.node == node)
            bound = stays.bound[rows]
            next_down = np.append(down, np.inf)[np.searchsorted(down, bound)]
            until[rows] = np.minimum(until[rows], next_down)
            last_down = np.append(-np.inf, down)[np.searchsorted(down, bound, side="right")]
            last_up = np.append(-np.inf, up)[np.searchsorted(up, bound, side="right")]
            until[rows] = np.where(last_down > last_up, bound, until[rows])
        return until

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.jobs, self.stays, self.nodes, self.node_changes, self.samples, self.amounts, self.queues)


SIZE_CLASSES = ((0.0, "0"), (1.0, "<1"), (2.0, "1"), (9.0, "2-8"), (65.0, "9-64"), (float("inf"), ">64"))


def size_class(gpus: float) -> str:
    """The class of a job by its GPUs.

    >>> [size_class(gpus) for gpus in (0, 0.5, 1, 8, 9, 65)]
    ['0', '<1', '1', '2-8', '9-64', '>64']
    """
    if gpus <= 0:
        return "0"
    return next(text for bound, text in SIZE_CLASSES[1:] if gpus < bound)
