"""Whether a pod could be on a node, as far as the descheduler looks: no simulation of a scheduler."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

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
    if pod.spec.node_selector and not compile_equality(pod.spec.node_selector).matches(labels):
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
    return _is_allowed(situation, pod, node) and (
        pod.spec.node_name == node.metadata.name or _has_room(situation, pod, node)
    )


def _is_allowed(situation: Situation, pod: Pod, node: Node) -> bool:
    """Whether a pod may be on a node, if there is room."""
    if node.spec.unschedulable or not matches_node(pod, node):
        return False
    if untolerated(pod.spec.tolerations or (), node.spec.taints or ()):
        return False
    labels = node.metadata.labels or {}
    for term in anti_affinity_terms(pod):
        if term.topology_key in labels and any(is_selected(term, pod, other) for other in situation.live_pods(node)):
            return False
    return True


class Destinations:
    """Which pods fit a node other than their own, remembered: most pods are alike, and few nodes change in a cycle."""

    def __init__(self, situation: Situation, nodes: Sequence[Node]) -> None:
        self._situation = situation
        self._nodes = nodes
        self._positions = {node.metadata.name: position for position, node in enumerate(nodes)}
        self._known: dict[object, _Known] = {}

    def has_another(self, pod: Pod) -> bool:
        """Whether a pod fits a node other than its own."""
        changed = self._situation.changed
        alike = self._alike(pod)
        known = self._known.get(alike)
        if known is None:
            known = self._known[alike] = _Known(since=len(changed))
        if known.since < len(changed):
            again = {
                name for name in changed[known.since :] if self._positions.get(name, known.looked_at) < known.looked_at
            }
            known.fitting -= again
            known.doubtful |= again
            known.since = len(changed)
        home = pod.spec.node_name
        if len(known.fitting) > (home in known.fitting):
            return True
        while known.doubtful:
            name = known.doubtful.pop()
            if self._look(pod, self._nodes[self._positions[name]], known) and name != home:
                return True
        while known.looked_at < len(self._nodes):
            node = self._nodes[known.looked_at]
            known.looked_at += 1
            if self._look(pod, node, known) and node.metadata.name != home:
                return True
        return False

    def _look(self, pod: Pod, node: Node, known: "_Known") -> bool:
        is_fit = _is_allowed(self._situation, pod, node) and _has_room(self._situation, pod, node)
        if is_fit:
            known.fitting.add(node.metadata.name)
        return is_fit

    def _alike(self, pod: Pod) -> object:
        """What pods have in common that fit the same nodes."""
        key = pod.key
        if anti_affinity_terms(pod):
            return key  # which pods are in its way depends on its name
        number = self._situation.alike.get(key)
        if number is not None:
            return number
        spec, requests = pod.spec, tuple(self._situation.requests(pod).items())
        return requests, msgspec.json.encode((spec.node_selector, required_node_affinity(pod), spec.tolerations))


@dataclass(slots=True)
class _Known:
    """What is known of the nodes for pods that are alike."""

    since: int
    """How many changes of the situation it takes into account."""
    fitting: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    """Nodes that have changed since they were looked at."""
    looked_at: int = 0
    """So many nodes have been looked at, in order."""


def fits_any(situation: Situation, pod: Pod, nodes: Iterable[Node]) -> bool:
    return any(fits(situation, pod, node) for node in nodes)


def _has_room(situation: Situation, pod: Pod, node: Node) -> bool:
    count, requested = situation.requested_on(node)
    allocatable = node.status.allocatable or {}
    if to_units(parse_quantity(allocatable.get("pods", 0))) - count <= 0:
        return False
    for name, wanted in situation.requests(pod).items():
        whole = to_millis if name == "cpu" else to_units
        if to_millis(wanted) > (1 if name == "cpu" else 1000) * (
            whole(parse_quantity(allocatable.get(name, 0))) - whole(requested.get(name, 0))
        ):
            return False
    return True
