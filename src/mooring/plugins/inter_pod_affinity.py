"""Pods near pods, and pods away from pods, required and preferred, in both directions."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from mooring.engine.asking import FEW
from mooring.engine.plugin import MAX_SCORE, SKIP, Codes, Depends, Mask, PreScore, Scores, Skip
from mooring.engine.shortcuts import Gone, QuickMask, Reliance, SpoiledByOthers, SupposingFilter
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.plugins.domain_counts import Counted, DomainCount
from mooring.plugins.pod_affinity_terms import Term, Terms, compile_terms
from mooring.plugins.pod_remedies import run_wanted, stop_unwanted
from mooring.plugins.resource_scoring import Problem
from mooring.state.effects import Among
from mooring.state.nodes import MISSING
from mooring.state.pods import PodRows
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, GuardedPod

NO_AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY = 1, 2, 3
REASONS = {
    NO_AFFINITY: Rejection(("node(s) didn't match pod affinity rules",), unresolvable=True),
    ANTI_AFFINITY: Rejection(("node(s) didn't match pod anti-affinity rules",)),
    EXISTING_ANTI_AFFINITY: Rejection(("node(s) didn't satisfy existing pods anti-affinity rules",)),
}


class InterPodAffinityArgs(KubeObject, forbid_unknown_fields=True):
    """InterPodAffinityArgs of KubeSchedulerConfiguration."""

    api_version: str = ""
    kind: str = ""
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self) -> Iterator[Problem]:
        if not 0 <= self.hard_pod_affinity_weight <= 100:
            yield "hardPodAffinityWeight", "a whole number from 0 to 100", str(self.hard_pod_affinity_weight)


class TermsOfShapes:
    """Compiled terms by shape id: compiled once, asked for many pairs of shapes."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Shape, Terms]] = {}
        self.anti_affinity_keys: dict[str, None] = {}
        """The topology keys of all required anti-affinity, and of all else that counts for scores."""
        self.preferred_keys: dict[str, None] = {}
        self.affinity_keys: dict[str, None] = {}
        self._read = 0
        self._epoch = -1

    def catch_up(self, cluster: ClusterView) -> None:
        """Note the topology keys of the shapes that appeared."""
        if self._epoch != cluster.shapes_epoch:
            self._epoch, self._read = cluster.shapes_epoch, 0
            for known in (self.known, self.anti_affinity_keys, self.preferred_keys, self.affinity_keys):
                known.clear()
        shapes = cluster.shapes_with_pod_affinity
        for shape in shapes[self._read :]:
            terms = self.of(shape)
            self.anti_affinity_keys |= dict.fromkeys(term.topology_key for term in terms.anti_affinity)
            self.preferred_keys |= dict.fromkeys(term.topology_key for term in terms.preferred)
            self.affinity_keys |= dict.fromkeys(term.topology_key for term in terms.affinity)
        self._read = len(shapes)

    def of(self, shape: Shape) -> Terms:
        known = self.known.get(shape.id)
        if known is None or known[0] is not shape:  # ids are given again
            known = self.known[shape.id] = shape, compile_terms(shape)
        return known[1]


class RequiredCounts(Counted):
    """The pods that required terms speak of, by domain: the three sets of kube-scheduler's PreFilter."""

    def __init__(
        self,
        affinity: list[DomainCount],
        anti_affinity: list[DomainCount],
        existing: list[DomainCount],
        matches_itself: bool,
    ) -> None:
        super().__init__([*affinity, *anti_affinity, *existing])
        self.affinity, self.anti_affinity, self.existing = affinity, anti_affinity, existing
        self.unwanted = [*anti_affinity, *existing]
        self.matches_itself = matches_itself
        self.topology_keys = tuple(dict.fromkeys(part.key for part in self.parts))

    @property
    def is_local(self) -> bool:
        """The first pod of its kind opens its domain and closes all others; after it, domains are on their own."""
        return not (self.matches_itself and self.affinity) or not self.is_first_of_its_kind

    @property
    def is_first_of_its_kind(self) -> bool:
        """No pod that the affinity asks for runs anywhere, and the pod is one itself: it may be the first."""
        return self.matches_itself and not any(part.counts.any() for part in self.affinity)


