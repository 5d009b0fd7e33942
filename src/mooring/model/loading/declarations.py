"""All gangs that a set of objects declares, whichever dialect each is written in.

Who declares a gang goes in this order: an object for the gang itself (a PodGroup, a PodGang); a workload whose
controller would make such an object; the pods' own annotations. A gang that pods name and nobody declares is no gang
here: its pods wait for somebody who does.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from mooring.model.api.elastic_quota import ElasticQuota
from mooring.model.api.kai_queue import KaiQueue
from mooring.model.api.kueue import Topology
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.policies import PriorityClass
from mooring.model.api.volcano_queue import Queue
from mooring.model.api.workloads import Job
from mooring.model.gangs.dialects.annotations import Member, declared_by_pods, with_topology_requests
from mooring.model.gangs.dialects.coscheduling import CoschedulingPodGroup
from mooring.model.gangs.dialects.coscheduling import pod_group_gang as coscheduling_gang
from mooring.model.gangs.dialects.grove import PodCliqueSet, PodGang
from mooring.model.gangs.dialects.grove_gangs import Bindings, clique_set_gangs, pod_gang_gang
from mooring.model.gangs.dialects.kai import KaiPodGroup
from mooring.model.gangs.dialects.kai import pod_group_gang as kai_gang
from mooring.model.gangs.dialects.koordinator import with_koordinator
from mooring.model.gangs.dialects.kubernetes import (
    CompositePodGroup,
    NativePodGroup,
    NativeWorkload,
    check_composite_tree,
    composite_gang,
    workload_gangs,
)
from mooring.model.gangs.dialects.kubernetes import pod_group_gang as native_gang
from mooring.model.gangs.dialects.lws import LeaderWorkerSet, set_gangs
from mooring.model.gangs.dialects.volcano import Tiers, VolcanoPodGroup
from mooring.model.gangs.dialects.volcano import pod_group_gang as volcano_gang
from mooring.model.gangs.dialects.volcano_cron_job import VolcanoCronJob, next_job
from mooring.model.gangs.dialects.volcano_job import VolcanoJob, volcano_job_gang
from mooring.model.gangs.gang import Gang
from mooring.model.gangs.membership import membership, owned_gang_key
from mooring.model.jobs.expansion import controller_of
from mooring.model.keys import GangKey
from mooring.model.objects.picture import Identity, identity_of
from mooring.model.objects.tables import Tables
from mooring.model.places import Place, show
from mooring.model.priorities import Priorities
from mooring.model.topology.requests import HyperNode
from mooring.model.validation.shared_queues import check_kai_tree, check_quota_tree
from mooring.model.validation.terms import Subject
from mooring.model.validation.topology import validate_hypernode_tree, validate_topology_labels
from mooring.model.validation.volcano_queue import validate_queue_tree

KindT = TypeVar("KindT")


class Placed(Protocol):
    """Finds the objects of a kind, each with its place."""

    def __call__(self, type_: type[KindT], /) -> list[tuple[KindT, Place]]: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a declaration is read against."""

    tiers: Tiers
    bindings: Bindings
    keys: Iterable[GangKey]
    """Of all gangs that some pod names."""
    kai_classes: Mapping[str, PriorityClass]
    """Those that are listed, and those that come with KAI."""

    job_schedulers: Mapping[tuple[str, str], str]
    """Of each Job of Volcano the schedulerName of its pods."""

    def scheduler_of(self, group: VolcanoPodGroup) -> str:
        """Who the pods of a group will wait for, if it was made for a Job that is known."""
        owner = _job_of(group)
        return "" if owner is None else self.job_schedulers.get(owner, "")

    def replica_keys(self, group: str) -> list[str]:
        """The keys of replicas by which pods name a pod group inside a Workload."""
        return [key.removeprefix(f"{group}/") for key in self.keys if key.startswith(f"{group}/")]


class Dialect(NamedTuple):
    """A kind that declares gangs."""

    type: type[Any]
    gangs: Callable[[Subject, Any, Surroundings], Iterable[Gang]]
    is_implied: bool = False
    """Whether the gang would be declared by an object that the kind's controller makes; that object goes first."""
    priority_at: str = "spec"
    """The part that has a priorityClassName; empty if none has."""


