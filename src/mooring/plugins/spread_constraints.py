"""Spread constraints, compiled: whom they count, and on which nodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import Mask
from mooring.model.api.pods import TopologySpreadConstraint
from mooring.model.values.selectors import (
    EVERYTHING,
    Requirement,
    Selector,
    compile_equality,
    compile_label_selector,
    make_selector,
)
from mooring.model.values.tolerations import untolerated
from mooring.plugins.node_affinity import required_nodes
from mooring.state.effects import ShapeEffects
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, RelatedView

HOSTNAME = "kubernetes.io/hostname"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


@dataclass(frozen=True, slots=True)
class Constraint:
    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def effects_in(self, namespace: str, cluster: ClusterView) -> ShapeEffects:
        """What a pod of each shape counts: those selected, in the pod's namespace, not on their way out."""
        selector = self.selector

        def counts(other: Shape) -> int:
            if selector.is_empty or other.namespace != namespace or other.terminating:
                return 0
            return int(selector.matches(other.selected_labels))

        return cluster.effects(("spread", namespace, selector), counts, lambda: cluster.shapes_selected_by(selector))


def own_constraints(pod: Shape, when: str) -> list[Constraint]:
    constraints = pod.spec.topology_spread_constraints or ()
    return [_compile(c, _own_selector(c, pod)) for c in constraints if c.when_unsatisfiable == when]


def _own_selector(constraint: TopologySpreadConstraint, pod: Shape) -> Selector:
    selector = compile_label_selector(constraint.label_selector)
    keys = [key for key in constraint.match_label_keys or () if key in pod.selected_labels]
    merged = dict.fromkeys(selector.requirements)
    merged |= {Requirement(key, "In", frozenset((pod.selected_labels[key],))): None for key in keys}
    return selector if selector.is_nothing else make_selector(merged)


def with_selector(constraint: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return _compile(constraint, selector)


def _compile(constraint: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        constraint.topology_key,
        constraint.max_skew,
        selector,
        constraint.min_domains or 1,
        (constraint.node_affinity_policy or "Honor") == "Honor",
        (constraint.node_taints_policy or "Ignore") == "Honor",
    )


def eligible_rows(pod: Shape, rows: NodeRows, constraint: Constraint, has_all: Mask) -> NDArray[np.intp]:
    """The rows whose pods a constraint counts, by its inclusion policies."""
    mask = has_all.copy()
    if constraint.honors_affinity:
        required = required_nodes(pod)
        if required is not None:
            mask &= required.match(rows)
    if constraint.honors_taints:
        tolerations = pod.spec.tolerations or ()
        free = np.array([not untolerated(tolerations, taints) for taints in rows.taint_sets], np.bool_)
        mask &= free[rows.taint_set]
    return rows.index[mask]


def default_selector(pod: Shape, related: RelatedView) -> Selector:
    """Whom default spreading counts: what the pod's services and its controller select."""
    wanted: dict[str, str] = {}
    for service in related.services_in(pod.namespace):
        selector = service.spec.selector
        if selector and all(pod.selected_labels.get(key) == value for key, value in selector.items()):
            wanted |= selector
    merged = compile_equality(wanted) if wanted else EVERYTHING
    return merged.with_requirements(_controller_selector(pod, related).requirements)


def _controller_selector(pod: Shape, related: RelatedView) -> Selector:
    for owner in pod.sample.metadata.owner_references or ():
        if not owner.controller:
            continue
        key = f"{pod.namespace}/{owner.name}"
        if owner.kind == "ReplicationController" and key in related.replication_controllers:
            return compile_equality(related.replication_controllers[key].spec.selector or {})
        if owner.kind == "ReplicaSet" and key in related.replica_sets:
            return compile_label_selector(related.replica_sets[key].spec.selector)
        if owner.kind == "StatefulSet" and key in related.stateful_sets:
            return compile_label_selector(related.stateful_sets[key].spec.selector)
    return EVERYTHING
