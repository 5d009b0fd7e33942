"""PodTopologySpread, one node at a time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reference_nodes import has_untolerated_taint, matches_required
from reference_world import PlainCluster, is_empty, labels_of, selects

from mooring.model.api.meta import LabelSelector, LabelSelectorRequirement
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, TopologySpreadConstraint

HOSTNAME = "kubernetes.io/hostname"
MISSING_LABEL, SKEWED = "missing required label", "skewed"


@dataclass
class Rule:
    key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def counts(self, pod: Pod, other: Pod) -> bool:
        return (
            not is_empty(self.selector)
            and other.metadata.deletion_timestamp is None
            and other.metadata.namespace == pod.metadata.namespace
            and selects(self.selector, labels_of(other))
        )

    def includes(self, pod: Pod, node: Node) -> bool:
        if self.honors_affinity and not matches_required(pod, node):
            return False
        return not (self.honors_taints and has_untolerated_taint(pod, node))


def rules(cluster: PlainCluster, pod: Pod, when: str, defaults: Sequence[TopologySpreadConstraint]) -> list[Rule]:
    own = pod.spec.topology_spread_constraints
    if own:
        return [_rule(c, _with_label_keys(c, pod)) for c in own if c.when_unsatisfiable == when]
    selector = default_selector(cluster, pod)
    if is_empty(selector):
        return []
    return [_rule(constraint, selector) for constraint in defaults if constraint.when_unsatisfiable == when]


def _rule(constraint: TopologySpreadConstraint, selector: LabelSelector | None) -> Rule:
    return Rule(
        constraint.topology_key,
        constraint.max_skew,
        selector,
        constraint.min_domains or 1,
        constraint.node_affinity_policy != "Ignore",
        constraint.node_taints_policy == "Honor",
    )


def _with_label_keys(constraint: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    selector = constraint.label_selector
    if selector is None:
        return None
    extra = [
        LabelSelectorRequirement(key=key, operator="In", values=[labels_of(pod)[key]])
        for key in constraint.match_label_keys or ()
        if key in labels_of(pod)
    ]
    return LabelSelector(
        match_labels=selector.match_labels, match_expressions=[*(selector.match_expressions or ()), *extra]
    )


def default_selector(cluster: PlainCluster, pod: Pod) -> LabelSelector:
    """What the services and the controller of a pod select."""
    wanted: dict[str, str] = {}
    expressions: list[LabelSelectorRequirement] = []
    for service in cluster.services:
        selector = service.spec.selector or {}
        same_namespace = service.metadata.namespace == pod.metadata.namespace
        if selector and same_namespace and selector.items() <= labels_of(pod).items():
            wanted |= selector
    for owner in pod.metadata.owner_references or ():
        for replica_set in cluster.replica_sets:
            same = (replica_set.metadata.name, replica_set.metadata.namespace) == (owner.name, pod.metadata.namespace)
            if owner.controller and owner.kind == "ReplicaSet" and same:
                for key, value in ((replica_set.spec.selector or LabelSelector()).match_labels or {}).items():
                    expressions.append(LabelSelectorRequirement(key=key, operator="In", values=[value]))
    return LabelSelector(match_labels=wanted, match_expressions=expressions)


def filter_node(
    cluster: PlainCluster, pod: Pod, node: Node, defaults: Sequence[TopologySpreadConstraint]
) -> str | None:
    hard = rules(cluster, pod, "DoNotSchedule", defaults)
    keys = [rule.key for rule in hard]
    for rule in hard:
        counts: dict[str, int] = {}
        for other in cluster.nodes:
            labels = labels_of(other)
            if all(key in labels for key in keys) and rule.includes(pod, other):
                matching = sum(rule.counts(pod, running) for running in cluster.pods_on(other))
                counts[labels[rule.key]] = counts.get(labels[rule.key], 0) + matching
        domain = labels_of(node).get(rule.key)
        if domain is None:
            return MISSING_LABEL
        lowest = min(counts.values(), default=0) if len(counts) >= rule.min_domains else 0
        itself = int(selects(rule.selector, labels_of(pod)))
        if counts.get(domain, 0) + itself - lowest > rule.max_skew:
            return SKEWED
    return None


def score_nodes(
    cluster: PlainCluster,
    pod: Pod,
    feasible: Sequence[Node],
    defaults: Sequence[TopologySpreadConstraint],
    *,
    system_defaults: bool,
) -> list[int] | None:
    """Normalised over the feasible nodes; None if there is nothing to spread."""
    soft = rules(cluster, pod, "ScheduleAnyway", defaults)
    if not soft:
        return None
    require_all = bool(pod.spec.topology_spread_constraints) or not system_defaults
    ignored = [require_all and any(rule.key not in labels_of(node) for rule in soft) for node in feasible]
    counted = [node for node, skip in zip(feasible, ignored, strict=True) if not skip]
    raw = [
        0 if skip else _raw_score(cluster, pod, node, soft, counted, require_all)
        for node, skip in zip(feasible, ignored, strict=True)
    ]
    real = [score for score, skip in zip(raw, ignored, strict=True) if not skip]
    lowest, highest = min(real, default=0), max(real, default=0)
    return [
        0 if skip else 100 if highest == 0 else 100 * (highest + lowest - score) // highest
        for score, skip in zip(raw, ignored, strict=True)
    ]


def _raw_score(
    cluster: PlainCluster, pod: Pod, node: Node, soft: Sequence[Rule], counted: Sequence[Node], require_all: bool
) -> int:
    total = 0.0
    for rule in soft:
        domain = labels_of(node).get(rule.key)
        if domain is None:
            continue
        if rule.key == HOSTNAME:
            size = len(counted)
            count = sum(rule.counts(pod, running) for running in cluster.pods_on(node))
        else:
            size = len({labels_of(other).get(rule.key) for other in counted})
            count = _count_in(cluster, pod, rule, domain, soft if require_all else ())
        total += count * math.log(size + 2) + (rule.max_skew - 1)
    return math.floor(total + 0.5)


def _count_in(cluster: PlainCluster, pod: Pod, rule: Rule, domain: str, needed: Sequence[Rule]) -> int:
    count = 0
    for other in cluster.nodes:
        labels = labels_of(other)
        if labels.get(rule.key) != domain or any(each.key not in labels for each in needed):
            continue
        if rule.includes(pod, other):
            count += sum(rule.counts(pod, running) for running in cluster.pods_on(other))
    return count