class InterPodAffinity(SupposingFilter, SpoiledByOthers, QuickMask, PreScore):
    depends_on = Depends.PODS | Depends.NODE | Depends.RELATED
    args_type = InterPodAffinityArgs
    skip_is_settled = True
    normalizes = True

    def __init__(self, args: InterPodAffinityArgs | None = None) -> None:
        super().__init__(args)
        self._terms = TermsOfShapes()
        self._terms_of_cluster: weakref.ref[ClusterView] | None = None

    def _terms_in(self, cluster: ClusterView) -> TermsOfShapes:
        # Shape ids mean something within one cluster only; and a new cluster may get the id() of one that is gone.
        if self._terms_of_cluster is None or self._terms_of_cluster() is not cluster:
            self._terms, self._terms_of_cluster = TermsOfShapes(), weakref.ref(cluster)
        self._terms.catch_up(cluster)
        return self._terms

    # Filter.

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> RequiredCounts | Skip:
        related, terms_of = cluster.related, self._terms_in(cluster)
        own = terms_of.of(pod)
        wanted = tuple(term.resolved(related) for term in own.affinity)
        unwanted = tuple(term.resolved(related) for term in own.anti_affinity)

        among = _selected_by(cluster, wanted[:1])
        in_all = cluster.effects(("in all", wanted), partial(_is_in_all, wanted, cluster), among)
        affinity = [DomainCount(cluster, term.topology_key, in_all) for term in wanted]
        anti_affinity = [
            DomainCount(
                cluster,
                term.topology_key,
                cluster.effects(("in", term), partial(_is_in_all, (term,), cluster), _selected_by(cluster, (term,))),
            )
            for term in unwanted
        ]
        existing = []
        for key in terms_of.anti_affinity_keys:
            against = partial(_anti_terms_against, pod, cluster, terms_of, key)
            speaking = partial(cluster.shapes_speaking_of, pod)
            effects = cluster.effects(("against", pod.as_selected, key), against, speaking)
            if effects.any:
                existing.append(DomainCount(cluster, key, effects))
        if not (affinity or anti_affinity or existing):
            return SKIP
        matches_itself = all(term.matches(pod, related) for term in wanted)
        return RequiredCounts(affinity, anti_affinity, existing, matches_itself)

    def passes(self, pod: Shape, nodes: NodeRows, prepared: RequiredCounts) -> Mask:
        unwanted, may_be_first = prepared.unwanted, prepared.is_first_of_its_kind
        if len(nodes) == 1 and not prepared.affinity:
            row = nodes.index.item()
            return np.array([not any(part.of_row(row) > 0 for part in unwanted)])
        passed: Mask = np.ones(len(nodes), np.bool_)
        for part in unwanted:
            passed &= part.of(nodes) <= 0
        for part in prepared.affinity:
            passed &= (nodes.label_codes(part.key) != MISSING) if may_be_first else (part.of(nodes) > 0)
        return passed

    def filter(self, pod: Shape, nodes: NodeRows, prepared: RequiredCounts) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        for part in prepared.existing:
            codes[part.of(nodes) > 0] = EXISTING_ANTI_AFFINITY
        for part in prepared.anti_affinity:
            codes[part.of(nodes) > 0] = ANTI_AFFINITY
        may_be_first = prepared.is_first_of_its_kind
        for part in prepared.affinity:
            domains = nodes.label_codes(part.key)
            codes[(domains == MISSING) if may_be_first else (part.at(domains) <= 0)] = NO_AFFINITY
        return codes

    def filter_without(self, pod: Shape, nodes: NodeRows, prepared: RequiredCounts, gone: Gone) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        for part in prepared.existing:
            codes[part.of(nodes) - part.lost_by(nodes, gone) > 0] = EXISTING_ANTI_AFFINITY
        for part in prepared.anti_affinity:
            codes[part.of(nodes) - part.lost_by(nodes, gone) > 0] = ANTI_AFFINITY
        lost = [part.lost_by(nodes, gone) for part in prepared.affinity]
        may_be_first = np.full(len(nodes), prepared.matches_itself)
        for part, less in zip(prepared.affinity, lost, strict=True):
            may_be_first &= part.counts.sum() <= less
        for part, less in zip(prepared.affinity, lost, strict=True):
            domains = nodes.label_codes(part.key)
            codes[np.where(may_be_first, domains == MISSING, part.at(domains) <= less)] = NO_AFFINITY
        return codes

    def relies_on(self, held: GuardedPod, cluster: ClusterView) -> list[Reliance] | None:
        if not self._terms_in(cluster).of(held.shape).affinity:
            return None
        prepared = self.pre_filter(held.shape, cluster)
        if not isinstance(prepared, RequiredCounts):
            return None
        found = []
        for part in prepared.affinity:
            domains = part.domains()
            least = np.zeros(len(part.counts), np.int64)
            least[domains[held.row]] = 1
            found.append(Reliance(part.effects, domains, least))
        return found

    def rows_in_doubt(self, pod: Shape, tentative: Mapping[Shape, PodRows], cluster: ClusterView) -> Mask | None:
        wanted = self._terms_in(cluster).of(pod).affinity
        shapes = tentative if wanted else ()
        is_one = any(all(term.matches(each, cluster.related) for term in wanted) for each in shapes)
        return super().rows_in_doubt(pod, tentative, cluster) if is_one else None

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return REASONS[code]

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: RequiredCounts) -> Iterator[tuple[str, Rows]]:
        """Which pods to stop or move, or which to run: where one of the two is enough."""
        cluster = self._terms_of_cluster() if self._terms_of_cluster is not None else None
        if cluster is None:
            return
        codes = self.filter(pod, nodes, prepared)
        lonely = codes == NO_AFFINITY
        crowded = np.zeros(len(nodes), np.bool_)
        for part in prepared.unwanted:
            crowded |= part.of(nodes) > 0
        yield from stop_unwanted(
            pod, cluster, nodes, prepared.unwanted, prepared.affinity, np.flatnonzero(crowded & ~lonely).tolist()
        )
        labelled = np.ones(len(nodes), np.bool_)
        for part in prepared.affinity:
            labelled &= nodes.label_codes(part.key) != MISSING
        own, related = self._terms_in(cluster).of(pod), cluster.related
        terms = Terms(
            tuple(term.resolved(related) for term in own.affinity),
            tuple(term.resolved(related) for term in own.anti_affinity),
        )
        yield from run_wanted(pod, terms, np.flatnonzero(lonely & ~crowded & labelled))

    # Score.

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> "PreferredCounts | Skip":
        terms_of = self._terms_in(cluster)
        own = terms_of.of(pod).preferred
        if self.args.ignore_preferred_terms_of_existing_pods and not own:
            return SKIP
        resolved = tuple(term.resolved(cluster.related) for term in own)
        keys = dict.fromkeys(term.topology_key for term in resolved)
        keys |= terms_of.preferred_keys
        hard = self.args.hard_pod_affinity_weight
        if hard:
            keys |= terms_of.affinity_keys
        parts = []
        for key in keys:
            mine = tuple(term for term in resolved if term.topology_key == key)
            effects = cluster.effects(
                ("preference", pod.as_selected, mine, hard, key),
                partial(_preference, pod, mine, hard, cluster, terms_of, key),
                _selected_by(cluster, mine, speaking_of=pod),
            )
            # A key that only other pods' terms bring matters only if some of them speak of this pod.
            if mine or effects.any:
                parts.append(DomainCount(cluster, key, effects))
        return PreferredCounts(parts) if parts else SKIP

    def score(self, pod: Shape, nodes: NodeRows, prepared: "PreferredCounts") -> Scores:
        if len(nodes) == 1:
            row = nodes.index.item()
            return np.array([sum(part.of_row(row) for part in prepared.parts)], np.int64)
        first, *others = prepared.parts
        total = first.of(nodes)
        for part in others:
            total = total + part.of(nodes)
        return total

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        if highest == lowest:
            return np.zeros_like(raw)
        most, span = float(MAX_SCORE), float(highest - lowest)
        if len(raw) <= FEW:
            return np.array([int(most * ((score - lowest) / span)) for score in raw.tolist()], np.int64)
        return (most * ((raw - lowest) / span)).astype(np.int64)


