"""Workloads as the pods that their controllers would create.

Replicas are named as controllers name them, with a suffix that is the same each time, and share their template's spec
and labels: a hundred thousand of them cost little more than their names. What a cluster dump lists already is not
created again: a workload only gets the pods that it still lacks.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from mooring.model.api.kueue_labels import queue_name
from mooring.model.api.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.model.api.pods import ClaimVolumeSource, Pod, PodSpec, PodTemplateSpec, Volume
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.api.workloads import (
    CronJob,
    Deployment,
    Job,
    JobSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.model.jobs.label_keys import label_keys, merge_label_keys

TEMPLATE_HASH = "pod-template-hash"
POD_INDEX = "apps.kubernetes.io/pod-index"
POD_NAME = "statefulset.kubernetes.io/pod-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")

OwnerKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of a controller."""
Owned: TypeAlias = Mapping[OwnerKey, list[Any]]
"""What each controller owns already."""


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    return next((owner for owner in metadata.owner_references or () if owner.controller), None)


def index_owned(objects: Iterable[Any]) -> Owned:
    """Group objects by the controller that they name."""
    owned: defaultdict[OwnerKey, list[Any]] = defaultdict(list)
    for found in objects:
        if found.metadata.owner_references:
            owner = controller_of(found.metadata)
            if owner is not None:
                owned[owner.kind, found.metadata.namespace, owner.name].append(found)
    return owned


def owner_key(owner: Any) -> OwnerKey:
    return owner.kind, owner.metadata.namespace, owner.metadata.name


_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes draws suffixes from: nothing that could be read as a word or be mistaken."""
_SUFFIX_LENGTH = 5
_SUFFIXERS = ("ReplicaSet", "ReplicationController", "Job", "DaemonSet")
_SUFFIXES = len(_ALPHABET) ** _SUFFIX_LENGTH // len(_SUFFIXERS)
_STEP = 1_618_033
"""Has no divisor in common with the number of suffixes, so that they repeat only when all have been used."""


class PodNames:
    """Names as controllers make them, with suffixes that are the same each time: no lots are drawn here."""

    def __init__(self, owner: Any) -> None:
        metadata = owner.metadata
        self._base: str = metadata.name
        self._kind = _SUFFIXERS.index(owner.kind)  # owners of one name never make pods of one name
        above = controller_of(metadata)  # the run of a CronJob is no Job that happens to have its name
        text = f"{above.kind if above is not None else ''}/{owner.kind}/{metadata.namespace}/{metadata.name}"
        self._first = zlib.crc32(text.encode())

    def of(self, number: int, infix: str = "") -> str:
        """The name of one pod; `infix` comes before the suffix."""
        left = (self._first + number * _STEP) % _SUFFIXES * len(_SUFFIXERS) + self._kind
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            left, digit = divmod(left, len(_ALPHABET))
            suffix += _ALPHABET[digit]
        return f"{self._base}{infix}-{suffix}"


class Stamp:
    """Makes a workload's pods from its template, sharing everything that they have in common."""

    def __init__(self, owner: Any, template: PodTemplateSpec, labels: Mapping[str, str] | None = None) -> None:
        self._namespace: str = owner.metadata.namespace
        self._labels = {**(template.metadata.labels or {}), **(labels or {})} or None
        self._annotations = template.metadata.annotations
        self._owners = [
            OwnerReference(
                api_version=owner.api_version,
                kind=owner.kind,
                name=owner.metadata.name,
                uid=owner.metadata.uid,
                controller=True,
            )
        ]
        self._spec = template.spec
        self._label_keys = label_keys(template.spec)
        self._merged: dict[tuple[str | None, ...], PodSpec] = {}

    def pod(self, name: str, labels: Mapping[str, str] | None = None, spec: PodSpec | None = None) -> Pod:
        """Make one pod; `labels` are its own beside the template's, `spec` its own in place of the template's."""
        all_labels = {**(self._labels or {}), **labels} if labels else self._labels
        metadata = ObjectMeta(
            name=name,
            namespace=self._namespace,
            labels=all_labels,
            annotations=self._annotations,
            owner_references=self._owners,
        )
        return Pod(metadata=metadata, spec=self._merge(spec or self._spec, all_labels or {}))

    def _merge(self, spec: PodSpec, labels: Mapping[str, str]) -> PodSpec:
        if not self._label_keys:
            return spec
        if spec is not self._spec:
            return merge_label_keys(spec, labels)
        values = tuple(labels.get(key) for key in sorted(self._label_keys))
        if values not in self._merged:
            self._merged[values] = merge_label_keys(spec, labels)
        return self._merged[values]


