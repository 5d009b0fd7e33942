"""Answer recorded scenarios of provisioning and consolidation. See tests/golden-provisioning/README.md."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mooring.actions.capacity.karpenter.candidates import budgets_left
from mooring.actions.capacity.karpenter.consolidation import Command, Consolidation
from mooring.actions.capacity.karpenter.planned import NewNode
from mooring.actions.capacity.karpenter.provisioning import provision
from mooring.actions.capacity.karpenter.situation import KarpenterSettings, Situation, make_machines
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.actions.capacity.karpenter.windows import is_consolidatable
from mooring.model.api.karpenter import EMPTY, UNDERUTILIZED, NodeClaim, NodePool
from mooring.model.api.meta import Namespace, timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.api.workloads import DaemonSet
from mooring.model.capacity.instance_types import InstanceType, Offering, add_amounts, amounts_of
from mooring.model.capacity.labels import NODE_POOL, ZONE
from mooring.model.capacity.requirements import Requirement, Requirements, collect
from mooring.model.defaults import default_pod_spec
from mooring.model.values.quantity import parse_quantity

Json = dict[str, Any]
KINDS = ("provisioning", "consolidation")


def is_provisioning(scenario: Json) -> bool:
    """Tell a scenario of provisioning or consolidation from the others."""
    return scenario.get("kind") in KINDS and "instanceTypes" in scenario


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario, in the form of its `expect`."""
    situation = read_situation(scenario)
    if scenario["kind"] == "provisioning":
        return {"id": scenario["id"], **_provisioning(situation)}
    return {"id": scenario["id"], **_consolidation(situation)}


def read_situation(scenario: Json) -> Situation:
    now = timestamp_seconds(scenario["now"])
    assert now is not None
    pods = _pods(scenario.get("pods"), "Running")
    daemon_sets = msgspec.convert(scenario.get("daemonSets") or [], list[DaemonSet])
    for found in daemon_sets:
        default_pod_spec(found.spec.template.spec)
    nodes = msgspec.convert(scenario.get("nodes") or [], list[Node])
    claims = msgspec.convert(scenario.get("nodeClaims") or [], list[NodeClaim])
    settings = scenario.get("settings") or {}
    return Situation(
        now=now,
        pools=tuple(msgspec.convert(scenario["nodePools"], list[NodePool])),
        instance_types=tuple(_instance_type(each) for each in scenario["instanceTypes"]),
        machines=make_machines(nodes, claims, pods),
        pending=tuple(_pods(scenario.get("pending"), "Pending")),
        daemon_sets=tuple(daemon_sets),
        budgets=tuple(msgspec.convert(scenario.get("podDisruptionBudgets") or [], list[PodDisruptionBudget])),
        namespaces=tuple(msgspec.convert(scenario.get("namespaces") or [], list[Namespace])),
        settings=KarpenterSettings(
            preference_policy=settings.get("preferencePolicy", "Respect"),
            min_values_policy=settings.get("minValuesPolicy", "Strict"),
            spot_to_spot=settings.get("spotToSpotConsolidation", False),
        ),
    )


def _pods(documents: list[Json] | None, phase: str) -> list[Pod]:
    pods = msgspec.convert(documents or [], list[Pod])
    for pod in pods:
        default_pod_spec(pod.spec)
        pod.status.phase = pod.status.phase or phase
    return pods


def _instance_type(given: Json) -> InstanceType:
    overhead = given.get("overhead") or {}
    return InstanceType(
        name=given["name"],
        requirements=collect(
            (each["key"], Requirement(frozenset(each.get("values") or ()))) for each in given["requirements"]
        ),
        capacity=amounts_of(given["capacity"]),
        overhead=add_amounts(amounts_of(part) for part in overhead.values()),
        offerings=tuple(
            Offering(
                zone=each["zone"],
                capacity_type=each["capacityType"],
                price=each["price"],
                available=each.get("available", True),
                reservation_id=each.get("reservationID", ""),
                reservation_capacity=each.get("reservationCapacity", 0),
            )
            for each in given["offerings"]
        ),
    )


def _provisioning(situation: Situation) -> Json:
    decided = provision(situation)
    return {
        "claims": [_new_node(node) for node in decided.placed.new_nodes],
        "existing": _names(decided.placed.existing),
        "errors": {pod.key: sorted(reasons) for pod, reasons in decided.placed.errors.values()},
        "ignored": sorted(pod.key for pod in decided.ignored),
    }


def _consolidation(situation: Situation) -> Json:
    snapshot = Snapshot(situation)
    methods = Consolidation(snapshot)
    pools = snapshot.all_pools
    claims = [machine.claim for machine in snapshot.machines if machine.claim is not None]
    answer: Json = {
        "consolidatable": sorted(
            claim.name
            for claim in claims
            if is_consolidatable(pools.get((claim.metadata.labels or {}).get(NODE_POOL, "")), claim, situation.now)
        ),
        "budgets": {reason: budgets_left(snapshot, reason) for reason in (EMPTY, UNDERUTILIZED)},
        "candidates": {
            reason: [
                {"node": each.machine.name, "price": each.price, "cost": each.cost}
                for each in methods.candidates(reason)
            ]
            for reason in (EMPTY, UNDERUTILIZED)
        },
    }
    commands = {"emptiness": methods.emptiness(), "multi": methods.multi(), "single": methods.single()}
    done = {name: command for name, command in commands.items() if command is not None}
    answer |= {name: _command(command) for name, command in done.items()}
    answer["first"] = next(iter(done), None)
    return answer


