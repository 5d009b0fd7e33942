"""TrainJob of `trainer.kubeflow.org`: a runtime of the cluster, and what one job changes of it; together a JobSet.

A runtime says which Jobs there are, and their templates. What a job asks for (nodes, resources, patches) is put into a
copy of it, as Kubeflow's controller does, as far as scheduling reads the result.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.model.api.gang_labels import COSCHEDULING_GROUPS, VOLCANO_GROUPS
from mooring.model.api.kueue_labels import queue_name
from mooring.model.api.meta import Condition, KubeObject, ObjectMeta
from mooring.model.api.pods import Pod, PodSpec, PodTemplateSpec, ResourceRequirements
from mooring.model.jobs.jobset import (
    JobSet,
    JobSetSpec,
    ReplicatedJobStatus,
    job_set_members,
    job_set_pod_sets,
    job_set_templates,
)
from mooring.model.jobs.pod_sets import PodFinder, PodSetPlan, has_ended
from mooring.model.topology.requests import NetworkTopology

GROUP, TRAIN_JOB = "trainer.kubeflow.org", "TrainJob"
CLUSTER_RUNTIME, RUNTIME = "ClusterTrainingRuntime", "TrainingRuntime"
ANCESTOR = f"{GROUP}/trainjob-ancestor-step"
TRAINER, INITIALIZERS = "trainer", ("dataset-initializer", "model-initializer")
"""Values of the label by which the Jobs of a runtime say which part of a TrainJob they are."""
NODE = "node"
"""The Job of an MPI runtime that has the workers, and in every runtime the container that trains."""
ADMISSION_MANAGER = "kueue.x-k8s.io/manager"
"""The runtime patch that admission writes."""
_QUEUE = "scheduling.volcano.sh/queue-name"
_MERGED_BY = {"volumeMounts": "mountPath"} | dict.fromkeys(
    ("replicatedJobs", "containers", "initContainers", "volumes", "schedulingGates", "imagePullSecrets", "env"), "name"
)
"""Lists of which a patch changes single items, with the field that tells which; it replaces other lists."""
Json = dict[str, Any]


class RuntimeRef(KubeObject):
    name: str = ""
    kind: str = CLUSTER_RUNTIME


class Trainer(KubeObject):
    num_nodes: int | None = None
    resources_per_node: ResourceRequirements | None = None


class PodTemplatePatch(KubeObject):
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class JobSpecPatch(KubeObject):
    template: PodTemplatePatch | None = None


class JobTemplatePatch(KubeObject):
    metadata: ObjectMeta | None = None
    spec: JobSpecPatch | None = None


class ReplicatedJobPatch(KubeObject):
    name: str = ""
    template: JobTemplatePatch | None = None


class JobSetSpecPatch(KubeObject):
    replicated_jobs: list[ReplicatedJobPatch] | None = None


class JobSetTemplatePatch(KubeObject):
    metadata: ObjectMeta | None = None
    spec: JobSetSpecPatch | None = None


class RuntimeSpecPatch(KubeObject):
    template: JobSetTemplatePatch | None = None


class RuntimePatch(KubeObject):
    manager: str = ""
    training_runtime_spec: RuntimeSpecPatch | None = None


class TargetJob(KubeObject):
    name: str = ""


class PodTemplateOverride(KubeObject):
    """How releases before 2.2 changed the templates of some Jobs."""

    target_jobs: list[TargetJob] = []
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class TrainJobSpec(KubeObject):
    runtime_ref: RuntimeRef = msgspec.field(default_factory=RuntimeRef)
    trainer: Trainer | None = None
    runtime_patches: list[RuntimePatch] | None = None
    pod_template_overrides: list[PodTemplateOverride] | None = None
    suspend: bool = False
    job_set: JobSet | None = msgspec.field(default=None, name="mooring.dev/jobSet")
    """No field of Kubeflow's: the JobSet that the job becomes, once it is read with its runtime."""


class TrainJobStatus(KubeObject):
    conditions: list[Condition] | None = None
    jobs_status: list[ReplicatedJobStatus] | None = None


