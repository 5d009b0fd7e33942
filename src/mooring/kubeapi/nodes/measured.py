"""What simulated nodes and their pods use, as metrics-server would tell it: NodeMetrics and PodMetrics.

Nothing is stored. Each answer is made of the pods that run at that moment; what was made of a pod is kept while its
object stays the same.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mooring.kubeapi.nodes.registration import failure_of, is_simulated
from mooring.kubeapi.status import Object
from mooring.kubeapi.store.records import Record
from mooring.model.api.meta import timestamp_text
from mooring.model.kubelet.usage import MEASURED, container_usage, node_usage
from mooring.model.load.reports import to_amounts
from mooring.model.values.quantity import QuantityError
from mooring.model.values.requests import CPU

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
WINDOW = "15s"
"""The time that a measurement is of: metrics-server's usual resolution."""
Usage = dict[str, int]


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[dict[str, Any]] = []
    init_containers: list[dict[str, Any]] = []


class _ContainerStatus(msgspec.Struct):
    name: str = ""
    state: dict[str, Any] = {}


class _Status(msgspec.Struct, rename="camel"):
    container_statuses: list[_ContainerStatus] = []
    init_container_statuses: list[_ContainerStatus] = []


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _PodUsage(msgspec.Struct, frozen=True):
    """What the running containers of a pod use, by name; nothing if none runs."""

    revision: int
    node: str
    containers: dict[str, Usage]


_decode = msgspec.json.Decoder(_Pod).decode


class Measured:
    """Makes metrics of stored objects; it reads nothing but what it is given, and may run in a thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _PodUsage] = {}

    def nodes(self, nodes: Iterable[Record], pods: Sequence[Record], now: float) -> list[Object]:
        """The NodeMetrics of these nodes, of those that are simulated and answer; `pods` are all that there are."""
        used: dict[str, Usage] = {}
        for pod in self._usages(pods):
            if pod.containers:
                total = used.setdefault(pod.node, dict.fromkeys(MEASURED, 0))
                for usage in pod.containers.values():
                    for resource in MEASURED:
                        total[resource] += usage[resource]
        found = []
        for record in nodes:
            node = record.decode()
            if _is_measured(node):
                usage = _of_node(node, used.get(record.name, {}))
                found.append(_head("NodeMetrics", record, now) | {"usage": _texts(usage)})
        return found

    def pods(self, pods: Iterable[Record], nodes: Iterable[Record], now: float) -> list[Object]:
        """The PodMetrics of these pods: of those that run on such nodes."""
        answering = {record.name for record in nodes if _is_measured(record.decode())}
        found = []
        for record in pods:
            pod = self._usage(record)
            if pod.containers and pod.node in answering:
                containers = [{"name": name, "usage": _texts(usage)} for name, usage in pod.containers.items()]
                found.append(_head("PodMetrics", record, now) | {"containers": containers})
        return found

    def _usages(self, records: Sequence[Record]) -> list[_PodUsage]:
        """That of every pod; what is known of pods that are gone is forgotten."""
        found = [self._usage(record) for record in records]
        if len(self._known) > len(records):
            self._known = {record.key: usage for record, usage in zip(records, found, strict=True)}
        return found

    def _usage(self, record: Record) -> _PodUsage:
        known = self._known.get(record.key)
        if known is None or known.revision != record.revision:
            known = self._known[record.key] = _read(record)
        return known


def _read(record: Record) -> _PodUsage:
    pod = _decode(record.data)
    annotations = pod.metadata.annotations or {}
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    running = {one.name for one in statuses if "running" in one.state}
    containers = {
        container["name"]: container_usage(annotations, container)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        if container["name"] in running
    }
    return _PodUsage(record.revision, pod.spec.node_name, containers)


def _is_measured(node: Object) -> bool:
    return is_simulated(node) and not failure_of(node)


def _of_node(node: Object, pods: Usage) -> Usage:
    """What its pods use and what it uses itself, but no more than it has."""
    own = node_usage(node["metadata"].get("annotations") or {})
    status = node.get("status") or {}
    try:
        capacity = to_amounts(status.get("capacity") or status.get("allocatable"))
    except QuantityError:  # a node that says nonsense of itself
        capacity = {}
    total = {resource: own[resource] + pods.get(resource, 0) for resource in MEASURED}
    return {resource: min(amount, capacity.get(resource, amount)) for resource, amount in total.items()}


def _head(kind: str, record: Record, now: float) -> Object:
    moment = timestamp_text(now)
    metadata: Object = {"name": record.name}
    if record.namespace:
        metadata["namespace"] = record.namespace
    metadata["creationTimestamp"] = moment
    if record.labels:
        metadata["labels"] = record.labels
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": metadata,
        "timestamp": moment,
        "window": WINDOW,
    }


def _texts(usage: Usage) -> dict[str, str]:
    return {resource: f"{amount}m" if resource == CPU else f"{amount // 1024}Ki" for resource, amount in usage.items()}
