"""KAI's pod-grouper: the PodGroups that it makes for workloads whose pods are KAI's.

Pods of Jobs, Deployments, StatefulSets and pods that nobody owns are no gang to KAI (each may start without the
others), so that no group is made for them here: they have their queue and priority by themselves.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from mooring.model.api.kai_labels import PREEMPTIBILITIES, PREEMPTIBILITY, QUEUE, is_kai_pod
from mooring.model.api.meta import ObjectMeta, OwnerReference
from mooring.model.api.pods import Pod
from mooring.model.gangs.dialects.kai import KaiPodGroup, KaiPodGroupSpec, KaiTopologyConstraint, SubGroup
from mooring.model.gangs.dialects.kai_pods import DEFAULT_QUEUE
from mooring.model.gangs.dialects.lws import LEADER_EXCLUDED, LEADER_READY, LeaderWorkerSet
from mooring.model.gangs.membership import (
    GROVE_GANG,
    KAI_GROUP,
    KAI_ROLE,
    LEADER,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_WORKER_INDEX,
)
from mooring.model.jobs.jobset import JobSet, job_set_members, job_set_pod_sets
from mooring.model.jobs.kubeflow import (
    MASTER,
    REPLICA_INDEX,
    TRAINING_KINDS,
    WORKER,
    PyTorchJob,
    ordered_replicas,
    replica_count,
    training_members,
)
from mooring.model.jobs.mpi import LAUNCHER, MPI_TYPES, MpiJob, mpi_members
from mooring.model.jobs.pod_sets import PodFinder, label
from mooring.model.jobs.ray import (
    HEAD_GROUP,
    NODE_GROUP,
    RayCluster,
    RayClusterSpec,
    RayJob,
    RayService,
    WorkerGroupSpec,
    ray_cluster_members,
    ray_job_members,
    worker_count,
)
from mooring.model.topology.requests import KAI_PREFERRED, KAI_REQUIRED, KAI_TOPOLOGY

SEGMENT_SIZE = "kai.scheduler/segment-size"
SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"
WORKERS = "workers"
DELAYED_LAUNCHER = "WaitForWorkersReady"
IN_ORDER = "InOrder"


class Group(NamedTuple):
    """One PodGroup of a workload."""

    minimum: int
    pods: Iterable[Pod]
    sub_groups: tuple[SubGroup, ...] = ()
    role_of: Callable[[Pod], str] = lambda pod: ""
    """The subgroup that a pod is in."""
    suffix: str = ""
    """What tells the groups of one workload apart."""


def group_pods(owner: Any, pods: PodFinder) -> Iterator[KaiPodGroup]:
    """Make the groups of a workload, and let its pods name them; those that name one keep it."""
    metadata = owner.metadata
    for group in GROUPERS[type(owner)](owner, pods):
        members = [pod for pod in group.pods if _is_grouped_here(pod)]
        if not members:
            continue
        name = "-".join(part for part in ("pg", metadata.name, metadata.uid, group.suffix) if part)
        known = {sub_group.name for sub_group in group.sub_groups}
        for pod in members:
            role = group.role_of(pod)
            pod.metadata.annotations = {**(pod.metadata.annotations or {}), KAI_GROUP: name}
            if role in known:
                pod.metadata.labels = {**(pod.metadata.labels or {}), KAI_ROLE: role}
        yield _make_group(owner, name, group, members[0])


def _is_grouped_here(pod: Pod) -> bool:
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    return is_kai_pod(pod.spec, labels) and KAI_GROUP not in annotations and GROVE_GANG not in labels


def _make_group(owner: Any, name: str, group: Group, first: Pod) -> KaiPodGroup:
    labels = {**(first.metadata.labels or {}), **(owner.metadata.labels or {})}
    annotations = owner.metadata.annotations or {}
    preemptibility = labels.get(PREEMPTIBILITY, "")
    controller = OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )
    return KaiPodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace=owner.metadata.namespace,
            creation_timestamp=owner.metadata.creation_timestamp,
            owner_references=[controller],
        ),
        spec=KaiPodGroupSpec(
            min_member=max(1, group.minimum),
            queue=labels.get(QUEUE, DEFAULT_QUEUE),
            priority_class_name=first.spec.priority_class_name,
            preemptibility=preemptibility if preemptibility in PREEMPTIBILITIES else "",
            topology_constraint=_constraint(annotations, KAI_REQUIRED, KAI_PREFERRED),
            sub_groups=list(group.sub_groups) or None,
        ),
    )


def _constraint(
    annotations: Mapping[str, str], required: str, preferred: str, topology: str = ""
) -> KaiTopologyConstraint | None:
    if not annotations.get(required) and not annotations.get(preferred):
        return None
    return KaiTopologyConstraint(
        topology=annotations.get(KAI_TOPOLOGY) or topology,
        required_topology_level=annotations.get(required, ""),
        preferred_topology_level=annotations.get(preferred, ""),
    )


def _all(members: Mapping[str, list[Pod]]) -> list[Pod]:
    return [pod for pods in members.values() for pod in pods]


def _said_minimum(owner: Any) -> int | None:
    policy = owner.spec.run_policy.scheduling_policy
    return None if policy is None else policy.min_available


def _training_groups(owner: Any, pods: PodFinder) -> Iterator[Group]:
    """All replicas, or as many as the job's scheduling policy says."""
    said = _said_minimum(owner)
    replicas = ordered_replicas(owner, TRAINING_KINDS[type(owner)].types)
    total = sum(replica_count(spec) for _, _, spec in replicas)
    yield Group(total if said is None else said, _all(training_members(owner, pods)))


