"""JobSet of `jobset.x-k8s.io`: Jobs of several templates, each template several times, that belong together."""

import hashlib
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from mooring.model.api.kueue_labels import queue_name
from mooring.model.api.meta import (
    Condition,
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from mooring.model.api.pods import Affinity, Pod, PodAffinity, PodAffinityTerm, PodSpec, PodTemplateSpec, Toleration
from mooring.model.api.workloads import Job, JobSpec, JobTemplateSpec
from mooring.model.defaults import default_job
from mooring.model.jobs.expansion import COMPLETION_INDEX, Owned, expand_job, is_job_over, job_pod_count, owner_key
from mooring.model.jobs.pod_sets import PodFinder, PodSetPlan, by_label, has_ended

GROUP = "jobset.x-k8s.io"
_PREFIX = "jobset.sigs.k8s.io"
JOB_SET_NAME = f"{_PREFIX}/jobset-name"
REPLICATED_JOB_NAME = f"{_PREFIX}/replicatedjob-name"
JOB_INDEX = f"{_PREFIX}/job-index"
JOB_KEY = f"{_PREFIX}/job-key"
EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY = "alpha.jobset.sigs.k8s.io/node-selector"
_NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
_NO_SCHEDULE = "alpha.jobset.sigs.k8s.io/no-schedule"


class JobSetNetwork(KubeObject):
    enable_dns_hostnames: bool | None = msgspec.field(default=None, name="enableDNSHostnames")
    subdomain: str = ""


class ReplicatedJob(KubeObject):
    name: str
    template: JobTemplateSpec
    replicas: int = 1


class StartupPolicy(KubeObject):
    startup_policy_order: str = "InOrder"


class JobSetSpec(KubeObject):
    replicated_jobs: list[ReplicatedJob] = []
    startup_policy: StartupPolicy | None = None
    network: JobSetNetwork | None = None
    suspend: bool = False


class ReplicatedJobStatus(KubeObject):
    name: str
    succeeded: int = 0


class JobSetStatus(KubeObject):
    conditions: list[Condition] | None = None
    restarts: int = 0
    replicated_jobs_status: list[ReplicatedJobStatus] | None = None


class JobSet(KubeObject):
    api_version: str = f"{GROUP}/v1alpha2"
    kind: str = "JobSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: JobSetSpec = msgspec.field(default_factory=JobSetSpec)
    status: JobSetStatus = msgspec.field(default_factory=JobSetStatus)


def job_set_templates(owner: JobSet) -> Iterator[tuple[str, PodTemplateSpec]]:
    for index, replicated in enumerate(owner.spec.replicated_jobs):
        yield f"spec.replicatedJobs[{index}].template.spec.template", replicated.template.spec.template


def default_job_set(owner: JobSet) -> None:
    for replicated in owner.spec.replicated_jobs:
        default_job(replicated.template)


def is_job_set_over(owner: JobSet) -> bool:
    return has_ended(owner.status.conditions, "Completed", "Failed")


def job_set_pod_sets(owner: JobSet) -> list[PodSetPlan]:
    """One for each replicated Job, under its name; a Job that succeeded needs no quota any more."""
    succeeded = {status.name: status.succeeded for status in owner.status.replicated_jobs_status or ()}
    plans = []
    for (path, template), replicated in zip(job_set_templates(owner), owner.spec.replicated_jobs, strict=True):
        each = job_pod_count(replicated.template.spec)
        done = succeeded.get(replicated.name, 0)
        plans.append(
            PodSetPlan(
                name=replicated.name,
                template=template,
                count=replicated.replicas * each,
                path=path,
                reclaimable=done * each if done <= replicated.replicas else 0,
                index_label=COMPLETION_INDEX,
                group_index_label=JOB_INDEX,
                group_count=replicated.replicas,
            )
        )
    return plans


def job_set_members(owner: JobSet, pods: PodFinder) -> Mapping[str, list[Pod]]:
    return by_label(pods.labelled(owner.metadata.namespace, JOB_SET_NAME, owner.metadata.name), REPLICATED_JOB_NAME)


def expand_job_set(owner: JobSet, owned: Owned) -> list[Pod]:
    """Create the pods of all Jobs that are not there yet, whichever of them would have to wait for others."""
    is_queued = bool(queue_name(owner.metadata))
    if is_job_set_over(owner) or (owner.spec.suspend and not is_queued):
        return []
    given = {job.metadata.name: job for job in owned.get(owner_key(owner), ()) if isinstance(job, Job)}
    pods: list[Pod] = []
    position = 0
    for replicated in owner.spec.replicated_jobs:
        for index in range(replicated.replicas):
            job = make_job(owner, replicated, index, position)
            position += 1
            known = given.get(job.metadata.name)
            # A Job that is there and runs has its pods already, or was given them as any other Job.
            if known is None or (known.spec.suspend and not is_job_over(known)):
                pods += expand_job(job, owned)
    return pods


def make_job(owner: JobSet, replicated: ReplicatedJob, index: int, position: int) -> Job:
    """One Job of a JobSet as its controller makes it; `position` counts over all replicated Jobs."""
    namespace, name = owner.metadata.namespace, f"{owner.metadata.name}-{replicated.name}-{index}"
    template = replicated.template
    marks = {
        JOB_SET_NAME: owner.metadata.name,
        REPLICATED_JOB_NAME: replicated.name,
        f"{_PREFIX}/restart-attempt": str(owner.status.restarts),
        f"{_PREFIX}/replicatedjob-replicas": str(replicated.replicas),
        f"{_PREFIX}/global-replicas": str(sum(found.replicas for found in owner.spec.replicated_jobs)),
        JOB_INDEX: str(index),
        f"{_PREFIX}/job-global-index": str(position),
        JOB_KEY: hashlib.sha1(f"{namespace}/{name}".encode(), usedforsecurity=False).hexdigest(),
    }
    exclusive = _exclusive_marks(owner.metadata) | _exclusive_marks(template.metadata)
    pod_template = template.spec.template
    pod_metadata = replace(
        pod_template.metadata,
        labels={**(pod_template.metadata.labels or {}), **marks},
        annotations={**(pod_template.metadata.annotations or {}), **marks, **exclusive},
    )
    pod_spec = _exclude_others(pod_template.spec, exclusive, marks[JOB_KEY], f"{namespace}_{name}")
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        labels={**(template.metadata.labels or {}), **marks},
        owner_references=[
            OwnerReference(
                api_version=owner.api_version,
                kind=owner.kind,
                name=owner.metadata.name,
                uid=owner.metadata.uid,
                controller=True,
            )
        ],
    )
    spec = _with_defaults(template.spec)
    return Job(metadata=metadata, spec=replace(spec, template=PodTemplateSpec(metadata=pod_metadata, spec=pod_spec)))


