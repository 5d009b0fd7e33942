"""RemovePodsViolatingTopologySpreadConstraint: from domains above the average to those below it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.actions.rebalance.descheduler.evictor import Evictor, Outcome
from mooring.actions.rebalance.descheduler.node_fit import fits_another, matches_node
from mooring.config.descheduler import TopologySpreadArgs
from mooring.model.api.meta import NodeSelector
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Affinity, NodeAffinity, Pod, PodSpec, Toleration, TopologySpreadConstraint
from mooring.model.keys import PodKey
from mooring.model.values.selectors import EVERYTHING, Requirement, Selector, compile_label_selector
from mooring.model.values.tolerations import untolerated

STRATEGY = "RemovePodsViolatingTopologySpreadConstraint"
HONOR = "Honor"


@dataclass(frozen=True)
class Spread:
    """One constraint as pods share it: equal ones are balanced once."""

    max_skew: int
    key: str
    selector: Selector
    affinity: tuple[dict[str, str] | None, NodeSelector | None] | None
    """The node selector and required node affinity that nodes must match, if they count."""
    tolerations: list[Toleration] | None
    """What nodes' taints must be tolerated by, if they count."""

    def has(self, node: Node) -> bool:
        """Whether a node counts."""
        if self.affinity is not None:
            selector, required = self.affinity
            if not matches_node(_pod_for(selector, required), node):
                return False
        return self.tolerations is None or not untolerated(self.tolerations, node.spec.taints or ())


def remove_pods_by_topology_spread(evictor: Evictor, nodes: Sequence[Node], args: TopologySpreadArgs) -> None:
    """Find what is to be evicted for every constraint, then evict it."""
    situation = evictor.situation
    by_namespace: dict[str, list[Pod]] = {}
    for node in nodes:
        for pod in situation.live_pods(node):
            if _is_meant(evictor, pod, args):
                by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
    chosen: dict[PodKey, Pod] = {}
    allowed = args.constraints or ["DoNotSchedule"]
    for pods in by_namespace.values():
        spreads: list[Spread] = []
        for pod in pods:
            for constraint in pod.spec.topology_spread_constraints or ():
                if constraint.when_unsatisfiable in allowed:
                    spread = _spread(constraint, pod)
                    if spread not in spreads:
                        spreads.append(spread)
        for spread in spreads:
            _balance(evictor, nodes, pods, spread, args, chosen)
    full: set[str] = set()
    for pod in chosen.values():
        if pod.spec.node_name in full or not _is_meant(evictor, pod, args) or not evictor.could_move(pod):
            continue
        outcome = evictor.evict(pod, STRATEGY)
        if outcome is Outcome.NODE_LIMIT:
            full.add(pod.spec.node_name)
        elif outcome is Outcome.TOTAL_LIMIT:
            return


def _balance(
    evictor: Evictor,
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    spread: Spread,
    args: TopologySpreadArgs,
    chosen: dict[PodKey, Pod],
) -> None:
    """Take pods from the largest domains, as many as the smallest ones lack."""
    by_name = {node.metadata.name: node for node in nodes}
    eligible = [node for node in nodes if spread.has(node)]
    by_domain: dict[str, list[Pod]] = {}
    for node in eligible:
        value = (node.metadata.labels or {}).get(spread.key)
        if value is not None:
            by_domain.setdefault(value, [])
    for pod in pods:
        value = (by_name[pod.spec.node_name].metadata.labels or {}).get(spread.key)
        is_counted = pod.metadata.deletion_timestamp is None and spread.selector.matches(pod.metadata.labels or {})
        if value is not None and is_counted:
            by_domain.setdefault(value, []).append(pod)
    if not by_domain:
        return
    sizes = [len(found) for found in by_domain.values()]
    if max(sizes) - min(sizes) <= spread.max_skew:
        return
    average = sum(sizes) / len(sizes)
    for found in by_domain.values():
        found.sort(key=_order)
    domains = sorted(by_domain.items(), key=lambda domain: len(domain[1]))
    below = {value for value, found in domains if len(found) < average}
    targets = [node for node in eligible if (node.metadata.labels or {}).get(spread.key) in below]

    def could_go(pod: Pod) -> bool:
        return fits_another(evictor.situation, pod, targets)

    low, high = 0, len(domains) - 1
    while low < high:
        if len(domains[high][1]) <= average:
            high -= 1
        large, small = domains[high][1], domains[low][1]
        skew = len(large) - len(small)
        if skew <= spread.max_skew:
            low += 1
            continue
        moved = min(
            math.ceil(len(large) - average),
            math.ceil(average - len(small)),
            math.ceil((skew - spread.max_skew) / 2),
        )
        if moved <= 0:
            low += 1
            continue
        large.sort(key=could_go)
        going = large[-moved:]
        for pod in going:
            if args.topology_balance_node_fit is False or could_go(pod):
                chosen[pod.key] = pod
        del large[-moved:]
        small.extend(going)


def _order(pod: Pod) -> tuple[bool, int]:
    """Pods at the end are taken first: those that may go anywhere, the most urgent of them last."""
    affinity = pod.spec.affinity
    is_bound = pod.spec.node_selector is not None or (affinity is not None and affinity.node_affinity is not None)
    priority = pod.spec.priority if pod.spec.priority is not None else -(2**31) - 1
    return not is_bound, priority


def _is_meant(evictor: Evictor, pod: Pod, args: TopologySpreadArgs) -> bool:
    if args.namespaces is not None and not args.namespaces.has(pod.metadata.namespace):
        return False
    selector = compile_label_selector(args.label_selector) if args.label_selector is not None else EVERYTHING
    return selector.matches(pod.metadata.labels or {}) and evictor.may_evict(pod)


def _spread(constraint: TopologySpreadConstraint, pod: Pod) -> Spread:
    selector = compile_label_selector(constraint.label_selector)
    labels = pod.metadata.labels or {}
    extra = [
        Requirement(key, "In", frozenset((labels[key],))) for key in constraint.match_label_keys or () if key in labels
    ]
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    return Spread(
        constraint.max_skew,
        constraint.topology_key,
        selector.with_requirements(extra) if extra else selector,
        (pod.spec.node_selector, required) if (constraint.node_affinity_policy or HONOR) == HONOR else None,
        list(pod.spec.tolerations or ()) if constraint.node_taints_policy == HONOR else None,
    )


def _pod_for(selector: dict[str, str] | None, required: NodeSelector | None) -> Pod:
    affinity = Affinity(node_affinity=NodeAffinity(required=required)) if required is not None else None
    return Pod(spec=PodSpec(node_selector=selector, affinity=affinity))
