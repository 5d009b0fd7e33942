"""RayCluster, RayJob and RayService of `ray.io`: a head, groups of workers, and for a job the pod that submits it."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from mooring.model.api.kueue_labels import queue_name
from mooring.model.api.meta import KubeObject, ObjectMeta, OwnerReference, Resources
from mooring.model.api.pods import Container, Pod, PodSpec, PodTemplateSpec, ResourceRequirements
from mooring.model.api.workloads import Job, JobSpec
from mooring.model.jobs.expansion import JOB_NAMES, Owned, Stamp, owner_key
from mooring.model.jobs.pod_sets import PodFinder, PodSetPlan, label

GROUP = "ray.io"
CLUSTER = "ray.io/cluster"
NODE_TYPE = "ray.io/node-type"
NODE_GROUP = "ray.io/group"
HEAD, SUBMITTER = "head", "submitter"
HEAD_GROUP = "headgroup"
AUTOSCALER = "autoscaler"
K8S_JOB_MODE = "K8sJobMode"
_MOST_REPLICAS = 2**31 - 1


class HeadGroupSpec(KubeObject):
    template: PodTemplateSpec


class WorkerGroupSpec(KubeObject):
    group_name: str
    template: PodTemplateSpec
    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    num_of_hosts: int = 1
    suspend: bool = False


class AutoscalerOptions(KubeObject):
    resources: ResourceRequirements | None = None


class RayClusterSpec(KubeObject):
    head_group_spec: HeadGroupSpec
    worker_group_specs: list[WorkerGroupSpec] | None = None
    enable_in_tree_autoscaling: bool = False
    autoscaler_options: AutoscalerOptions | None = None
    suspend: bool = False


class RayCluster(KubeObject):
    spec: RayClusterSpec
    api_version: str = f"{GROUP}/v1"
    kind: str = "RayCluster"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class RayJobSpec(KubeObject):
    ray_cluster_spec: RayClusterSpec | None = None
    submission_mode: str = K8S_JOB_MODE
    submitter_pod_template: PodTemplateSpec | None = None
    cluster_selector: dict[str, str] | None = None
    shutdown_after_job_finishes: bool = False
    suspend: bool = False

    def __post_init__(self) -> None:
        if self.submission_mode == K8S_JOB_MODE and self.submitter_pod_template is None:
            self.submitter_pod_template = _make_submitter(self.ray_cluster_spec)


def _make_submitter(cluster: RayClusterSpec | None) -> PodTemplateSpec:
    """The pod that submits a job which says nothing about it: the head's image, the operator's requests."""
    containers = cluster.head_group_spec.template.spec.containers if cluster is not None else []
    resources = ResourceRequirements(requests={"cpu": "500m", "memory": "200Mi"}, limits={"cpu": "1", "memory": "1Gi"})
    image = containers[0].image if containers else ""
    container = Container(name="ray-job-submitter", image=image, resources=resources)
    return PodTemplateSpec(spec=PodSpec(containers=[container], restart_policy="Never"))


class RayJobStatus(KubeObject):
    job_deployment_status: str = ""
    ray_cluster_name: str = ""


class RayJob(KubeObject):
    spec: RayJobSpec
    api_version: str = f"{GROUP}/v1"
    kind: str = "RayJob"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: RayJobStatus = msgspec.field(default_factory=RayJobStatus)


class RayServiceSpec(KubeObject):
    ray_cluster_spec: RayClusterSpec = msgspec.field(name="rayClusterConfig")
    suspend: bool = False


class ServiceStatus(KubeObject):
    ray_cluster_name: str = ""


class RayServiceStatus(KubeObject):
    active_service_status: ServiceStatus = msgspec.field(default_factory=ServiceStatus)
    pending_service_status: ServiceStatus = msgspec.field(default_factory=ServiceStatus)

    @property
    def ray_cluster_name(self) -> str:
        return self.active_service_status.ray_cluster_name or self.pending_service_status.ray_cluster_name


class RayService(KubeObject):
    """A cluster that serves; the next one, which an upgrade brings up beside it, is not foreseen."""

    spec: RayServiceSpec
    api_version: str = f"{GROUP}/v1"
    kind: str = "RayService"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: RayServiceStatus = msgspec.field(default_factory=RayServiceStatus)


RayOwner: TypeAlias = RayJob | RayService
"""What has a cluster made for it."""


def default_ray_cluster(owner: RayCluster) -> None:
    _add_autoscaler(owner.spec)


def default_ray_owner(owner: RayOwner) -> None:
    if owner.spec.ray_cluster_spec is not None:
        _add_autoscaler(owner.spec.ray_cluster_spec)


def _add_autoscaler(spec: RayClusterSpec) -> None:
    """Where a cluster scales itself, the operator puts the autoscaler beside the head, with requests of its own."""
    head = spec.head_group_spec.template.spec
    if not spec.enable_in_tree_autoscaling or any(container.name == AUTOSCALER for container in head.containers):
        return
    amounts: Resources = {"cpu": "500m", "memory": "512Mi"}
    resources = None if spec.autoscaler_options is None else spec.autoscaler_options.resources
    resources = resources or ResourceRequirements(requests=amounts, limits=amounts)
    image = head.containers[0].image if head.containers else ""
    head.containers.append(Container(name=AUTOSCALER, image=image, resources=resources))


def worker_count(group: WorkerGroupSpec) -> int:
    """How many pods a group has: its replicas within their bounds, each on so many hosts."""
    if group.suspend:
        return 0
    at_least = 0 if group.min_replicas is None else group.min_replicas
    at_most = _MOST_REPLICAS if group.max_replicas is None else group.max_replicas
    wanted = at_least if group.replicas is None else group.replicas
    return min(max(wanted, at_least), at_most) * max(1, group.num_of_hosts)


def _cluster_templates(spec: RayClusterSpec, path: str) -> Iterator[tuple[str, PodTemplateSpec]]:
    yield f"{path}.headGroupSpec.template", spec.head_group_spec.template
    for index, group in enumerate(spec.worker_group_specs or ()):
        yield f"{path}.workerGroupSpecs[{index}].template", group.template


def ray_cluster_templates(owner: RayCluster) -> Iterator[tuple[str, PodTemplateSpec]]:
    return _cluster_templates(owner.spec, "spec")


def ray_job_templates(owner: RayOwner) -> Iterator[tuple[str, PodTemplateSpec]]:
    if owner.spec.ray_cluster_spec is not None:
        yield from _cluster_templates(owner.spec.ray_cluster_spec, cluster_path(owner))
    template = _submitter(owner)
    if template is not None:
        yield "spec.submitterPodTemplate", template


def cluster_path(owner: RayOwner) -> str:
    return "spec.rayClusterConfig" if isinstance(owner, RayService) else "spec.rayClusterSpec"


def is_ray_job_over(owner: RayOwner) -> bool:
    return isinstance(owner, RayJob) and owner.status.job_deployment_status in ("Complete", "Failed")


def _cluster_pod_sets(spec: RayClusterSpec, path: str) -> list[PodSetPlan]:
    counts = [1, *(worker_count(group) for group in spec.worker_group_specs or ())]
    names = [HEAD, *(group.group_name.lower() for group in spec.worker_group_specs or ())]
    return [
        PodSetPlan(name=name, template=template, count=count, path=where)
        for name, count, (where, template) in zip(names, counts, _cluster_templates(spec, path), strict=True)
    ]


def ray_cluster_pod_sets(owner: RayCluster) -> list[PodSetPlan]:
    """The head, then each group of workers under its name."""
    return _cluster_pod_sets(owner.spec, "spec")


def ray_job_pod_sets(owner: RayOwner) -> list[PodSetPlan]:
    """Those of its cluster, then the submitter's, unless the operator submits the job itself."""
    spec = owner.spec
    plans = [] if spec.ray_cluster_spec is None else _cluster_pod_sets(spec.ray_cluster_spec, cluster_path(owner))
    template = _submitter(owner)
    if template is not None:
        plans.append(PodSetPlan(SUBMITTER, template, 1, "spec.submitterPodTemplate"))
    return plans


