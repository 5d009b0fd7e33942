"""What one object is tied to by what it says: its owners, what it is read with as a whole, what it is read against.

A new kind, or a new way in which kinds speak of one another, has its line here; else changes of the one would not reach
the other.
"""

import re
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from mooring.model.api import kai_labels
from mooring.model.api.elastic_quota import ElasticQuota
from mooring.model.api.kai_queue import KaiQueue
from mooring.model.api.kueue import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from mooring.model.api.kueue_labels import (
    APP_WRAPPER,
    DEFAULT_PRIORITY_CLASS,
    DEFAULT_QUEUE,
    POD_GROUP,
    PREBUILT_WORKLOAD,
    PRIORITY_CLASS,
    QUEUE_NAME,
    app_wrapper,
    pod_group,
    queue_name,
)
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.policies import PriorityClass
from mooring.model.api.volcano_queue import Queue
from mooring.model.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.model.api.workloads import CronJob, DaemonSet, StatefulSet
from mooring.model.gangs.dialects import kai_pods
from mooring.model.gangs.dialects.coscheduling import CoschedulingPodGroup
from mooring.model.gangs.dialects.grove import ClusterTopologyBinding, PodCliqueSet
from mooring.model.gangs.dialects.koordinator import GROUPS, gang_group
from mooring.model.gangs.dialects.kubernetes import CompositePodGroup, NativeWorkload
from mooring.model.gangs.dialects.volcano import VolcanoPodGroup
from mooring.model.gangs.dialects.volcano_cron_job import VolcanoCronJob
from mooring.model.gangs.dialects.volcano_flow import JobFlow, JobTemplate
from mooring.model.gangs.dialects.volcano_job import VolcanoJob
from mooring.model.gangs.gang import gang_key
from mooring.model.gangs.membership import COSCHEDULING_KIND, LWS_NAME, membership
from mooring.model.jobs.app_wrapper import LABEL as APP_WRAPPER_LABEL
from mooring.model.jobs.app_wrapper import WRAPPER, WRAPPER_GROUP
from mooring.model.jobs.expansion import OwnerKey, controller_of, owner_key, template_of
from mooring.model.jobs.jobset import JOB_SET_NAME
from mooring.model.jobs.kubeflow import JOB_NAME
from mooring.model.jobs.ray import CLUSTER, RayJob, RayService, cluster_name
from mooring.model.jobs.spark import APP_NAME
from mooring.model.jobs.train_job import (
    ClusterTrainingRuntime,
    TrainingRuntime,
    TrainJob,
    runtime_key,
    runtime_priority_classes,
)
from mooring.model.loading.declarations import DIALECTS
from mooring.model.objects.custom_workloads import custom_workload
from mooring.model.objects.job_kinds import JOB_KINDS
from mooring.model.queued.building import workload_name
from mooring.model.queued.gathering import POD_GROUP_KIND
from mooring.model.topology.requests import HyperNode

Entry: TypeAlias = tuple[type[Any], str, str]
"""What of a table is read: one object, or with an empty name whatever is worked out from all of a kind."""

ALL_OF: dict[type[Any], Entry] = {
    type_: (type_, "", "") for type_ in (PriorityClass, Node, HyperNode, ClusterTopologyBinding, StorageClass)
}
_OWNING_LABELS = {
    LWS_NAME: "LeaderWorkerSet",
    JOB_SET_NAME: "JobSet",
    CLUSTER: "RayCluster",
    JOB_NAME: "MPIJob",
    APP_NAME: "SparkApplication",
    APP_WRAPPER_LABEL: WRAPPER,
}
"""Labels by which pods say whose they are, whoever made them."""
_READ_AS_A_WHOLE = (Cohort, HyperNode, Queue, KaiQueue, ElasticQuota, Topology, CompositePodGroup, PriorityClass)
"""Kinds whose objects must not contradict each other; where that is checked, all of a kind are looked at."""
_KAI_LABELS = frozenset({kai_labels.QUEUE, kai_pods.PRIORITY_CLASS, kai_pods.RAY_PRIORITY_CLASS})
_MARKS = frozenset(
    {*_OWNING_LABELS, *_KAI_LABELS, QUEUE_NAME, PRIORITY_CLASS, PREBUILT_WORKLOAD, POD_GROUP, APP_WRAPPER, GROUPS}
)
"""Labels and annotations, besides those of gangs, that tie pods to more than their controller, class and node."""
_WORKLOAD_OF_POD = re.compile(r"pod-(.+)-[0-9a-f]{5}")
_DEFAULT_CLASS: Entry = (WorkloadPriorityClass, "", DEFAULT_PRIORITY_CLASS)
_JOB_KINDS = {kind.type: kind for kind in JOB_KINDS}
_CLASS_AT = {dialect.type: dialect.priority_at for dialect in DIALECTS}


