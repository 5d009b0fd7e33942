"""What happened between two pictures of a cluster, as events."""

from collections.abc import Iterator

from mooring.model.events import (
    Event,
    GangLost,
    GangSeen,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
    WorkloadLost,
    WorkloadSeen,
    object_key,
)
from mooring.model.loading.manifests import Manifests
from mooring.model.queued.workloads import queued_workloads


def differences(before: Manifests, after: Manifests) -> Iterator[Event]:
    """The events that lead from one to the other: what pods depend on first, then those that go, then those that come.

    Only what changed in the manifests has happened: where a scheduler has put pods in between is not their business.
    """
    old, new = ({(found.kind, object_key(found)): found for found in m.related()} for m in (before, after))
    yield from (ObjectLost(*key) for key in old if key not in new)
    yield from (ObjectSeen(found) for key, found in new.items() if old.get(key) != found)
    old_nodes, new_nodes = ({node.metadata.name: node for node in m.nodes} for m in (before, after))
    yield from (NodeLost(name) for name in old_nodes if name not in new_nodes)
    yield from (NodeSeen(node) for name, node in new_nodes.items() if old_nodes.get(name) != node)
    old_gangs, new_gangs = ({gang.key: gang for gang in m.gangs} for m in (before, after))
    yield from (GangSeen(gang) for key, gang in new_gangs.items() if old_gangs.get(key) != gang)
    old_pods, new_pods = ({pod.key: pod for pod in m.pods} for m in (before, after))
    yield from (PodLost(key) for key in old_pods if key not in new_pods)
    yield from (PodSeen(pod) for key, pod in new_pods.items() if old_pods.get(key) != pod)
    old_workloads, new_workloads = (
        {workload.workload.key: workload for workload in queued_workloads(m)} for m in (before, after)
    )
    yield from (WorkloadLost(key) for key in old_workloads if key not in new_workloads)
    yield from (WorkloadSeen(workload) for key, workload in new_workloads.items() if old_workloads.get(key) != workload)
    yield from (GangLost(key) for key in old_gangs if key not in new_gangs)
