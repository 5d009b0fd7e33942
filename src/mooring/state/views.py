"""The cluster as plugins see it: all of it can be read, none of it changed.

A view is made once a cluster and always shows what is there now.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.claims import ResourceClaim
from mooring.model.api.devices import DeviceClass, ResourceSlice
from mooring.model.api.meta import Labels, Namespace, timestamp_seconds
from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PriorityClass, Service
from mooring.model.api.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.model.api.workloads import ReplicaSet, ReplicationController, StatefulSet
from mooring.model.keys import PodKey
from mooring.model.values.selectors import Selector
from mooring.state.devices.cards import CardTable
from mooring.state.effects import Among, ShapeEffects
from mooring.state.images import Image
from mooring.state.numa import NumaTable
from mooring.state.partial_usage import PartialUsage
from mooring.state.pods import PodRecord, PodRows
from mooring.state.related import RelatedObjects
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

if TYPE_CHECKING:
    from mooring.state.cluster import Cluster
    from mooring.state.devices.claims import ClaimTable
    from mooring.state.devices.table import DeviceTable
    from mooring.state.plans import Plan
    from mooring.state.row_facts import Compute, RowFacts


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod, and where it stands at this moment."""

    key: PodKey
    """namespace/name"""
    pod: Pod
    shape: Shape
    row: int
    """The row that it is on, or -1."""
    node_name: str
    prepared: Any = None
    """In the steps after the choice: what the plugin that is asked returned from `pre_filter` for this pod, before it
    took its place; None if it gathered nothing."""
    assumed: bool = False
    """Whether it is there by a decision that the world has not confirmed yet."""
    nominated: bool = False
    """Whether it only holds its row, and does not run."""

    @property
    def assigned_at(self) -> float | None:
        """When it was bound, in seconds since 1970: infinite while it is assumed, None if it does not say."""
        if self.assumed:
            return math.inf
        conditions = self.pod.status.conditions or ()
        said = (c.last_transition_time for c in conditions if c.type == "PodScheduled" and c.status == "True")
        return timestamp_seconds(next(said, None) or self.pod.status.start_time)

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    @classmethod
    def of(cls, record: PodRecord, prepared: Any = None) -> "PodView":
        return cls(
            record.key,
            record.pod,
            record.shape,
            record.row,
            record.node_name,
            prepared,
            record.assumed,
            record.nominated,
        )


class GuardedPod(NamedTuple):
    """A pod that holds a row while others leave for it."""

    shape: Shape
    row: int
    leaving: tuple[tuple[int, int], ...]
    """The shape and the row of each pod that is still to leave."""

    @classmethod
    def of(cls, cluster: "Cluster", record: PodRecord, plan: "Plan") -> "GuardedPod":
        """A pod that holds a row by a plan."""
        records = cluster.pods.records
        going = (records[each.key] for each in plan.leaves if not cluster.is_out_of_the_way(each))
        return cls(record.shape, record.row, tuple((other.shape.id, other.row) for other in going))