class Ties(NamedTuple):
    """What one object is tied to by what it says."""

    names: tuple[OwnerKey, ...]
    """As whom its dependents know it."""
    owners: tuple[OwnerKey, ...]
    groups: tuple[Hashable, ...]
    reads: tuple[Entry, ...]
    is_plain: bool = False
    """Whether it is a pod that says nothing of gangs, queues and groups."""


NO_TIES = Ties((), (), (), ())


def ties_of(found: Any, *, expands: bool) -> Ties:
    """Read off an object what it is tied to; `expands` where pods are made and trees are checked."""
    if isinstance(found, Pod) and _is_plain(found):
        return _ties_of_plain(found)
    return all_ties_of(found, expands=expands)


def all_ties_of(found: Any, *, expands: bool) -> Ties:
    """Look for every kind of tie, which takes its time: most pods have few, and `ties_of` sees that at once."""
    return Ties(
        tuple(_names(found)),
        tuple(dict.fromkeys(_owners(found))),
        tuple(_groups(found, expands)),
        tuple(dict.fromkeys(_reads(found, expands))),
    )


def ties_of_changed(pod: Pod, former: Pod, ties: Ties) -> Ties | None:
    """Of a pod that says what it said before, if on another node, from the ties that it had; None if it does not.

    Most changes of pods are such: they are bound, start, get ready, end.
    """
    old, new = former.metadata, pod.metadata
    says_the_same = (
        old.labels == new.labels and old.annotations == new.annotations and old.owner_references == new.owner_references
    )
    if not says_the_same:
        return None
    is_there = former.spec.node_name == pod.spec.node_name
    spec = former.spec if is_there else replace(former.spec, node_name=pod.spec.node_name)
    if spec != pod.spec:
        return None
    if is_there:
        return ties
    elsewhere = [entry for entry in ties.reads if entry[0] is not Node]
    return Ties(ties.names, ties.owners, ties.groups, (*elsewhere, *_place_of(pod)), ties.is_plain)


def _is_plain(pod: Pod) -> bool:
    metadata = pod.metadata
    return (
        (not metadata.labels or _MARKS.isdisjoint(metadata.labels))
        and (not metadata.annotations or _MARKS.isdisjoint(metadata.annotations))
        and pod.spec.scheduler_name != kai_labels.SCHEDULER
        and membership(pod) is None
    )


def _ties_of_plain(pod: Pod) -> Ties:
    metadata, spec = pod.metadata, pod.spec
    owners: tuple[OwnerKey, ...] = ()
    reads: list[Entry] = []
    if spec.priority_class_name or spec.priority is None:
        reads.append((PriorityClass, "", spec.priority_class_name))
    if metadata.owner_references:
        controller = controller_of(metadata)
        owners = () if controller is None else ((controller.kind, metadata.namespace, controller.name),)
        reads.append(_DEFAULT_CLASS)
    if spec.node_name:
        reads.append((Node, "", spec.node_name))
    return Ties((owner_key(pod),), owners, (), tuple(reads), is_plain=True)


def _place_of(pod: Pod) -> Iterator[Entry]:
    if pod.spec.node_name:  # where work runs tells which flavors it has
        yield Node, "", pod.spec.node_name