class PreferredCounts(Counted):
    """What each domain is worth to the pod, by topology key."""

    def __init__(self, parts: list[DomainCount]) -> None:
        super().__init__(parts)
        self.topology_keys = tuple(part.key for part in parts)

    @property
    def is_local(self) -> bool:
        return True


def _selected_by(cluster: ClusterView, terms: tuple[Term, ...], speaking_of: Shape | None = None) -> Among:
    """Finds the shapes that some of these terms may select, and those that may select a pod themselves."""

    def find() -> list[Sequence[Shape]]:
        found = [shapes for term in terms for shapes in cluster.shapes_selected_by(term.selector)]
        return found if speaking_of is None else [*found, *cluster.shapes_speaking_of(speaking_of)]

    return find


def _is_in_all(terms: tuple[Term, ...], cluster: ClusterView, other: Shape) -> int:
    return int(all(term.matches(other, cluster.related) for term in terms))


def _anti_terms_against(pod: Shape, cluster: ClusterView, terms_of: TermsOfShapes, key: str, other: Shape) -> int:
    """How many required anti-affinity terms of another pod, on this key, keep the pod away."""
    if other.affinity is None:
        return 0
    terms = terms_of.of(other).anti_affinity
    return sum(term.topology_key == key and term.matches(pod, cluster.related) for term in terms)


def _preference(
    pod: Shape,
    own: tuple[Term, ...],
    hard_weight: int,
    cluster: ClusterView,
    terms_of: TermsOfShapes,
    key: str,
    other: Shape,
) -> int:
    """What one more pod of another shape in a domain adds to the domain's worth: both sides' topology requests."""
    related = cluster.related
    worth = sum(term.weight for term in own if term.matches(other, related))
    if other.affinity is not None:
        theirs = terms_of.of(other)
        worth += sum(t.weight for t in theirs.preferred if t.topology_key == key and t.matches(pod, related))
        if hard_weight:
            matched = sum(t.topology_key == key and t.matches(pod, related) for t in theirs.affinity)
            worth += hard_weight * matched
    return worth
