"""Every kind of job that queues: how it becomes pod sets, which pods are in them, and when it is over.

A Deployment is not among them: its pods queue one by one, like pods that nobody owns.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from mooring.model.api.pods import Pod
from mooring.model.api.workloads import Job, StatefulSet
from mooring.model.gangs.dialects.lws import LeaderWorkerSet
from mooring.model.gangs.dialects.volcano_job import GROUP as VOLCANO_GROUP
from mooring.model.gangs.dialects.volcano_job import OVER as VOLCANO_OVER
from mooring.model.gangs.dialects.volcano_job import VolcanoJob
from mooring.model.gangs.membership import (
    LEADER,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_WORKER_INDEX,
    VOLCANO_INDEX,
    VOLCANO_ROLE,
    WORKER,
)
from mooring.model.jobs.jobset import JobSet, is_job_set_over, job_set_members, job_set_pod_sets
from mooring.model.jobs.kubeflow import (
    TRAINING_KINDS,
    is_training_over,
    training_members,
    training_pod_sets,
    training_priority_class,
)
from mooring.model.jobs.mpi import MpiJob, mpi_members, mpi_pod_sets
from mooring.model.jobs.pod_sets import MAIN, PodFinder, PodSetPlan, by_label, label
from mooring.model.jobs.ray import (
    RayCluster,
    RayJob,
    RayService,
    is_ray_job_over,
    ray_cluster_members,
    ray_cluster_pod_sets,
    ray_job_members,
    ray_job_pod_sets,
)
from mooring.model.jobs.spark import SparkApplication, is_spark_over, spark_members, spark_pod_sets
from mooring.model.loading.expansion import COMPLETION_INDEX, is_job_over, job_pod_count
from mooring.model.queued.labels import MIN_PARALLELISM, POD_GROUP_INDEX, positive_count

Members = Mapping[str, list[Pod]]


class Unit(NamedTuple):
    """What is admitted as one: a job, or one replica of a set."""

    name: str
    pod_sets: list[PodSetPlan]
    members: Callable[[PodFinder], Members]
    """Its pods, by the names of their pod sets."""


class JobKind(NamedTuple):
    """A kind of job, as queueing sees it."""

    group: str
    type: type[Any]
    units: Callable[[Any], list[Unit]]
    is_over: Callable[[Any], bool] = lambda owner: False
    priority_class: Callable[[Any], str] = lambda owner: ""
    """The PriorityClass that the job as a whole names, empty if its pods decide."""


def _whole(
    pod_sets: Callable[[Any], list[PodSetPlan]], members: Callable[[Any, PodFinder], Members]
) -> Callable[[Any], list[Unit]]:
    """A kind whose jobs are admitted as a whole."""
    return lambda owner: [Unit(owner.metadata.name, pod_sets(owner), partial(members, owner))]


def _job_pod_sets(owner: Job) -> list[PodSetPlan]:
    spec = owner.spec
    count = job_pod_count(spec)
    left = count if spec.completions is None else spec.completions - owner.status.succeeded
    return [
        PodSetPlan(
            name=MAIN,
            template=spec.template,
            count=count,
            path="spec.template",
            min_count=positive_count((owner.metadata.annotations or {}).get(MIN_PARALLELISM)),
            reclaimable=min(count, max(0, count - left)),
            index_label=COMPLETION_INDEX,
        )
    ]


def _job_members(owner: Job, pods: PodFinder) -> Members:
    return {MAIN: pods.owned_by("batch", "Job", owner.metadata.namespace, owner.metadata.name)}


def _stateful_pod_sets(owner: StatefulSet) -> list[PodSetPlan]:
    count = 1 if owner.spec.replicas is None else owner.spec.replicas
    return [PodSetPlan(MAIN, owner.spec.template, count, "spec.template", index_label=POD_GROUP_INDEX)]


def _stateful_members(owner: StatefulSet, pods: PodFinder) -> Members:
    return {MAIN: pods.owned_by("apps", "StatefulSet", owner.metadata.namespace, owner.metadata.name)}


def _volcano_pod_sets(owner: VolcanoJob) -> list[PodSetPlan]:
    return [
        PodSetPlan(task.name, task.template, task.count, f"spec.tasks[{index}].template", index_label=VOLCANO_INDEX)
        for index, task in enumerate(owner.spec.tasks)
    ]


def _volcano_members(owner: VolcanoJob, pods: PodFinder) -> Members:
    found = pods.owned_by(VOLCANO_GROUP, "Job", owner.metadata.namespace, owner.metadata.name)
    return by_label(found, VOLCANO_ROLE)


def _lws_units(owner: LeaderWorkerSet) -> list[Unit]:
    """Each replica on its own: a leader, if it has a template of its own, and the workers."""
    template, path = owner.spec.leader_worker_template, "spec.leaderWorkerTemplate"
    plans = []
    if template.leader_template is not None:
        plans.append(PodSetPlan(LEADER, template.leader_template, 1, f"{path}.leaderTemplate"))
    plans.append(
        PodSetPlan(
            name=WORKER if plans else MAIN,
            template=template.worker_template,
            count=template.size - len(plans),
            path=f"{path}.workerTemplate",
            index_label=LWS_WORKER_INDEX,
        )
    )
    return [
        Unit(f"{owner.metadata.name}-{index}", plans, partial(_lws_members, owner, str(index)))
        for index in range(owner.spec.replicas)
    ]


def _lws_members(owner: LeaderWorkerSet, index: str, pods: PodFinder) -> Members:
    group = [
        pod
        for pod in pods.labelled(owner.metadata.namespace, LWS_NAME, owner.metadata.name)
        if label(pod, LWS_GROUP_INDEX) == index
    ]
    if owner.spec.leader_worker_template.leader_template is None:
        return {MAIN: group}
    leaders = [pod for pod in group if label(pod, LWS_WORKER_INDEX) == "0"]
    return {LEADER: leaders, WORKER: [pod for pod in group if label(pod, LWS_WORKER_INDEX) != "0"]}


JOB_KINDS: tuple[JobKind, ...] = (
    JobKind("batch", Job, _whole(_job_pod_sets, _job_members), is_job_over),
    JobKind("jobset.x-k8s.io", JobSet, _whole(job_set_pod_sets, job_set_members), is_job_set_over),
    JobKind(
        VOLCANO_GROUP,
        VolcanoJob,
        _whole(_volcano_pod_sets, _volcano_members),
        lambda owner: owner.status.state.phase in VOLCANO_OVER,
        lambda owner: str(owner.spec.priority_class_name),
    ),
    *(
        JobKind(
            "kubeflow.org",
            type_,
            _whole(training_pod_sets, training_members),
            is_training_over,
            training_priority_class,
        )
        for type_ in TRAINING_KINDS
    ),
    JobKind("kubeflow.org", MpiJob, _whole(mpi_pod_sets, mpi_members), is_training_over, training_priority_class),
    JobKind("ray.io", RayJob, _whole(ray_job_pod_sets, ray_job_members), is_ray_job_over),
    JobKind("ray.io", RayService, _whole(ray_job_pod_sets, ray_job_members)),
    JobKind("sparkoperator.k8s.io", SparkApplication, _whole(spark_pod_sets, spark_members), is_spark_over),
    JobKind("ray.io", RayCluster, _whole(ray_cluster_pod_sets, ray_cluster_members)),
    JobKind("leaderworkerset.x-k8s.io", LeaderWorkerSet, _lws_units),
    JobKind("apps", StatefulSet, _whole(_stateful_pod_sets, _stateful_members)),
)
"""In the order in which they queue where nothing says who came first."""