def _names(found: Any) -> Iterator[OwnerKey]:
    yield owner_key(found)
    namespace, name = found.metadata.namespace, found.metadata.name
    # What it makes, as long as that is no object of its own: a run, a cluster, a submitter.
    if isinstance(found, CronJob | VolcanoCronJob | RayJob):
        yield "Job", namespace, name
    if isinstance(found, JobFlow):
        yield from (("Job", namespace, found.job_name(flow.name)) for flow in found.spec.flows)
    if isinstance(found, TrainJob):
        yield "JobSet", namespace, name
    if isinstance(found, RayJob | RayService):
        yield "RayCluster", namespace, cluster_name(found)


def _owners(found: Any) -> Iterator[OwnerKey]:
    metadata: ObjectMeta = found.metadata
    namespace = metadata.namespace
    if isinstance(found, Workload):
        yield from ((owner.kind, namespace, owner.name) for owner in metadata.owner_references or ())
        match = _WORKLOAD_OF_POD.fullmatch(metadata.name)
        if match is not None:
            yield "Pod", namespace, match[1]
        return
    controller = controller_of(metadata) if metadata.owner_references else None
    if controller is not None:
        yield controller.kind, namespace, controller.name
    if isinstance(found, Pod) and metadata.labels and not _OWNING_LABELS.keys().isdisjoint(metadata.labels):
        for key, kind in _OWNING_LABELS.items():
            if key in metadata.labels:
                yield kind, namespace, metadata.labels[key]


def _groups(found: Any, expands: bool) -> Iterator[Hashable]:
    metadata: ObjectMeta = found.metadata
    namespace, name = metadata.namespace, metadata.name
    match found:
        case Pod():
            if metadata.labels and (prebuilt := metadata.labels.get(PREBUILT_WORKLOAD)):
                yield Workload, namespace, prebuilt
            if found.spec.workload_ref is not None:
                yield NativeWorkload, namespace, found.spec.workload_ref.name
        case Workload() | NativeWorkload():
            yield type(found), namespace, name
        case JobTemplate() | VolcanoJob():
            yield type(found), namespace, name
        case JobFlow():
            yield from ((JobTemplate, namespace, flow.name) for flow in found.spec.flows)
            yield from ((VolcanoJob, namespace, found.job_name(flow.name)) for flow in found.spec.flows)
        case PersistentVolume():
            yield PersistentVolume, "", name
        case PersistentVolumeClaim():
            yield PersistentVolumeClaim, namespace, name
            if found.spec.volume_name:
                yield PersistentVolume, "", found.spec.volume_name
        case StatefulSet() if expands and found.spec.volume_claim_templates:
            start = found.spec.ordinals.start if found.spec.ordinals else 0
            count = 1 if found.spec.replicas is None else found.spec.replicas
            for ordinal in range(start, start + count):
                for template in found.spec.volume_claim_templates:
                    yield PersistentVolumeClaim, namespace, f"{template.metadata.name}-{name}-{ordinal}"
        case _ if expands and isinstance(found, _READ_AS_A_WHOLE):
            yield type(found)
    yield from _gang_groups(found)
    for queueing in _queueing_metadata(found):
        if wrapper := app_wrapper(queueing):
            yield WRAPPER, namespace, wrapper
            yield Workload, namespace, workload_name(WRAPPER, WRAPPER_GROUP, wrapper)
        if group := pod_group(queueing):
            yield POD_GROUP_KIND, namespace, group
            yield Workload, namespace, group
    kind = _JOB_KINDS.get(type(found))
    if kind is not None:
        prebuilt = (metadata.labels or {}).get(PREBUILT_WORKLOAD)
        if prebuilt:
            yield Workload, namespace, prebuilt
        for unit in kind.units(found):
            yield Workload, namespace, workload_name(found.kind, kind.group, unit.name, metadata.uid)


def _gang_groups(found: Any) -> Iterator[str]:
    """The keys of the gangs that start together with its own, as Koordinator says it."""
    described = (found.metadata,) if isinstance(found, CoschedulingPodGroup) else _queueing_metadata(found)
    for metadata in described:
        for name in gang_group(metadata.annotations or {}) or ():
            yield gang_key(COSCHEDULING_KIND, *name.split("/"))