def _submitter(owner: RayOwner) -> PodTemplateSpec | None:
    if isinstance(owner, RayService):
        return None
    return owner.spec.submitter_pod_template if owner.spec.submission_mode == K8S_JOB_MODE else None


def _cluster_members(namespace: str, name: str, pods: PodFinder) -> dict[str, list[Pod]]:
    members: dict[str, list[Pod]] = {}
    for pod in pods.labelled(namespace, CLUSTER, name):
        pod_set = HEAD if label(pod, NODE_TYPE) == HEAD else label(pod, NODE_GROUP).lower()
        members.setdefault(pod_set, []).append(pod)
    return members


def ray_cluster_members(owner: RayCluster, pods: PodFinder) -> Mapping[str, list[Pod]]:
    return _cluster_members(owner.metadata.namespace, owner.metadata.name, pods)


def ray_job_members(owner: RayOwner, pods: PodFinder) -> Mapping[str, list[Pod]]:
    namespace, name = owner.metadata.namespace, owner.metadata.name
    members = _cluster_members(namespace, cluster_name(owner), pods)
    if isinstance(owner, RayJob):
        members[SUBMITTER] = pods.owned_by("batch", "Job", namespace, name)
    return members


def cluster_name(owner: RayOwner) -> str:
    """The name that the operator gave the cluster; before it has, one that stands for it."""
    return owner.status.ray_cluster_name or f"{owner.metadata.name}-raycluster"


