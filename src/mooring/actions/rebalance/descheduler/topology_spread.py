"""RemovePodsViolatingTopologySpreadConstraint: from domains above the average to those below it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from mooring.actions.rebalance.descheduler.evictor import Evictor, Outcome
from mooring.actions.rebalance.descheduler.node_fit import Destinations, matches_node
from mooring.actions.rebalance.descheduler.pod_strategies import selection_of
from mooring.actions.rebalance.descheduler.situation import LabelledPods
from mooring.config.descheduler import TopologySpreadArgs
from mooring.model.api.meta import NodeSelector
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Affinity, NodeAffinity, Pod, PodSpec, Toleration, TopologySpreadConstraint
from mooring.model.keys import PodKey
from mooring.model.values.selectors import Requirement, Selector, compile_label_selector
from mooring.model.values.tolerations import untolerated

STRATEGY = "RemovePodsViolatingTopologySpreadConstraint"
HONOR = "Honor"


@dataclass(frozen=True, eq=False)
class Spread:
    """One constraint as pods share it: equal ones are balanced once."""

    max_skew: int
    key: str
    selector: Selector
    affinity: tuple[dict[str, str] | None, NodeSelector | None] | None
    """The node selector and required node affinity that nodes must match, if they count."""
    tolerations: list[Toleration] | None
    """What nodes' taints must be tolerated by, if they count."""

    @property
    def eligibility(self) -> bytes:
        """What decides which nodes count."""
        return msgspec.json.encode((self.affinity, self.tolerations))

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
    is_selected_by = selection_of(args)

    def is_meant(pod: Pod) -> bool:
        return is_selected_by(pod) and evictor.may_evict(pod)

    for node in nodes:
        for pod in situation.live_pods(node):
            if is_meant(pod):
                by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
    chosen: dict[PodKey, Pod] = {}
    allowed = args.constraints or ["DoNotSchedule"]
    places = _Places(nodes)
    for pods in by_namespace.values():
        spreads: dict[object, Spread] = {}
        seen: set[object] = set()
        for pod in pods:
            constraints = pod.spec.topology_spread_constraints
            if not constraints:
                continue
            labels = pod.metadata.labels or {}
            alike = situation.alike.get(pod.key)
            if alike is not None:
                read = tuple(labels.get(key) for one in constraints for key in one.match_label_keys or ())
                if (alike, read) in seen:
                    continue
                seen.add((alike, read))
            for constraint in constraints:
                if constraint.when_unsatisfiable in allowed:
                    spread = _spread(constraint, pod)
                    key = spread.max_skew, spread.key, spread.selector, spread.eligibility
                    spreads.setdefault(key, spread)
        if not spreads:
            continue
        keys = frozenset[str]().union(*(spread.selector.keys for spread in spreads.values()))
        labelled = LabelledPods((pod for pod in pods if pod.metadata.deletion_timestamp is None), keys)
        for spread in spreads.values():
            _balance(evictor, places, labelled, spread, args, chosen)
    full: set[str] = set()
    for pod in chosen.values():
        if pod.spec.node_name in full or not is_meant(pod) or not evictor.could_move(pod):
            continue
        outcome = evictor.evict(pod, STRATEGY)
        if outcome is Outcome.NODE_LIMIT:
            full.add(pod.spec.node_name)
        elif outcome is Outcome.TOTAL_LIMIT:
            return


def _balance(
    evictor: Evictor,
    places: "_Places",
    pods: LabelledPods,
    spread: Spread,
    args: TopologySpreadArgs,
    chosen: dict[PodKey, Pod],
) -> None:
    """Take pods from the largest domains, as many as the smallest ones lack."""
    eligible = places.eligible(spread)
    by_domain: dict[str, list[Pod]] = {value: [] for value in places.domains(spread)}
    for pod in pods.selected(spread.selector):
        value = (places.by_name[pod.spec.node_name].metadata.labels or {}).get(spread.key)
        if value is not None:
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
    could_go = Destinations(evictor.situation, targets).has_another

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


class _Places:
    """The nodes, and which of them count for a constraint: most constraints ask for the same."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self.by_name = {node.metadata.name: node for node in nodes}
        self._eligible: dict[bytes, list[Node]] = {}
        self._domains: dict[tuple[bytes, str], list[str]] = {}

    def eligible(self, spread: Spread) -> list[Node]:
        asked = spread.eligibility
        if asked not in self._eligible:
            self._eligible[asked] = [node for node in self._nodes if spread.has(node)]
        return self._eligible[asked]

    def domains(self, spread: Spread) -> list[str]:
        """The domains that have such nodes, in the order of the nodes."""
        asked = spread.eligibility, spread.key
        if asked not in self._domains:
            values = ((node.metadata.labels or {}).get(spread.key) for node in self.eligible(spread))
            self._domains[asked] = list(dict.fromkeys(value for value in values if value is not None))
        return self._domains[asked]


def _order(pod: Pod) -> tuple[bool, int]:
    """Pods at the end are taken first: those that may go anywhere, the most urgent of them last."""
    affinity = pod.spec.affinity
    is_bound = pod.spec.node_selector is not None or (affinity is not None and affinity.node_affinity is not None)
    priority = pod.spec.priority if pod.spec.priority is not None else -(2**31) - 1
    return not is_bound, priority


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
