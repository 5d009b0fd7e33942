"""Node selectors and node affinity, the pod's own and what the profile adds to every pod."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import (
    SKIP,
    Change,
    Codes,
    Depends,
    Mask,
    PreFilter,
    PreScore,
    Scores,
    Skip,
    normalize_by_highest,
)
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.model.api.pods import NodeAffinity as NodeAffinitySpec
from mooring.model.values.selectors import (
    EVERYTHING,
    NodeTerm,
    Selector,
    compile_equality,
    compile_node_selector,
    compile_node_term,
)
from mooring.plugins.node_matching import match_selector, match_term, match_terms
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

NOT_ENFORCED, NOT_MATCHED = 1, 2


class NodeAffinityArgs(KubeObject, forbid_unknown_fields=True):
    """NodeAffinityArgs of KubeSchedulerConfiguration."""

    api_version: str = ""
    kind: str = ""
    added_affinity: NodeAffinitySpec | None = None


@dataclass(frozen=True, slots=True)
class RequiredNodes:
    """Which nodes a pod allows: its node selector and its required terms."""

    selector: Selector
    terms: tuple[NodeTerm, ...] | None

    def match(self, nodes: NodeRows) -> Mask:
        mask = match_selector(nodes, self.selector)
        return mask if self.terms is None else mask & match_terms(nodes, self.terms)


def required_nodes(pod: Shape) -> RequiredNodes | None:
    """Compile what a pod requires of its node; None if it requires nothing."""
    selector = pod.spec.node_selector
    affinity = pod.affinity.node_affinity if pod.affinity else None
    required = affinity.required if affinity else None
    if not selector and required is None:
        return None
    return RequiredNodes(
        compile_equality(selector) if selector else EVERYTHING,
        None if required is None else compile_node_selector(required),
    )


WeightedTerm = tuple[int, NodeTerm]


class NodeAffinity(PreFilter, PreScore):
    depends_on = Depends.NODE
    helped_by = Change.NODE
    args_type = NodeAffinityArgs
    skip_is_settled = True
    reads = frozenset(("node_affinity",))
    unresolvable = True
    normalizes = True

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        super().__init__(args)
        added = self.args.added_affinity
        self._enforced = None if added is None or added.required is None else compile_node_selector(added.required)
        self._added_preferred = list(_weighted_terms(added))

    def narrow(self, pod: Shape) -> frozenset[str] | Rejection | None:
        affinity = pod.affinity.node_affinity if pod.affinity else None
        if affinity is None or affinity.required is None:
            return None
        names: set[str] = set()
        terms = affinity.required.node_selector_terms
        for term in terms:
            by_name = [f for f in term.match_fields or () if f.key == "metadata.name" and f.operator == "In"]
            if not by_name:
                return None
            names |= set.intersection(*(set(field.values or ()) for field in by_name))
        if not terms:
            return None
        return frozenset(names) if names else Rejection(("pod affinity terms conflict",), unresolvable=True)

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> RequiredNodes | Skip | None:
        required = required_nodes(pod)
        return SKIP if required is None and self._enforced is None else required

    def filter(self, pod: Shape, nodes: NodeRows, prepared: RequiredNodes | None) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        if prepared is not None:
            codes[~prepared.match(nodes)] = NOT_MATCHED
        if self._enforced is not None:
            codes[~match_terms(nodes, self._enforced)] = NOT_ENFORCED
        return codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        if code == NOT_ENFORCED:
            return Rejection(("node(s) didn't match scheduler-enforced node affinity",), unresolvable=True)
        return Rejection(("node(s) didn't match Pod's node affinity/selector",), unresolvable=True)

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> list[WeightedTerm] | Skip:
        own = pod.affinity.node_affinity if pod.affinity else None
        terms = [*_weighted_terms(own), *self._added_preferred]
        return terms or SKIP

    def score(self, pod: Shape, nodes: NodeRows, prepared: list[WeightedTerm]) -> Scores:
        scores = np.zeros(len(nodes), np.int64)
        for weight, term in prepared:
            scores[match_term(nodes, term)] += weight
        return scores

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest)

    def remedies(
        self, pod: Shape, nodes: NodeRows, prepared: RequiredNodes | None
    ) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """One label opens the nodes on which only that part of the selector, or of the only term, fails."""
        if prepared is None or (prepared.terms is not None and len(prepared.terms) != 1):
            return
        term = prepared.terms[0] if prepared.terms else None
        requirements = list(prepared.selector.requirements) + (list(term.labels.requirements) if term else [])
        if term is not None and term.names:
            return
        failed = np.array([~match_selector(nodes, Selector((r,))) for r in requirements])
        single = failed.sum(axis=0) == 1
        if self._enforced is not None:
            single &= match_terms(nodes, self._enforced)
        for requirement, missed in zip(requirements, failed, strict=True):
            positions = np.flatnonzero(missed & single)
            if len(positions):
                values = " ".join(sorted(requirement.values))
                yield f"label the node so that {requirement.key} {requirement.operator} [{values}] holds", positions


def _weighted_terms(affinity: NodeAffinitySpec | None) -> Iterator[WeightedTerm]:
    for preferred in (affinity.preferred or ()) if affinity else ():
        term = compile_node_term(preferred.preference)
        if preferred.weight and not term.is_empty:
            yield preferred.weight, term
