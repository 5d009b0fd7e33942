"""Documents as a user writes them, for the tests of reading manifests."""

from typing import Any

Document = dict[str, Any]


def pod_document(name: str = "web", *, labels: dict[str, str] | None = None, **spec: Any) -> Document:
    spec.setdefault("containers", [{"name": "main"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def container(name: str = "main", **resources: dict[str, Any]) -> Document:
    return {"name": name, "resources": resources}


def node_document(name: str = "node", *, taints: list[Document] | None = None, **metadata: Any) -> Document:
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "spec": {"taints": taints or []},
        "status": {"allocatable": allocatable},
    }


def replicated_node(name: str, count: str, **metadata: Any) -> Document:
    annotations = {"mooring.dev/replicas": count, **metadata.pop("annotations", {})}
    return node_document(name, annotations=annotations, **metadata)


def workload_document(kind: str, name: str = "web", *, template: Document | None = None, **spec: Any) -> Document:
    group = {"ReplicationController": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    ends = {"restartPolicy": "Never"} if kind == "Job" else {}
    pod = template or {"metadata": {"labels": {"app": name}}, "spec": {**ends, "containers": [{"name": "main"}]}}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": {"template": pod, **spec}}


def priority_class_document(name: str, value: int, **fields: Any) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }
