"""Namespaces, quotas, limits and what is created under them, in one line each."""

from typing import Any

from mooring.model.loading.manifests import build_manifests
from mooring.model.objects.picture import Manifests

Document = dict[str, Any]


def quota(hard: Document, name: str = "team-a", **spec: Any) -> Document:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard, **spec}}


def limit_range(*limits: Document, name: str = "limits") -> Document:
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": list(limits)}}


def container(name: str = "main", **resources: Document) -> Document:
    return {"name": name, "resources": resources}


def pod(name: str = "web", *containers: Document, **spec: Any) -> Document:
    spec["containers"] = list(containers) or spec.get("containers") or [container()]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def asking(name: str = "web", **requests: Any) -> Document:
    """A pod of one container with these requests; `_` in a name stands for `-`."""
    return pod(name, container(requests={key.replace("_", "-"): value for key, value in requests.items()}))


def workload(kind: str, name: str = "web", *containers: Document, **spec: Any) -> Document:
    group = {"ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}.get(kind, "apps/v1")
    ends = {"restartPolicy": "Never"} if kind in ("Job", "CronJob") else {}
    pod_spec = {**ends, "containers": list(containers) or [container()]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": {"template": template, **spec}}}
    else:
        spec["template"] = template
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def claim(name: str = "data", storage: str = "1Gi", **spec: Any) -> Document:
    spec["resources"] = {"requests": {"storage": storage}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def service(name: str = "web", **spec: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def with_metadata(document: Document, **metadata: Any) -> Document:
    return {**document, "metadata": {**document["metadata"], **metadata}}


def messages(*documents: Document) -> list[str]:
    """What is said to those who create what is refused, in order."""
    return [refusal.message for refusal in build_manifests(documents).refused]


def pod_names(manifests: Manifests) -> list[str]:
    return [found.metadata.name for found in manifests.pods]
