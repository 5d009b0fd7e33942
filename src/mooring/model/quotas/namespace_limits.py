"""The LimitRanges of one namespace: defaults for containers that leave something out, bounds for pods and claims.

As in the API server, all LimitRanges first give their defaults, each to what is still missing; then the pod must be
valid; then it must be within the bounds of each LimitRange, and the first that objects is quoted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.model.api.meta import Resources
from mooring.model.api.pods import Container, Pod, PodSpec, ResourceRequirements
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.amounts import Amounts, read_amounts
from mooring.model.quotas.by_spec import MOST_KEPT, BySpec
from mooring.model.quotas.limit_items import LimitItem, read_item
from mooring.model.quotas.objects import CLAIM, CONTAINER, POD, LimitRange
from mooring.model.quotas.pod_usage import total_of_containers
from mooring.model.quotas.pod_validity import pod_faults
from mooring.model.quotas.refusals import LIMIT_RANGER, Refusal, forbid, join_faults, object_key
from mooring.model.values.requests import CPU, MEMORY

ANNOTATION = "kubernetes.io/limit-ranger"


@dataclass(frozen=True, slots=True)
class _Limited:
    """What becomes of all pods with equal containers."""

    containers: list[Container]
    init_containers: list[Container] | None
    note: str
    """Which defaults were given; empty if none."""
    invalid: str
    forbidden: str


class NamespaceLimits:
    """What one namespace's LimitRanges make of pods and claims, and which they refuse."""

    def __init__(self, ranges: Iterable[LimitRange]) -> None:
        self._ranges = [[read_item(item) for item in found.spec.limits] for found in ranges]
        about_claims = [[item for item in items if item.type == CLAIM] for items in self._ranges]
        self._claim_items = [items for items in about_claims if items]
        self._limited = BySpec(self._work_out)
        self._changed: dict[int, tuple[PodSpec, PodSpec]] = {}
        self._annotations: dict[tuple[int, str], tuple[dict[str, str] | None, dict[str, str]]] = {}

    def admit(self, pod: Pod) -> Refusal | None:
        """Give a pod its defaults, in a spec that equal pods share; return why it is refused, if it is."""
        limited = self._limited.of(pod.spec)
        if limited.note:
            pod.spec = self._change(pod.spec, limited)
            pod.metadata.annotations = self._annotate(pod.metadata.annotations, limited.note)
        if limited.invalid:
            message = f'Pod "{pod.metadata.name}" is invalid: {limited.invalid}'
            return Refusal(object_key(pod), message, f"invalid: {limited.invalid}", LIMIT_RANGER, pod)
        return forbid(pod, limited.forbidden, LIMIT_RANGER) if limited.forbidden else None

    def admit_claim(self, claim: PersistentVolumeClaim) -> Refusal | None:
        """Return why a claim is refused, if it is; claims get no defaults."""
        if not self._claim_items:
            return None
        requests = read_amounts(claim.spec.resources.requests if claim.spec.resources else None)
        for items in self._claim_items:
            faults = [fault for item in items for fault in item.faults_of_requests(requests)]
            if faults:
                return forbid(claim, join_faults(faults), LIMIT_RANGER)
        return None

    def _work_out(self, spec: PodSpec) -> _Limited:
        note = ""
        containers, init_containers = spec.containers, spec.init_containers
        for items in self._ranges:
            notes: list[str] = []
            containers = _with_defaults(containers, items, "container", notes)
            if init_containers:
                init_containers = _with_defaults(init_containers, items, "init container", notes)
            if notes:
                note = f"LimitRanger plugin set: {'; '.join(notes)}"
        changed = replace(spec, containers=containers, init_containers=init_containers)
        faults = pod_faults(changed) if note else []
        return _Limited(
            containers, init_containers, note, join_faults(faults) if faults else "", self._objection(changed)
        )

    def _objection(self, spec: PodSpec) -> str:
        for items in self._ranges:
            faults = [fault for item in items for fault in _faults(item, spec)]
            if faults:
                return join_faults(faults)
        return ""

    def _change(self, spec: PodSpec, limited: _Limited) -> PodSpec:
        known = self._changed.get(id(spec))
        if known is None:
            changed = replace(spec, containers=limited.containers, init_containers=limited.init_containers)
            if len(self._changed) >= MOST_KEPT:
                self._changed.clear()
            known = self._changed[id(spec)] = spec, changed
        return known[1]

    def _annotate(self, annotations: dict[str, str] | None, note: str) -> dict[str, str]:
        known = self._annotations.get((id(annotations), note))
        if known is None:
            if len(self._annotations) >= MOST_KEPT:
                self._annotations.clear()
            changed = {**(annotations or {}), ANNOTATION: note}
            known = self._annotations[id(annotations), note] = annotations, changed
        return known[1]


def _faults(item: LimitItem, spec: PodSpec) -> list[str]:
    if item.type == POD:
        return list(item.faults(_whole(spec, limits=False), _whole(spec, limits=True)))
    if item.type != CONTAINER:
        return []
    found: list[str] = []
    for container in (*spec.containers, *(spec.init_containers or ())):
        resources = container.resources or ResourceRequirements()
        found += item.faults(read_amounts(resources.requests), read_amounts(resources.limits))
    return found


def _whole(spec: PodSpec, *, limits: bool) -> Amounts:
    """What the containers of a pod have together, or the pod says for itself; overhead is not looked at."""
    total = total_of_containers(spec, limits=limits)
    resources = spec.resources or ResourceRequirements()
    stated = read_amounts(resources.limits if limits else resources.requests)
    return {**total, **{name: amount for name, amount in stated.items() if name in (CPU, MEMORY)}}


def _with_defaults(
    containers: list[Container], items: Sequence[LimitItem], title: str, notes: list[str]
) -> list[Container]:
    """Fill in what containers leave out; the same list where nothing is missing."""
    limits: Amounts = {}
    requests: Amounts = {}
    for item in items:
        if item.type == CONTAINER:
            limits |= item.default_limits
            requests |= item.default_requests
    found = [_filled(container, requests, limits, title, notes) for container in containers]
    return found if any(new is not old for new, old in zip(found, containers, strict=True)) else containers


def _filled(container: Container, requests: Amounts, limits: Amounts, title: str, notes: list[str]) -> Container:
    resources = container.resources or ResourceRequirements()
    more_requests = _missing(resources.requests, requests)
    more_limits = _missing(resources.limits, limits)
    for more, what in ((more_requests, "request"), (more_limits, "limit")):
        if more:
            notes.append(f"{', '.join(sorted(more))} {what} for {title} {container.name}")
    if not more_requests and not more_limits:
        return container
    filled = replace(
        resources,
        requests={**(resources.requests or {}), **more_requests} or None,
        limits={**(resources.limits or {}), **more_limits} or None,
    )
    return replace(container, resources=filled)


def _missing(given: Resources | None, defaults: Amounts) -> Resources:
    return {name: str(amount) for name, amount in defaults.items() if name not in (given or {})}
