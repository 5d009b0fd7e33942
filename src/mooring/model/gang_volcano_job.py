"""Volcano's Job (`batch.volcano.sh`): tasks of equal pods that start together, and the pods that they become."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from mooring.model.expansion import Owned, Stamp, controller_of, owner_key
from mooring.model.gang_checks import check_at_most, check_count, check_names
from mooring.model.gang_volcano import (
    DEFAULT_QUEUE,
    NetworkTopology,
    Tiers,
    check_network,
    enforced_minimums,
    network_wish,
    required_tier,
    roles_of,
)
from mooring.model.gangs import Gang, gang_key
from mooring.model.membership import VOLCANO_GROUPS, VOLCANO_INDEX, VOLCANO_KIND, VOLCANO_ROLE
from mooring.model.meta import KubeObject, ObjectMeta, timestamp_seconds
from mooring.model.places import show
from mooring.model.pods import ClaimVolumeSource, Pod, PodTemplateSpec, Volume
from mooring.model.topology import TopologyWish
from mooring.model.validation_pods import check_pod_spec
from mooring.model.validation_terms import Subject

GROUP = "batch.volcano.sh"
JOB_NAME, JOB_NAMESPACE, JOB_VERSION = "volcano.sh/job-name", "volcano.sh/job-namespace", "volcano.sh/job-version"
QUEUE_NAME, TEMPLATE, PARTITION = "volcano.sh/queue-name", "volcano.sh/template-uid", "volcano.sh/partition-id"
_HANDED_DOWN = frozenset(
    {
        "volcano.sh/preemptable",
        "volcano.sh/cooldown-time",
        "volcano.sh/revocable-zone",
        "volcano.sh/jdb-min-available",
        "volcano.sh/jdb-max-unavailable",
    }
)
"""Annotations of a Job that its pods get."""

OVER = frozenset({"Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated", "Failed"})
"""Phases in which a Job makes no pods any more."""
_STOPPING = frozenset({"RestartJob", "AbortJob", "TerminateJob"})
"""What policies do that takes all pods of a Job."""


class LifecyclePolicy(KubeObject):
    action: str = ""
    event: str = ""
    events: list[str] | None = None


class PartitionPolicy(KubeObject):
    total_partitions: int = 0
    partition_size: int = 0
    network_topology: NetworkTopology | None = None
    min_partitions: int = 0


class TaskSpec(KubeObject):
    name: str = ""
    replicas: int | None = None
    min_available: int | None = None
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)
    policies: list[LifecyclePolicy] | None = None
    partition_policy: PartitionPolicy | None = None

    @property
    def count(self) -> int:
        return self.replicas or 0

    @property
    def minimum(self) -> int:
        return self.count if self.min_available is None else self.min_available


class VolumeSpec(KubeObject):
    volume_claim_name: str = ""
    volume_claim: dict[str, object] | None = None


class VolcanoJobSpec(KubeObject):
    scheduler_name: str = ""
    min_available: int | None = None
    tasks: list[TaskSpec] = []
    volumes: list[VolumeSpec] | None = None
    policies: list[LifecyclePolicy] | None = None
    queue: str = ""
    priority_class_name: str = ""
    network_topology: NetworkTopology | None = None


class JobState(KubeObject):
    phase: str = ""


class VolcanoJobStatus(KubeObject):
    state: JobState = msgspec.field(default_factory=JobState)


class VolcanoJob(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "Job"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolcanoJobSpec = msgspec.field(default_factory=VolcanoJobSpec)
    status: VolcanoJobStatus = msgspec.field(default_factory=VolcanoJobStatus)


def check_job(subject: Subject, job: VolcanoJob) -> None:
    spec = job.spec
    if not spec.tasks:
        subject.refuse("spec.tasks", expected="at least one task", found="none")
    check_names(subject, "spec.tasks", (task.name or f"default{index}" for index, task in enumerate(spec.tasks)))
    for index, task in enumerate(spec.tasks):
        _check_task(subject, f"spec.tasks[{index}]", task)
    check_count(subject, "spec.minAvailable", spec.min_available)
    total = sum(task.count for task in spec.tasks)
    check_at_most(subject, "spec.minAvailable", spec.min_available or 0, total, "the replicas of all tasks")
    check_network(subject, "spec.networkTopology", spec.network_topology)


def _check_task(subject: Subject, path: str, task: TaskSpec) -> None:
    if task.replicas is None:
        subject.refuse(f"{path}.replicas", expected="a number of at least 0", found="none")
    check_count(subject, f"{path}.replicas", task.replicas)
    check_count(subject, f"{path}.minAvailable", task.min_available)
    check_at_most(subject, f"{path}.minAvailable", task.minimum, task.count, "the replicas of the task")
    check_pod_spec(subject, f"{path}.template.spec", task.template.spec)
    partitions = task.partition_policy
    if partitions is None:
        return
    here = f"{path}.partitionPolicy"
    check_count(subject, f"{here}.totalPartitions", partitions.total_partitions, least=1)
    check_count(subject, f"{here}.partitionSize", partitions.partition_size, least=1)
    product = partitions.total_partitions * partitions.partition_size
    if product != task.count:
        expected = f"totalPartitions times partitionSize to be {task.count}, the replicas of the task"
        subject.refuse(here, expected=expected, found=show(product))
    check_count(subject, f"{here}.minPartitions", partitions.min_partitions)
    most = partitions.total_partitions
    check_at_most(subject, f"{here}.minPartitions", partitions.min_partitions, most, "the partitions of the task")
    check_network(subject, f"{here}.networkTopology", partitions.network_topology)


def default_job(job: VolcanoJob) -> None:
    """Fill in what Volcano's webhook and controller would; a Job that names no scheduler leaves it to its templates."""
    spec = job.spec
    spec.queue = spec.queue or DEFAULT_QUEUE
    for index, task in enumerate(spec.tasks):
        task.name = task.name or f"default{index}"
        pod_spec = task.template.spec
        pod_spec.scheduler_name = pod_spec.scheduler_name or spec.scheduler_name
        pod_spec.priority_class_name = pod_spec.priority_class_name or spec.priority_class_name