def _safe(text: str) -> str:
    return "".join(_ALPHABET[ord(letter) % len(_ALPHABET)] for letter in text)


def replica_set_of(deployment: Deployment) -> ReplicaSet:
    """Make the ReplicaSet that a Deployment would create.

    Pods belong to it, not to the Deployment, and it is its selector that spreads them by default; the template's hash
    is the label that `matchLabelKeys: [pod-template-hash]` asks for.
    """
    template = deployment.spec.template
    encoded = msgspec.json.encode(template, order="sorted")
    text = (template.metadata.labels or {}).get(TEMPLATE_HASH) or _safe(str(zlib.crc32(encoded)))
    hashed = {TEMPLATE_HASH: text}
    metadata = deployment.metadata
    selector = deployment.spec.selector
    if selector is not None:
        selector = replace(selector, match_labels={**(selector.match_labels or {}), **hashed})
    labelled = replace(template.metadata, labels={**(template.metadata.labels or {}), **hashed})
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{metadata.name}-{text}",
            namespace=metadata.namespace,
            labels=labelled.labels,
            owner_references=[
                OwnerReference(
                    api_version=deployment.api_version,
                    kind=deployment.kind,
                    name=metadata.name,
                    uid=metadata.uid,
                    controller=True,
                )
            ],
        ),
        spec=replace(deployment.spec, template=replace(template, metadata=labelled), selector=selector),
    )


def expand_replicas(owner: ReplicaSet | ReplicationController, owned: Owned) -> list[Pod]:
    """Create the replicas that are missing."""
    present = [pod for pod in owned.get(owner_key(owner), ()) if not pod.is_terminal]
    replicas = 1 if owner.spec.replicas is None else owner.spec.replicas
    missing = replicas - len(present)
    if missing <= 0:
        return []
    stamp = Stamp(owner, owner.spec.template)
    names = PodNames(owner)
    taken = {pod.metadata.name for pod in present}
    # As many names again as are taken, so that enough are left whichever those are.
    free = (pod_name for i in range(missing + len(taken)) if (pod_name := names.of(i)) not in taken)
    return [stamp.pod(pod_name) for pod_name in islice(free, missing)]


def expand_stateful_set(owner: StatefulSet, owned: Owned) -> tuple[list[Pod], list[PersistentVolumeClaim]]:
    """Create the missing ordinals, and every ordinal's claims."""
    spec = owner.spec
    start = spec.ordinals.start if spec.ordinals else 0
    replicas = 1 if spec.replicas is None else spec.replicas
    present = {pod.metadata.name for pod in owned.get(owner_key(owner), ())}
    templates = spec.volume_claim_templates or []
    claim_labels = (spec.selector.match_labels if spec.selector else None) or {}
    stamp = Stamp(owner, spec.template)
    pods: list[Pod] = []
    claims: list[PersistentVolumeClaim] = []
    for ordinal in range(start, start + replicas):
        name = f"{owner.metadata.name}-{ordinal}"
        for template in templates:
            metadata = ObjectMeta(
                name=f"{template.metadata.name}-{name}",
                namespace=owner.metadata.namespace,
                labels={**(template.metadata.labels or {}), **claim_labels} or None,
                annotations=template.metadata.annotations,
            )
            claims.append(PersistentVolumeClaim(metadata=metadata, spec=replace(template.spec)))
        if name not in present:
            own = _with_claims(spec.template.spec, templates, name) if templates else None
            pods.append(stamp.pod(name, {POD_INDEX: str(ordinal), POD_NAME: name}, own))
    return pods, claims