class RelatedView:
    """Everything besides nodes and pods, by kind, each by name or namespace/name."""

    def __init__(self, related: RelatedObjects) -> None:
        self.namespaces: Mapping[str, Namespace] = MappingProxyType(related.namespaces)
        self.services: Mapping[str, Service] = MappingProxyType(related.services)
        self.replica_sets: Mapping[str, ReplicaSet] = MappingProxyType(related.replica_sets)
        self.replication_controllers: Mapping[str, ReplicationController] = MappingProxyType(
            related.replication_controllers
        )
        self.stateful_sets: Mapping[str, StatefulSet] = MappingProxyType(related.stateful_sets)
        self.priority_classes: Mapping[str, PriorityClass] = MappingProxyType(related.priority_classes)
        self.disruption_budgets: Mapping[str, PodDisruptionBudget] = MappingProxyType(related.disruption_budgets)
        self.persistent_volumes: Mapping[str, PersistentVolume] = MappingProxyType(related.persistent_volumes)
        self.persistent_volume_claims: Mapping[str, PersistentVolumeClaim] = MappingProxyType(
            related.persistent_volume_claims
        )
        self.storage_classes: Mapping[str, StorageClass] = MappingProxyType(related.storage_classes)
        self.csi_nodes: Mapping[str, CsiNode] = MappingProxyType(related.csi_nodes)
        self.csi_drivers: Mapping[str, CsiDriver] = MappingProxyType(related.csi_drivers)
        self.csi_storage_capacities: Mapping[str, CsiStorageCapacity] = MappingProxyType(related.csi_storage_capacities)
        self.device_classes: Mapping[str, DeviceClass] = MappingProxyType(related.device_classes)
        self.resource_slices: Mapping[str, ResourceSlice] = MappingProxyType(related.resource_slices)
        self.resource_claims: Mapping[str, ResourceClaim] = MappingProxyType(related.resource_claims)
        self.volume_attachments: Mapping[str, VolumeAttachment] = MappingProxyType(related.volume_attachments)
        self.node_resource_topologies: Mapping[str, NodeResourceTopology] = MappingProxyType(
            related.node_resource_topologies
        )

    def namespace_labels(self, namespace: str) -> Labels:
        found = self.namespaces.get(namespace)
        return (found.metadata.labels or {}) if found else {}

    def services_in(self, namespace: str) -> Iterator[Service]:
        return (service for service in self.services.values() if service.metadata.namespace == namespace)


