"""Every kind of job that queues: how it becomes pod sets, which pods are in them, and when it is over.

A Deployment is not among them: its pods queue one by one, like pods that nobody owns.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import msgspec

from mooring.model.api.kueue_labels import MIN_PARALLELISM, POD_GROUP_INDEX, positive_count
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.api.workloads import Deployment, Job, ReplicaSet, StatefulSet
from mooring.model.defaults import default_pod_spec
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
from mooring.model.jobs.app_wrapper import (
    WRAPPER_GROUP,
    AppWrapper,
    Component,
    find_template,
    is_wrapper_over,
    wrapper_members,
)
from mooring.model.jobs.expansion import COMPLETION_INDEX, is_job_over, job_pod_count
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
from mooring.model.jobs.train_job import TrainJob, is_train_job_over, train_job_members, train_job_pod_sets
from mooring.model.objects.kinds import find_kind

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


def wrapper_pod_sets(owner: AppWrapper) -> list[PodSetPlan]:
    """Those of its components, under the names that AppWrapper's controller gives them."""
    plans: list[PodSetPlan] = []
    for index, component in enumerate(owner.spec.components):
        for number, plan in enumerate(component_pod_sets(component)):
            name = f"{owner.metadata.name}-ps-{len(plans)}"
            plans.append(replace(plan, name=name, path=f"spec.components[{index}].podSetInfos[{number}]"))
    return plans


def component_pod_sets(component: Component) -> list[PodSetPlan]:
    """The pod sets of an object in a wrapper, each with the path of its template in that object; none if the object is
    of a kind that is not known and declares none."""
    try:
        found = _declared(component) if component.pod_sets else _inferred(component.template)
    except msgspec.ValidationError:
        return []
    for plan in found:
        default_pod_spec(plan.template.spec)
    return found


def _declared(component: Component) -> list[PodSetPlan]:
    plans = []
    for declared in component.pod_sets or ():
        path = declared.path.removeprefix("template").lstrip(".")
        template = find_template(component.template, path)
        if template is not None:
            count = 1 if declared.replicas is None else declared.replicas
            plans.append(PodSetPlan(MAIN, msgspec.convert(template, PodTemplateSpec), count, path))
    return plans


def _inferred(document: Mapping[str, Any]) -> list[PodSetPlan]:
    kind = find_kind(str(document.get("apiVersion", "")), str(document.get("kind", "")))
    if kind is None:
        return []
    found = msgspec.convert(document, kind.type)
    if isinstance(found, Pod):
        return [PodSetPlan(MAIN, PodTemplateSpec(metadata=found.metadata, spec=found.spec), 1, "")]
    if isinstance(found, Deployment | ReplicaSet):
        count = 1 if found.spec.replicas is None else found.spec.replicas
        return [PodSetPlan(MAIN, found.spec.template, count, "spec.template")]
    job_kind = next((each for each in JOB_KINDS if each.type is kind.type), None)
    plans: dict[str, PodSetPlan] = {}
    for unit in job_kind.units(found) if job_kind is not None else ():
        for plan in unit.pod_sets:  # replicas that are admitted one by one elsewhere are one here
            known = plans.get(plan.path)
            plans[plan.path] = plan if known is None else replace(known, count=known.count + plan.count)
    return list(plans.values())


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
    JobKind("trainer.kubeflow.org", TrainJob, _whole(train_job_pod_sets, train_job_members), is_train_job_over),
    JobKind("ray.io", RayJob, _whole(ray_job_pod_sets, ray_job_members), is_ray_job_over),
    JobKind("ray.io", RayService, _whole(ray_job_pod_sets, ray_job_members)),
    JobKind("sparkoperator.k8s.io", SparkApplication, _whole(spark_pod_sets, spark_members), is_spark_over),
    JobKind("ray.io", RayCluster, _whole(ray_cluster_pod_sets, ray_cluster_members)),
    JobKind("leaderworkerset.x-k8s.io", LeaderWorkerSet, _lws_units),
    JobKind("apps", StatefulSet, _whole(_stateful_pod_sets, _stateful_members)),
    JobKind(WRAPPER_GROUP, AppWrapper, _whole(wrapper_pod_sets, wrapper_members), is_wrapper_over),
)
"""In the order in which they queue where nothing says who came first."""
