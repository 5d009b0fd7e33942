"""Which pods of the state each autoscaler is about, and which pods wait for room on their own nodes."""

from collections.abc import Iterator

from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.jobs.expansion import controller_of
from mooring.model.rightsizing.amounts import CONTROLLED
from mooring.model.rightsizing.modes import INITIAL, OFF, update_mode
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord

Target = tuple[str, str, str]
"""Namespace, kind and name of a controller."""
PENDING, DEFERRED = "PodResizePending", "Deferred"


def acting_autoscalers(cluster: Cluster) -> list[VerticalPodAutoscaler]:
    """The autoscalers that change running pods and have a recommendation, the oldest first: it has the pods of
    several."""
    found = [
        vpa
        for vpa in cluster.related.autoscalers.values()
        if vpa.status.recommendation is not None and update_mode(vpa) not in (OFF, INITIAL)
    ]
    metadata = [(vpa.metadata.creation_timestamp or "", vpa.metadata.namespace, vpa.metadata.name) for vpa in found]
    return [vpa for _, vpa in sorted(zip(metadata, found, strict=True), key=lambda one: one[0])]


def target_of(vpa: VerticalPodAutoscaler) -> Target:
    reference = vpa.spec.target_ref
    assert reference is not None  # refused when it was read
    return vpa.metadata.namespace, reference.kind, reference.name


def pods_by_target(cluster: Cluster) -> dict[Target, list[PodRecord]]:
    """All pods by their controller, and by the one above it where that is a Deployment; in the order of their names."""
    found: dict[Target, list[PodRecord]] = {}
    for key in sorted(cluster.pods.records):
        record = cluster.pods.records[key]
        owner = controller_of(record.pod.metadata)
        if owner is None:
            continue
        namespace = record.pod.metadata.namespace
        found.setdefault((namespace, owner.kind, owner.name), []).append(record)
        replica_set = cluster.related.replica_sets.get(f"{namespace}/{owner.name}")
        outer = controller_of(replica_set.metadata) if owner.kind == "ReplicaSet" and replica_set is not None else None
        if outer is not None:
            found.setdefault((namespace, outer.kind, outer.name), []).append(record)
    return found


def deferred_pods(cluster: Cluster) -> Iterator[PodRecord]:
    """The pods whose kubelets have no room for their new amounts yet, the most urgent first."""
    waiting = [
        record
        for row in cluster.nodes.crowded_rows(CONTROLLED)
        for record in cluster.pods.on(row)
        if record.leaving is None and not record.nominated and is_deferred(record)
    ]
    return iter(sorted(waiting, key=lambda record: (-record.priority, record.key)))


def is_deferred(record: PodRecord) -> bool:
    """Whether a kubelet says that it has no room for a pod's new amounts yet."""
    return any(
        condition.type == PENDING and condition.status == "True" and condition.reason == DEFERRED
        for condition in record.pod.status.conditions or ()
    )
