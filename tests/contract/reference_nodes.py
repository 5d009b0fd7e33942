"""TaintToleration, NodeAffinity and NodePorts, one node at a time."""

from collections.abc import Sequence

from reference_world import PlainCluster, labels_of

from mooring.model.api.meta import NodeSelectorRequirement, NodeSelectorTerm
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import NodeAffinity, Pod, Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    same_effect = toleration.effect in ("", taint.effect)
    same_key = toleration.key in ("", taint.key)
    same_value = toleration.operator == "Exists" or toleration.value == taint.value
    return same_effect and same_key and same_value


def has_untolerated_taint(pod: Pod, node: Node) -> bool:
    return any(
        taint.effect in ("NoSchedule", "NoExecute")
        and not any(tolerates(toleration, taint) for toleration in pod.spec.tolerations or ())
        for taint in node.spec.taints or ()
    )


def disliked_taints(pod: Pod, node: Node) -> int:
    """How many taints that only ask to stay away the pod does not tolerate."""
    tolerations = [t for t in pod.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in node.spec.taints or ()
    )


def holds(requirement: NodeSelectorRequirement, labels: dict[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            try:
                number, bound = int(value or ""), int(values[0])
            except ValueError:
                return False
            return number > bound if operator == "Gt" else number < bound


def matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    by_label = all(holds(requirement, labels_of(node)) for requirement in term.match_expressions or ())
    by_name = all(holds(requirement, {"metadata.name": node.name}) for requirement in term.match_fields or ())
    return by_label and by_name


def matches_required(pod: Pod, node: Node) -> bool:
    """The pod's node selector and its required node affinity."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(matches_term(term, node) for term in affinity.required.node_selector_terms)


def preferred_weight(node: Node, affinities: Sequence[NodeAffinity | None]) -> int:
    return sum(
        preferred.weight
        for affinity in affinities
        if affinity is not None
        for preferred in affinity.preferred or ()
        if matches_term(preferred.preference, node)
    )


def host_ports(pod: Pod) -> list[tuple[str, str, int]]:
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports or ()
        if port.host_port > 0
    ]


def ports_collide(cluster: PlainCluster, pod: Pod, node: Node) -> bool:
    held = [port for other in cluster.pods_on(node) for port in host_ports(other)]
    return any(
        (protocol, number) == (other_protocol, other_number)
        and (address == other_address or "0.0.0.0" in (address, other_address))
        for address, protocol, number in host_ports(pod)
        for other_address, other_protocol, other_number in held
    )
