"""Everything scheduling reads besides nodes and pods, by kind and name."""

from collections.abc import Iterator
from typing import Any

from mooring.model.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from mooring.model.api.claims import ResourceClaim, ResourceClaimTemplate
from mooring.model.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from mooring.model.api.elastic_quota import ElasticQuota, QuotaIndex
from mooring.model.api.kai_queue import KIND as KAI_QUEUE
from mooring.model.api.kai_queue import KaiQueue
from mooring.model.api.karpenter import NodeClaim, NodePool, Provisioner
from mooring.model.api.kueue import Topology
from mooring.model.api.meta import Labels, Namespace
from mooring.model.api.node_resource_topology import NodeResourceTopology
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
from mooring.model.api.workloads import DaemonSet, ReplicaSet, ReplicationController, StatefulSet
from mooring.model.api.yunikorn_queues import KIND as YUNIKORN
from mooring.model.api.yunikorn_queues import YuniKornQueues
from mooring.model.devices.dialects.koordinator import Device as KoordinatorDevice
from mooring.model.events import Related
from mooring.model.events import object_key as object_key
from mooring.model.quotas.objects import LimitRange
from mooring.model.topology.requests import HyperNode
from mooring.model.what_matters import is_same_to_engine

KEPT_ELSEWHERE = frozenset({"ResourceSlice", "DeviceClass", "DeviceTaintRule", "ResourceClaim", "Device"})
"""Kinds whose changes count as far as they change devices, or what is held of them (`DeviceTable.version`)."""

OF_SIZES = frozenset({"VerticalPodAutoscaler", "HorizontalPodAutoscaler", "LimitRange"})
"""Kinds that say how large running pods should be: no placement depends on them (`sizing_version`)."""


FOR_CAPACITY = frozenset({"DaemonSet", "NodePool", "NodeClaim", "Provisioner"})
"""Kinds that only those read who buy nodes: no plugin has another answer because of them."""
_NO_NEWS = KEPT_ELSEWHERE | FOR_CAPACITY


