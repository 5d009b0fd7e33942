"""Pods spread evenly over the domains of a topology, strictly or as a preference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import IGNORED, MAX_SCORE, SKIP, Codes, Depends, Mask, PreScore, Scores, Skip
from mooring.engine.shortcuts import Gone, QuickMask, Reliance, SpoiledByOthers, SupposingFilter
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.model.api.pods import TopologySpreadConstraint
from mooring.plugins.domain_counts import Counted, DomainCount
from mooring.plugins.pod_remedies import lessen_skew
from mooring.plugins.resource_scoring import Problem, round_half_up
from mooring.plugins.spread_constraints import (
    HARD,
    HOSTNAME,
    SOFT,
    Constraint,
    default_selector,
    eligible_rows,
    own_constraints,
    with_selector,
)
from mooring.state.nodes import MISSING, ROW
from mooring.state.pods import PodRows
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, GuardedPod

MISSING_LABEL, SKEWED = 1, 2
REASON = "node(s) didn't match pod topology spread constraints"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=3, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(topology_key="topology.kubernetes.io/zone", max_skew=5, when_unsatisfiable=SOFT),
)
"""What kube-scheduler applies to pods that a service or a controller selects and that say nothing themselves."""


class PodTopologySpreadArgs(KubeObject, forbid_unknown_fields=True):
    """PodTopologySpreadArgs of KubeSchedulerConfiguration."""

    api_version: str = ""
    kind: str = ""
    default_constraints: list[TopologySpreadConstraint] = []
    defaulting_type: str = "System"

    def validate(self) -> Iterator[Problem]:
        if self.defaulting_type not in ("System", "List"):
            yield "defaultingType", "System or List", f'"{self.defaulting_type}"'
        if self.defaulting_type == "System" and self.default_constraints:
            yield "defaultConstraints", "none when defaultingType is System", str(len(self.default_constraints))
        seen = set[tuple[str, str]]()
        for index, constraint in enumerate(self.default_constraints):
            at = f"defaultConstraints[{index}]"
            if constraint.max_skew < 1:
                yield f"{at}.maxSkew", "a whole number above 0", str(constraint.max_skew)
            if not constraint.topology_key:
                yield f"{at}.topologyKey", "the key of a node label", '""'
            if constraint.when_unsatisfiable not in (HARD, SOFT):
                yield f"{at}.whenUnsatisfiable", f"{HARD} or {SOFT}", f'"{constraint.when_unsatisfiable}"'
            if constraint.label_selector is not None:
                yield f"{at}.labelSelector", "none: it comes from services and controllers", "a selector"
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                yield at, "each topologyKey and whenUnsatisfiable once", f"{pair[0]}, {pair[1]} again"
            seen.add(pair)


@dataclass(slots=True)
class HardConstraint:
    """A strict constraint with its counts."""

    constraint: Constraint
    count: DomainCount
    present: NDArray[np.bool_]
    """Which domains have an eligible node."""
    self_match: int

    def lowest(self) -> int:
        """The fewest matching pods in any domain; 0 while there are fewer domains than asked for."""
        counts = self.count.counts[self.present]
        return 0 if len(counts) < self.constraint.min_domains else int(counts[counts.argmin()])


class HardCounts(Counted):
    def __init__(self, constraints: list[HardConstraint]) -> None:
        super().__init__([hard.count for hard in constraints])
        self.constraints = constraints
        self.topology_keys = tuple(dict.fromkeys(part.key for part in self.parts))


class SoftCounts(Counted):
    """Preferred constraints with their counts and weights."""

    def __init__(self, constraints: Sequence[Constraint], parts: list[DomainCount], require_all: bool) -> None:
        super().__init__(parts)
        self.constraints = constraints
        self.require_all = require_all
        self.weights = list[float]()
        self.topology_keys = tuple(dict.fromkeys(part.key for part in parts))

    @property
    def is_local(self) -> bool:
        return True  # a pod moves its own domains' counts; weights move with `refit` alone

    def own_counts(self, nodes: NodeRows) -> NDArray[np.int64]:
        """What is counted on the node itself, -1 where the node lacks the label and is not counted."""
        own = []
        for constraint, part in zip(self.constraints, self.parts, strict=True):
            if nodes.is_one_row_each(part.key):
                counts = part.of(nodes)
                if not nodes.has_label_everywhere(constraint.topology_key):
                    counts = np.where(nodes.label_codes(constraint.topology_key) == MISSING, -1, counts)
                own.append(counts)
        return np.array(own, np.int64).reshape(len(own), len(nodes))

    @property
    def counts_rows(self) -> bool:
        return any(constraint.topology_key == HOSTNAME for constraint in self.constraints)

    def refit(self, feasible: NodeRows) -> None:
        """The more domains a key has among the feasible nodes, the more one pod's difference weighs."""
        domains = [feasible.label_codes(constraint.topology_key) for constraint in self.constraints]
        counted = np.ones(len(feasible), np.bool_)
        if self.require_all:
            counted = np.logical_and.reduce([codes != MISSING for codes in domains])
        sizes = [
            int(counted.sum())
            if constraint.topology_key == HOSTNAME
            # A missing label counts as one more domain, where it does not rule the node out.
            else int(np.count_nonzero(np.bincount(codes[counted] + 1)))
            for constraint, codes in zip(self.constraints, domains, strict=True)
        ]
        self.weights = [float(np.log(size + 2)) for size in sizes]


