"""Answer recorded scenarios of Koordinator's webhooks and of its controller of batch and mid resources."""

from fractions import Fraction
from typing import Any

import msgspec

from mooring.model.api.colocation_profile import ClusterColocationProfile
from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.meta import Namespace, timestamp_seconds
from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PriorityClass
from mooring.model.colocation.classes import priority_class, qos
from mooring.model.colocation.node_sync import Observed, sync_node
from mooring.model.colocation.pod_rules import colocation_errors, refusal_text
from mooring.model.colocation.profiles import ProfileError, Surroundings, mutate_pod

Json = dict[str, Any]


def answer_profile(scenario: Json) -> Json:
    """What profiles make of a pod, and whether it is allowed."""
    namespaces = msgspec.convert(scenario["namespaces"], list[Namespace])
    classes = msgspec.convert(scenario["priorityClasses"], list[PriorityClass])
    around = Surroundings(
        tuple(msgspec.convert(scenario["profiles"], list[ClusterColocationProfile])),
        {found.metadata.name: found.metadata.labels or {} for found in namespaces},
        {found.metadata.name: found for found in classes},
    )
    try:
        mutated = mutate_pod(scenario["pod"], around, draw=lambda _profile: 0)
    except ProfileError:
        return {"error": True}
    pod = msgspec.convert(mutated, Pod)
    errors = colocation_errors(pod)
    containers = [*(mutated["spec"].get("initContainers") or ()), *(mutated["spec"].get("containers") or ())]
    return {
        "error": False,
        "labels": pod.metadata.labels,
        "annotations": pod.metadata.annotations,
        "schedulerName": pod.spec.scheduler_name,
        "priorityClassName": pod.spec.priority_class_name,
        "priority": pod.spec.priority,
        "preemptionPolicy": pod.spec.preemption_policy or "",
        "resources": {one["name"]: one.get("resources") or {} for one in containers},
        "overhead": pod.spec.overhead or {},
        "priorityClass": priority_class(pod),
        "qos": qos(pod),
        "allowed": not errors,
        "reason": refusal_text(errors),
    }


def answer_colocation(scenario: Json) -> Json:
    """What is written to a node of batch and mid resources."""
    now = timestamp_seconds(scenario["now"])
    assert now is not None
    metric, topology = scenario.get("nodeMetric"), scenario.get("topology")
    seen = Observed(
        msgspec.convert(scenario["node"], Node),
        None if metric is None else msgspec.convert(metric, NodeMetric),
        msgspec.convert(scenario["pods"], list[Pod]),
        None if topology is None else msgspec.convert(topology, NodeResourceTopology),
        timestamp_seconds(scenario.get("lastSync")),
    )
    found = sync_node(scenario["config"], seen, now)
    zones = found.zones
    return {
        "status": found.status,
        "origin": found.origin,
        "annotations": found.annotations,
        "zones": zones and {zone: {name: _number(one) for name, one in held.items()} for zone, held in zones.items()},
    }


def _number(amount: Fraction) -> int | float:
    return int(amount) if amount.denominator == 1 else float(amount)
