"""Which pending pods nodes are planned for."""

from collections.abc import Iterable

from mooring.actions.capacity.karpenter.snapshot import is_owned_by
from mooring.model.api.meta import NodeSelectorRequirement
from mooring.model.api.pods import Pod
from mooring.model.capacity.labels import CAPACITY_TYPE, CAPACITY_TYPES, NODE_POOL, current_name, is_restricted
from mooring.model.capacity.requirements import from_selector
from mooring.model.values.selectors import NODE_OPERATORS, parse_int64


def is_provisionable(pod: Pod) -> bool:
    """Tell whether a pod waits for a node that does not exist."""
    return (
        not pod.spec.node_name
        and not pod.status.nominated_node_name
        and not is_owned_by(pod, "apps/v1", "DaemonSet")
        and not is_owned_by(pod, "v1", "Node")
    )


def is_valid(pod: Pod) -> bool:
    """Tell whether a pod asks only for what nodes can be planned by."""
    selector = [
        NodeSelectorRequirement(key=key, operator="In", values=[value])
        for key, value in (pod.spec.node_selector or {}).items()
    ]
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required.node_selector_terms if affinity is not None and affinity.required else []
    preferred = sorted((affinity.preferred or ()) if affinity is not None else (), key=lambda each: -each.weight)
    first = [term.match_expressions or () for term in (*required[:1], *(each.preference for each in preferred[:1]))]
    wanted = from_selector([*selector, *(expression for term in first for expression in term)])
    if wanted.allowed(NODE_POOL).operator == "DoesNotExist":
        return False
    return _are_valid(selector) and all(
        not term.match_fields and _are_valid(term.match_expressions or ()) for term in required
    )


def _are_valid(expressions: Iterable[NodeSelectorRequirement]) -> bool:
    return all(_is_valid(expression) for expression in expressions)


def _is_valid(expression: NodeSelectorRequirement) -> bool:
    key, values = current_name(expression.key), expression.values or []
    if expression.operator not in NODE_OPERATORS or is_restricted(key):
        return False
    if expression.operator == "In":
        return bool(values) and (key != CAPACITY_TYPE or any(value in CAPACITY_TYPES for value in values))
    if expression.operator in ("Gt", "Lt"):
        bound = parse_int64(values[0]) if len(values) == 1 else None
        return bound is not None and bound >= 0
    return True