DIALECTS = (
    Dialect(NativePodGroup, lambda subject, found, around: [native_gang(found)]),
    Dialect(CompositePodGroup, lambda subject, found, around: [composite_gang(found)]),
    Dialect(NativeWorkload, lambda subject, found, around: workload_gangs(found, around.replica_keys), priority_at=""),
    Dialect(
        VolcanoPodGroup,
        lambda subject, found, around: [volcano_gang(found, around.tiers, around.scheduler_of(found))],
    ),
    Dialect(CoschedulingPodGroup, lambda subject, found, around: [coscheduling_gang(found)], priority_at=""),
    Dialect(KaiPodGroup, lambda subject, found, around: [kai_gang(found, around.kai_classes)]),
    Dialect(PodGang, lambda subject, found, around: [pod_gang_gang(found)]),
    Dialect(VolcanoJob, lambda subject, found, around: [volcano_job_gang(found, around.tiers)], is_implied=True),
    Dialect(
        VolcanoCronJob,
        lambda subject, found, around: [volcano_job_gang(next_job(found), around.tiers)],
        is_implied=True,
        priority_at="",
    ),
    Dialect(LeaderWorkerSet, lambda subject, found, around: set_gangs(found), is_implied=True, priority_at=""),
    Dialect(
        PodCliqueSet,
        lambda subject, found, around: clique_set_gangs(subject, found, around.bindings),
        is_implied=True,
        priority_at="spec.template",
    ),
)


def check_trees(placed: Placed, tables: Tables) -> None:
    """Refuse what is wrong with groups, topologies and queues between them, each of which is right as such."""
    check_composite_tree(placed(CompositePodGroup))
    validate_topology_labels(placed(Topology))
    hypernodes = placed(HyperNode)
    if hypernodes:
        validate_hypernode_tree(hypernodes, tables.labels_by_node())
    validate_queue_tree(placed(Queue))
    check_kai_tree(placed(KaiQueue))
    check_quota_tree(placed(ElasticQuota))


@dataclass(frozen=True, slots=True)
class Declarations:
    """The gangs of a picture, and who had a say in each."""

    gangs: list[Gang]
    members: Mapping[GangKey, list[Member]]
    """By key, of every gang that some pod names."""
    declared_by: Mapping[Identity, list[GangKey]]
    """The keys of the gangs that an object declares, or would if they had members and nobody else did."""


def declarations_of(
    placed: Placed,
    pods: Iterable[Pod],
    jobs: Iterable[Job],
    tables: Tables,
    place_of: Callable[[Pod], Place],
    *,
    made: Container[Identity] = (),
    checks: bool = True,
) -> Declarations:
    """Every gang that is declared, in the order of DIALECTS, then those that only their pods declare.

    What objects declare that are not given, but `made` of others, counts if it has members. With `checks`, gangs and
    members that contradict each other are refused.
    """
    members = members_by_gang(pods)
    schedulers = {_name_of(job): _scheduler_of(job) for job, _ in placed(VolcanoJob)}
    around = Surroundings(tables.tiers, tables.bindings, members, tables.kai_priorities.by_name, schedulers)
    gangs: dict[GangKey, Gang] = {}
    declared_by: dict[Identity, list[GangKey]] = {}
    for dialect in DIALECTS:
        for found, place in placed(dialect.type):
            identity = identity_of(found)
            is_implied = dialect.is_implied or identity in made
            keys = declared_by.setdefault(identity, [])
            for gang in dialect.gangs(Subject(found, place), found, around):
                keys.append(gang.key)
                if not is_implied or (gang.key in members and gang.key not in gangs):
                    known = tables.kai_priorities if dialect.type is KaiPodGroup else tables.priorities
                    gangs[gang.key] = _with_priority(gang, dialect, found, place, known)
    if members:
        if checks:
            _check_tasks(placed)
            _check_priorities((gangs[native_gang(found).key] for found, _ in placed(NativePodGroup)), members, place_of)
        by_key = {
            owned_gang_key(job.api_version, job.kind, job.metadata.namespace, job.metadata.name): job for job in jobs
        }
        for key in members:
            declared = declared_by_pods(key, members[key], place_of, by_key.get(key)) if key not in gangs else None
            if declared is not None:
                gangs[key] = declared
    on_groups = {
        coscheduling_gang(found).key: found.metadata.annotations or {} for found, _ in placed(CoschedulingPodGroup)
    }
    first_of = {key: found[0].pod for key, found in members.items()}
    complete = [
        with_topology_requests(gang, members[gang.key], place_of) if gang.key in members else gang
        for gang in with_koordinator(gangs, on_groups, first_of, place_of)
    ]
    return Declarations(complete, members, declared_by)


