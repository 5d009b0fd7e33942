"""Real objects for tests, in one line each: what is not given is what the API server and the kubelet would fill in.

Names are given or counted, never random, so that a failing test reads the same twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from mooring.assembly import assemble
from mooring.config.scheduler import API_GROUP, parse_config
from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import Plugin, keys_read_by
from mooring.model.api.meta import LabelSelector, Namespace, ObjectMeta, OwnerReference, QuantityText, Resources
from mooring.model.api.nodes import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from mooring.model.api.pods import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ResourceRequirements,
    SchedulingGate,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from mooring.model.api.policies import Service, ServiceSpec
from mooring.model.api.workloads import DeploymentSpec, ReplicaSet
from mooring.model.defaults import default_namespace, default_node, default_pod_spec
from mooring.model.events import Related
from mooring.model.jobs.label_keys import merge_label_keys
from mooring.model.memory import Memory
from mooring.model.objects.kinds import kind_of_type
from mooring.model.objects.picture import Manifests
from mooring.plugins import DEFAULT_PLUGINS
from mooring.state.cluster import Cluster
from mooring.state.loading import populate

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RACK = "example.com/rack"
GPU = "nvidia.com/gpu"

Json = Mapping[str, Any]


# Nodes.


def make_node(
    name: str = "node",
    *,
    cpu: str | int = 8,
    memory: str | int = "32Gi",
    gpu: int = 0,
    pods: int = 110,
    zone: str = "",
    rack: str = "",
    resources: Mapping[str, QuantityText] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
) -> Node:
    """A node that is ready and empty; `images` maps names to sizes in bytes."""
    all_labels = dict(labels or {})
    if zone:
        all_labels[ZONE] = zone
    if rack:
        all_labels[RACK] = rack
    capacity: Resources = {"cpu": cpu, "memory": memory, "pods": pods}
    if gpu:
        capacity[GPU] = gpu
    node = Node(
        metadata=ObjectMeta(name=name, labels=all_labels, annotations=dict(annotations or {}) or None),
        spec=NodeSpec(unschedulable=unschedulable, taints=list(taints) or None),
        status=NodeStatus(
            capacity={**capacity, **(resources or {})},
            images=[ContainerImage(names=[image], size_bytes=size) for image, size in (images or {}).items()] or None,
            declared_features=list(features) or None,
        ),
    )
    default_node(node)
    return node


def make_nodes(count: int, *, prefix: str = "node", zones: int = 0, racks: int = 0, **given: Any) -> list[Node]:
    """Equal nodes, named prefix-0, prefix-1 and so on, dealt out over zones and racks if there are any."""
    nodes = []
    for index in range(count):
        place = {"zone": f"zone-{index % zones}"} if zones else {}
        place |= {"rack": f"rack-{index % racks}"} if racks else {}
        nodes.append(make_node(f"{prefix}-{index}", **(given | place)))
    return nodes


def make_taint(key: str, value: str = "", *, effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


# Pods.


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    cpu: str | int | None = None,
    memory: str | int | None = None,
    gpu: int = 0,
    resources: Mapping[str, QuantityText] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    node: str = "",
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | None = None,
    tolerations: Sequence[Toleration] = (),
    spread: Sequence[TopologySpreadConstraint] = (),
    host_ports: Sequence[int | ContainerPort] = (),
    image: str = "",
    priority: int | None = None,
    gates: Sequence[str] = (),
    owner: OwnerReference | None = None,
    scheduler_name: str = "",
    terminating: bool = False,
    phase: str = "",
    spec: Json | None = None,
) -> Pod:
    """A pod with one container, bound if a node is named; `spec` has what else it says, as in a manifest."""
    requests: Resources = dict(resources or {})
    if cpu is not None:
        requests["cpu"] = cpu
    if memory is not None:
        requests["memory"] = memory
    if gpu:
        requests[GPU] = gpu
    container = Container(
        name="main",
        image=image,
        resources=ResourceRequirements(requests=requests) if requests else None,
        ports=[_host_port(port) for port in host_ports] or None,
    )
    made = msgspec.convert(dict(spec or {}), PodSpec)
    made.containers = made.containers or [container]
    made.node_name = node
    made.node_selector = dict(node_selector) if node_selector else made.node_selector
    made.affinity = affinity or made.affinity
    made.tolerations = list(tolerations) or made.tolerations
    made.topology_spread_constraints = list(spread) or made.topology_spread_constraints
    made.priority = priority
    made.scheduling_gates = [SchedulingGate(name=gate) for gate in gates] or None
    made.scheduler_name = scheduler_name
    default_pod_spec(made)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{namespace}-{name}",
            labels=dict(labels) if labels else None,
            annotations=dict(annotations) if annotations else None,
            deletion_timestamp="2026-01-01T00:00:00Z" if terminating else None,
            owner_references=[owner] if owner else None,
        ),
        spec=merge_label_keys(made, labels or {}),
        status=PodStatus(phase=phase or ("Running" if node else "Pending")),
    )


def _host_port(port: int | ContainerPort) -> ContainerPort:
    return port if isinstance(port, ContainerPort) else ContainerPort(container_port=port, host_port=port)


def make_pods(count: int, *, prefix: str = "pod", **given: Any) -> list[Pod]:
    """Equal pods, named prefix-0, prefix-1 and so on."""
    return [make_pod(f"{prefix}-{index}", **given) for index in range(count)]


def make_toleration(key: str = "", value: str = "", *, operator: str = "", effect: str = "") -> Toleration:
    """A toleration: of any value if none is given."""
    return Toleration(key=key, value=value, operator=operator or ("Equal" if value else "Exists"), effect=effect)


def make_selector(labels: Mapping[str, str] | None = None, expressions: Sequence[Json] = ()) -> LabelSelector:
    return msgspec.convert(
        {"matchLabels": dict(labels or {}), "matchExpressions": [dict(e) for e in expressions]}, LabelSelector
    )


def make_spread(
    key: str = ZONE, *, labels: Mapping[str, str] | None = None, max_skew: int = 1, soft: bool = False, **given: Any
) -> TopologySpreadConstraint:
    """A constraint on the pods with these labels, strict unless `soft`."""
    given.setdefault("label_selector", make_selector(labels))
    when = "ScheduleAnyway" if soft else "DoNotSchedule"
    return TopologySpreadConstraint(topology_key=key, max_skew=max_skew, when_unsatisfiable=when, **given)


def make_pod_term(key: str = HOSTNAME, *, labels: Mapping[str, str] | None = None, **given: Any) -> PodAffinityTerm:
    """A term of pod affinity or anti-affinity that selects pods with these labels."""
    given.setdefault("label_selector", make_selector(labels))
    return PodAffinityTerm(topology_key=key, **given)


def make_affinity(
    *,
    nodes: Json | None = None,
    near: Sequence[PodAffinityTerm] = (),
    away: Sequence[PodAffinityTerm] = (),
    rather_near: Sequence[tuple[int, PodAffinityTerm]] = (),
    rather_away: Sequence[tuple[int, PodAffinityTerm]] = (),
) -> Affinity:
    """All affinity of a pod: `nodes` as in a manifest, pods by terms, the preferred ones with their weights."""
    return Affinity(
        node_affinity=msgspec.convert(dict(nodes), NodeAffinity) if nodes else None,
        pod_affinity=_side(near, rather_near),
        pod_anti_affinity=_side(away, rather_away),
    )


def _side(required: Sequence[PodAffinityTerm], preferred: Sequence[tuple[int, PodAffinityTerm]]) -> PodAffinity | None:
    if not required and not preferred:
        return None
    weighted = [WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in preferred]
    return PodAffinity(required=list(required) or None, preferred=weighted or None)


# What else scheduling reads.


def make_namespace(name: str = "default", *, labels: Mapping[str, str] | None = None) -> Namespace:
    namespace = Namespace(metadata=ObjectMeta(name=name, labels=dict(labels or {})))
    default_namespace(namespace)
    return namespace


def make_service(
    name: str = "service", *, selector: Mapping[str, str] | None = None, namespace: str = "default"
) -> Service:
    return Service(
        metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=dict(selector or {}) or None)
    )


def make_replica_set(name: str, *, labels: Mapping[str, str], namespace: str = "default") -> ReplicaSet:
    """A replica set that selects pods with these labels; its pods are made with `owner=make_owner(name)`."""
    template = PodTemplateSpec(metadata=ObjectMeta(labels=dict(labels)))
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=DeploymentSpec(template=template, selector=make_selector(labels)),
    )


def make_owner(name: str, *, kind: str = "ReplicaSet") -> OwnerReference:
    return OwnerReference(api_version="apps/v1", kind=kind, name=name, controller=True)


# Clusters and schedulers.


@cache
def _default_plugins() -> list[Plugin]:
    return [plugin() for plugin, _ in DEFAULT_PLUGINS]


def make_cluster(
    *,
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    related: Iterable[Related] = (),
    plugins: Sequence[Plugin] = (),
    seed: int = 0,
) -> Cluster:
    """A cluster that has observed these objects, and keeps of each pod what these and the default plugins read."""
    cluster = Cluster(read_keys=keys_read_by([*_default_plugins(), *plugins]), seed=seed)
    populate(cluster, _manifests(nodes, pods, related))
    return cluster


def make_scheduler(
    *,
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    related: Iterable[Related] = (),
    profile: Json | None = None,
    plugins: Iterable[type[Plugin]] = (),
    cached: bool = True,
) -> Scheduler:
    """A scheduler that has loaded these objects; `profile` is one as in KubeSchedulerConfiguration."""
    config = parse_config(make_config(profile), "profile") if profile else None
    scheduler = assemble(config, extra_plugins=plugins).new_scheduler(cached=cached)
    scheduler.load(_manifests(nodes, pods, related))
    return scheduler


def make_config(*profiles: Json) -> dict[str, Any]:
    """A KubeSchedulerConfiguration document with these profiles."""
    return {"apiVersion": API_GROUP + "v1", "kind": "KubeSchedulerConfiguration", "profiles": list(profiles)}


def make_profile(*only: str, args: Mapping[str, Json] | None = None, **given: Any) -> dict[str, Any]:
    """A profile, with kube-scheduler's default plugins or with these only, and their arguments by name."""
    made: dict[str, Any] = dict(given)
    if only:
        needed = [name for name in ("PrioritySort", "DefaultBinder") if name not in only]
        enabled = [{"name": name} for name in (*needed, *only)]
        made["plugins"] = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    if args:
        made["pluginConfig"] = [{"name": name, "args": dict(values)} for name, values in args.items()]
    return made


def _manifests(nodes: Iterable[Node], pods: Iterable[Pod], related: Iterable[Related]) -> Manifests:
    manifests = Manifests(nodes=list(nodes), pods=list(pods))
    for found in related:
        kind = kind_of_type(type(found))
        assert kind is not None, f"{type(found).__name__} is not a kind that manifests hold"
        (getattr(manifests, kind.list_name) if kind.list_name else manifests.of(kind.type)).append(found)
    return manifests


def written_down(memory: Memory) -> Memory:
    """What is remembered after it has been written and read, as after a restart."""
    return msgspec.json.decode(msgspec.json.encode(memory), type=Memory)
