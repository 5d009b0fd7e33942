"""Pieces of scenarios that tests share."""

from typing import Any


def node(name: str = "n", cpu: int = 8, gpus: int = 0, labels: dict[str, str] | None = None) -> dict[str, Any]:
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    if gpus:
        allocatable["nvidia.com/gpu"] = str(gpus)
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def cluster(*objects: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"objects": list(objects) or [node()], **parts}


def job(name: str, at: str | list[str] = "0s", duration: str = "100s", cpu: int = 8, **parts: Any) -> dict[str, Any]:
    """A job of one pod that takes the whole node, at one time or at several."""
    times = [at] if isinstance(at, str) else at
    return {"name": name, "at": times, "duration": duration, "requests": {"cpu": cpu}, **parts}


def cluster_queue(name: str, cpu: int, **spec: Any) -> list[dict[str, Any]]:
    """A ClusterQueue with so many CPUs, its LocalQueue of the same name, and the flavor."""
    version = "kueue.x-k8s.io/v1beta2"
    quota = [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    return [
        {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quota}],
                **spec,
            },
        },
        {
            "apiVersion": version,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterQueue": name},
        },
    ]