def _pytorch_groups(owner: PyTorchJob, pods: PodFinder) -> Iterator[Group]:
    """Of an elastic job no more than its least; master and workers apart, workers in segments where it says so."""
    counts = {name: replica_count(spec) for name, _, spec in ordered_replicas(owner, (MASTER, WORKER))}
    elastic = None if owner.spec.elastic_policy is None else owner.spec.elastic_policy.min_replicas
    said = _said_minimum(owner)
    minimum = said if said is not None else elastic if elastic is not None else sum(counts.values())
    masters = counts.get(MASTER, 0)
    sub_groups = [SubGroup(name=MASTER.lower(), min_member=masters)] if masters else []
    worker = next((spec for name, _, spec in ordered_replicas(owner, (WORKER,))), None)
    segment = 0
    if worker is not None:
        annotations = worker.template.metadata.annotations or {}
        segment = _size(annotations.get(SEGMENT_SIZE))
        if segment:
            sub_groups += _segments(WORKER.lower(), counts[WORKER], segment, _segment_place(owner, annotations))
        else:
            sub_groups.append(SubGroup(name=WORKER.lower(), min_member=max(0, minimum - masters)))

    def role_of(pod: Pod) -> str:
        role = label(pod, "training.kubeflow.org/replica-type")
        return role if role != WORKER.lower() or not segment else f"{role}-{int(label(pod, REPLICA_INDEX)) // segment}"

    yield Group(minimum, _all(training_members(owner, pods)), tuple(sub_groups), role_of)


