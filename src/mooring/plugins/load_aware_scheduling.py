"""Keep pods off nodes that are loaded, and prefer those that are not; a plugin of Koordinator.

What a node uses is what its last report says and, for pods that came too late for it, what they are expected to use.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.config.load_aware import Aggregated, CustomAggregated, CustomThresholds, LoadAwareSchedulingArgs
from mooring.engine.plugin import MAX_SCORE, SKIP, Change, Codes, Depends, Mask, PreFilter, PreScore, Scores, Skip
from mooring.engine.shortcuts import BesidesAmounts, QuickMask
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.colocation.classes import PRIORITY_LABEL, PROD, QOS_LABEL, priority_class
from mooring.model.colocation.estimates import ESTIMATED, FACTORS_ANNOTATION, estimate
from mooring.model.load.reports import NodeReport, PodUsage
from mooring.model.values.durations import parse_duration
from mooring.plugins.load_levels import facts_key, rounded
from mooring.state.load import NODE, RowLoad
from mooring.state.row_facts import RowFacts
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView

THRESHOLDS_ANNOTATION = "scheduling.koordinator.sh/usage-thresholds"
EXPIRED = 1
"""Code; those above it stand for a resource, and whether its usage is aggregated."""
NO_REPORT, EMPTY, REPORTED = range(3)
"""What there is of a node: no NodeMetric, one that tells nothing, one that tells its usage."""

Percents = Mapping[str, int]
Amounts = tuple[int, ...]
"""By ESTIMATED."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Whose usage counts, and as what it is measured."""

    is_prod: bool = False
    kind: str = ""
    """An aggregation; empty for usage as it was last."""
    duration_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be used of a node, by which measure."""

    measure: Measure
    percents: tuple[int, ...]
    """By ESTIMATED; 0 for no threshold."""


@dataclass(frozen=True)
class ForFilter:
    """What is gathered for one pod."""

    expected: Amounts
    policy: Policy
    own_policies: Mapping[int, Policy]
    """Of the rows whose nodes have one of their own."""
    used: Mapping[Measure, RowFacts]

    @cached_property
    def column(self) -> NDArray[np.int64]:
        """What the pod is expected to use, as a column."""
        return np.array(self.expected, np.int64)[:, np.newaxis]

    @cached_property
    def most(self) -> NDArray[np.float64]:
        """The thresholds as a column, infinite where there is none."""
        return np.array([[percent or math.inf] for percent in self.policy.percents])

    def policies(self, rows: Sequence[int]) -> Iterator[tuple[Policy, list[int]]]:
        """Policies, each with the positions of the rows that have it."""
        by_policy: dict[Policy, list[int]] = {}
        for position, row in enumerate(rows):
            by_policy.setdefault(self.own_policies.get(row, self.policy), []).append(position)
        return iter(by_policy.items())


class LoadAwareScheduling(PreFilter, PreScore, BesidesAmounts, QuickMask):
    depends_on = Depends.NODE | Depends.NODE_USAGE | Depends.NODE_LOAD
    helped_by = Change.NODE | Change.NODE_LOAD | Change.POD_GONE
    args_type = LoadAwareSchedulingArgs
    args: LoadAwareSchedulingArgs
    reads_pod_labels = (PRIORITY_LABEL, QOS_LABEL)
    reads_pod_annotations = (FACTORS_ANNOTATION,)
    reads_pod_priority_class = True
    foresees = True
    skip_is_settled = True

    # Filter.

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> ForFilter | Skip:
        if any(owner.kind == "DaemonSet" for owner in pod.sample.metadata.owner_references or ()):
            return SKIP
        is_prod = priority_class(pod.pod) == PROD
        policy = self._policy(CustomThresholds(), is_prod=is_prod)
        own = {}
        for row in cluster.rows().index.tolist():
            text = (cluster.node(row).metadata.annotations or {}).get(THRESHOLDS_ANNOTATION)
            if text is not None:
                own[row] = self._policy(_custom(text), is_prod=is_prod)
        measures = {policy.measure, *(found.measure for found in own.values())}
        return ForFilter(
            self._expected(pod.pod), policy, own, {measure: self._used(cluster, measure) for measure in measures}
        )

    def filter(self, pod: Shape, nodes: NodeRows, prepared: ForFilter) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        if not prepared.own_policies:
            return self._codes(nodes, prepared, prepared.policy)
        for policy, positions in prepared.policies(nodes.index.tolist()):
            codes[positions] = self._codes(nodes, prepared, policy)[positions]
        return codes

    def passes(self, pod: Shape, nodes: NodeRows, prepared: ForFilter) -> Mask:
        """`filter` as a mask, in as few calls as possible: it is asked again for every pod that is placed."""
        has = nodes.stacked("allocatable", ESTIMATED)
        if prepared.own_policies or not nodes.has_all_everywhere(ESTIMATED):
            will_do: Mask = self.filter(pod, nodes, prepared) == 0
            return will_do
        if not any(prepared.policy.percents):
            return np.ones(len(nodes), np.bool_)
        found = prepared.used[prepared.policy.measure].at(nodes.index)
        used, told = found[:-1], found[-1]
        used += prepared.column if nodes.further_pods is None else (nodes.further_pods + 1) * prepared.column
        percents = used / has
        percents *= 100
        percents += 0.5
        np.floor(percents, out=percents)
        passed: Mask = (percents <= prepared.most).all(axis=0)
        passed |= told != REPORTED
        if self.args.filter_expired_node_metrics:
            is_old = nodes.is_load_stale(NODE, self.args.node_metric_expiration_seconds)
            if is_old.any():
                is_old &= told != NO_REPORT
                passed[is_old] = self.args.enable_schedule_when_node_metrics_expired
        return passed

    def _codes(self, nodes: NodeRows, prepared: ForFilter, policy: Policy) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        if not any(policy.percents):
            return codes
        *used, told = prepared.used[policy.measure].at(nodes.index)
        for index in reversed(range(len(ESTIMATED))):  # the first by name has the last word
            has = nodes.allocatable(ESTIMATED[index]).astype(np.float64)
            total = _with_more(used[index], nodes, prepared.expected[index]) + prepared.expected[index]
            percent = rounded(total / np.where(has > 0, has, 1.0) * 100)
            is_over = (percent > policy.percents[index]) & (policy.percents[index] > 0) & (has > 0)
            codes[is_over & (told == REPORTED)] = EXPIRED + 1 + 2 * index + bool(policy.measure.kind)
        if self.args.filter_expired_node_metrics:
            is_old = nodes.is_load_stale(NODE, self.args.node_metric_expiration_seconds) & (told != NO_REPORT)
            codes[is_old] = 0 if self.args.enable_schedule_when_node_metrics_expired else EXPIRED
        return codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        if code == EXPIRED:
            return Rejection(("node(s) nodeMetric expired",))
        index, is_aggregated = divmod(code - EXPIRED - 1, 2)
        return Rejection((f"node(s) {ESTIMATED[index]}{' aggregated' * is_aggregated} usage exceed threshold",))

    def _policy(self, custom: CustomThresholds, *, is_prod: bool) -> Policy:
        prod = custom.prod_usage_thresholds or self.args.prod_usage_thresholds
        if is_prod and prod:
            return _make_policy(Measure(is_prod=True), prod)
        aggregated: Aggregated | CustomAggregated = custom.aggregated_usage or self.args.aggregated
        if aggregated.usage_thresholds and aggregated.usage_aggregation_type:
            duration = parse_duration(aggregated.usage_aggregated_duration) or 0.0
            measure = Measure(kind=aggregated.usage_aggregation_type, duration_seconds=duration)
            return _make_policy(measure, aggregated.usage_thresholds)
        return _make_policy(Measure(), custom.usage_thresholds or self.args.usage_thresholds)

    # Score.

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> tuple[Amounts, RowFacts]:
        """(what the pod is expected to use, what each row uses)"""
        aggregated = self.args.aggregated
        measure = Measure()
        if self.args.score_according_prod_usage and priority_class(pod.pod) == PROD:
            measure = Measure(is_prod=True)
        elif aggregated.score_aggregation_type:
            duration = parse_duration(aggregated.score_aggregated_duration) or 0.0
            measure = Measure(kind=aggregated.score_aggregation_type, duration_seconds=duration)
        return self._expected(pod.pod), self._used(cluster, measure)

    def score(self, pod: Shape, nodes: NodeRows, prepared: tuple[Amounts, RowFacts]) -> Scores:
        expected, facts = prepared
        has_all = nodes.stacked("allocatable", ESTIMATED)
        if nodes.has_all_everywhere(ESTIMATED) and has_all.dtype == np.float64:
            return self._score_in_one_go(nodes, expected, facts.at(nodes.index), has_all)
        *used, told = facts.at(nodes.index)
        least = np.full(len(nodes), MAX_SCORE, np.int64)
        total, weights = np.zeros(len(nodes), np.int64), self.args.dominant_resource_weight
        for index, name in enumerate(ESTIMATED):
            has = nodes.allocatable(name)
            left = has - _with_more(used[index], nodes, expected[index]) - expected[index]
            free = np.where((left > 0) & (has > 0), left * MAX_SCORE // np.maximum(has, 1), 0)
            weight = self.args.resource_weights.get(name, 0)
            total, weights, least = total + weight * free, weights + weight, np.minimum(least, free)
        scores = (total + self.args.dominant_resource_weight * least) // weights
        is_old = nodes.is_load_stale(NODE, self.args.node_metric_expiration_seconds)
        return np.where((told == REPORTED) & ~is_old, scores, 0)

    def _score_in_one_go(
        self, nodes: NodeRows, expected: Amounts, facts: NDArray[np.int64], has: NDArray[np.float64]
    ) -> Scores:
        """The same for nodes that have some of each resource, in as few calls as possible."""
        used, told, column = facts[:-1], facts[-1], np.array(expected, np.int64)[:, np.newaxis]
        used += column if nodes.further_pods is None else (nodes.further_pods + 1) * column
        free = has - used
        np.maximum(free, 0.0, out=free)
        free *= MAX_SCORE
        free /= has
        np.floor(free, out=free)
        weights = [self.args.resource_weights.get(name, 0) for name in ESTIMATED]
        dominant = self.args.dominant_resource_weight
        total = np.array(weights, np.float64) @ free
        if dominant:
            total += dominant * np.minimum(free.min(axis=0), MAX_SCORE)
        total /= sum(weights) + dominant
        scores: Scores = total.astype(np.int64)
        scores[told != REPORTED] = 0
        is_old = nodes.is_load_stale(NODE, self.args.node_metric_expiration_seconds)
        if is_old.any():
            scores[is_old] = 0
        return scores

    # What is used.

    def _expected(self, pod: Pod) -> Amounts:
        args = self.args
        return estimate(pod, args.estimated_scaling_factors, is_customizable=args.allow_customize_estimation)

    def _used(self, cluster: ClusterView, measure: Measure) -> RowFacts:
        """What each row uses of ESTIMATED by a measure, and what there is of its node."""
        estimates = WeakKeyDictionary[Shape, tuple[Amounts, bool]]()

        def compute(pods: Iterable[PodView], load: RowLoad) -> Sequence[int]:
            return self._add_up(pods, load.node, measure, estimates)

        return cluster.row_facts((*facts_key(self.name, self.args), measure), len(ESTIMATED) + 1, compute)

    def _add_up(
        self,
        pods: Iterable[PodView],
        report: NodeReport | None,
        measure: Measure,
        estimates: WeakKeyDictionary[Shape, tuple[Amounts, bool]],
    ) -> Sequence[int]:
        if report is None or report.usage is None:
            return (*[0] * len(ESTIMATED), NO_REPORT if report is None else EMPTY)
        base = report.usage if not measure.kind else report.aggregated(measure.kind, measure.duration_seconds)
        if measure.is_prod:
            base = report.system if self.args.prod_usage_include_sys else {}
        total = [0 if base is None else base.get(name, 0) for name in ESTIMATED]
        unreported: dict[Shape, int] = {}
        for pod in pods:
            reported = report.pods.get(pod.key)
            if reported is None:  # all such pods of a shape count alike
                unreported[pod.shape] = unreported.get(pod.shape, 0) + 1
                continue
            expected, is_prod = self._estimate(pod.shape, pod.pod, estimates)
            if measure.is_prod and not is_prod:
                continue
            counted: PodUsage | None = reported
            if measure.is_prod and reported.priority not in (PROD, None):
                counted = None
            for index, name in enumerate(ESTIMATED):
                measured = 0 if counted is None else counted.amounts.get(name, 0)
                if measure.is_prod:
                    total[index] += measured
                if base is None:
                    total[index] += expected[index]
                elif counted is None or self._counts_by_estimate(pod, report):
                    total[index] += max(0, expected[index] - measured)
        for shape, count in unreported.items():
            expected, is_prod = self._estimate(shape, shape.pod, estimates)
            if is_prod or not measure.is_prod:
                total = [amount + count * more for amount, more in zip(total, expected, strict=True)]
        return (*total, REPORTED)

    def _estimate(
        self, shape: Shape, pod: Pod, estimates: WeakKeyDictionary[Shape, tuple[Amounts, bool]]
    ) -> tuple[Amounts, bool]:
        """What such a pod is expected to use, and whether it is a prod pod."""
        found = estimates.get(shape)
        if found is None:
            found = estimates[shape] = self._expected(pod), priority_class(pod) == PROD
        return found

    def _counts_by_estimate(self, pod: PodView, report: NodeReport) -> bool:
        """Whether a pod is so new that what was measured of it may be too little."""
        assigned = pod.assigned_at
        if report.at is None or assigned is None or assigned > report.at - report.interval_seconds:
            return True
        ready = _initialized_at(pod)
        if self.args.estimated_seconds_after_initialized > 0 and ready is not None:
            return ready + self.args.estimated_seconds_after_initialized > report.at
        after = self.args.estimated_seconds_after_pod_scheduled
        return after > 0 and assigned + after > report.at


def _with_more(used: Scores, nodes: NodeRows, expected: int) -> Scores:
    """What is used if some more such pods were on each row."""
    return used if nodes.further_pods is None else used + nodes.further_pods * expected


def _make_policy(measure: Measure, thresholds: Percents) -> Policy:
    return Policy(measure, tuple(thresholds.get(name, 0) for name in ESTIMATED))


def _custom(text: str) -> CustomThresholds:
    """What an annotation says; what cannot be read says nothing."""
    try:
        return msgspec.json.decode(text.encode(), type=CustomThresholds)
    except msgspec.DecodeError:
        return CustomThresholds()


def _initialized_at(pod: PodView) -> float | None:
    conditions = pod.pod.status.conditions or ()
    said = (c.last_transition_time for c in conditions if c.type == "Initialized" and c.status == "True")
    return timestamp_seconds(next(said, None))
