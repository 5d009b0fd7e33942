"""Answer recorded scenarios of the descheduler. See tests/golden-rebalance/README.md."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.actions.rebalance.descheduler.cycle import deschedule
from mooring.actions.rebalance.descheduler.situation import Situation
from mooring.config.descheduler import KIND, parse_descheduler_policy
from mooring.errors import ConfigError
from mooring.model.api.meta import Namespace, timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PriorityClass
from mooring.model.api.volumes import PersistentVolumeClaim

Json = dict[str, Any]


def is_rebalancing(scenario: Json) -> bool:
    """Tell a scenario of the descheduler from the others."""
    return (scenario.get("policy") or {}).get("kind") == KIND


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario, in the form of its `expect`."""
    now = timestamp_seconds(scenario["now"])
    assert now is not None
    situation = Situation(
        now,
        msgspec.convert(scenario["nodes"], list[Node]),
        msgspec.convert(scenario["pods"], list[Pod]),
        msgspec.convert(scenario.get("namespaces") or [], list[Namespace]),
        msgspec.convert(scenario.get("priorityClasses") or [], list[PriorityClass]),
        msgspec.convert(scenario.get("persistentVolumeClaims") or [], list[PersistentVolumeClaim]),
        msgspec.convert(scenario.get("podDisruptionBudgets") or [], list[PodDisruptionBudget]),
    )
    answer: Json = {"id": scenario["id"], "owners": _owners(scenario)}
    try:
        done = deschedule(parse_descheduler_policy(scenario["policy"], "policy"), situation)
    except ConfigError:
        return answer | {"invalid": True}
    evicted = [
        {"pod": one.pod, "node": one.node, "strategy": one.strategy, "profile": one.profile} for one in done.evictions
    ]
    return answer | {"evicted": evicted, "nodes": done.nodes}


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which an answer differs, as far as the descheduler itself decides them."""
    if expected.get("invalid") or answer.get("invalid"):
        if bool(expected.get("invalid")) != bool(answer.get("invalid")):
            yield "invalid", bool(expected.get("invalid")), bool(answer.get("invalid"))
        return
    want, have = expected["evicted"], answer["evicted"]
    match expected["order"]:
        case "total" if want != have:
            yield "evicted, in order", want, have
        case "node" if _by_node(want) != _by_node(have):
            yield "evicted, by node in order", _by_node(want), _by_node(have)
        case "set" if sorted(map(str, want)) != sorted(map(str, have)):
            yield "evicted", want, have
        case "counts":
            counts = Counter(f"{one['strategy']}|{one['node']}|{answer['owners'][one['pod']]}" for one in have)
            if counts != expected["counts"]:
                yield "evicted, counts", expected["counts"], dict(counts)
            strangers = sorted({one["pod"] for one in have} - set(expected["candidates"]))
            if strangers:
                yield "evicted, no candidate", [], strangers
    if expected.get("nodes") and _classes(expected["nodes"]) != _classes(answer["nodes"]):
        yield "nodes", _classes(expected["nodes"]), _classes(answer["nodes"])


def _owners(scenario: Json) -> dict[str, str]:
    owners = {}
    for pod in scenario["pods"]:
        metadata = pod["metadata"]
        kinds = sorted(f"{one['kind']}/{one['name']}" for one in metadata.get("ownerReferences") or ())
        owners[f"{metadata['namespace']}/{metadata['name']}"] = f"{metadata['namespace']}/{'+'.join(kinds)}"
    return owners


def _by_node(evicted: list[Json]) -> dict[tuple[str, str, str], list[str]]:
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for one in evicted:
        grouped.setdefault((one["profile"], one["strategy"], one["node"]), []).append(one["pod"])
    return grouped


def _classes(nodes: Json) -> Json:
    return {strategy: {name: sorted(found) for name, found in by.items() if found} for strategy, by in nodes.items()}
