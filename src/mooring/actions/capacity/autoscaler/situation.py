"""What the autoscaler looks at: node groups, the objects of the cluster, and facts about them that decisions read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
from msgspec.structs import replace

from mooring.config.autoscaler import GroupOptions
from mooring.model.api.meta import OwnerReference, timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.api.workloads import DaemonSet
from mooring.model.values.quantity import parse_quantity
from mooring.state.cluster import Cluster
from mooring.state.remembered import Derived

DAEMON_SET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
MIRROR = "kubernetes.io/config.mirror"
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
NVIDIA_GPU = "nvidia.com/gpu"
GPU_RESOURCES = (NVIDIA_GPU, "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx")
NOT_READY_TAINTS = frozenset(
    ("node.kubernetes.io/not-ready", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/network-unavailable")
)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one kind, of which a cloud provider has as many as it is told to have."""

    name: str
    min_size: int
    max_size: int
    nodes: tuple[str, ...] = ()
    """The names of its nodes."""
    target: int = 0
    """The size that the provider was told last."""
    template: Node | None = None
    """What a new node is like, where no live one shows it."""
    price: float = 0.0
    """Of a node, for an hour."""
    options: GroupOptions = field(default_factory=GroupOptions)

    @property
    def room(self) -> int:
        """How many nodes more it may have."""
        return max(self.max_size - self.target, 0)


@dataclass(frozen=True, slots=True)
class Prices:
    """What one unit costs for an hour: a CPU, a GiB of memory and a GPU."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0


@dataclass(frozen=True, slots=True)
class ControllerKey:
    """A workload that keeps pods alive."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Situation:
    """The cluster at one moment."""

    now: float
    """Seconds since 1970."""
    groups: Sequence[NodeGroup]
    nodes: Sequence[Node]
    pods: Sequence[Pod] = ()
    """Those that are bound."""
    pending: Sequence[Pod] = ()
    daemon_sets: Sequence[DaemonSet] = ()
    controllers: Mapping[ControllerKey, int | None] = field(default_factory=dict)
    """The workloads that exist, with how many replicas they ask for, if they say."""
    budgets: Sequence[PodDisruptionBudget] = ()
    prices: Prices = field(default_factory=Prices)

    @cached_property
    def group_of(self) -> Mapping[str, NodeGroup]:
        """The group of each node that has one, by name."""
        return {node: group for group in self.groups for node in group.nodes}

    @cached_property
    def registered(self) -> Mapping[str, int]:
        """How many nodes of each group have come up, by name."""
        known = {node.name for node in self.nodes}
        return {group.name: sum(name in known for name in group.nodes) for group in self.groups}

    @cached_property
    def pods_by_node(self) -> Mapping[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.pods:
            found.setdefault(pod.spec.node_name, []).append(pod)
        return found

    def populate(self, cluster: Cluster) -> None:
        """Let an empty cluster be this one. What has run to its end still has its place, until it is deleted."""
        bound = [_as_running(pod) if pod.is_terminal else pod for pod in self.pods]
        cluster.observe_many(self.nodes, [*bound, *self.pending])


_RUNNING = PodStatus(phase="Running")


def _as_running(pod: Pod) -> Pod:
    return replace(pod, status=_RUNNING)


# Facts about pods.


def controller_of(pod: Pod) -> OwnerReference | None:
    """The owner that keeps a pod alive."""
    return next((owner for owner in pod.metadata.owner_references or () if owner.controller), None)


def is_expendable(pod: Pod, cutoff: int) -> bool:
    """Whether a pod is so unimportant that neither is a node added for it, nor kept."""
    return pod.spec.priority is not None and pod.spec.priority < cutoff


def is_daemon(pod: Pod) -> bool:
    controller = controller_of(pod)
    if controller is not None and controller.kind == "DaemonSet":
        return True
    return (pod.metadata.annotations or {}).get(DAEMON_SET_POD) == "true"


def is_mirror(pod: Pod) -> bool:
    return MIRROR in (pod.metadata.annotations or {})


_encode = msgspec.msgpack.Encoder().encode


class Likeness:
    """Tells equal pods of a controller from others: by labels and spec."""

    def __init__(self) -> None:
        self._specs: Derived[int, tuple[object, bytes]] = Derived()

    def of(self, pod: Pod) -> tuple[bytes, tuple[tuple[str, str], ...]]:
        """A value that equal pods share; pods made from one template share the spec itself, which is encoded once."""
        known = self._specs.get(id(pod.spec))
        if known is None:
            known = self._specs.put(id(pod.spec), (pod.spec, _encode(pod.spec)))
        return known[1], tuple(sorted((pod.metadata.labels or {}).items()))


# Facts about nodes.


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a node is ready, and since when that is so."""

    is_ready: bool
    since: float = 0.0


def readiness(node: Node) -> Readiness:
    """Read a node's conditions and taints. A node that says nothing of its conditions, as in a manifest, is ready."""
    is_ready = not any(taint.key in NOT_READY_TAINTS for taint in node.spec.taints or ())
    if node.status.conditions is None:
        return Readiness(is_ready)
    is_known, since = False, 0.0
    for condition in node.status.conditions:
        if condition.type == "Ready":
            is_known = True
            is_ready = is_ready and condition.status not in ("False", "Unknown")
        elif condition.type in ("DiskPressure", "NetworkUnavailable"):
            is_ready = is_ready and condition.status != "True"
        else:
            continue
        since = max(since, timestamp_seconds(condition.last_transition_time) or 0.0)
    return Readiness(is_ready and is_known, since)


def gpu_resource(node: Node, gpu_label: str) -> str | None:
    """The resource by which a node has GPUs, also if none is usable yet; None if it has no GPUs."""
    allocatable = node.status.allocatable or {}
    found = next((name for name in GPU_RESOURCES if parse_quantity(allocatable.get(name, 0)) > 0), None)
    return found or (NVIDIA_GPU if gpu_label in (node.metadata.labels or {}) else None)
