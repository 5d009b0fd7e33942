"""Nodes as people look at them: all of them as columns for a map, and one of them in full."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.values.requests import CPU, MEMORY, is_extended
from mooring.report.amounts import in_units
from mooring.report.names import Workloads
from mooring.state.cluster import Cluster

ZONE = "topology.kubernetes.io/zone"
RACK_LABELS = (
    "topology.kubernetes.io/rack",
    "cloud.provider.com/topology-rack",
    "topology.k8s.aws/network-node-layer-3",
    "cloud.google.com/gce-topology-subblock",
    "network.topology.nvidia.com/accelerator",
)
"""Where providers write a node's rack or network block; the first one that a node has counts."""
READY, UNSCHEDULABLE, NOT_READY = "ready", "unschedulable", "not ready"


class NodeMap(Struct, rename="camel"):
    """Every node, one list per fact: the position is the node's."""

    names: list[str]
    pools: list[str]
    zones: list[str]
    racks: list[str]
    states: list[str]
    """ready, unschedulable (cordoned), or not ready."""
    pods: list[int]
    allocated: dict[str, list[float | None]]
    """By resource: the requested part of what is allocatable, in percent; None where a node has none of it."""


class NodeAmount(Struct, rename="camel"):
    resource: str
    requested: float
    allocatable: float
    percent: float


class PodOnNode(Struct, rename="camel", omit_defaults=True):
    pod: str
    namespace: str
    priority: int
    requests: dict[str, float]
    owner: str = ""
    is_nominated: bool = False
    """It holds room here, and does not run yet."""


class NodeDetail(Struct, rename="camel"):
    name: str
    state: str
    pool: str
    zone: str
    rack: str
    labels: dict[str, str]
    taints: list[str]
    amounts: list[NodeAmount]
    pods: list[PodOnNode]


def node_map(cluster: Cluster, pool_of: Mapping[str, str]) -> NodeMap:
    """All nodes by name, with how much of each resource is requested."""
    nodes = cluster.nodes
    names = sorted(nodes.row_of)
    rows = [nodes.row_of[name] for name in names]
    found = [nodes.node(row) for row in rows]
    allocated = {}
    for resource in _resources(cluster):
        requested, allocatable = nodes.requested(resource)[rows], nodes.allocatable(resource)[rows]
        allocated[resource] = [
            round(100 * taken / there, 1) if there else None
            for taken, there in zip(requested.tolist(), allocatable.tolist(), strict=True)
        ]
    return NodeMap(
        names=names,
        pools=[pool_of.get(name, "") for name in names],
        zones=[_label(node, (ZONE,)) for node in found],
        racks=[_label(node, RACK_LABELS) for node in found],
        states=[_state(node) for node in found],
        pods=nodes.pod_count.values[rows].tolist(),
        allocated=allocated,
    )


def node_detail(scheduler: Scheduler, name: str, workloads: Workloads, pool_of: Mapping[str, str]) -> NodeDetail | None:
    """One node with its pods, those that take most of it first; None if there is no such node."""
    cluster = scheduler.cluster
    row = cluster.nodes.row_of.get(name)
    if row is None:
        return None
    node = cluster.nodes.node(row)
    amounts = []
    for resource in _resources(cluster):
        there, taken = int(cluster.nodes.allocatable(resource)[row]), int(cluster.nodes.requested(resource)[row])
        if there or taken:
            percent = round(100 * taken / there, 1) if there else 0.0
            amounts.append(NodeAmount(resource, in_units(resource, taken), in_units(resource, there), percent))
    pods = [
        PodOnNode(
            pod=record.pod.metadata.name,
            namespace=record.pod.metadata.namespace,
            priority=record.pod.spec.priority or 0,
            requests={key: in_units(key, amount) for key, amount in sorted(record.shape.requests.items()) if amount},
            owner=workloads.name_of(record.pod),
            is_nominated=record.nominated,
        )
        for record in cluster.pods.on(row)
    ]
    return NodeDetail(
        name=name,
        state=_state(node),
        pool=pool_of.get(name, ""),
        zone=_label(node, (ZONE,)),
        rack=_label(node, RACK_LABELS),
        labels=dict(sorted((node.metadata.labels or {}).items())),
        taints=[f"{taint.key}={taint.value or ''}:{taint.effect}" for taint in node.spec.taints or ()],
        amounts=amounts,
        pods=sorted(pods, key=lambda pod: (-pod.priority, pod.namespace, pod.pod)),
    )


def _resources(cluster: Cluster) -> list[str]:
    return [CPU, MEMORY, *sorted(name for name in cluster.nodes.resources.values if is_extended(name))]


def _label(node: Node, keys: Sequence[str]) -> str:
    labels = node.metadata.labels or {}
    return next((labels[key] for key in keys if key in labels), "")


def _state(node: Node) -> str:
    if not node.is_ready:
        return NOT_READY
    return UNSCHEDULABLE if node.spec.unschedulable else READY
