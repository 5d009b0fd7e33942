"""Volcano's Job (`batch.volcano.sh`): tasks of equal pods that start together, and the pods that they become."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from mooring.model.api.meta import KubeObject, ObjectMeta, timestamp_seconds
from mooring.model.api.pods import ClaimVolumeSource, Pod, PodTemplateSpec, Volume
from mooring.model.api.volcano_queue import DEFAULT_QUEUE
from mooring.model.gangs.dialects.volcano import (
    Tiers,
    enforced_minimums,
    network_topology_request,
    required_tier,
    roles_of,
)
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import VOLCANO_GROUPS, VOLCANO_INDEX, VOLCANO_KIND, VOLCANO_ROLE
from mooring.model.jobs.expansion import Owned, Stamp, controller_of, owner_key
from mooring.model.topology.requests import NetworkTopology, TopologyRequest

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
RESTARTING = "Restarting"
_STOPPING = frozenset({"RestartJob", "AbortJob", "TerminateJob"})
"""What policies do that takes all pods of a Job."""
_RESTARTS = frozenset({"RestartJob", "RestartTask", "RestartPod", "RestartPartition"})
"""What policies do that makes a pod anew."""


class LifecyclePolicy(KubeObject):
    action: str = ""
    event: str = ""
    events: list[str] | None = None
    exit_code: int | None = None


class DependsOn(KubeObject):
    name: list[str] | None = None
    iteration: str = ""


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
    topology_policy: str = ""
    depends_on: DependsOn | None = None

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
    version: int = 0
    """How often it has been restarted, or changed otherwise: its pods say which time they are of."""


class VolcanoJob(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "Job"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolcanoJobSpec = msgspec.field(default_factory=VolcanoJobSpec)
    status: VolcanoJobStatus = msgspec.field(default_factory=VolcanoJobStatus)


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
    """Create the pods of all tasks that are missing; a Job that is over, or about to be, creates none.

    Of pods that are over, those that a restart makes anew are turned into what comes next under their names.
    """
    if job.status.state.phase in OVER:
        return []
    present = {pod.metadata.name: pod for pod in _present(job, owned)}
    is_restarting = job.status.state.phase == RESTARTING or any(
        "RestartJob" in _actions_on_failure(job, task)
        for task in job.spec.tasks
        for index in range(task.count if present else 0)
        if _has_failed(present.get(_pod_name(job, task, index)))
    )
    group = next((name for pod in present.values() if (name := _group_of(pod))), "") or group_name(job)
    pods: list[Pod] = []
    for task in job.spec.tasks:
        stamp = Stamp(job, _stamped_template(job, task, group))
        partitions = task.partition_policy
        for index in range(task.count):
            name = _pod_name(job, task, index)
            old = present.get(name)
            if old is not None and not (old.is_terminal and (is_restarting or _is_made_anew(job, task, old))):
                continue
            labels = {VOLCANO_INDEX: str(index)}
            if partitions is not None:
                labels[PARTITION] = str(index // partitions.partition_size)
            new = stamp.pod(name, labels)
            if old is None:
                pods.append(new)
            else:
                new.metadata.uid = f"{old.metadata.uid or name}-again"
                old.metadata, old.spec, old.status = new.metadata, new.spec, new.status
    return pods


def _pod_name(job: VolcanoJob, task: TaskSpec, index: int) -> str:
    return f"{job.metadata.name}-{task.name}-{index}"


def _is_made_anew(job: VolcanoJob, task: TaskSpec, pod: Pod) -> bool:
    """Whether a pod that is over has to run again for its own sake: the Job has restarted since, or it alone does."""
    version = (pod.metadata.annotations or {}).get(JOB_VERSION, "")
    if version.isascii() and version.isdigit() and int(version) < job.status.version:
        return True
    return _has_failed(pod) and not _RESTARTS.isdisjoint(_actions_on_failure(job, task))


def _has_failed(pod: Pod | None) -> bool:
    return pod is not None and pod.status.phase == "Failed"


def _actions_on_failure(job: VolcanoJob, task: TaskSpec) -> set[str]:
    """The loss of a member is the loss of a member here, whether it failed or was evicted."""
    return {_action_on(job, task, "PodFailed"), _action_on(job, task, "PodEvicted")}


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
        JOB_VERSION: str(job.status.version),
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
    slices: dict[str, TopologyRequest] = {}
    for task in spec.tasks:
        partitions = task.partition_policy
        if partitions is None:
            continue
        minimums[task.name] = max(minimums.get(task.name, 0), partitions.min_partitions * partitions.partition_size)
        level = required_tier(partitions.network_topology, tiers)
        if level is not None:
            slices[task.name] = TopologyRequest(slice_size=partitions.partition_size, slice_level=level)
    return Gang(
        key=gang_key(VOLCANO_KIND, metadata.namespace, group_name(job)),
        name=f"{metadata.namespace}/{metadata.name}",
        minimum=minimum,
        roles=roles_of(minimums, slices),
        queue=spec.queue or DEFAULT_QUEUE,
        created=timestamp_seconds(metadata.creation_timestamp),
        topology_request=network_topology_request(spec.network_topology, tiers),
        restarts_whole=bool(spec.tasks) and all(_stops_all(job, task) for task in spec.tasks),
    )


def _stops_all(job: VolcanoJob, task: TaskSpec) -> bool:
    """Whether the eviction of one of the task's pods takes all."""
    return _action_on(job, task, "PodEvicted") in _STOPPING


def _action_on(job: VolcanoJob, task: TaskSpec, event: str) -> str:
    """What is done when something happens to one of the task's pods; its own policies go before the Job's."""
    policies: list[LifecyclePolicy] = [*(task.policies or ()), *(job.spec.policies or ())]
    for policy in policies:
        if {event, "*"} & {policy.event, *(policy.events or ())}:
            return policy.action
    return ""
