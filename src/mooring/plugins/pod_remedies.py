"""What would let a pod come among others: which pods to stop or move, which to run, how much skew to allow."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.model.values.selectors import EVERYTHING, Requirement, Selector
from mooring.plugins.domain_counts import DomainCount
from mooring.plugins.pod_affinity_terms import Term, Terms, compile_terms
from mooring.plugins.spread_constraints import HARD, Constraint, own_constraints
from mooring.state.nodes import MISSING
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView

MOST_CHANGES = 8
"""How many sets of pods to stop are proposed, those that open most nodes first."""
MOST_NAMED = 8
"""Pods that one change names."""

Remedies = Iterator[tuple[str, NDArray[np.intp]]]


# Pods that keep it out.


def stop_unwanted(
    pod: Shape,
    cluster: ClusterView,
    nodes: NodeRows,
    unwanted: Sequence[DomainCount],
    wanted: Sequence[DomainCount],
    among: Iterable[int],
) -> Remedies:
    """Stop or move the pods that anti-affinity speaks of, its own or theirs: of those positions that it alone refuses.

    Nothing is proposed where the same pods are those that it wants to be near, or to be spread among.
    """
    in_domain = _PodsByDomain(cluster)
    spread = _spread_selectors(pod)
    by_pods: dict[frozenset[str], list[int]] = {}
    for position in among:
        row = int(nodes.index[position])
        blocking = {record.key: record.shape for part in unwanted for record in in_domain.of(part, row)}
        matters = any(part.effects.of(shape.id) for part in wanted for shape in blocking.values())
        if not matters and not any(_is_counted(shape, pod, spread) for shape in blocking.values()):
            by_pods.setdefault(frozenset(blocking), []).append(position)
    few = sorted(by_pods, key=lambda pods: (len(pods), -len(by_pods[pods]), sorted(pods)))[:MOST_CHANGES]
    for pods in few:
        opened = [position for other in few if other <= pods for position in by_pods[other]]
        yield f"stop or move {_named(pods)}", np.array(sorted(opened), np.intp)


def _spread_selectors(pod: Shape) -> list[Selector]:
    return [constraint.selector for constraint in own_constraints(pod, HARD)]


def _is_counted(other: Shape, pod: Shape, selectors: Iterable[Selector]) -> bool:
    return other.namespace == pod.namespace and any(found.matches(other.selected_labels) for found in selectors)


class _PodsByDomain:
    """Pods that count in the domains of topology keys, found once a domain."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._known: dict[tuple[int, int], list[PodView]] = {}

    def of(self, part: DomainCount, row: int) -> list[PodView]:
        """Those that count in a row's domain."""
        codes = self._cluster.domain_codes(part.key)
        code = int(codes[row])
        if code == MISSING:
            return []
        known = self._known.get((id(part), code))
        if known is None:
            rows = np.flatnonzero(codes[: self._cluster.end] == code).tolist()
            known = self._known[id(part), code] = [
                record for found in rows for record in self._cluster.pods_on(found) if part.effects.of(record.shape.id)
            ]
        return known


def _named(pods: Collection[str]) -> str:
    names = sorted(pods)
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


# Pods that it wants to be near.


def run_wanted(pod: Shape, terms: Terms, among: NDArray[np.intp]) -> Remedies:
    """Run a pod that required affinity asks for: one that all terms speak of, and that it neither avoids nor counts."""
    labels = _labels_for([term.selector for term in terms.affinity])
    namespace = _namespace_for(terms.affinity, pod.namespace)
    if labels is None or namespace is None or not len(among):
        return
    if any(term.selector.matches(labels) and _is_in(term, namespace) for term in terms.anti_affinity):
        return
    if namespace == pod.namespace and any(found.matches(labels) for found in _spread_selectors(pod)):
        return
    keys = list(dict.fromkeys(term.topology_key for term in terms.affinity))
    with_labels = f"a pod with {', '.join(f'{key}={value}' for key, value in labels.items())}" if labels else "any pod"
    elsewhere = "" if namespace == pod.namespace else f" in namespace {namespace}"
    yield f"run {with_labels}{elsewhere} in the node's {' and '.join(keys)}", among


def _labels_for(selectors: Sequence[Selector]) -> dict[str, str] | None:
    """Labels that all selectors match, as few as possible; None if there are none."""
    allowed: dict[str, set[str]] = {}
    barred: dict[str, set[str]] = {}
    needed: list[str] = []
    for found in (found for selector in selectors for found in selector.requirements):
        if found.operator == "In":
            allowed[found.key] = allowed.get(found.key, set(found.values)) & found.values
        elif found.operator == "NotIn":
            barred.setdefault(found.key, set()).update(found.values)
        elif found.operator == "Exists":
            needed.append(found.key)
    labels: dict[str, str] = {}
    for key, values in allowed.items():
        labels[key] = min(values - barred.get(key, set()), default="")
    for key in needed:
        labels.setdefault(key, "any")
    return labels if all(selector.matches(labels) for selector in selectors) else None


def _namespace_for(terms: Sequence[Term], own: str) -> str | None:
    """A namespace that all terms speak of, rather its own; None if there is none."""
    named = sorted({name for term in terms for name in term.namespaces})
    return next((name for name in (own, *named) if all(_is_in(term, name) for term in terms)), None)


def _is_in(term: Term, namespace: str) -> bool:
    return namespace in term.namespaces or term.namespace_selector == EVERYTHING


# Pods to spread among.


def lessen_skew(pod: Shape, constraint: Constraint, skews: NDArray[np.int64], positions: NDArray[np.intp]) -> Remedies:
    """Allow more skew, or stop some of those that are counted in a domain that has too many.

    They are not to be stopped for a pod that has to be near some pod: it may be one of them.
    """
    key = constraint.topology_key
    steps = np.unique(skews).tolist()
    for skew in dict.fromkeys((*steps[:1], *steps[-1:])):
        yield f"raise maxSkew of {key} to {skew}", positions[skews <= skew]
    if compile_terms(pod).affinity:
        return
    whom = f"the pods with {selector_text(constraint.selector)}"
    for skew in steps[:MOST_CHANGES]:
        change = f"stop or move {skew - constraint.max_skew} of {whom} in the node's {key}"
        yield change, positions[skews == skew]


def selector_text(selector: Selector) -> str:
    """A selector as kubectl takes one: `app=web,tier in (a,b),!canary`."""
    return ",".join(_requirement_text(found) for found in selector.requirements) or "any labels"


def _requirement_text(found: Requirement) -> str:
    values = sorted(found.values)
    match found.operator:
        case "In" if len(values) == 1:
            return f"{found.key}={values[0]}"
        case "In":
            return f"{found.key} in ({','.join(values)})"
        case "NotIn":
            return f"{found.key} notin ({','.join(values)})"
        case "Exists":
            return found.key
        case _:
            return f"!{found.key}"
