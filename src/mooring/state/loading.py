"""Manifests into a cluster, in an order in which nothing is shaped or counted twice."""

from collections.abc import Iterator
from itertools import chain

from mooring.model.api.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Topology
from mooring.model.api.meta import Namespace, ObjectMeta
from mooring.model.api.volcano_queue import Queue
from mooring.model.events import GangSeen, ObjectSeen, Related, WorkloadSeen
from mooring.model.loading.manifests import Manifests
from mooring.model.queued.workloads import queued_workloads
from mooring.model.topology.requests import HyperNode
from mooring.state.cluster import Cluster


def populate(cluster: Cluster, manifests: Manifests) -> None:
    """Let a cluster observe everything that manifests hold."""
    for found in related_objects(manifests):
        cluster.observe(ObjectSeen(found))
    for gang in manifests.gangs:
        cluster.observe(GangSeen(gang))
    cluster.observe_many(manifests.nodes, manifests.pods)
    cluster.observe(*(WorkloadSeen(workload) for workload in queued_workloads(manifests)))


def imply_namespaces(manifests: Manifests) -> None:
    """Add the namespaces that pods are in and nobody wrote down: on a cluster they would exist."""
    known = {namespace.metadata.name for namespace in manifests.namespaces}
    for name in dict.fromkeys(pod.metadata.namespace for pod in manifests.pods):
        if name not in known:
            labels = {"kubernetes.io/metadata.name": name}
            manifests.namespaces.append(Namespace(metadata=ObjectMeta(name=name, labels=labels)))


def related_objects(manifests: Manifests) -> Iterator[Related]:
    """Everything that scheduling reads besides nodes, pods and gangs, what others refer to first."""
    yield from chain(
        manifests.namespaces,
        manifests.services,
        manifests.replica_sets,
        manifests.replication_controllers,
        manifests.stateful_sets,
        manifests.priority_classes,
        manifests.pod_disruption_budgets,
        manifests.storage_classes,
        manifests.persistent_volumes,
        manifests.persistent_volume_claims,
        manifests.csi_nodes,
        manifests.csi_drivers,
        manifests.csi_storage_capacities,
        manifests.volume_attachments,
        manifests.of(Topology),
        manifests.of(HyperNode),
        manifests.of(Queue),
        manifests.of(ResourceFlavor),
        manifests.of(Cohort),
        manifests.of(ClusterQueue),
        manifests.of(LocalQueue),
        manifests.of(AdmissionCheck),
    )
