"""The Workload that a job becomes, built as Kueue builds it: name, pod sets, priority, limits."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from mooring.model.api.kueue import GROUP
from mooring.model.api.kueue_labels import (
    DEFAULT_PRIORITY_CLASS,
    MAX_EXECUTION_SECONDS,
    PRIORITY_CLASS,
    positive_count,
    queue_name,
)
from mooring.model.api.kueue_workload import (
    PodSet,
    PriorityClassReference,
    ReclaimablePod,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from mooring.model.api.meta import ObjectMeta, OwnerReference, timestamp_seconds
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.jobs.pod_sets import PodSetPlan, topology_request
from mooring.model.objects.tables import Tables

_LONGEST_NAME = 247
"""A name may have 253 characters; the hash and the dash before it take six."""
_HASH_LENGTH = 5
_HANDED_DOWN = ("kueue.x-k8s.io", "mooring.dev")
"""Domains of the annotations that a Workload takes over from its job."""


MADE_UID = "made-"
"""How uids begin that we make; they rise with creation, as real ones do not."""
MADE_FROM = "mooring.dev/made-from"
"""On a Workload that we made: the fingerprint of what its job said then; empty where it says something else now."""


def fingerprint(spec: WorkloadSpec) -> str:
    """Tells what a job says now from what its Workload was made from; what others change of the Workload is theirs."""
    text = msgspec.json.encode(replace(spec, active=True), order="sorted")
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()


def workload_name(kind: str, group: str, name: str, uid: str = "") -> str:
    """The name that Kueue gives the Workload of an object.

    >>> workload_name("Job", "batch", "train")
    'job-train-e5b0e'
    """
    text = "\n".join((kind, group, name, uid)).encode()
    digest = hashlib.sha1(text, usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    return f"{kind.lower()}-{name}"[:_LONGEST_NAME] + f"-{digest}"


class WorkloadBuilder:
    """Builds Workloads, with uids that sort: of two that are equal in everything else, the lower one came first."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def build(
        self,
        name: str,
        uid: str,
        metadata: ObjectMeta,
        owners: list[OwnerReference],
        plans: Sequence[PodSetPlan],
        members: Mapping[str, Sequence[Pod]],
        pod_class: str = "",
    ) -> Workload:
        """Build the Workload of what `metadata` describes; `pod_class` is the PriorityClass that it names itself."""
        reference, priority = self._priority(metadata, plans, pod_class)
        reclaimable = [ReclaimablePod(name=plan.name, count=plan.reclaimable) for plan in plans if plan.reclaimable]
        created = metadata.creation_timestamp
        return Workload(
            metadata=ObjectMeta(
                name=name,
                namespace=metadata.namespace,
                uid=uid,
                creation_timestamp=created if timestamp_seconds(created) is not None else None,
                annotations=_handed_down(metadata.annotations),
                owner_references=owners,
            ),
            spec=WorkloadSpec(
                pod_sets=[_pod_set(plan, members.get(plan.name, ())) for plan in plans],
                queue_name=queue_name(metadata),
                priority_class_ref=reference,
                priority=priority,
                maximum_execution_time_seconds=positive_count((metadata.labels or {}).get(MAX_EXECUTION_SECONDS)),
            ),
            status=WorkloadStatus(reclaimable_pods=reclaimable or None),
        )

    def _priority(
        self, metadata: ObjectMeta, plans: Sequence[PodSetPlan], pod_class: str
    ) -> tuple[PriorityClassReference | None, int]:
        """A class of workloads before one of pods; the job's own word before that of its first pod set."""
        named = (metadata.labels or {}).get(PRIORITY_CLASS, DEFAULT_PRIORITY_CLASS)
        found = self._tables.workload_class(named)
        if found is not None:
            return PriorityClassReference(group=GROUP, kind="WorkloadPriorityClass", name=named), found.value
        specs = [plan.template.spec for plan in plans]
        given = next((spec for spec in specs if spec.priority_class_name), None)
        name = pod_class or (given.priority_class_name if given is not None else "")
        fallback = (given if given is not None else specs[0]).priority or 0
        if not name:
            return None, fallback
        reference = PriorityClassReference(group="scheduling.k8s.io", kind="PriorityClass", name=name)
        # A class that is not listed may still have left its value on the pods, as in a dump.
        known = self._tables.priorities.by_name.get(name)
        return reference, fallback if known is None else known.value


def _handed_down(annotations: Mapping[str, str] | None) -> dict[str, str] | None:
    return {
        key: value for key, value in (annotations or {}).items() if key.partition("/")[0].endswith(_HANDED_DOWN)
    } or None


def _pod_set(plan: PodSetPlan, pods: Sequence[Pod]) -> PodSet:
    return PodSet(
        name=plan.name,
        template=_with_limits(plan.template, pods),
        count=plan.count,
        min_count=plan.min_count,
        topology_request=topology_request(plan.template.metadata, plan),
    )


def _with_limits(template: PodTemplateSpec, pods: Sequence[Pod]) -> PodTemplateSpec:
    """Count what the pods really ask for: a namespace's limits may have filled in what the template leaves open."""
    if not pods or pods[0].spec.containers is template.spec.containers:
        return template
    pod = pods[0].spec
    return replace(
        template, spec=replace(template.spec, containers=pod.containers, init_containers=pod.init_containers)
    )


def latest_creation(found: Iterable[ObjectMeta]) -> str | None:
    """The time at which the last of several objects was created, as written; None if none says when."""
    times = ((timestamp_seconds(metadata.creation_timestamp), metadata.creation_timestamp) for metadata in found)
    return max(((seconds, text) for seconds, text in times if seconds is not None), default=(0.0, None))[1]