def _with_claims(spec: PodSpec, templates: list[PersistentVolumeClaim], pod_name: str) -> PodSpec:
    names = {template.metadata.name for template in templates}
    volumes = [
        Volume(name=name, persistent_volume_claim=ClaimVolumeSource(claim_name=f"{name}-{pod_name}"))
        for name in sorted(names)
    ]
    return replace(spec, volumes=[volume for volume in spec.volumes or () if volume.name not in names] + volumes)


def is_job_over(owner: Job) -> bool:
    return any(
        condition.type in ("Complete", "Failed") and condition.status == "True"
        for condition in owner.status.conditions or ()
    )


def job_pod_count(spec: JobSpec) -> int:
    """How many pods a Job runs at once while most of its workload is still to be done."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def expand_job(owner: Job, owned: Owned) -> list[Pod]:
    """Create the pods that a Job runs at once, as far as it lacks them; one that is suspended or over creates none.

    Who queues is suspended until its turn comes, but its pods are made: they are what waits.
    """
    spec = owner.spec
    is_suspended = spec.suspend and not queue_name(owner.metadata)
    if is_suspended or is_job_over(owner):
        return []
    given = [pod for pod in owned.get(owner_key(owner), ()) if isinstance(pod, Pod)]
    running = [pod for pod in given if not pod.is_terminal]
    succeeded = [pod for pod in given if pod.status.phase == "Succeeded"]
    count = job_pod_count(spec) - len(running)
    name = owner.metadata.name
    stamp, names = Stamp(owner, spec.template, dict.fromkeys(JOB_NAMES, name)), PodNames(owner)
    if spec.completion_mode == "Indexed":
        done = _completed_indexes(owner.status.completed_indexes, spec.completions or 0)
        taken = done | {_completion_index(pod) for pod in (*running, *succeeded)}
        left = (index for index in range(spec.completions or 0) if index not in taken)
        return [
            stamp.pod(names.of(index, f"-{index}"), {COMPLETION_INDEX: str(index)})
            for index in islice(left, max(0, count))
        ]
    if spec.completions is not None:
        done_count = max(owner.status.succeeded, len(succeeded))
        count = min(count, spec.completions - done_count - len(running))
    elif succeeded or owner.status.succeeded:
        return []  # its pods share the workload, and one has seen that there is no more
    known = {pod.metadata.name for pod in given}
    free = (pod_name for i in range(max(0, count) + len(known)) if (pod_name := names.of(i)) not in known)
    return [stamp.pod(pod_name) for pod_name in islice(free, max(0, count))]


def _completion_index(pod: Pod) -> int | None:
    """Which part of an Indexed Job a pod does, by its label, else its annotation, else the number in its name."""
    metadata = pod.metadata
    texts = (metadata.labels or {}).get(COMPLETION_INDEX), (metadata.annotations or {}).get(COMPLETION_INDEX)
    found = next((text for text in texts if text), metadata.name.rpartition("-")[2])
    return int(found) if found.isdigit() else None


def _completed_indexes(text: str, completions: int) -> set[int]:
    """Read the indexes that are done, such as `0-2,5`; what cannot be read is taken as not done."""
    done: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            done.update(range(int(first), min(int(last or first) + 1, completions)))
    return done


def job_of(owner: CronJob) -> Job:
    """Make the Job of one run, with the CronJob's name: which run it is does not matter to where it goes."""
    template = owner.spec.job_template
    spec = replace(template.spec, suspend=template.spec.suspend or owner.spec.suspend)
    reference = OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )
    metadata = replace(
        template.metadata,
        name=owner.metadata.name,
        namespace=owner.metadata.namespace,
        owner_references=[reference],
    )
    return Job(metadata=metadata, spec=spec)


def template_of(found: KubeObject) -> PodTemplateSpec | None:
    """Return the pod template inside a workload, if it is one."""
    if isinstance(found, CronJob):
        return found.spec.job_template.spec.template
    template = getattr(getattr(found, "spec", None), "template", None)
    return template if isinstance(template, PodTemplateSpec) else None