def _reads(found: Any, expands: bool) -> Iterator[Entry]:
    yield from ((PriorityClass, "", name) for name in (*_class_names(found), *_kai_class_names(found)))
    yield from _queueing_reads(found)
    match found:
        case Pod():
            yield from _place_of(found)
        case Workload():
            admission = found.status.admission
            for assignment in admission.pod_set_assignments if admission is not None else ():
                yield from ((ResourceFlavor, "", name) for name in (assignment.flavors or {}).values())
            yield LocalQueue, found.metadata.namespace, found.spec.queue_name
        case TrainJob():
            yield runtime_key(found)
        case TrainingRuntime() | ClusterTrainingRuntime():
            yield from ((PriorityClass, "", name) for name in runtime_priority_classes(found))
        case LocalQueue():
            yield ClusterQueue, "", found.spec.cluster_queue
        case ClusterQueue():
            for group in found.spec.resource_groups or ():
                yield from ((ResourceFlavor, "", flavor.name) for flavor in group.flavors)
        case VolcanoPodGroup() | VolcanoJob() | VolcanoCronJob() | JobFlow():
            yield ALL_OF[HyperNode]
        case PodCliqueSet():
            yield ALL_OF[ClusterTopologyBinding]
        case DaemonSet() | HyperNode() if expands:
            yield ALL_OF[Node]
        case PersistentVolumeClaim() if found.spec.storage_class_name is None:
            yield ALL_OF[StorageClass]
        case StatefulSet() if expands and found.spec.volume_claim_templates:
            yield ALL_OF[StorageClass]


def _class_names(found: Any) -> Iterator[str]:
    """The PriorityClasses by which its pods, or its gang, get their priority; empty for the default one."""
    if isinstance(found, Pod):
        yield from _class_of(found.spec)
        return
    template = template_of(found)
    if template is not None:
        yield from _class_of(template.spec)
    custom = custom_workload(type(found))
    if custom is not None:
        for _, inner in custom.templates(found):
            yield from _class_of(inner.spec)
        if custom.class_at:
            yield custom.named_class(found).priority_class_name
    if at := _CLASS_AT.get(type(found)):
        yield (found.spec if at == "spec" else found.spec.template).priority_class_name
    kind = _JOB_KINDS.get(type(found))
    if kind is not None:
        yield kind.priority_class(found)


def _kai_class_names(found: Any) -> Iterator[str]:
    """The classes that labels name, and those that KAI's pods have where nothing does."""
    for metadata in _queueing_metadata(found):
        labels = metadata.labels
        if labels and not _KAI_LABELS.isdisjoint(labels):
            yield from (labels[key] for key in (kai_pods.PRIORITY_CLASS, kai_pods.RAY_PRIORITY_CLASS) if key in labels)
            yield from kai_pods.CLASSES


def _class_of(spec: PodSpec) -> Iterator[str]:
    if spec.priority_class_name or spec.priority is None:
        yield spec.priority_class_name
    if spec.scheduler_name == kai_labels.SCHEDULER:
        yield from kai_pods.CLASSES


def _queueing_reads(found: Any) -> Iterator[Entry]:
    """The queue and the class of workloads, its own and those of its pods where they queue one by one."""
    is_job = type(found) in _JOB_KINDS
    for metadata in _queueing_metadata(found):
        queue = queue_name(metadata)
        if queue or is_job or isinstance(found, CronJob):
            yield LocalQueue, found.metadata.namespace, queue or DEFAULT_QUEUE
        if queue or is_job or found.metadata.owner_references:
            yield WorkloadPriorityClass, "", (metadata.labels or {}).get(PRIORITY_CLASS, DEFAULT_PRIORITY_CLASS)


def _queueing_metadata(found: Any) -> Iterator[ObjectMeta]:
    template = template_of(found)
    custom = custom_workload(type(found))
    if isinstance(found, Pod) or template is not None or custom is not None:
        yield found.metadata
    if template is not None:
        yield template.metadata
    if isinstance(found, CronJob):
        yield found.spec.job_template.metadata
    if custom is not None:
        yield from (inner.metadata for _, inner in custom.templates(found))