class ClusterView:
    """Nodes, pods, shapes and related objects, for reading."""

    __slots__ = ("__weakref__", "_cluster", "related")

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self.related = RelatedView(cluster.related)

    @property
    def claims(self) -> "ClaimTable":
        """Claims to devices, and what each row has for them; for reading."""
        return self._cluster.claims

    @property
    def devices(self) -> "DeviceTable":
        """What each row has of devices, and what is taken of them; for reading."""
        return self._cluster.devices

    # Nodes.

    def rows(self, index: NDArray[np.intp] | None = None) -> NodeRows:
        """Some rows, or all nodes, as columns."""
        return self._cluster.rows(index)

    @property
    def numa(self) -> NumaTable:
        """What is left inside nodes, by NUMA node, and what a kubelet would answer."""
        return self._cluster.numa

    @property
    def end(self) -> int:
        """One past the last row: the length of an array with a place for every row."""
        return self._cluster.nodes.end

    @property
    def node_count(self) -> int:
        return len(self._cluster.nodes)

    def row_of(self, name: str) -> int | None:
        """The row of a node."""
        return self._cluster.nodes.row_of.get(name)

    def node(self, row: int) -> Node:
        return self._cluster.nodes.node(row)

    def node_name(self, row: int) -> str:
        return self._cluster.nodes.name(row)

    def label_codes(self, key: str) -> NDArray[np.int32]:
        """Each row's value of a label as a code, -1 without it, to be indexed by row; `label_values` has the values."""
        return self._cluster.nodes.label(key).codes

    def label_values(self, key: str) -> Sequence[str]:
        return self._cluster.nodes.label(key).interner.values

    def domain_codes(self, key: str) -> NDArray[np.int32]:
        """As `label_codes`; with the key ROW, each row is a domain of its own."""
        return self._cluster.nodes.domain_codes(key)

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        """The sets of taints that nodes have, by the codes of `NodeRows.taint_set`."""
        return self._cluster.nodes.taint_sets.values

    def image(self, name: str) -> Image | None:
        """Where an image is, and how large."""
        return self._cluster.nodes.images.get(name)

    @property
    def pods_moved(self) -> int:
        """How often pods have come to rows or gone from them so far."""
        return self._cluster.pod_changes.position

    @property
    def cards(self) -> CardTable:
        """The GPUs of all nodes; for reading."""
        return self._cluster.nodes.cards

    # Pods and their shapes.

    def guarded_pods(self) -> Iterator[GuardedPod]:
        """The held pods that others could keep from starting though they take nothing that is held."""
        for record, plan in self._cluster.guarded:
            yield GuardedPod.of(self._cluster, record, plan)

    def tentative_pods(self) -> Mapping[Shape, PodRows]:
        """The pods that hold rows and do not run yet, or leave for one that does, with their rows, by shape."""
        return self._cluster.tentative.by_shape(self._cluster.shapes_version)

    @property
    def barred_rows(self) -> list[int]:
        """The rows that take no pods: of nodes that are not there yet, and of nodes that go."""
        return self._cluster.barred_rows

    @property
    def offered_rows(self) -> frozenset[int] | None:
        """The only rows on which something is tried out; None for all."""
        return self._cluster.offered_rows

    def compete_for_devices(self, one: Shape, other: Shape) -> bool:
        """Whether pods of two shapes get devices of the same kinds, which are given out pod by pod."""
        return self._cluster.compete_for_devices(one, other)

    def pod(self, key: str) -> PodView | None:
        """A pod by namespace/name."""
        record = self._cluster.pods.records.get(PodKey(key))
        return None if record is None else PodView.of(record)

    def pods_on(self, row: int) -> Iterator[PodView]:
        """The pods bound to a row."""
        return map(PodView.of, self._cluster.pods.on(row))

    def pods_with_volumes(self) -> Iterator[PodView]:
        """The bound pods that have volumes."""
        pods = self._cluster.pods
        for slot in pods.with_volumes:
            record = pods.by_slot[slot]
            assert record is not None
            yield PodView.of(record)

    def bound_pods(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The shapes (by id) and the rows of all bound pods, as two columns."""
        return self._cluster.bound_pods()

    def shape(self, shape_id: int) -> Shape:
        return self._cluster.shapes[shape_id]

    @property
    def shapes_with_pod_affinity(self) -> Sequence[Shape]:
        """The shapes that have terms about other pods."""
        return self._cluster.shapes.with_pod_affinity

    @property
    def shapes_sharing_gpus(self) -> Sequence[Shape]:
        """The shapes that take shares of GPUs where others are given whole ones."""
        return self._cluster.shapes.sharing_gpus

    @property
    def shapes_epoch(self) -> int:
        """Rises when shapes that no pod has any more are forgotten: their ids may then be those of others."""
        return self._cluster.shapes.epoch

    def shapes_selected_by(self, selector: Selector) -> Sequence[Sequence[Shape]]:
        """Lists that have all shapes that a selector of pods may select, and few others; they grow."""
        return self._cluster.shapes.selected_by(selector)

    def shapes_speaking_of(self, pod: Shape) -> Sequence[Sequence[Shape]]:
        """Lists that have all shapes with a term that may select a pod, and few others; they grow."""
        return self._cluster.shapes.speaking_of(pod)

    def effects(self, key: Hashable, of: Callable[[Shape], int], among: Among | None = None) -> ShapeEffects:
        """What each shape counts for somebody, computed once a shape: `effects(...).at(shape ids)`.

        `key` stands for `of`: the same key, the same numbers, whoever asks. With `among`, only the shapes in the
        lists that it finds are asked about, and all others count nothing.
        """
        return self._cluster.effects(key, of, among)

    def usage_of_some(self, key: Hashable, counts: Callable[[Shape], bool]) -> PartialUsage:
        """What the pods of some shapes take of each row: `usage_of_some(...).of(resource, rows)`, kept up to date.

        `key` stands for `counts`: the same key, the same pods, whoever asks.
        """
        return self._cluster.usage_of_some(key, counts)

    def row_facts(self, key: Hashable, width: int, compute: "Compute") -> "RowFacts":
        """So many numbers about each row, from its pods and what was reported of it: `row_facts(...).at(rows)`.

        `key` stands for `compute`: the same key, the same numbers, whoever asks.
        """
        return self._cluster.row_facts(key, width, compute)
