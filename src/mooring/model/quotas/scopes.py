"""The scopes of a quota: which pods and claims it is about."""

from dataclasses import dataclass

from mooring.model.api.meta import Resources
from mooring.model.api.pods import PodAffinity, PodSpec
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.objects import ResourceQuotaSpec
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import CPU, MEMORY
from mooring.model.values.selectors import Requirement

TERMINATING, NOT_TERMINATING = "Terminating", "NotTerminating"
BEST_EFFORT, NOT_BEST_EFFORT = "BestEffort", "NotBestEffort"
PRIORITY_CLASS = "PriorityClass"
CROSS_NAMESPACE = "CrossNamespacePodAffinity"
VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"

SCOPES = (
    TERMINATING,
    NOT_TERMINATING,
    BEST_EFFORT,
    NOT_BEST_EFFORT,
    PRIORITY_CLASS,
    CROSS_NAMESPACE,
    VOLUME_ATTRIBUTES_CLASS,
)

Scopes = tuple[Requirement, ...]
"""Each scope as a requirement on a label of its name; all of them must hold."""


def compile_scopes(spec: ResourceQuotaSpec) -> Scopes:
    """Join `scopes`, which ask that a scope exists, and the expressions of `scopeSelector`."""
    selector = spec.scope_selector
    expressions = (selector.match_expressions if selector else None) or ()
    return (
        *(Requirement(scope, "Exists") for scope in spec.scopes or ()),
        *(Requirement(found.scope_name, found.operator, frozenset(found.values or ())) for found in expressions),
    )


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What scopes ask about a pod."""

    is_terminating: bool
    """It ends by itself, having an activeDeadlineSeconds; nothing to do with being deleted."""
    is_best_effort: bool
    priority_class: str
    crosses_namespaces: bool

    def is_in(self, scopes: Scopes) -> bool:
        return all(self._is_in_one(scope) for scope in scopes)

    def _is_in_one(self, scope: Requirement) -> bool:
        if scope.key == PRIORITY_CLASS:
            return scope.matches({PRIORITY_CLASS: self.priority_class} if self.priority_class else {})
        answers = {
            TERMINATING: self.is_terminating,
            NOT_TERMINATING: not self.is_terminating,
            BEST_EFFORT: self.is_best_effort,
            NOT_BEST_EFFORT: not self.is_best_effort,
            CROSS_NAMESPACE: self.crosses_namespaces,
        }
        return answers.get(scope.key, False)


def pod_facts(spec: PodSpec) -> PodFacts:
    affinity = spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return PodFacts(
        is_terminating=spec.active_deadline_seconds is not None and spec.active_deadline_seconds >= 0,
        is_best_effort=_is_best_effort(spec),
        priority_class=spec.priority_class_name,
        crosses_namespaces=any(side is not None and _crosses_namespaces(side) for side in sides),
    )


def has_pod_level_resources(spec: PodSpec) -> bool:
    """Tell whether a pod says for itself as a whole what it needs (KEP-2837)."""
    resources = spec.resources
    return resources is not None and any(
        is_pod_level(name) for named in (resources.requests, resources.limits) for name in named or ()
    )


def is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _is_best_effort(spec: PodSpec) -> bool:
    """A pod that asks for no CPU and no memory, neither by request nor by limit."""
    if has_pod_level_resources(spec):
        given = [spec.resources]
    else:
        given = [container.resources for container in (*spec.containers, *(spec.init_containers or ()))]
    return not any(
        _has_compute(resources.requests) or _has_compute(resources.limits) for resources in given if resources
    )


def _has_compute(resources: Resources | None) -> bool:
    return any(name in (CPU, MEMORY) and parse_quantity(text) > 0 for name, text in (resources or {}).items())


def _crosses_namespaces(affinity: PodAffinity) -> bool:
    terms = [*(affinity.required or ()), *(found.pod_affinity_term for found in affinity.preferred or ())]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


def claim_is_in(claim: PersistentVolumeClaim, scopes: Scopes) -> bool:
    """Claims know one scope: the attributes classes that they have, had, or are to get."""
    change = claim.status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        change.target_volume_attributes_class_name if change else None,
    )
    labels: list[dict[str, str]] = [{VOLUME_ATTRIBUTES_CLASS: name} for name in names if name] or [{}]
    return all(
        scope.key == VOLUME_ATTRIBUTES_CLASS and any(scope.matches(found) for found in labels) for scope in scopes
    )