def _with_defaults(spec: JobSpec) -> JobSpec:
    """Pods of a JobSet have an index unless told otherwise, and run whenever the JobSet does."""
    return replace(
        spec,
        completion_mode=spec.completion_mode or "Indexed",
        completions=spec.completions if spec.completion_mode == "NonIndexed" else job_completions(spec),
        suspend=False,
    )


def job_completions(spec: JobSpec) -> int:
    if spec.completions is not None:
        return spec.completions
    return 1 if spec.parallelism is None else spec.parallelism


def _exclusive_marks(metadata: ObjectMeta) -> dict[str, str]:
    annotations = metadata.annotations or {}
    if EXCLUSIVE_TOPOLOGY not in annotations:
        return {}
    return {key: annotations[key] for key in (EXCLUSIVE_TOPOLOGY, NODE_SELECTOR_STRATEGY) if key in annotations}


def _exclude_others(spec: PodSpec, exclusive: Mapping[str, str], job_key: str, namespaced_name: str) -> PodSpec:
    """Keep a Job to a topology domain of its own.

    The controller lets the first pod choose the domain and sends the others after it. To ask of every pod that it be
    where its own Job is, and where no other Job is, comes to the same.
    """
    if not exclusive:
        return spec
    if NODE_SELECTOR_STRATEGY in exclusive:
        toleration = Toleration(key=_NO_SCHEDULE, operator="Exists", effect="NoSchedule")
        return replace(
            spec,
            node_selector={**(spec.node_selector or {}), _NAMESPACED_JOB: namespaced_name},
            tolerations=[*(spec.tolerations or ()), toleration],
        )
    own = LabelSelectorRequirement(key=JOB_KEY, operator="In", values=[job_key])
    others = [
        LabelSelectorRequirement(key=JOB_KEY, operator="Exists"),
        LabelSelectorRequirement(key=JOB_KEY, operator="NotIn", values=[job_key]),
    ]
    affinity = spec.affinity or Affinity()
    level = exclusive[EXCLUSIVE_TOPOLOGY]
    return replace(
        spec,
        affinity=replace(
            affinity,
            pod_affinity=_with_term(affinity.pod_affinity, [own], level),
            pod_anti_affinity=_with_term(affinity.pod_anti_affinity, others, level),
        ),
    )


def _with_term(side: PodAffinity | None, requirements: list[LabelSelectorRequirement], level: str) -> PodAffinity:
    term = PodAffinityTerm(
        topology_key=level,
        label_selector=LabelSelector(match_expressions=requirements),
        namespace_selector=LabelSelector(),
    )
    return replace(side or PodAffinity(), required=[*((side.required if side else None) or ()), term])