class RelatedObjects:
    """Typed maps, keyed by name or namespace/name; `version` rises with every change that matters to somebody."""

    def __init__(self) -> None:
        self.version = 0
        self.sizing_version = 0
        """Rises with every change to what says how large running pods should be."""
        self.namespaces: dict[str, Namespace] = {}
        self.services: dict[str, Service] = {}
        self.replica_sets: dict[str, ReplicaSet] = {}
        self.replication_controllers: dict[str, ReplicationController] = {}
        self.stateful_sets: dict[str, StatefulSet] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.disruption_budgets: dict[str, PodDisruptionBudget] = {}
        self.persistent_volumes: dict[str, PersistentVolume] = {}
        self.persistent_volume_claims: dict[str, PersistentVolumeClaim] = {}
        self.storage_classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CsiNode] = {}
        self.csi_drivers: dict[str, CsiDriver] = {}
        self.csi_storage_capacities: dict[str, CsiStorageCapacity] = {}
        self.volume_attachments: dict[str, VolumeAttachment] = {}
        self.resource_slices: dict[str, ResourceSlice] = {}
        self.device_classes: dict[str, DeviceClass] = {}
        self.device_taint_rules: dict[str, DeviceTaintRule] = {}
        self.koordinator_devices: dict[str, KoordinatorDevice] = {}
        """By node."""
        self.resource_claims: dict[str, ResourceClaim] = {}
        self.resource_claim_templates: dict[str, ResourceClaimTemplate] = {}
        self.node_resource_topologies: dict[str, NodeResourceTopology] = {}
        self.topologies: dict[str, Topology] = {}
        self.hyper_nodes: dict[str, HyperNode] = {}
        self.volcano_queues: dict[str, Queue] = {}
        self.kai_queues: dict[str, KaiQueue] = {}
        self.elastic_quotas: dict[str, ElasticQuota] = {}
        self.autoscalers: dict[str, VerticalPodAutoscaler] = {}
        self.horizontal_autoscalers: dict[str, HorizontalPodAutoscaler] = {}
        self.limit_ranges: dict[str, LimitRange] = {}
        self.yunikorn: dict[str, YuniKornQueues] = {}
        """The queues of YuniKorn's configuration, if there is one."""
        self.daemon_sets: dict[str, DaemonSet] = {}
        self.node_pools: dict[str, NodePool] = {}
        self.node_claims: dict[str, NodeClaim] = {}
        self.provisioners: dict[str, Provisioner] = {}
        self._quotas: tuple[int, QuotaIndex] | None = None
        self._by_kind: dict[str, dict[str, Any]] = {
            "Namespace": self.namespaces,
            "Service": self.services,
            "ReplicaSet": self.replica_sets,
            "ReplicationController": self.replication_controllers,
            "StatefulSet": self.stateful_sets,
            "PriorityClass": self.priority_classes,
            "PodDisruptionBudget": self.disruption_budgets,
            "PersistentVolume": self.persistent_volumes,
            "PersistentVolumeClaim": self.persistent_volume_claims,
            "StorageClass": self.storage_classes,
            "CSINode": self.csi_nodes,
            "CSIDriver": self.csi_drivers,
            "CSIStorageCapacity": self.csi_storage_capacities,
            "VolumeAttachment": self.volume_attachments,
            "ResourceSlice": self.resource_slices,
            "DeviceClass": self.device_classes,
            "DeviceTaintRule": self.device_taint_rules,
            "Device": self.koordinator_devices,
            "ResourceClaim": self.resource_claims,
            "ResourceClaimTemplate": self.resource_claim_templates,
            "NodeResourceTopology": self.node_resource_topologies,
            "Topology": self.topologies,
            "HyperNode": self.hyper_nodes,
            "Queue": self.volcano_queues,
            KAI_QUEUE: self.kai_queues,
            "ElasticQuota": self.elastic_quotas,
            "VerticalPodAutoscaler": self.autoscalers,
            "HorizontalPodAutoscaler": self.horizontal_autoscalers,
            "LimitRange": self.limit_ranges,
            YUNIKORN: self.yunikorn,
            "DaemonSet": self.daemon_sets,
            "NodePool": self.node_pools,
            "NodeClaim": self.node_claims,
            "Provisioner": self.provisioners,
        }

    def put(self, found: Related) -> None:
        known, key = self._by_kind[found.kind], object_key(found)
        is_new = key not in known or not is_same_to_engine(known[key], found)
        if is_new:
            self._count(found.kind)
        known[key] = found

    def remove(self, kind: str, key: str) -> None:
        if self._by_kind[kind].pop(key, None) is not None:
            self._count(kind)

    def _count(self, kind: str) -> None:
        if kind in OF_SIZES:
            self.sizing_version += 1
        elif kind not in _NO_NEWS:
            self.version += 1

    def find(self, kind: str, key: str) -> Any | None:
        """An object of a kind, if there is one."""
        return self._by_kind.get(kind, {}).get(key)

    def quota_of(self, pod: Pod) -> ElasticQuota | None:
        """The ElasticQuota that a pod counts in."""
        if self._quotas is None or self._quotas[0] != self.version:
            self._quotas = (self.version, QuotaIndex(self.elastic_quotas.values()))
        return self._quotas[1].of(pod)

    def namespace_labels(self, namespace: str) -> Labels:
        found = self.namespaces.get(namespace)
        return (found.metadata.labels or {}) if found else {}

    def services_in(self, namespace: str) -> Iterator[Service]:
        return (service for service in self.services.values() if service.metadata.namespace == namespace)


def selected_pod_keys(found: Related) -> Iterator[str]:
    """The label keys of pods that an object selects on, as far as scheduling reads its selector."""
    match found:
        case Service():
            yield from found.spec.selector or ()
        case ReplicationController():
            yield from found.spec.selector or ()
        case ReplicaSet() | StatefulSet():
            selector = found.spec.selector
            if selector is not None:
                yield from selector.match_labels or ()
                yield from (expression.key for expression in selector.match_expressions or ())
