"""matchLabelKeys and mismatchLabelKeys, merged into label selectors when a pod is created.

The pod's own label values stand in for the keys, so the merge depends on the pod. It never changes a shared spec: the
terms that change are copied, everything else is shared. Merging twice adds nothing.
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from mooring.model.api.meta import LabelSelector, LabelSelectorRequirement
from mooring.model.api.pods import Affinity, PodAffinity, PodAffinityTerm, PodSpec, TopologySpreadConstraint

_Term = TypeVar("_Term", PodAffinityTerm, TopologySpreadConstraint)


def label_keys(spec: PodSpec) -> frozenset[str]:
    """Tell which labels of the pod its selectors take values from; most pods have none."""
    if spec.topology_spread_constraints is None and spec.affinity is None:
        return frozenset()
    keys: set[str] = set()
    for constraint in spec.topology_spread_constraints or ():
        keys.update(constraint.match_label_keys or ())
    if spec.affinity is not None:
        for side in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            for term in _terms(side):
                keys.update(term.match_label_keys or ())
                keys.update(term.mismatch_label_keys or ())
    return frozenset(keys)


def merge_label_keys(spec: PodSpec, labels: Mapping[str, str]) -> PodSpec:
    """Return the spec with the pod's label values in its selectors; the spec itself where there is nothing to do."""
    if not label_keys(spec):
        return spec
    constraints = spec.topology_spread_constraints
    if constraints is not None:
        constraints = [_merge(constraint, constraint.match_label_keys, None, labels) for constraint in constraints]
    affinity = spec.affinity
    if affinity is not None:
        affinity = Affinity(
            node_affinity=affinity.node_affinity,
            pod_affinity=_merge_side(affinity.pod_affinity, labels),
            pod_anti_affinity=_merge_side(affinity.pod_anti_affinity, labels),
        )
    return replace(spec, topology_spread_constraints=constraints, affinity=affinity)


def _terms(side: PodAffinity | None) -> list[PodAffinityTerm]:
    if side is None:
        return []
    return [*(side.required or ()), *(weighted.pod_affinity_term for weighted in side.preferred or ())]


def _merge_side(side: PodAffinity | None, labels: Mapping[str, str]) -> PodAffinity | None:
    if side is None:
        return None
    required, preferred = side.required, side.preferred
    if required is not None:
        required = [_merge(term, term.match_label_keys, term.mismatch_label_keys, labels) for term in required]
    if preferred is not None:
        preferred = [
            replace(
                weighted,
                pod_affinity_term=_merge(
                    weighted.pod_affinity_term,
                    weighted.pod_affinity_term.match_label_keys,
                    weighted.pod_affinity_term.mismatch_label_keys,
                    labels,
                ),
            )
            for weighted in preferred
        ]
    return PodAffinity(required=required, preferred=preferred)


def _merge(term: _Term, same: list[str] | None, other: list[str] | None, labels: Mapping[str, str]) -> _Term:
    selector = term.label_selector
    if selector is None or not (same or other):
        return term
    expressions = list(selector.match_expressions or ())
    for keys, operator in ((same, "In"), (other, "NotIn")):
        for key in keys or ():
            requirement = LabelSelectorRequirement(key=key, operator=operator, values=[labels.get(key, "")])
            if key in labels and requirement not in expressions:
                expressions.append(requirement)
    return replace(
        term, label_selector=LabelSelector(match_labels=selector.match_labels, match_expressions=expressions or None)
    )
