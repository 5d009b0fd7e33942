"""Pods that controllers make anew have what their autoscaler recommends, where one gives new pods their amounts."""

from mooring.model.api.pods import Pod
from mooring.model.jobs.expansion import controller_of
from mooring.model.rightsizing.admission import autoscaler_for, patch_for_new_pod
from mooring.state.related import RelatedObjects


def as_recommended(pod: Pod, related: RelatedObjects) -> Pod:
    """A new pod with the amounts that the autoscaler of its controller gives to new pods."""
    owner = controller_of(pod.metadata) if related.autoscalers else None
    if owner is None:
        return pod
    namespace = pod.metadata.namespace
    controllers = [(owner.kind, owner.name)]
    replica_set = related.replica_sets.get(f"{namespace}/{owner.name}") if owner.kind == "ReplicaSet" else None
    outer = controller_of(replica_set.metadata) if replica_set is not None else None
    if outer is not None:
        controllers.append((outer.kind, outer.name))
    vpa = autoscaler_for(related.autoscalers.values(), namespace, controllers)
    if vpa is None:
        return pod
    horizontal = related.horizontal_autoscalers.values()
    return patch_for_new_pod(pod, vpa, related.limit_ranges.values(), horizontal).apply(pod)