def _size(text: str | None) -> int:
    """How large segments are; 0 for none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0


def _segments(name: str, count: int, size: int, place: KaiTopologyConstraint | None) -> list[SubGroup]:
    """So many pods in segments of one size, the last of which may be smaller."""
    return [
        SubGroup(name=f"{name}-{index}", min_member=min(size, count - index * size), topology_constraint=place)
        for index in range(-(-count // size))
    ]


def _segment_place(owner: Any, annotations: Mapping[str, str]) -> KaiTopologyConstraint | None:
    topology = (owner.metadata.annotations or {}).get(KAI_TOPOLOGY, "")
    return _constraint(annotations, SEGMENT_REQUIRED, SEGMENT_PREFERRED, topology)


def _mpi_groups(owner: MpiJob, pods: PodFinder) -> Iterator[Group]:
    """Launcher and workers; the workers alone if the launcher comes when they are ready."""
    counts = {name: replica_count(spec) for name, _, spec in ordered_replicas(owner, MPI_TYPES)}
    said = _said_minimum(owner)
    minimum = sum(counts.values()) if said is None else said
    if owner.spec.launcher_creation_policy == DELAYED_LAUNCHER:
        minimum -= counts.get(LAUNCHER, 0)
    yield Group(minimum, _all(mpi_members(owner, pods)))


def _ray_group(spec: RayClusterSpec, members: Mapping[str, list[Pod]]) -> Group:
    """The head and the least that each group of workers may have; all of a group that names no least."""
    head = _constraint(spec.head_group_spec.template.metadata.annotations or {}, KAI_REQUIRED, KAI_PREFERRED)
    sub_groups = [SubGroup(name=HEAD_GROUP, min_member=1, topology_constraint=head)]
    for group in spec.worker_group_specs or ():
        least = _least_workers(group)
        if least:
            place = _constraint(group.template.metadata.annotations or {}, KAI_REQUIRED, KAI_PREFERRED)
            sub_groups.append(SubGroup(name=group.group_name, min_member=least, topology_constraint=place))
    minimum = sum(sub_group.min_member or 0 for sub_group in sub_groups)
    return Group(minimum, _all(members), tuple(sub_groups), lambda pod: label(pod, NODE_GROUP))


def _least_workers(group: WorkerGroupSpec) -> int:
    count = worker_count(group)
    return min(count, group.min_replicas * max(1, group.num_of_hosts)) if group.min_replicas else count


def _ray_cluster_groups(owner: RayCluster, pods: PodFinder) -> Iterator[Group]:
    yield _ray_group(owner.spec, ray_cluster_members(owner, pods))


def _ray_job_groups(owner: RayJob | RayService, pods: PodFinder) -> Iterator[Group]:
    if owner.spec.ray_cluster_spec is not None:
        yield _ray_group(owner.spec.ray_cluster_spec, ray_job_members(owner, pods))


def _lws_groups(owner: LeaderWorkerSet, pods: PodFinder) -> Iterator[Group]:
    """Each replica; under LeaderReady the leader may start alone."""
    workers = owner.size - 1
    follows = owner.spec.startup_policy == LEADER_READY
    sub_groups: list[SubGroup]
    template = owner.spec.leader_worker_template.worker_template.metadata.annotations or {}
    segment = (
        0 if follows else owner.sub_group_size or _size(owner.annotation(SEGMENT_SIZE) or template.get(SEGMENT_SIZE))
    )
    if segment and workers:
        sub_groups, role_of = _lws_segments(owner, segment, _segment_place(owner, template))
    else:
        sub_groups = [SubGroup(name=LEADER, min_member=1)]
        if workers:
            sub_groups.append(SubGroup(name=WORKERS, min_member=0 if follows else workers))

        def role_of(pod: Pod) -> str:
            return LEADER if label(pod, LWS_WORKER_INDEX) == "0" else WORKERS

    minimum = 1 if follows else owner.size
    found = pods.labelled(owner.metadata.namespace, LWS_NAME, owner.metadata.name)
    for index in range(owner.spec.replicas):
        members = [pod for pod in found if label(pod, LWS_GROUP_INDEX) == str(index)]
        yield Group(minimum, members, tuple(sub_groups), role_of, f"group-{index}")


def _lws_segments(
    owner: LeaderWorkerSet, size: int, place: KaiTopologyConstraint | None
) -> tuple[list[SubGroup], Callable[[Pod], str]]:
    """Segments of workers; the leader is in the first, or by itself if it is excluded or one too many."""
    policy = owner.spec.leader_worker_template.sub_group_policy
    is_apart = (owner.size - 1) % size == 0
    is_excluded = owner.size == 1 or (policy is not None and policy.type == LEADER_EXCLUDED)
    first = 1 if is_apart else 0
    sub_groups = _segments("segment", owner.size - first, size, place)
    if is_apart and not is_excluded:
        sub_groups[0] = replace(sub_groups[0], min_member=(sub_groups[0].min_member or 0) + 1)
    elif is_apart:
        sub_groups.insert(0, SubGroup(name=LEADER, min_member=1))

    def role_of(pod: Pod) -> str:
        index = int(label(pod, LWS_WORKER_INDEX) or 0)
        if index == 0:
            return LEADER if is_apart and is_excluded else "segment-0"
        return f"segment-{(index - first) // size}"

    return sub_groups, role_of


def _job_set_groups(owner: JobSet, pods: PodFinder) -> Iterator[Group]:
    """Each replicated Job if they start in order, which KAI takes for the default, or else all of them together."""
    counts = {plan.name: plan.count for plan in job_set_pod_sets(owner)}
    members = job_set_members(owner, pods)
    policy = owner.spec.startup_policy
    if policy is None or policy.startup_policy_order == IN_ORDER:
        for name, count in counts.items():
            yield Group(count, members.get(name, ()), suffix=name)
    else:
        yield Group(sum(counts.values()), _all(members))


GROUPERS: dict[type[Any], Callable[[Any, PodFinder], Iterator[Group]]] = {
    **dict.fromkeys(TRAINING_KINDS, _training_groups),
    PyTorchJob: _pytorch_groups,
    MpiJob: _mpi_groups,
    RayJob: _ray_job_groups,
    RayService: _ray_job_groups,
    RayCluster: _ray_cluster_groups,
    LeaderWorkerSet: _lws_groups,
    JobSet: _job_set_groups,
}
