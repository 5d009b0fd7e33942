"""Node groups as a file describes them: a list of ours, or Cluster API's MachineDeployments with their annotations.

nodeGroups:
  - name: workers                     # as --nodes and the priority expander's expressions have it
    minSize: 0                        # both may come from --nodes instead
    maxSize: 10
    targetSize: 3                     # what the cloud was told last; as many as there are nodes, if absent
    nodeSelector: {pool: workers}     # which nodes are of the group; or their names, under `nodes`
    template: {a Node}                # what a new node is like, where no live one shows it
    price: 0.19                       # of a node for an hour
    options: {zeroOrMaxNodeScaling: false, scaleDownUnneededTime: 5m, ...}
prices: {cpu: 0.033, memory: 0.0045, gpu: 1.4}   # of one CPU, GiB and GPU for an hour
gpuLabel: cloud.google.com/gke-accelerator       # by which the cloud marks nodes with GPUs
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.config.autoscaler import GroupOptions
from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError
from mooring.model.api.meta import ObjectMeta, Resources
from mooring.model.api.nodes import Node, NodeSpec, NodeStatus, Taint
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.model.values.quantity import QuantityError, parse_quantity

MACHINE_DEPLOYMENT = "MachineDeployment"
GROUP = "cluster.x-k8s.io"
MIN_SIZE, MAX_SIZE = (f"{GROUP}/cluster-api-autoscaler-node-group-{which}-size" for which in ("min", "max"))
OPTIONS = f"{GROUP}/autoscaling-options-"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
OWNER_KIND, OWNER_NAME, CLUSTER_NAMESPACE = (
    f"{GROUP}/{name}" for name in ("owner-kind", "owner-name", "cluster-namespace")
)
DEFAULT_MAX_PODS = "110"
_TAINT = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """One node group as it is described."""

    name: str
    min_size: int | None = None
    max_size: int | None = None
    """None where only flags say it."""
    target_size: int | None = None
    nodes: frozenset[str] = frozenset()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    machine_deployment: tuple[str, str] | None = None
    """Namespace and name, where nodes tell by their annotations which they are of."""
    template: Node | None = None
    price: float = 0.0
    options: GroupOptions = field(default_factory=GroupOptions)

    def has(self, node: Node) -> bool:
        """Whether a node is of this group."""
        if node.name in self.nodes:
            return True
        labels, annotations = node.metadata.labels or {}, node.metadata.annotations or {}
        if self.node_selector:
            return all(labels.get(key) == value for key, value in self.node_selector.items())
        if self.machine_deployment is None or annotations.get(OWNER_KIND) != "MachineSet":
            return False
        # A MachineSet is called after its MachineDeployment, with a hash behind.
        name = annotations.get(OWNER_NAME, "").rpartition("-")[0]
        return (annotations.get(CLUSTER_NAMESPACE, ""), name) == self.machine_deployment


@dataclass(frozen=True, slots=True)
class NodeGroupList:
    """All groups that files describe."""

    groups: tuple[GroupSpec, ...]
    cpu_price: float = 0.0
    memory_price: float = 0.0
    gpu_price: float = 0.0
    gpu_label: str | None = None


class _Options(ConfigObject):
    zero_or_max_node_scaling: bool = False
    scale_down_utilization_threshold: float | None = None
    scale_down_gpu_utilization_threshold: float | None = None
    scale_down_unneeded_time: str | None = None
    scale_down_unready_time: str | None = None
    ignore_daemon_sets_utilization: bool | None = None


class _Group(ConfigObject):
    name: str
    min_size: int | None = None
    max_size: int | None = None
    target_size: int | None = None
    nodes: list[str] = []
    node_selector: dict[str, str] = {}
    template: Node | None = None
    price: float = 0.0
    options: _Options = msgspec.field(default_factory=_Options)


class _Prices(ConfigObject):
    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0


class _File(ConfigObject):
    node_groups: list[_Group]
    prices: _Prices = msgspec.field(default_factory=_Prices)
    gpu_label: str | None = None


def parse_node_groups(documents: Iterable[Any], source: str) -> NodeGroupList:
    """Read the documents of a file; what is not about node groups is passed over, unless there is nothing else."""
    groups: list[GroupSpec] = []
    prices, gpu_label = _Prices(), None
    for document in documents:
        if not isinstance(document, dict):
            continue
        if "nodeGroups" in document:
            file = convert(document, _File, source)
            groups += [_spec(group, f"nodeGroups[{index}]", source) for index, group in enumerate(file.node_groups)]
            prices, gpu_label = file.prices, file.gpu_label
        elif document.get("kind") == MACHINE_DEPLOYMENT:
            found = _from_machine_deployment(document, source)
            groups += [] if found is None else [found]
    if not groups:
        expected = f"nodeGroups, or {MACHINE_DEPLOYMENT}s with the annotations {MIN_SIZE} and {MAX_SIZE}"
        raise ConfigError(source, "", expected=expected, found="none")
    names = [group.name for group in groups]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(source, "nodeGroups", expected="each name once", found=f'"{twice}" twice')
    return NodeGroupList(tuple(groups), prices.cpu, prices.memory, prices.gpu, gpu_label)


def check_sizes(least: int, most: int, where: str, source: str) -> None:
    """Refuse sizes that no group can have."""
    if least < 0:
        raise ConfigError(source, f"{where}.minSize", expected="at least 0", found=str(least))
    if least > most:
        raise ConfigError(source, f"{where}.minSize", expected=f"at most maxSize ({most})", found=str(least))


def _spec(group: _Group, where: str, source: str) -> GroupSpec:
    if not group.name:
        raise ConfigError(source, f"{where}.name", expected="a name", found="none")
    if group.min_size is not None and group.max_size is not None:
        check_sizes(group.min_size, group.max_size, where, source)
    if group.target_size is not None and group.target_size < 0:
        raise ConfigError(source, f"{where}.targetSize", expected="at least 0", found=str(group.target_size))
    if group.template is not None:
        _check_amounts(group.template.status.capacity, f"{where}.template.status.capacity", source)
        _check_amounts(group.template.status.allocatable, f"{where}.template.status.allocatable", source)
    given = group.options
    options = GroupOptions(
        given.scale_down_utilization_threshold,
        given.scale_down_gpu_utilization_threshold,
        _seconds(given.scale_down_unneeded_time, f"{where}.options.scaleDownUnneededTime", source),
        _seconds(given.scale_down_unready_time, f"{where}.options.scaleDownUnreadyTime", source),
        given.ignore_daemon_sets_utilization,
        given.zero_or_max_node_scaling,
    )
    return GroupSpec(
        group.name,
        group.min_size,
        group.max_size,
        group.target_size,
        frozenset(group.nodes),
        group.node_selector,
        template=_with_allocatable(group.template),
        price=group.price,
        options=options,
    )


def _check_amounts(amounts: Resources | None, where: str, source: str) -> None:
    for name, text in (amounts or {}).items():
        try:
            parse_quantity(text)
        except QuantityError as error:
            raise ConfigError(source, f"{where}.{name}", expected="a quantity", found=f'"{text}"') from error


def _with_allocatable(node: Node | None) -> Node | None:
    """A template that says only what a node has can give all of it."""
    if node is None:
        return None
    capacity, allocatable = node.status.capacity, node.status.allocatable
    status = msgspec.structs.replace(node.status, capacity=capacity or allocatable, allocatable=allocatable or capacity)
    return msgspec.structs.replace(node, status=status)


def _seconds(text: str | None, where: str, source: str) -> float | None:
    if text is None:
        return None
    seconds = parse_duration(text)
    if seconds is None:
        raise ConfigError(source, where, expected=EXPECTED_DURATION, found=f'"{text}"')
    return seconds


# Cluster API.


class _MachineDeploymentSpec(msgspec.Struct, kw_only=True):
    replicas: int | None = None


class _MachineDeployment(msgspec.Struct, kw_only=True):
    metadata: ObjectMeta
    spec: _MachineDeploymentSpec = msgspec.field(default_factory=_MachineDeploymentSpec)


def _from_machine_deployment(document: Mapping[str, Any], source: str) -> GroupSpec | None:
    """A MachineDeployment as a group; None if it does not say that it may be scaled."""
    found = convert(document, _MachineDeployment, source)
    annotations = found.metadata.annotations or {}
    if MIN_SIZE not in annotations and MAX_SIZE not in annotations:
        return None
    namespace, name = found.metadata.namespace or "default", found.metadata.name
    where = f"{MACHINE_DEPLOYMENT} {namespace}/{name}"
    least, most = (_size(annotations, key, where, source) for key in (MIN_SIZE, MAX_SIZE))
    check_sizes(least, most, where, source)
    return GroupSpec(
        f"{MACHINE_DEPLOYMENT}/{namespace}/{name}",
        least,
        most,
        found.spec.replicas,
        machine_deployment=(namespace, name),
        template=_template(name, annotations, where, source),
        options=_options(annotations, where, source),
    )


def _size(annotations: Mapping[str, str], key: str, where: str, source: str) -> int:
    text = annotations.get(key)
    if text is None or not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        found = "none" if text is None else f'"{text}"'
        raise ConfigError(source, f"{where}: {key}", expected="a whole number of at least 0", found=found)
    return int(text)


def _options(annotations: Mapping[str, str], where: str, source: str) -> GroupOptions:
    def share(key: str) -> float | None:
        text = annotations.get(f"{OPTIONS}{key}")
        if text is not None and not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text, re.ASCII):
            raise ConfigError(source, f"{where}: {OPTIONS}{key}", expected="a number such as 0.5", found=f'"{text}"')
        return None if text is None else float(text)

    def seconds(key: str) -> float | None:
        return _seconds(annotations.get(f"{OPTIONS}{key}"), f"{where}: {OPTIONS}{key}", source)

    return GroupOptions(
        share("scaledownutilizationthreshold"),
        share("scaledowngpuutilizationthreshold"),
        seconds("scaledownunneededtime"),
        seconds("scaledownunreadytime"),
    )


def _template(name: str, annotations: Mapping[str, str], where: str, source: str) -> Node | None:
    """What a new node is like, as the annotations for scaling from zero tell; None without them."""
    told = {key.removeprefix(CAPACITY): text for key, text in annotations.items() if key.startswith(CAPACITY)}
    if "cpu" not in told or "memory" not in told:
        return None
    amounts: Resources = {"cpu": told["cpu"], "memory": told["memory"], "pods": told.get("maxPods", DEFAULT_MAX_PODS)}
    if "ephemeral-disk" in told:
        amounts["ephemeral-storage"] = told["ephemeral-disk"]
    if "gpu-type" in told and "gpu-count" in told:
        amounts[told["gpu-type"]] = told["gpu-count"]
    _check_amounts(amounts, f"{where}: {CAPACITY[:-1]}", source)
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    for part in filter(None, told.get("labels", "").split(",")):
        key, _, value = part.partition("=")
        labels[key.strip()] = value.strip()
    taints = [_taint(part.strip(), where, source) for part in filter(None, told.get("taints", "").split(","))]
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=taints or None),
        status=NodeStatus(capacity=amounts, allocatable=amounts),
    )


def _taint(text: str, where: str, source: str) -> Taint:
    found = _TAINT.fullmatch(text)
    if found is None:
        field = f"{where}: {CAPACITY}taints"
        raise ConfigError(source, field, expected="taints such as dedicated=ml:NoSchedule", found=f'"{text}"')
    return Taint(key=found["key"], value=found["value"] or "", effect=found["effect"])