class PodTopologySpread(SupposingFilter, SpoiledByOthers, QuickMask, PreScore):
    depends_on = Depends.PODS | Depends.NODE | Depends.RELATED
    args_type = PodTopologySpreadArgs
    skip_is_settled = True
    normalizes = True
    reads_feasible = True

    def _defaults(self) -> Sequence[TopologySpreadConstraint]:
        if self.args.defaulting_type == "System":
            return SYSTEM_DEFAULTS
        defaults: Sequence[TopologySpreadConstraint] = self.args.default_constraints
        return defaults

    def _constraints(self, pod: Shape, cluster: ClusterView, when: str) -> list[Constraint]:
        if pod.spec.topology_spread_constraints:
            return own_constraints(pod, when)
        wanted = [c for c in self._defaults() if c.when_unsatisfiable == when]
        if not wanted:
            return []
        selector = default_selector(pod, cluster.related)
        return [] if selector.is_empty else [with_selector(constraint, selector) for constraint in wanted]

    # Filter.

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> HardCounts | Skip:
        constraints = self._constraints(pod, cluster, HARD)
        if not constraints:
            return SKIP
        rows = cluster.rows()
        has_all = np.logical_and.reduce([rows.has_label(c.topology_key) for c in constraints])
        hard = []
        for constraint in constraints:
            eligible = eligible_rows(pod, rows, constraint, has_all)
            present = np.zeros(len(cluster.label_values(constraint.topology_key)) + 1, np.bool_)
            present[cluster.label_codes(constraint.topology_key)[eligible]] = True
            mask = np.zeros(cluster.end, np.bool_)
            mask[eligible] = True
            count = DomainCount(cluster, constraint.topology_key, constraint.effects_in(pod.namespace, cluster), mask)
            counts_itself = int(constraint.selector.matches(pod.selected_labels))
            hard.append(HardConstraint(constraint, count, present, counts_itself))
        return HardCounts(hard)

    def passes(self, pod: Shape, nodes: NodeRows, prepared: HardCounts) -> Mask:
        passed: Mask | None = None
        for hard in prepared.constraints:
            domains = nodes.label_codes(hard.constraint.topology_key)
            within = hard.count.at(domains) <= hard.constraint.max_skew - hard.self_match + hard.lowest()
            within &= domains != MISSING
            passed = within if passed is None else passed & within
        assert passed is not None
        return passed

    def filter(self, pod: Shape, nodes: NodeRows, prepared: HardCounts) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        for hard in reversed(prepared.constraints):  # the first constraint that fails gives the reason
            domains = nodes.label_codes(hard.constraint.topology_key)
            skew = hard.count.at(domains) + (hard.self_match - hard.lowest())
            codes[skew > hard.constraint.max_skew] = SKEWED
            codes[domains == MISSING] = MISSING_LABEL
        return codes

    def filter_without(self, pod: Shape, nodes: NodeRows, prepared: HardCounts, gone: Gone) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        for hard in reversed(prepared.constraints):
            domains = nodes.label_codes(hard.constraint.topology_key)
            left = hard.count.at(domains) - hard.count.lost_by(nodes, gone)
            # A row's domain that falls below all others passes, whether or not it counts as the lowest itself.
            skew = left + (hard.self_match - hard.lowest())
            codes[skew > hard.constraint.max_skew] = SKEWED
            codes[domains == MISSING] = MISSING_LABEL
        return codes

    @property
    def is_strict_by_default(self) -> bool:
        return any(constraint.when_unsatisfiable == HARD for constraint in self._defaults())

    def spoiled_rows(self, held: GuardedPod, pod: Shape, cluster: ClusterView) -> Mask | None:
        if held.shape.namespace != pod.namespace:
            return None
        selectors = [constraint.selector for constraint in self._constraints(held.shape, cluster, HARD)]
        if not any(selector.matches(pod.selected_labels) for selector in selectors):
            return None  # known without counting over all nodes
        prepared = self.pre_filter(held.shape, cluster)
        if not isinstance(prepared, HardCounts) or not prepared.is_moved_by(pod):
            return None
        for shape_id, row in ((held.shape.id, held.row), *held.leaving):
            prepared.update_one(shape_id, row, -1)  # counts as they will be when the held pod is bound
        spoiled = np.zeros(cluster.end, np.bool_)
        for hard in prepared.constraints:
            count, domains = hard.count, cluster.label_codes(hard.constraint.topology_key)
            own = int(domains[held.row])
            if own == MISSING or not count.add_one(pod.id, held.row, 1):
                continue
            skew = int(count.counts[own]) + hard.self_match - hard.lowest()
            count.add_one(pod.id, held.row, -1)
            if skew > hard.constraint.max_skew:
                spoiled |= domains[: cluster.end] == own
        return spoiled

    def relies_on(self, held: GuardedPod, cluster: ClusterView) -> list[Reliance] | None:
        prepared = self.pre_filter(held.shape, cluster)
        if not isinstance(prepared, HardCounts):
            return None
        for shape_id, row in ((held.shape.id, held.row), *held.leaving):
            prepared.update_one(shape_id, row, -1)
        found = []
        for hard in prepared.constraints:
            own = int(cluster.label_codes(hard.constraint.topology_key)[held.row])
            if own == MISSING or np.count_nonzero(hard.present) < hard.constraint.min_domains:
                continue  # the lowest count is 0 whatever goes
            least = np.zeros(len(hard.count.counts), np.int64)
            least[hard.present] = max(0, int(hard.count.counts[own]) + hard.self_match - hard.constraint.max_skew)
            least[own] = 0
            found.append(Reliance(hard.count.effects, hard.count.domains(), least))
        return found

    def rows_in_doubt(self, pod: Shape, tentative: Mapping[Shape, PodRows], cluster: ClusterView) -> Mask | None:
        shapes = [shape for shape in tentative if shape.namespace == pod.namespace]
        constraints = self._constraints(pod, cluster, HARD) if shapes else ()
        selectors = [constraint.selector for constraint in constraints]
        is_counted = any(each.matches(shape.selected_labels) for each in selectors for shape in shapes)
        return super().rows_in_doubt(pod, tentative, cluster) if is_counted else None

    def rejection(self, pod: Shape, code: int) -> Rejection:
        if code == MISSING_LABEL:
            return Rejection((f"{REASON} (missing required label)",), unresolvable=True)
        return Rejection((REASON,))

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: HardCounts) -> Iterator[tuple[str, Rows]]:
        """More skew, or fewer pods in the domain: where one constraint alone is in the way."""
        skews, has_all = [], np.ones(len(nodes), np.bool_)
        for hard in prepared.constraints:
            domains = nodes.label_codes(hard.constraint.topology_key)
            skews.append(hard.count.at(domains) + (hard.self_match - hard.lowest()))
            has_all &= domains != MISSING
        too_many = [skew > hard.constraint.max_skew for skew, hard in zip(skews, prepared.constraints, strict=True)]
        alone = has_all & (np.sum(too_many, axis=0) == 1)
        for hard, skew, skewed in zip(prepared.constraints, skews, too_many, strict=True):
            positions = np.flatnonzero(alone & skewed)
            yield from lessen_skew(pod, hard.constraint, skew[positions], positions)

    # Score.

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> SoftCounts | Skip:
        constraints = self._constraints(pod, cluster, SOFT)
        if not constraints:
            return SKIP
        require_all = bool(pod.spec.topology_spread_constraints) or self.args.defaulting_type != "System"
        rows = cluster.rows()
        has_all = np.ones(len(rows), np.bool_)
        if require_all:
            has_all = np.logical_and.reduce([rows.has_label(c.topology_key) for c in constraints])
        parts = []
        for constraint in constraints:
            mask = np.zeros(cluster.end, np.bool_)
            if constraint.topology_key == HOSTNAME:
                mask[:] = True  # counted on the node itself, whatever the policies say
            else:
                mask[eligible_rows(pod, rows, constraint, has_all)] = True
            key = ROW if constraint.topology_key == HOSTNAME else constraint.topology_key
            parts.append(DomainCount(cluster, key, constraint.effects_in(pod.namespace, cluster), mask))
        counts = SoftCounts(constraints, parts, require_all)
        counts.refit(feasible)
        return counts

    def score(self, pod: Shape, nodes: NodeRows, prepared: SoftCounts) -> Scores:
        total = np.zeros(len(nodes), np.float64)
        lacks_a_key: Mask | None = None
        for constraint, part, weight in zip(prepared.constraints, prepared.parts, prepared.weights, strict=True):
            score = part.of(nodes) * weight
            score += float(constraint.max_skew - 1)
            if not nodes.has_label_everywhere(constraint.topology_key):
                lacks = nodes.label_codes(constraint.topology_key) == MISSING
                score[lacks] = 0.0
                lacks_a_key = lacks if lacks_a_key is None else lacks_a_key | lacks
            total += score
        scores = round_half_up(total)
        if prepared.require_all and lacks_a_key is not None:
            scores[lacks_a_key] = IGNORED
        return scores

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        ignored = raw == IGNORED
        if np.count_nonzero(ignored):
            counted = np.where(ignored, 0, raw)
            return np.where(ignored, 0, self.normalize(counted, lowest, highest))
        if highest == 0:
            return np.full_like(raw, MAX_SCORE)
        return MAX_SCORE * (highest + lowest - raw) // highest
