"""Whether a pod could be on a node, as far as the descheduler looks: no simulation of a scheduler."""

from collections.abc import Iterable

from mooring.actions.rebalance.descheduler.situation import Situation
from mooring.model.api.meta import NodeSelector
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodAffinityTerm
from mooring.model.values.quantity import parse_quantity, to_millis, to_units
from mooring.model.values.selectors import (
    compile_equality,
    compile_label_selector,
    compile_node_selector,
    matches_any_term,
)
from mooring.model.values.tolerations import untolerated


def matches_node(pod: Pod, node: Node) -> bool:
    """Whether a node has what the pod's node selector and required node affinity ask for."""
    labels = node.metadata.labels or {}
    if not compile_equality(pod.spec.node_selector or {}).matches(labels):
        return False
    required = required_node_affinity(pod)
    return required is None or matches_any_term(compile_node_selector(required), node.metadata.name, labels)


def required_node_affinity(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None


def anti_affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity
    return (affinity.pod_anti_affinity.required or []) if affinity and affinity.pod_anti_affinity else []


def is_selected(term: PodAffinityTerm, pod: Pod, other: Pod) -> bool:
    """Whether a term of a pod selects another one; pods of the pod's own name are never meant."""
    if other.metadata.name == pod.metadata.name:
        return False
    if other.metadata.namespace not in (term.namespaces or [pod.metadata.namespace]):
        return False
    return compile_label_selector(term.label_selector).matches(other.metadata.labels or {})


def fits(situation: Situation, pod: Pod, node: Node) -> bool:
    """Whether a pod fits a node; where it is already, room is not asked for."""
    if node.spec.unschedulable or not matches_node(pod, node):
        return False
    if untolerated(pod.spec.tolerations or (), node.spec.taints or ()):
        return False
    labels = node.metadata.labels or {}
    for term in anti_affinity_terms(pod):
        if term.topology_key in labels and any(is_selected(term, pod, other) for other in situation.live_pods(node)):
            return False
    return pod.spec.node_name == node.metadata.name or _has_room(situation, pod, node)


def fits_any(situation: Situation, pod: Pod, nodes: Iterable[Node]) -> bool:
    return any(fits(situation, pod, node) for node in nodes)


def fits_another(situation: Situation, pod: Pod, nodes: Iterable[Node]) -> bool:
    """Whether a pod fits a node other than its own."""
    return any(node.metadata.name != pod.spec.node_name and fits(situation, pod, node) for node in nodes)


def _has_room(situation: Situation, pod: Pod, node: Node) -> bool:
    there = situation.live_pods(node)
    allocatable = node.status.allocatable or {}
    if to_units(parse_quantity(allocatable.get("pods", 0))) - len(there) <= 0:
        return False
    for name, wanted in situation.requests(pod).items():
        whole = to_millis if name == "cpu" else to_units
        used = sum(situation.requests(other).get(name, 0) for other in there)
        if to_millis(wanted) > (1 if name == "cpu" else 1000) * (
            whole(parse_quantity(allocatable.get(name, 0))) - whole(used)
        ):
            return False
    return True
