"""The objects that a job of a trace or a distribution is submitted as: `as: Job` in a scenario."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mooring.drivers.sim.arrival import Arrival
from mooring.model.api.kueue_labels import QUEUE_NAME
from mooring.model.api.meta import timestamp_text
from mooring.model.values.durations import DURATION

Document = dict[str, Any]
POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


def _pod_template(arrival: Arrival, **labels: str) -> Document:
    annotations = dict(arrival.annotations)
    if arrival.duration < float("inf"):
        annotations[DURATION] = f"{arrival.duration:.3f}s"
    limits = {name: amount for name, amount in arrival.requests.items() if "/" in name}
    resources = {"requests": dict(arrival.requests), **({"limits": limits} if limits else {})}
    spec: Document = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "job", "resources": resources}],
    }
    if arrival.priority:
        spec["priorityClassName"] = priority_class_name(arrival.priority)
    if arrival.node_labels:
        spec |= _on_nodes(arrival.node_labels)
    return {"metadata": {"labels": {**arrival.labels, **labels}, "annotations": annotations}, "spec": spec}


def _on_nodes(node_labels: Mapping[str, Sequence[str]]) -> Document:
    single = {label: values[0] for label, values in node_labels.items() if len(values) == 1}
    several = [
        {"key": label, "operator": "In", "values": list(values)}
        for label, values in node_labels.items()
        if len(values) != 1
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": several}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {**({"nodeSelector": single} if single else {}), **({"affinity": affinity} if several else {})}


def _object(api_version: str, kind: str, arrival: Arrival, spec: Document, **labels: str) -> Document:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": arrival.name,
            "namespace": arrival.namespace,
            "creationTimestamp": timestamp_text(arrival.time),
            **({"labels": labels} if labels else {}),
        },
        "spec": spec,
    }


def _pods(arrival: Arrival, template: Document) -> list[Document]:
    metadata = {"namespace": arrival.namespace, "creationTimestamp": timestamp_text(arrival.time)}
    names = [arrival.name] if arrival.pods == 1 else [f"{arrival.name}-{index}" for index in range(arrival.pods)]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], **metadata, "name": name},
            "spec": template["spec"],
        }
        for name in names
    ]


def as_pods(arrival: Arrival) -> list[Document]:
    """Bare pods, each by itself; with a queue, each is a workload of its own to Kueue."""
    queue = {QUEUE_NAME: arrival.queue} if arrival.queue else {}
    return _pods(arrival, _pod_template(arrival, **queue))


def as_job(arrival: Arrival) -> list[Document]:
    """A Job; with a queue, Kueue admits it as a whole."""
    spec: Document = {
        "parallelism": arrival.pods,
        "completions": arrival.pods,
        "template": _pod_template(arrival),
        **({"suspend": True} if arrival.queue else {}),
    }
    if arrival.pods > 1:
        spec["completionMode"] = "Indexed"
    labels = {QUEUE_NAME: arrival.queue} if arrival.queue else {}
    return [_object("batch/v1", "Job", arrival, spec, **labels)]


def as_pod_group(arrival: Arrival) -> list[Document]:
    """Bare pods of a PodGroup of the coscheduling plugin: all start together."""
    group = _object("scheduling.x-k8s.io/v1alpha1", "PodGroup", arrival, {"minMember": arrival.pods})
    return [group, *_pods(arrival, _pod_template(arrival, **{POD_GROUP_LABEL: arrival.name}))]


def as_volcano_job(arrival: Arrival) -> list[Document]:
    """A Job of Volcano in one of its queues: all pods start together."""
    spec = {
        "schedulerName": "default-scheduler",
        "minAvailable": arrival.pods,
        "queue": arrival.queue or "default",
        "tasks": [{"name": "main", "replicas": arrival.pods, "template": _pod_template(arrival)}],
    }
    if arrival.priority:
        spec["priorityClassName"] = priority_class_name(arrival.priority)
    return [_object("batch.volcano.sh/v1alpha1", "Job", arrival, spec)]


FORMS: dict[str, Callable[[Arrival], list[Document]]] = {
    "Pod": as_pods,
    "Job": as_job,
    "PodGroup": as_pod_group,
    "VolcanoJob": as_volcano_job,
}
"""By the name that a scenario gives as `as`."""


def priority_class_name(priority: int) -> str:
    """The class that a number stands for: Kubernetes knows priorities by the names of classes only."""
    return f"priority-{priority}" if priority >= 0 else f"priority-minus-{-priority}"


def priority_class(priority: int) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class_name(priority)},
        "value": priority,
    }
