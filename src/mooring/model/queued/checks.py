"""Checks of what queues, against the queues and against each other: each may be right on its own and still contradict.

They are those of Kueue's webhooks. A queue that is missing is no mistake: work waits for it.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from mooring.model.api.kueue import Cohort, Workload
from mooring.model.api.kueue_labels import (
    DEFAULT_QUEUE,
    ELASTIC_JOB,
    MAX_EXECUTION_SECONDS,
    MIN_PARALLELISM,
    POD_GROUP,
    POD_GROUP_TOTAL,
    PRIORITY_CLASS,
    QUEUE_NAME,
    pod_group,
    positive_count,
    queue_name,
)
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.model.jobs.expansion import job_of, job_pod_count, template_of
from mooring.model.jobs.pod_sets import MAIN, PodSetPlan
from mooring.model.jobs.ray import RayCluster, RayClusterSpec, RayJob, RayService
from mooring.model.objects.custom_workloads import CUSTOM_WORKLOADS
from mooring.model.objects.job_kinds import JOB_KINDS, JobKind
from mooring.model.objects.tables import Tables
from mooring.model.places import Place, show
from mooring.model.queued.pods import annotation, pod_plan
from mooring.model.topology.requests import TopologyRequestError, topology_request_of
from mooring.model.validation.kueue import validate_cohort_tree
from mooring.model.validation.kueue_workload import MOST_POD_SETS
from mooring.model.validation.terms import Subject

if TYPE_CHECKING:
    from mooring.model.objects.picture import Manifests

Placed = Callable[[type[Any]], list[tuple[Any, Place]]]
"""The objects of a kind, each with its place."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_NAME = 253
_JOB_KINDS = {kind.type: kind for kind in JOB_KINDS}


def name_default_queues(manifests: "Manifests", tables: Tables) -> None:
    """Put jobs that name no queue in their namespace's default one, where it has one.

    Kueue does so for the kinds of jobs that it manages; what serves (StatefulSets, Deployments, pods) must ask for it.
    """
    for kind in JOB_KINDS:
        if kind.type is StatefulSet:
            continue
        for owner in manifests.all_of(kind.type):
            if tables.has_default_queue(owner.metadata.namespace) and not owner.metadata.owner_references:
                _name_default_queue(owner.metadata)
    for cron_job in manifests.cron_jobs:
        if tables.has_default_queue(cron_job.metadata.namespace):
            _name_default_queue(cron_job.spec.job_template.metadata)


def _name_default_queue(metadata: ObjectMeta) -> None:
    if not queue_name(metadata):
        metadata.labels = {**(metadata.labels or {}), QUEUE_NAME: DEFAULT_QUEUE}


class _Part(Subject, frozen=True):
    """A part of an object: what is wrong with it is said with the way to it."""

    prefix: str

    def refuse(self, field: str, *, expected: str, found: str) -> NoReturn:
        super().refuse(f"{self.prefix}{field}", expected=expected, found=found)


def validate_queued(placed: Placed, tables: Tables) -> None:
    """Raise ManifestError for the first contradiction among queues and what queues in them."""
    validate_cohort_tree(placed(Cohort))
    _check_admissions(placed, tables)
    classes = tables.workload_class_names()
    pod_classes = set(tables.priorities.by_name)
    for kind in JOB_KINDS:
        for owner, place in placed(kind.type):
            if queue_name(owner.metadata):
                subject = Subject(owner, place)
                _check_metadata(subject, owner.metadata, classes)
                _check_job(subject, kind, owner, pod_classes)
    for owner, place in placed(CronJob):
        if queue_name(owner.spec.job_template.metadata):
            inside = _Part(owner, place, "spec.jobTemplate.")
            _check_metadata(inside, owner.spec.job_template.metadata, classes)
            _check_job(inside, JOB_KINDS[0], job_of(owner), pod_classes)
    for owner, place in placed(Deployment):
        if queue_name(owner.metadata):
            _check_metadata(Subject(owner, place), owner.metadata, classes)
            _check_topology(Subject(owner, place), PodSetPlan(MAIN, owner.spec.template, 1, "spec.template"))
    _check_pods(placed, classes)
    _check_pod_templates(placed, classes)