class TrainJob(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = TRAIN_JOB
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: TrainJobSpec = msgspec.field(default_factory=TrainJobSpec)
    status: TrainJobStatus = msgspec.field(default_factory=TrainJobStatus)


class MpiPolicy(KubeObject):
    run_launcher_as_node: bool = False


class MlPolicy(KubeObject):
    num_nodes: int | None = None
    mpi: MpiPolicy | None = None


class CoschedulingPolicy(KubeObject):
    schedule_timeout_seconds: int | None = None


class VolcanoPolicy(KubeObject):
    network_topology: NetworkTopology | None = None


class PodGroupPolicy(KubeObject):
    coscheduling: CoschedulingPolicy | None = None
    volcano: VolcanoPolicy | None = None


class JobSetTemplate(KubeObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: JobSetSpec = msgspec.field(default_factory=JobSetSpec)


class RuntimeSpec(KubeObject):
    ml_policy: MlPolicy | None = None
    pod_group_policy: PodGroupPolicy | None = None
    template: JobSetTemplate = msgspec.field(default_factory=JobSetTemplate)


class TrainingRuntime(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = RUNTIME
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: RuntimeSpec = msgspec.field(default_factory=RuntimeSpec)


class ClusterTrainingRuntime(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = CLUSTER_RUNTIME
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: RuntimeSpec = msgspec.field(default_factory=RuntimeSpec)


def runtime_key(owner: TrainJob) -> tuple[type[Any], str, str]:
    """The type, namespace and name of the runtime that a job names."""
    reference = owner.spec.runtime_ref
    if reference.kind == RUNTIME:
        return TrainingRuntime, owner.metadata.namespace, reference.name
    return ClusterTrainingRuntime, "", reference.name


def runtime_priority_classes(runtime: TrainingRuntime | ClusterTrainingRuntime) -> Iterator[str]:
    """The PriorityClasses that the templates of a runtime name, empty for the default one."""
    for replicated in runtime.spec.template.spec.replicated_jobs:
        yield replicated.template.spec.template.spec.priority_class_name


def is_train_job_over(owner: TrainJob) -> bool:
    return has_ended(owner.status.conditions, "Complete", "Failed")


def train_job_templates(owner: TrainJob) -> Iterator[tuple[str, PodTemplateSpec]]:
    return job_set_templates(owner.spec.job_set) if owner.spec.job_set is not None else iter(())


def train_job_pod_sets(owner: TrainJob) -> list[PodSetPlan]:
    """Those of its JobSet; none while its runtime is not known."""
    return job_set_pod_sets(owner.spec.job_set) if owner.spec.job_set is not None else []


def train_job_members(owner: TrainJob, pods: PodFinder) -> Mapping[str, list[Pod]]:
    return job_set_members(JobSet(metadata=owner.metadata), pods)


def read_job_set(owner: TrainJob, runtime: RuntimeSpec) -> Json:
    """The JobSet that a job asks for, before admission adds to it; one that queues has its pods when it is admitted."""
    patches = [patch for patch in owner.spec.runtime_patches or () if patch.manager != ADMISSION_MANAGER]
    asked = replace(owner, spec=replace(owner.spec, runtime_patches=patches, job_set=None))
    document = job_set_document(msgspec.to_builtins(asked), msgspec.to_builtins(runtime))
    document["spec"]["suspend"] = owner.spec.suspend and not queue_name(owner.metadata)
    return document


def job_set_document(owner: Json, runtime: Json) -> Json:
    """The JobSet of a job and the spec of its runtime, as Kubeflow's controller makes it."""
    name, asked = owner["metadata"]["name"], owner.get("spec") or {}
    template = runtime.get("template") or {}
    spec = copy.deepcopy(template.get("spec") or {})
    known = {each.get("name") for each in spec.get("replicatedJobs") or ()}
    marks = template.get("metadata") or {}
    for patch in asked.get("runtimePatches") or ():
        change = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
        marks = _merged(marks, change.get("metadata") or {})
        spec = _merged(spec, change.get("spec") or {})
    jobs = [each for each in spec.get("replicatedJobs") or () if each.get("name") in known]
    for override in asked.get("podTemplateOverrides") or ():
        _override(jobs, override)
    trainer, ml_policy = asked.get("trainer") or {}, runtime.get("mlPolicy")
    for replicated in jobs:
        _set_count(replicated, trainer, ml_policy)
        _set_trainer(replicated, trainer, ml_policy)
        _mark_gang(replicated, name, runtime.get("podGroupPolicy") or {})
    metadata: Json = {"name": name, "namespace": owner["metadata"].get("namespace", "")}
    metadata |= {field: marks[field] for field in ("labels", "annotations") if marks.get(field)}
    metadata["ownerReferences"] = [_reference(owner)]
    spec |= {"replicatedJobs": jobs, "suspend": bool(asked.get("suspend"))}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


def pod_group_document(owner: Json, runtime: Json, job_set: Json) -> Json | None:
    """The PodGroup of a job whose runtime lets its pods start together; its pods name it."""
    policy = runtime.get("podGroupPolicy") or {}
    jobs = job_set["spec"]["replicatedJobs"]
    spec: Json = {"minMember": sum(each["template"]["spec"]["parallelism"] for each in jobs)}
    metadata: Json = {field: owner["metadata"].get(field, "") for field in ("name", "namespace")}
    metadata["ownerReferences"] = [_reference(owner)]
    if (coscheduling := policy.get("coscheduling")) is not None:
        if coscheduling.get("scheduleTimeoutSeconds") is not None:
            spec["scheduleTimeoutSeconds"] = coscheduling["scheduleTimeoutSeconds"]
        return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    if (volcano := policy.get("volcano")) is None:
        return None
    if queue := (job_set["metadata"].get("annotations") or {}).get(_QUEUE):
        spec["queue"] = queue
    classes = [(_pod_template(each).get("spec") or {}).get("priorityClassName") for each in jobs]
    if named := [each for each in classes if each]:
        spec["priorityClassName"] = named[-1]
    if volcano.get("networkTopology"):
        spec["networkTopology"] = volcano["networkTopology"]
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def admission_patches(patches: list[Json] | None, replicated_jobs: list[Json]) -> list[Json]:
    """The runtime patches of a job with that of admission; without it where there is nothing in it."""
    others = [patch for patch in patches or () if patch.get("manager") != ADMISSION_MANAGER]
    if not replicated_jobs:
        return others
    spec = {"template": {"spec": {"replicatedJobs": replicated_jobs}}}
    return [*others, {"manager": ADMISSION_MANAGER, "trainingRuntimeSpec": spec}]


def _reference(owner: Json) -> Json:
    return {
        "apiVersion": owner.get("apiVersion") or f"{GROUP}/v1alpha1",
        "kind": TRAIN_JOB,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _ancestor(replicated: Json) -> str:
    metadata = (replicated.get("template") or {}).get("metadata") or {}
    return str((metadata.get("labels") or {}).get(ANCESTOR, ""))


def _pod_template(replicated: Json) -> Json:
    spec = (replicated.get("template") or {}).get("spec") or {}
    found: Json = spec.get("template") or {}
    return found


def _set_count(replicated: Json, trainer: Json, policy: Json | None) -> None:
    """Say how many pods a Job has: the runtime's number, unless the job asks for nodes."""
    ancestor, spec = _ancestor(replicated), replicated.setdefault("template", {}).setdefault("spec", {})
    count = spec.get("parallelism")
    if ancestor == TRAINER and policy is not None:
        count = policy.get("numNodes")
    count = 1 if count is None else max(count, 1)
    mpi, nodes = (policy or {}).get("mpi"), trainer.get("numNodes")
    if nodes is not None and mpi is None and ancestor == TRAINER:
        count = nodes
    elif nodes is not None and mpi is not None and replicated.get("name") == NODE:
        count = max(nodes - 1, 1) if mpi.get("runLauncherAsNode") else nodes
    spec["parallelism"] = spec["completions"] = count
    if ancestor in (TRAINER, *INITIALIZERS):
        replicated["replicas"] = 1


def _set_trainer(replicated: Json, trainer: Json, policy: Json | None) -> None:
    """Write into the container `node` what the job says of it."""
    is_trainer = _ancestor(replicated) == TRAINER
    runs_launcher = bool(((policy or {}).get("mpi") or {}).get("runLauncherAsNode"))
    is_node = runs_launcher and replicated.get("name") == NODE
    for container in (_pod_template(replicated).get("spec") or {}).get("containers") or ():
        if container.get("name") != NODE:
            continue
        if trainer.get("resourcesPerNode") and ((is_trainer and policy is not None) or is_node):
            container["resources"] = _merged(container.get("resources") or {}, trainer["resourcesPerNode"])
        if is_trainer:
            container |= {field: trainer[field] for field in ("image", "command", "args") if trainer.get(field)}
        if trainer.get("env") and (is_trainer or is_node):
            container["env"] = _merged_list(container.get("env") or [], trainer["env"], "name")


def _mark_gang(replicated: Json, name: str, policy: Json) -> None:
    template = _pod_template(replicated)
    metadata = dict(template.get("metadata") or {})
    if policy.get("coscheduling") is not None:
        metadata["labels"] = {**(metadata.get("labels") or {}), COSCHEDULING_GROUPS[0]: name}
    elif policy.get("volcano") is not None:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), VOLCANO_GROUPS[0]: name}
    if metadata:
        template["metadata"] = metadata


def _override(jobs: list[Json], override: Json) -> None:
    targets = {target.get("name") for target in override.get("targetJobs") or ()}
    change = {field: override.get(field) or {} for field in ("metadata", "spec")}
    for replicated in jobs:
        if replicated.get("name") in targets:
            replicated["template"]["spec"]["template"] = _merged(_pod_template(replicated), change)


def _merged(value: Json, change: Json) -> Json:
    """A strategic merge patch, as far as the templates of a runtime may be patched."""
    made = dict(value)
    for name, new in change.items():
        old = made.get(name)
        if new is None:
            made.pop(name, None)
        elif isinstance(new, dict) and isinstance(old, dict):
            made[name] = _merged(old, new)
        elif isinstance(new, list) and isinstance(old, list) and name in _MERGED_BY:
            made[name] = _merged_list(old, new, _MERGED_BY[name])
        else:
            made[name] = new
    return made


def _merged_list(old: list[Json], new: list[Json], key: str) -> list[Json]:
    changes = {each.get(key): each for each in new}
    known = {each.get(key) for each in old}
    kept = [_merged(each, changes[each.get(key)]) if each.get(key) in changes else each for each in old]
    return [*kept, *(each for each in new if each.get(key) not in known)]
