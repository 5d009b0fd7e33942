"""Manifests into a cluster, in an order in which nothing is shaped or counted twice."""

from mooring.model.api.meta import Namespace, ObjectMeta
from mooring.model.events import GangSeen, ObjectSeen, WorkloadSeen
from mooring.model.loading.manifests import Manifests
from mooring.model.queued.workloads import queued_workloads
from mooring.state.cluster import Cluster


def populate(cluster: Cluster, manifests: Manifests) -> None:
    """Let a cluster observe everything that manifests hold."""
    for found in manifests.related():
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
