"""What happened in the world, as values: the only way in which anything enters the cluster state."""

from dataclasses import dataclass
from typing import TypeAlias

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision
from mooring.model.gangs.gang import Gang
from mooring.model.load.reports import LoadReport
from mooring.model.objects.picture import Related as Related
from mooring.model.places import CLUSTER_SCOPED
from mooring.model.queued.workloads import QueuedWorkload


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node was added, or changed: the node as it is now."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeLost:
    name: str


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod was added, or changed: the pod as it is now, bound if it has a node."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodLost:
    key: str
    """namespace/name"""


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """Anything else that scheduling reads was added or changed."""

    object: Related


@dataclass(frozen=True, slots=True)
class ObjectLost:
    kind: str
    key: str
    """namespace/name, or the name alone for kinds without a namespace"""


@dataclass(frozen=True, slots=True)
class GangSeen:
    """A gang was declared, or changed."""

    gang: Gang


@dataclass(frozen=True, slots=True)
class GangLost:
    key: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The world refused a decision, or could not carry it out: what the state assumed of it is undone.

    A pod that was to be bound waits again, a pod that was to be evicted runs on, a workload that was to be admitted is
    pending again, and one that was to be suspended holds its quota; a gang or a GPU is told again.
    """

    decision: Decision
    message: str = ""
    retry_after: float = 0.0
    """Seconds before the same decision is made again."""


@dataclass(frozen=True, slots=True)
class NodeLoadSeen:
    """A source reported what it measured on a node."""

    report: LoadReport


@dataclass(frozen=True, slots=True)
class NodeLoadLost:
    """A source reports nothing of a node any more."""

    node: str
    of_node: bool = True
    """Whether what was reported of the node and its pods is void."""
    of_gpus: bool = True
    """Whether what was reported of its GPUs is."""


@dataclass(frozen=True, slots=True)
class WorkloadSeen:
    """Work that queues was added, or changed: its workload and its pods as they are now."""

    workload: QueuedWorkload


@dataclass(frozen=True, slots=True)
class WorkloadLost:
    key: str
    """namespace/name of the workload"""


Event: TypeAlias = (
    NodeSeen
    | NodeLost
    | PodSeen
    | PodLost
    | ObjectSeen
    | ObjectLost
    | GangSeen
    | GangLost
    | Failed
    | WorkloadSeen
    | WorkloadLost
    | NodeLoadSeen
    | NodeLoadLost
)


def object_key(found: Related) -> str:
    """The key of an object among those of its kind: namespace/name, or the name alone for kinds without a namespace."""
    metadata = found.metadata
    if found.kind in CLUSTER_SCOPED or not metadata.namespace:
        return metadata.name
    return f"{metadata.namespace}/{metadata.name}"
