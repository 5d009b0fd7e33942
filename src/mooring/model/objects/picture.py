"""A cluster as manifests show it, or a part of one: everything that scheduling reads, by kind."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from mooring.errors import ManifestError
from mooring.model.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from mooring.model.api.claims import ResourceClaim, ResourceClaimTemplate
from mooring.model.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from mooring.model.api.elastic_quota import ElasticQuota
from mooring.model.api.kai_queue import KaiQueue
from mooring.model.api.karpenter import NodeClaim, NodePool, Provisioner
from mooring.model.api.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Topology
from mooring.model.api.meta import Namespace
from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PriorityClass, Service
from mooring.model.api.volcano_queue import Queue
from mooring.model.api.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.model.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.model.api.yunikorn_queues import YuniKornQueues
from mooring.model.devices.dialects.koordinator import Device as KoordinatorDevice
from mooring.model.gangs.gang import Gang
from mooring.model.objects.kinds import kind_of_type
from mooring.model.places import Place
from mooring.model.quotas.objects import LimitRange
from mooring.model.quotas.refusals import Refusal
from mooring.model.topology.requests import HyperNode

KindT = TypeVar("KindT")


@dataclass(slots=True)
class Manifests:
    """Everything that scheduling reads, by kind, in the order given; pods of workloads follow the bare pods.

    Terminal pods are in the list: callers skip them. Replicas share their specs, so a spec must not be changed.
    """

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    pod_disruption_budgets: list[PodDisruptionBudget] = field(default_factory=list)
    persistent_volumes: list[PersistentVolume] = field(default_factory=list)
    persistent_volume_claims: list[PersistentVolumeClaim] = field(default_factory=list)
    storage_classes: list[StorageClass] = field(default_factory=list)
    csi_nodes: list[CsiNode] = field(default_factory=list)
    csi_drivers: list[CsiDriver] = field(default_factory=list)
    csi_storage_capacities: list[CsiStorageCapacity] = field(default_factory=list)
    volume_attachments: list[VolumeAttachment] = field(default_factory=list)
    deployments: list[Deployment] = field(default_factory=list)
    replica_sets: list[ReplicaSet] = field(default_factory=list)
    replication_controllers: list[ReplicationController] = field(default_factory=list)
    stateful_sets: list[StatefulSet] = field(default_factory=list)
    daemon_sets: list[DaemonSet] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    cron_jobs: list[CronJob] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)
    """Every gang that anything declares, in whichever dialect."""
    others: dict[type[Any], list[Any]] = field(default_factory=dict)
    """All further kinds, by type; see `of`."""
    refused: list[Refusal] = field(default_factory=list)
    """What the quotas and limits of its namespace keep out; not in the other lists."""
    ignored: Counter[str] = field(default_factory=Counter)
    """How many objects there were of each kind that scheduling does not read."""
    ranks: dict["Identity", tuple[int, ...]] = field(default_factory=dict)
    """Of jobs and pods that queue, which came first, where nothing else tells."""

    def of(self, type_: type[KindT]) -> list[KindT]:
        """The objects of a kind that has no list of its own, in the order given."""
        return self.others.setdefault(type_, [])

    def all_of(self, type_: type[KindT]) -> list[KindT]:
        """All objects of a kind, whichever list holds them."""
        kind = kind_of_type(type_)
        if kind is None or not kind.list_name:
            return self.of(type_)
        found: list[KindT] = getattr(self, kind.list_name)
        return found

    def related(self) -> Iterator["Related"]:
        """Everything that scheduling reads besides nodes, pods and gangs, what others refer to first."""
        return chain.from_iterable(self.all_of(type_) for type_ in RELATED_TYPES)


Identity = tuple[type[Any], str, str]
"""Type, namespace and name: one object of all that are known."""


@dataclass(slots=True)
class Source:
    """An object as it was put, complete as such."""

    object: Any
    place: Place
    rank: tuple[int, int]
    """Which came first: by manifest, then by copy."""
    doubt: ManifestError | None = None
    """What is wrong with it unless a LimitRange of its namespace fills it in."""


Related: TypeAlias = (
    Namespace
    | Service
    | ReplicaSet
    | ReplicationController
    | StatefulSet
    | PriorityClass
    | PodDisruptionBudget
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CsiNode
    | CsiDriver
    | CsiStorageCapacity
    | VolumeAttachment
    | NodeResourceTopology
    | DeviceClass
    | DeviceTaintRule
    | KoordinatorDevice
    | ResourceSlice
    | ResourceClaimTemplate
    | ResourceClaim
    | Topology
    | HyperNode
    | Queue
    | KaiQueue
    | ElasticQuota
    | YuniKornQueues
    | ClusterQueue
    | Cohort
    | LocalQueue
    | ResourceFlavor
    | AdmissionCheck
    | VerticalPodAutoscaler
    | HorizontalPodAutoscaler
    | LimitRange
    | DaemonSet
    | NodePool
    | NodeClaim
    | Provisioner
)
"""Everything that scheduling reads besides nodes, pods and gangs."""

RELATED_TYPES: tuple[type[Any], ...] = (
    Namespace,
    Service,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    PriorityClass,
    PodDisruptionBudget,
    StorageClass,
    PersistentVolume,
    PersistentVolumeClaim,
    CsiNode,
    CsiDriver,
    CsiStorageCapacity,
    VolumeAttachment,
    DeviceClass,
    DeviceTaintRule,
    KoordinatorDevice,
    ResourceSlice,
    ResourceClaimTemplate,
    ResourceClaim,
    NodeResourceTopology,
    Topology,
    HyperNode,
    Queue,
    KaiQueue,
    ElasticQuota,
    ResourceFlavor,
    Cohort,
    ClusterQueue,
    LocalQueue,
    AdmissionCheck,
    VerticalPodAutoscaler,
    HorizontalPodAutoscaler,
    LimitRange,
    DaemonSet,
    NodePool,
    NodeClaim,
    Provisioner,
)
"""The kinds that the engine is shown as they are, what others refer to first."""


def identity_of(found: Any) -> Identity:
    return type(found), found.metadata.namespace, found.metadata.name