def members_by_gang(pods: Iterable[Pod]) -> dict[GangKey, list[Member]]:
    """The pods of each gang that some pod names, in order."""
    found: dict[GangKey, list[Member]] = {}
    for pod in pods:
        belongs = membership(pod)
        if belongs is not None:
            found.setdefault(belongs.gang, []).append(Member(pod, belongs))
    return found


def _with_priority(gang: Gang, dialect: Dialect, found: Any, place: Place, priorities: Priorities) -> Gang:
    """Resolve a gang's priority class as a pod's is resolved; a gang without one is as urgent as its members."""
    if not dialect.priority_at:
        return gang
    part = found.spec if dialect.priority_at == "spec" else found.spec.template
    spec = PodSpec(
        priority_class_name=part.priority_class_name,
        priority=getattr(part, "priority", None),
        preemption_policy=getattr(part, "preemption_policy", None),
    )
    if not spec.priority_class_name and spec.priority is None:
        return replace(gang, preemption_policy=spec.preemption_policy)
    priorities.resolve(spec, place, found, dialect.priority_at)
    return replace(gang, priority=spec.priority, preemption_policy=spec.preemption_policy)


def _check_priorities(
    gangs: Iterable[Gang], members: Mapping[GangKey, list[Member]], place_of: Callable[[Pod], Place]
) -> None:
    """Refuse members of Kubernetes' own groups with another priority than their group's: it never schedules those."""
    for gang in gangs:
        for pod, _ in members.get(gang.key, ()) if gang.priority is not None else ():
            spec = pod.spec
            if spec.priority != gang.priority and not spec.node_name and not pod.is_terminal:
                field, found = "spec.priority", show(spec.priority)
                if spec.priority_class_name:
                    field, found = "spec.priorityClassName", f"{show(spec.priority_class_name)} ({spec.priority})"
                expected = f"the priority of PodGroup {gang.name}, {gang.priority}"
                raise place_of(pod).error(field, expected=expected, found=found, subject=pod)


def _check_tasks(placed: Placed) -> None:
    """Refuse minimums of tasks that the Job of a PodGroup does not have.

    Without a Job, a task is whatever pods say; one that no pod is of yet is waited for.
    """
    jobs = {_name_of(job): job for job, _ in placed(VolcanoJob)}
    for found, place in placed(VolcanoPodGroup):
        owner = _job_of(found)
        job = None if owner is None else jobs.get(owner)
        if job is None:
            continue
        tasks = [task.name for task in job.spec.tasks]
        for name in found.spec.min_task_member or {}:
            if name not in tasks:
                expected = f"the name of a task ({', '.join(sorted(tasks))})"
                raise place.error(f"spec.minTaskMember.{name}", expected=expected, found=show(name), subject=found)


def _job_of(group: VolcanoPodGroup) -> tuple[str, str] | None:
    """The Job that a group was made for."""
    owner = controller_of(group.metadata)
    return (group.metadata.namespace, owner.name) if owner is not None and owner.kind == "Job" else None


def _name_of(job: VolcanoJob) -> tuple[str, str]:
    return job.metadata.namespace, job.metadata.name


def _scheduler_of(job: VolcanoJob) -> str:
    """That of its first task: pods that start together have one scheduler."""
    return next((task.template.spec.scheduler_name for task in job.spec.tasks), job.spec.scheduler_name)