def templates_of(job: VolcanoJob) -> Iterator[tuple[str, PodTemplateSpec]]:
    for index, task in enumerate(job.spec.tasks):
        yield f"spec.tasks[{index}].template", task.template


def expand_volcano_job(job: VolcanoJob, owned: Owned) -> list[Pod]:
    """Create the pods of all tasks that are missing; a Job that is over, or about to be, creates none."""
    if job.status.state.phase in OVER:
        return []
    present = _present(job, owned)
    names = {pod.metadata.name for pod in present}
    group = next((name for pod in present if (name := _group_of(pod))), "") or group_name(job)
    pods: list[Pod] = []
    for task in job.spec.tasks:
        stamp = Stamp(job, _stamped_template(job, task, group))
        partitions = task.partition_policy
        for index in range(task.count):
            name = f"{job.metadata.name}-{task.name}-{index}"
            if name in names:
                continue
            labels = {VOLCANO_INDEX: str(index)}
            if partitions is not None:
                labels[PARTITION] = str(index // partitions.partition_size)
            pods.append(stamp.pod(name, labels))
    return pods


def group_name(job: VolcanoJob) -> str:
    """The PodGroup that Volcano makes for a Job; without a uid, as in a manifest written by hand, after its name."""
    return f"{job.metadata.name}-{job.metadata.uid}" if job.metadata.uid else job.metadata.name


def _present(job: VolcanoJob, owned: Owned) -> list[Pod]:
    """The Job's pods, not those of a Job of Kubernetes' own with the same name."""
    found = []
    for pod in owned.get(owner_key(job), ()):
        owner = controller_of(pod.metadata)
        is_ours = owner is not None and owner.api_version.rpartition("/")[0] in (GROUP, "")
        if is_ours and isinstance(pod, Pod):
            found.append(pod)
    return found


def _group_of(pod: Pod) -> str:
    annotations = pod.metadata.annotations or {}
    return next((annotations[key] for key in VOLCANO_GROUPS if annotations.get(key)), "")


def _stamped_template(job: VolcanoJob, task: TaskSpec, group: str) -> PodTemplateSpec:
    """The task's template as its pods show it.

    Volcano writes the index of a pod in its annotations too. Here it is a label only, so that all pods of a task share
    their annotations.
    """
    metadata, template = job.metadata, task.template
    shared = {VOLCANO_ROLE: task.name, JOB_NAME: metadata.name, QUEUE_NAME: job.spec.queue}
    annotations = {
        **(template.metadata.annotations or {}),
        **shared,
        **{key: text for key, text in (metadata.annotations or {}).items() if key in _HANDED_DOWN},
        VOLCANO_GROUPS[0]: group,
        JOB_VERSION: "0",
        TEMPLATE: f"{metadata.name}-{task.name}",
    }
    labels = {**(template.metadata.labels or {}), **shared, JOB_NAMESPACE: metadata.namespace}
    names = dict.fromkeys(
        volume.volume_claim_name
        for volume in job.spec.volumes or ()
        if volume.volume_claim_name and not volume.volume_claim
    )
    spec = template.spec
    if names:
        claims = [
            Volume(name=f"{metadata.name}-{name}", persistent_volume_claim=ClaimVolumeSource(claim_name=name))
            for name in names
        ]
        spec = replace(spec, volumes=[*(spec.volumes or ()), *claims])
    return PodTemplateSpec(metadata=replace(template.metadata, labels=labels, annotations=annotations), spec=spec)


def volcano_job_gang(job: VolcanoJob, tiers: Tiers) -> Gang:
    """The gang that the Job's PodGroup would declare."""
    spec, metadata = job.spec, job.metadata
    by_task = {task.name: task.minimum for task in spec.tasks}
    minimum = spec.min_available or sum(by_task.values()) or 1
    minimums = enforced_minimums(minimum, by_task)
    slices: dict[str, TopologyWish] = {}
    for task in spec.tasks:
        partitions = task.partition_policy
        if partitions is None:
            continue
        minimums[task.name] = max(minimums.get(task.name, 0), partitions.min_partitions * partitions.partition_size)
        level = required_tier(partitions.network_topology, tiers)
        if level is not None:
            slices[task.name] = TopologyWish(slice_size=partitions.partition_size, slice_level=level)
    return Gang(
        key=gang_key(VOLCANO_KIND, metadata.namespace, group_name(job)),
        name=f"{metadata.namespace}/{metadata.name}",
        minimum=minimum,
        roles=roles_of(minimums, slices),
        queue=spec.queue or DEFAULT_QUEUE,
        created=timestamp_seconds(metadata.creation_timestamp),
        wish=network_wish(spec.network_topology, tiers),
        restarts_whole=bool(spec.tasks) and all(_stops_all(job, task) for task in spec.tasks),
    )


def _stops_all(job: VolcanoJob, task: TaskSpec) -> bool:
    """Whether the eviction of one of the task's pods takes all; a task's own policies go before the Job's."""
    for policy in (*(task.policies or ()), *(job.spec.policies or ())):
        if {"PodEvicted", "*"} & {policy.event, *(policy.events or ())}:
            return policy.action in _STOPPING
    return False