def expand_ray_cluster(owner: RayCluster, owned: Owned) -> list[Pod]:
    """Create the head and as many workers of each group as are missing."""
    if owner.spec.suspend and not queue_name(owner.metadata):
        return []
    present = [pod for pod in owned.get(owner_key(owner), ()) if isinstance(pod, Pod) and not pod.is_terminal]
    return _make_cluster_pods(owner, owner.spec, present)


def _make_cluster_pods(cluster: Any, spec: RayClusterSpec, present: list[Pod]) -> list[Pod]:
    name = cluster.metadata.name
    taken = {pod.metadata.name for pod in present}
    pods: list[Pod] = []
    if all(label(pod, NODE_TYPE) != HEAD for pod in present):
        stamp = Stamp(cluster, spec.head_group_spec.template, _labels(name, HEAD, HEAD_GROUP))
        pods.append(stamp.pod(f"{name}-head"))
    for group in spec.worker_group_specs or ():
        known = sum(label(pod, NODE_GROUP) == group.group_name and label(pod, NODE_TYPE) == "worker" for pod in present)
        missing = max(0, worker_count(group) - known)
        stamp = Stamp(cluster, group.template, _labels(name, "worker", group.group_name))
        base = f"{name}-{group.group_name}-worker"
        # As many names again as are taken, so that enough are left whichever those are.
        free = (found for i in range(missing + len(taken)) if (found := f"{base}-{i}") not in taken)
        pods += [stamp.pod(pod_name) for pod_name in islice(free, missing)]
    return pods


def _labels(cluster: str, node_type: str, group: str) -> dict[str, str]:
    return {
        "ray.io/is-ray-node": "yes",
        CLUSTER: cluster,
        NODE_TYPE: node_type,
        NODE_GROUP: group,
        "ray.io/identifier": f"{cluster}-{node_type}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }


def expand_ray_job(owner: RayOwner, owned: Owned) -> list[Pod]:
    """Create the pods of the job's cluster and its submitter, unless the cluster or the submitter's Job is there."""
    spec = owner.spec
    is_suspended = spec.suspend and not queue_name(owner.metadata)
    if is_ray_job_over(owner) or is_suspended:
        return []
    children = owned.get(owner_key(owner), ())
    namespace, name = owner.metadata.namespace, owner.metadata.name
    pods: list[Pod] = []
    if spec.ray_cluster_spec is not None and not any(isinstance(found, RayCluster) for found in children):
        metadata = ObjectMeta(name=cluster_name(owner), namespace=namespace, owner_references=[_reference(owner)])
        cluster = RayCluster(metadata=metadata, spec=spec.ray_cluster_spec, api_version=owner.api_version)
        present = [pod for pod in owned.get(owner_key(cluster), ()) if not pod.is_terminal]
        pods += _make_cluster_pods(cluster, spec.ray_cluster_spec, present)
    has_submitter = any(isinstance(found, Job) for found in children) or ("Job", namespace, name) in owned
    template = _submitter(owner)
    if template is not None and not has_submitter:
        job = Job(metadata=ObjectMeta(name=name, namespace=namespace), spec=JobSpec(template=template))
        pods.append(Stamp(job, template, dict.fromkeys(JOB_NAMES, name)).pod(f"{name}-{SUBMITTER}"))
    return pods


def _reference(owner: RayOwner) -> OwnerReference:
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )
