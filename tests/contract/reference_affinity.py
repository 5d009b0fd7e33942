"""InterPodAffinity, one node and one pair of pods at a time."""

from collections.abc import Sequence

from reference_world import PlainCluster, labels_of, selects

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodAffinityTerm, WeightedPodAffinityTerm

NOT_NEAR, NOT_AWAY, UNWANTED = "affinity", "anti-affinity", "existing anti-affinity"


def required(pod: Pod, side: str) -> list[PodAffinityTerm]:
    affinity = getattr(pod.spec.affinity, side) if pod.spec.affinity else None
    return list(affinity.required or ()) if affinity else []


def preferred(pod: Pod, side: str) -> list[WeightedPodAffinityTerm]:
    affinity = getattr(pod.spec.affinity, side) if pod.spec.affinity else None
    return list(affinity.preferred or ()) if affinity else []


def speaks_of(cluster: PlainCluster, owner: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    """Whether a term of one pod selects another."""
    namespaces = set(term.namespaces or ())
    if term.namespace_selector is not None:
        namespace = cluster.namespaces.get(other.metadata.namespace, {})
        if selects(term.namespace_selector, namespace):
            namespaces.add(other.metadata.namespace)
    elif not namespaces:
        namespaces = {owner.metadata.namespace}
    return other.metadata.namespace in namespaces and selects(term.label_selector, labels_of(other))


def filter_node(cluster: PlainCluster, pod: Pod, node: Node) -> str | None:
    labels = labels_of(node)
    near, away = required(pod, "pod_affinity"), required(pod, "pod_anti_affinity")
    wanted = [other for other in cluster.pods if all(speaks_of(cluster, pod, term, other) for term in near)]
    if near:
        if any(term.topology_key not in labels for term in near):
            return NOT_NEAR
        satisfied = all(any(_in_domain(cluster, other, term, node) for other in wanted) for term in near)
        counted = any(term.topology_key in labels_of(_node_of(cluster, other)) for other in wanted for term in near)
        first_of_its_kind = not counted and all(speaks_of(cluster, pod, term, pod) for term in near)
        if not satisfied and not first_of_its_kind:
            return NOT_NEAR
    for term in away:
        unwanted = [other for other in cluster.pods if speaks_of(cluster, pod, term, other)]
        if any(_in_domain(cluster, other, term, node) for other in unwanted):
            return NOT_AWAY
    for other in cluster.pods:
        for term in required(other, "pod_anti_affinity"):
            if speaks_of(cluster, other, term, pod) and _in_domain(cluster, other, term, node):
                return UNWANTED
    return None


def _node_of(cluster: PlainCluster, pod: Pod) -> Node:
    return next(node for node in cluster.nodes if node.name == pod.spec.node_name)


def _in_domain(cluster: PlainCluster, other: Pod, term: PodAffinityTerm, node: Node) -> bool:
    """Whether a pod runs in the domain that a node is in."""
    domain = labels_of(node).get(term.topology_key)
    return domain is not None and labels_of(_node_of(cluster, other)).get(term.topology_key) == domain


def score_nodes(
    cluster: PlainCluster, pod: Pod, feasible: Sequence[Node], *, hard_weight: int, ignore_existing: bool
) -> list[int]:
    """Normalised over the feasible nodes; all 0 if nobody prefers anything."""
    if ignore_existing and not preferred(pod, "pod_affinity") and not preferred(pod, "pod_anti_affinity"):
        return [0] * len(feasible)
    raw = [_raw_score(cluster, pod, node, hard_weight) for node in feasible]
    lowest, highest = min(raw, default=0), max(raw, default=0)
    if lowest == highest:
        return [0] * len(feasible)
    return [int(100.0 * ((score - lowest) / (highest - lowest))) for score in raw]


def _raw_score(cluster: PlainCluster, pod: Pod, node: Node, hard_weight: int) -> int:
    total = 0
    for other in cluster.pods:
        for sign, side in ((1, "pod_affinity"), (-1, "pod_anti_affinity")):
            for mine in preferred(pod, side):
                if speaks_of(cluster, pod, mine.pod_affinity_term, other):
                    total += sign * mine.weight * _in_domain(cluster, other, mine.pod_affinity_term, node)
            for theirs in preferred(other, side):
                if speaks_of(cluster, other, theirs.pod_affinity_term, pod):
                    total += sign * theirs.weight * _in_domain(cluster, other, theirs.pod_affinity_term, node)
        for term in required(other, "pod_affinity"):
            if speaks_of(cluster, other, term, pod):
                total += hard_weight * _in_domain(cluster, other, term, node)
    return total