def _command(command: Command) -> Json:
    return {
        "decision": command.decision,
        "nodes": sorted(candidate.machine.name for candidate in command.candidates),
        "replacement": command.replacement and _new_node(command.replacement),
        "existing": _names(command.placed.existing) if command.placed is not None else {},
    }


def _names(existing: dict[str, tuple[Pod, ...]]) -> dict[str, list[str]]:
    return {name: sorted(pod.key for pod in pods) for name, pods in existing.items()}


def _new_node(node: NewNode) -> Json:
    offerings = node.offerings()
    price = node.price
    return {
        "nodePool": node.pool,
        "instanceTypes": sorted(node.instance_types),
        "requirements": _requirements(node.launch_requirements().without(NODE_POOL)),
        "requests": {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in node.requests.items()},
        "pods": sorted(pod.key for pod in node.pods),
        "cheapest": {
            "price": price,
            "offerings": sorted(
                [name, offering.zone, offering.capacity_type] for name, offering in offerings if offering.price == price
            ),
        },
    }


def _requirements(requirements: Requirements) -> Json:
    return {key: _entries(requirement) for key, requirement in sorted(requirements.items())}


def _entries(requirement: Requirement) -> list[Json]:
    bounds = (("Gte", requirement.at_least), ("Lte", requirement.at_most))
    entries: list[Json] = [{"operator": name, "values": [str(bound)]} for name, bound in bounds if bound is not None]
    if not entries:
        entries = [{"operator": requirement.operator, "values": sorted(requirement.values)}]
    if requirement.min_values is not None:
        entries = [{**entry, "minValues": requirement.min_values} for entry in entries]
    return entries


# Comparing: lists in any order, codes of errors aside.


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which an answer differs."""
    want, have = _comparable(expected), _comparable(answer)
    if want != have and expected.get("zones") == "interchangeable" and _is_equal_but_for_zones(want, expected, answer):
        return
    for field in want:
        if want[field] != have[field]:
            yield field, want[field], have[field]


def _is_equal_but_for_zones(want: Json, expected: Json, answer: Json) -> bool:
    zones = sorted({*_zones(expected), *_zones(answer)})
    return any(
        _comparable(answer, dict(zip(zones, other, strict=True)).__getitem__) == want
        for other in itertools.permutations(zones)
    )


def _zones(answer: Json) -> set[str]:
    found: set[str] = set()
    for claim in answer.get("claims") or ():
        for rule in (claim.get("requirements") or {}).get(ZONE, ()):
            found.update(rule.get("values") or ())
        found.update(zone for _, zone, _ in (claim.get("cheapest") or {}).get("offerings") or ())
    return found


def _same(zone: str) -> str:
    return zone


def _comparable(answer: Json, rename: Callable[[str], str] = _same) -> Json:
    claims = [_comparable_node(claim, rename) for claim in answer.get("claims") or ()]
    fields: Json = {
        "claims": sorted(claims, key=lambda claim: claim["pods"]),
        "existing": _placed(answer.get("existing")),
        "errors": sorted(answer.get("errors") or ()),
        "ignored": sorted(answer.get("ignored") or ()),
        "consolidatable": sorted(answer.get("consolidatable") or ()),
        "budgets": answer.get("budgets") or {},
        "candidates": {
            reason: sorted((each["node"], _number(each["price"]), _number(each["cost"])) for each in found)
            for reason, found in (answer.get("candidates") or {}).items()
            if found
        },
        "first": answer.get("first") or None,
    }
    for method in ("emptiness", "multi", "single"):
        given = answer.get(method)
        fields[method] = given and {
            "decision": given.get("decision"),
            "nodes": sorted(given.get("nodes") or ()),
            "replacement": given.get("replacement") and _comparable_node(given["replacement"], rename),
            "existing": _placed(given.get("existing")),
        }
    return fields


def _placed(given: Json | None) -> Json:
    return {name: sorted(pods) for name, pods in (given or {}).items() if pods}


def _number(value: float) -> float:
    return round(float(value), 9)


def _comparable_node(claim: Json, rename: Callable[[str], str]) -> Json:
    best = claim.get("cheapest")
    amounts = {name: parse_quantity(text) for name, text in (claim.get("requests") or {}).items()}
    return {
        "nodePool": claim.get("nodePool"),
        "pods": sorted(claim.get("pods") or ()),
        "instanceTypes": sorted(claim.get("instanceTypes") or ()),
        "requirements": {
            key: sorted(_rule(rule, rename if key == ZONE else _same) for rule in rules)
            for key, rules in (claim.get("requirements") or {}).items()
        },
        "requests": {name: amount for name, amount in amounts.items() if amount},
        "cheapest": best
        and (
            _number(best["price"]),
            sorted((name, rename(zone), kind) for name, zone, kind in best["offerings"]),
        ),
    }


def _rule(rule: Json, rename: Callable[[str], str]) -> tuple[str, tuple[str, ...], int]:
    return rule["operator"], tuple(sorted(map(rename, rule.get("values") or ()))), rule.get("minValues") or 0
