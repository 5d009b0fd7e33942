"""Jobs of all kinds as a user writes them, for the tests of job kinds and of queued work."""

from typing import Any

from mooring.model.api.pods import Pod
from mooring.model.loading.manifests import Manifests, build_manifests

Document = dict[str, Any]

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
GATE = "kueue.x-k8s.io/admission"


def template(cpu: str = "1", *, annotations: dict[str, str] | None = None, **spec: Any) -> Document:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def document(api_version: str, kind: str, name: str, spec: Document, *, queue: str = "", **metadata: Any) -> Document:
    labels = {**metadata.pop("labels", {}), **({QUEUE_NAME: queue} if queue else {})}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "labels": labels, **metadata},
        "spec": spec,
    }


def job(name: str = "train", *, queue: str = "", metadata: Document | None = None, **spec: Any) -> Document:
    spec.setdefault("template", template())
    return document("batch/v1", "Job", name, spec, queue=queue, **(metadata or {}))


def job_set(
    name: str = "train", *replicated: Document, queue: str = "", suspend: bool = False, **more: Any
) -> Document:
    spec = {"replicatedJobs": list(replicated), "suspend": suspend}
    return document("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec, queue=queue, **more)


def replicated_job(name: str, replicas: int = 1, *, pods: int = 1, **metadata: Any) -> Document:
    inner = {"parallelism": pods, "completions": pods, "template": template()}
    return {"name": name, "replicas": replicas, "template": {"metadata": metadata, "spec": inner}}


def training_job(
    kind: str, field: str, replicas: Document, *, queue: str = "", version: str = "v1", name: str = "train", **spec: Any
) -> Document:
    """A Kubeflow job; `replicas` has a number of pods for each type, or a whole replica spec."""
    specs = {
        type_: {"replicas": count, "template": template()} if isinstance(count, int) else count
        for type_, count in replicas.items()
    }
    return document(f"kubeflow.org/{version}", kind, name, {field: specs, **spec}, queue=queue)


def pytorch_job(replicas: Document | None = None, *, queue: str = "", **spec: Any) -> Document:
    given = replicas if replicas is not None else {"Master": 1, "Worker": 2}
    return training_job("PyTorchJob", "pytorchReplicaSpecs", given, queue=queue, **spec)


def mpi_job(workers: int = 2, *, version: str = "v2beta1", queue: str = "", **spec: Any) -> Document:
    replicas = {"Launcher": 1, "Worker": workers}
    return training_job("MPIJob", "mpiReplicaSpecs", replicas, queue=queue, version=version, **spec)


def ray_cluster_spec(*groups: Document, **spec: Any) -> Document:
    return {"headGroupSpec": {"template": template()}, "workerGroupSpecs": list(groups), **spec}


def worker_group(name: str = "workers", **fields: Any) -> Document:
    return {"groupName": name, "template": template(), **fields}


def ray_cluster(name: str = "ray", *groups: Document, queue: str = "", **spec: Any) -> Document:
    return document("ray.io/v1", "RayCluster", name, ray_cluster_spec(*groups, **spec), queue=queue)


def ray_job(name: str = "ray", *groups: Document, queue: str = "", **spec: Any) -> Document:
    spec.setdefault("shutdownAfterJobFinishes", True)
    spec.setdefault("rayClusterSpec", ray_cluster_spec(*groups))
    return document("ray.io/v1", "RayJob", name, spec, queue=queue)


def plain_pod(name: str, *, cpu: str = "1", queue: str = "team", node: str = "", **metadata: Any) -> Document:
    spec = {**template(cpu)["spec"], **({"nodeName": node} if node else {})}
    return document("v1", "Pod", name, spec, queue=queue, **metadata)


def grouped_pod(name: str, total: int, *, group: str = "crew", cpu: str = "1", **more: Any) -> Document:
    labels = {"kueue.x-k8s.io/pod-group-name": group}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": str(total), **more.pop("annotations", {})}
    return plain_pod(name, cpu=cpu, labels=labels, annotations=annotations, **more)


def owned(pod: Document, kind: str, owner: str, api_version: str = "") -> Document:
    reference = {"kind": kind, "name": owner, "controller": True, "apiVersion": api_version}
    pod["metadata"]["ownerReferences"] = [reference]
    return pod


def names(manifests: Manifests) -> list[str]:
    return [pod.metadata.name for pod in manifests.pods]


def held(manifests: Manifests) -> dict[str, bool]:
    return {pod.metadata.name: is_held(pod) for pod in manifests.pods}


def is_held(pod: Pod) -> bool:
    return any(gate.name == GATE for gate in pod.spec.scheduling_gates or ())


def load(*documents: Document) -> Manifests:
    return build_manifests(documents)