def is_queued_job(owner: Any) -> bool:
    return type(owner) in _JOB_KINDS and bool(queue_name(owner.metadata))


def validate_queued_job(owner: Any, place: Place) -> None:
    """Raise ManifestError for what Kueue's webhooks refuse of a job that queues, whatever else there is beside it.

    The job has its defaults."""
    subject = Subject(owner, place)
    _check_metadata(subject, owner.metadata)
    _check_job(subject, _JOB_KINDS[type(owner)], owner)


def _check_admissions(placed: Placed, tables: Tables) -> None:
    """A Workload holds quota of the ClusterQueue that its LocalQueue stands for, or of none."""
    for workload, place in placed(Workload):
        admission = workload.status.admission
        local = tables.local_queue(workload.metadata.namespace, workload.spec.queue_name)
        queue = local.spec.cluster_queue if local is not None else None
        if admission is not None and queue is not None and admission.cluster_queue != queue:
            raise place.error(
                "status.admission.clusterQueue",
                expected=f"{queue}, which LocalQueue {workload.spec.queue_name} stands for",
                found=show(admission.cluster_queue),
                subject=workload,
            )


def _check_metadata(subject: Subject, metadata: ObjectMeta, classes: set[str] | None = None) -> None:
    """`classes`: the WorkloadPriorityClasses that there are, if they are known."""
    labels = metadata.labels or {}
    name = queue_name(metadata)
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        where = "labels" if QUEUE_NAME in labels else "annotations"
        subject.refuse(f"metadata.{where}.{QUEUE_NAME}", expected="the name of a LocalQueue", found=show(name))
    wanted = labels.get(PRIORITY_CLASS)
    if wanted is not None and classes is not None and wanted not in classes:
        known = ", ".join(sorted(classes)) or "there is none"
        expected = f"a known WorkloadPriorityClass ({known})"
        subject.refuse(f"metadata.labels.{PRIORITY_CLASS}", expected=expected, found=show(wanted))
    seconds = labels.get(MAX_EXECUTION_SECONDS)
    if seconds is not None and positive_count(seconds) is None:
        expected = "a number of seconds greater than 0"
        subject.refuse(f"metadata.labels.{MAX_EXECUTION_SECONDS}", expected=expected, found=show(seconds))


def _check_job(subject: Subject, kind: JobKind, owner: Any, pod_classes: set[str] | None = None) -> None:
    """`pod_classes`: the PriorityClasses that there are, if they are known."""
    if isinstance(owner, Job):
        _check_minimum(subject, owner)
    elif isinstance(owner, RayJob):
        _check_ray_job(subject, owner)
    elif isinstance(owner, RayService):
        _check_autoscaling(subject, "spec.rayClusterConfig", owner.metadata, owner.spec.ray_cluster_spec)
    elif isinstance(owner, RayCluster):
        _check_autoscaling(subject, "spec", owner.metadata, owner.spec)
    wanted = kind.priority_class(owner)
    if wanted and pod_classes is not None and wanted not in pod_classes:
        is_policy = kind.group == "kubeflow.org"
        field = "spec.runPolicy.schedulingPolicy.priorityClass" if is_policy else "spec.priorityClassName"
        expected = f"a known PriorityClass ({', '.join(sorted(pod_classes))})"
        subject.refuse(field, expected=expected, found=show(wanted))
    for unit in kind.units(owner)[:1]:  # the others have the same templates
        if len(unit.pod_sets) > MOST_POD_SETS:
            expected = f"at most {MOST_POD_SETS} kinds of pods in what queues"
            subject.refuse("spec", expected=expected, found=str(len(unit.pod_sets)))
        for plan in unit.pod_sets:
            _check_topology(subject, plan)


def _check_minimum(subject: Subject, owner: Job) -> None:
    text = (owner.metadata.annotations or {}).get(MIN_PARALLELISM)
    if text is None:
        return
    count = job_pod_count(owner.spec)
    minimum = positive_count(text)
    if minimum is None or minimum >= count:
        path = f"metadata.annotations.{MIN_PARALLELISM}"
        subject.refuse(path, expected=f"1 or more, and less than the Job's {count} pods", found=show(text))


