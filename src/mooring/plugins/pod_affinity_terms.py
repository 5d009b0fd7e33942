"""Pod affinity terms, compiled: which namespaces and which labels a term selects."""

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.model.api.pods import Affinity, PodAffinity, PodAffinityTerm
from mooring.model.values.selectors import EVERYTHING, NOTHING, Selector, compile_label_selector
from mooring.state.shapes import Shape
from mooring.state.views import RelatedView


@dataclass(frozen=True, slots=True)
class Term:
    """One term: pods with these labels in these namespaces, counted by this topology key."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    weight: int = 1

    def matches(self, other: Shape, related: RelatedView) -> bool:
        if not self.selector.matches(other.selected_labels):
            return False
        if other.namespace in self.namespaces:
            return True
        return self.namespace_selector.matches(related.namespace_labels(other.namespace))

    def resolved(self, related: RelatedView) -> "Term":
        """With the namespace selector replaced by the names it selects now, as for a pod on its way."""
        if self.namespace_selector in (EVERYTHING, NOTHING):
            return self
        selected = {
            name
            for name, namespace in related.namespaces.items()
            if self.namespace_selector.matches(namespace.metadata.labels or {})
        }
        return Term(self.topology_key, self.selector, self.namespaces | selected, NOTHING, self.weight)


@dataclass(frozen=True, slots=True)
class Terms:
    """All pod affinity of one shape."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    """Preferred affinity with its weight, and preferred anti-affinity with its weight negated."""

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred)


NO_TERMS = Terms()


def compile_terms(shape: Shape) -> Terms:
    affinity: Affinity | None = shape.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    wanted, unwanted = affinity.pod_affinity, affinity.pod_anti_affinity
    return Terms(
        tuple(_compile(term, shape.namespace) for term in _required(wanted)),
        tuple(_compile(term, shape.namespace) for term in _required(unwanted)),
        (*_preferred(wanted, shape.namespace, 1), *_preferred(unwanted, shape.namespace, -1)),
    )


def _required(side: PodAffinity | None) -> Iterable[PodAffinityTerm]:
    return (side.required or ()) if side else ()


def _preferred(side: PodAffinity | None, namespace: str, sign: int) -> tuple[Term, ...]:
    return tuple(
        _compile(weighted.pod_affinity_term, namespace, sign * weighted.weight)
        for weighted in ((side.preferred or ()) if side else ())
    )


def _compile(term: PodAffinityTerm, namespace: str, weight: int = 1) -> Term:
    names = frozenset(term.namespaces or ())
    if not names and term.namespace_selector is None:
        names = frozenset((namespace,))
    return Term(
        term.topology_key,
        compile_label_selector(term.label_selector),
        names,
        compile_label_selector(term.namespace_selector),
        weight,
    )
