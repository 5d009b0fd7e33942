"""The requests that decisions become, as paths and bodies: written out, since there are thousands a second."""

from typing import Any

import msgspec

from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Partition, Resize

encode = msgspec.json.encode
POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"


def pod_path(pod: Pod, subresource: str = "") -> str:
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
    return f"{path}/{subresource}" if subresource else path


def binding(pod: Pod, decision: Bind) -> bytes:
    """A Binding for this very pod: another one of its name is refused by its uid. What it carries the pod gets."""
    metadata = pod.metadata
    written: dict[str, Any] = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    if decision.annotations:
        written["annotations"] = dict(decision.annotations)
    if decision.labels:
        written["labels"] = dict(decision.labels)
    return encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": written,
            "target": {"apiVersion": "v1", "kind": "Node", "name": decision.node},
        }
    )


def cut_gpu(decision: Partition) -> bytes:
    """The annotations of a node that say how one of its GPUs is to be cut; what is empty is taken away."""
    return encode({"metadata": {"annotations": {key: value or None for key, value in decision.annotations}}})


def resizing(pod: Pod, decision: Resize) -> bytes:
    """Other amounts for the containers of this very pod, as a strategic merge patch of its `resize` subresource."""
    init = {container.name for container in pod.spec.init_containers or ()}
    changed: dict[str, list[dict[str, Any]]] = {}
    for one in decision.resources:
        amounts = {"requests": dict(one.requests), "limits": dict(one.limits)}
        resources = {name: found for name, found in amounts.items() if found}
        kind = "initContainers" if one.container in init else "containers"
        changed.setdefault(kind, []).append({"name": one.container, "resources": resources})
    return encode({"metadata": {"uid": pod.metadata.uid}, "spec": changed})


def deletion(pod: Pod) -> bytes:
    return encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.metadata.uid}})


def eviction(pod: Pod) -> bytes:
    """An Eviction of this very pod, which the API server refuses while a disruption budget does not allow it."""
    metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace}
    options = {"preconditions": {"uid": pod.metadata.uid}}
    return encode({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options})


def waiting_status(pod: Pod, reason: str, message: str, nominated: str, now: float) -> bytes | None:
    """What to write into the status of a pod that waits; None if that is there already."""
    status = pod.status
    known = next((found for found in status.conditions or () if found.type == POD_SCHEDULED), None)
    is_said = known is not None and (known.status, known.reason, known.message) == ("False", reason, message)
    if is_said and status.nominated_node_name == nominated:
        return None
    changes: dict[str, Any] = {}
    if not is_said:
        changes["conditions"] = [_condition(pod, known, POD_SCHEDULED, "False", reason, message, now)]
    if status.nominated_node_name != nominated:
        changes["nominatedNodeName"] = nominated or None
    return encode({"metadata": {"uid": pod.metadata.uid}, "status": changes})


def preempted_status(pod: Pod, scheduler: str, now: float) -> bytes:
    """Why this pod is about to be deleted, for whoever counts disruptions."""
    message = f"{scheduler}: preempting to accommodate a higher priority pod"
    condition = _condition(pod, None, DISRUPTION_TARGET, "True", "PreemptionByScheduler", message, now)
    return encode({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}})


def _condition(pod: Pod, known: Any, type_: str, status: str, reason: str, message: str, now: float) -> dict[str, Any]:
    found: dict[str, Any] = {"type": type_, "status": status, "reason": reason, "message": message}
    if known is None or known.status != status:
        found["lastTransitionTime"] = timestamp_text(now)
    if pod.metadata.generation:
        found["observedGeneration"] = pod.metadata.generation
    return found