def _check_ray_job(subject: Subject, owner: RayJob) -> None:
    if owner.spec.cluster_selector:
        expected = "none for a job that queues: it needs a cluster of its own"
        subject.refuse("spec.clusterSelector", expected=expected, found="an object")
    if not owner.spec.shutdown_after_job_finishes:
        expected = "true for a job that queues: its cluster must go when it is done"
        subject.refuse("spec.shutdownAfterJobFinishes", expected=expected, found="false")
    if owner.spec.ray_cluster_spec is not None:
        _check_autoscaling(subject, "spec.rayClusterSpec", owner.metadata, owner.spec.ray_cluster_spec)


def _check_autoscaling(subject: Subject, path: str, metadata: ObjectMeta, spec: RayClusterSpec) -> None:
    """A cluster that scales itself has quota for the pods that it has; Kueue lets only elastic jobs ask for more."""
    if spec.enable_in_tree_autoscaling and (metadata.annotations or {}).get(ELASTIC_JOB) != "true":
        expected = f'false for what queues without {ELASTIC_JOB}: "true"'
        subject.refuse(f"{path}.enableInTreeAutoscaling", expected=expected, found="true")


def _check_topology(subject: Subject, plan: PodSetPlan) -> None:
    path = f"{plan.path}.metadata.annotations" if plan.path else "metadata.annotations"
    try:
        topology_request = topology_request_of(plan.template.metadata.annotations, path)
    except TopologyRequestError as error:
        subject.refuse(error.field, expected=error.expected, found=error.found)
    if topology_request is not None and topology_request.slice_size > plan.count > 0:
        expected = f"slices of at most {plan.count} pods, as there are no more"
        subject.refuse(path, expected=expected, found=show(topology_request.slice_size))


def _check_pods(placed: Placed, classes: set[str]) -> None:
    first: dict[tuple[str, str], Pod] = {}
    for pod, place in placed(Pod):
        metadata = pod.metadata
        if not queue_name(metadata):
            continue
        subject = Subject(pod, place)
        _check_metadata(subject, metadata, classes)
        _check_topology(subject, pod_plan(pod))
        group, total = pod_group(metadata), annotation(pod, POD_GROUP_TOTAL)
        if not group and not total:
            continue
        if not group:
            expected = f"a name, as {POD_GROUP_TOTAL} is set"
            subject.refuse(f"metadata.labels.{POD_GROUP}", expected=expected, found="none")
        if positive_count(total) is None:
            expected, found = "how many pods the group has, a number of at least 1", show(total) if total else "none"
            subject.refuse(f"metadata.annotations.{POD_GROUP_TOTAL}", expected=expected, found=found)
        _check_like_first(subject, pod, first.setdefault((metadata.namespace, group), pod))


def _check_pod_templates(placed: Placed, classes: set[str]) -> None:
    """Pods whose owner does not queue, but whose template does, queue one by one."""
    for type_ in (Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job):
        for owner, place in placed(type_):
            template = template_of(owner)
            if template is not None and queue_name(template.metadata):
                _check_template(_Part(owner, place, "spec.template."), template, classes)
    for custom in CUSTOM_WORKLOADS:
        for owner, place in placed(custom.type):
            for path, template in custom.templates(owner):
                if queue_name(template.metadata):
                    _check_template(_Part(owner, place, f"{path}."), template, classes)


def _check_template(part: Subject, template: PodTemplateSpec, classes: set[str]) -> None:
    _check_metadata(part, template.metadata, classes)
    _check_topology(part, PodSetPlan(MAIN, template, 1, ""))


def _check_like_first(subject: Subject, pod: Pod, first: Pod) -> None:
    total, known = annotation(pod, POD_GROUP_TOTAL), annotation(first, POD_GROUP_TOTAL)
    if int(total) != int(known):
        expected = f"{known}, as in pod {first.metadata.name} of the same group"
        subject.refuse(f"metadata.annotations.{POD_GROUP_TOTAL}", expected=expected, found=show(total))
    queue, wanted = queue_name(pod.metadata), queue_name(first.metadata)
    if queue != wanted:
        expected = f"{wanted}, as in pod {first.metadata.name} of the same group"
        subject.refuse(f"metadata.labels.{QUEUE_NAME}", expected=expected, found=show(queue))
