"""Answer recorded scenarios of queues' shares in their own form. See tests/golden-shares/README.md."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from mooring.actions.shares.kai.division import Claim, fair_shares
from mooring.actions.shares.section import SharesSection
from mooring.actions.shares.volcano.family import VolcanoFamily
from mooring.actions.shares.yunikorn.fair_order import application_key, queue_share
from mooring.assembly import assemble
from mooring.config.settings import parse_settings
from mooring.model.decisions import Bind
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import build_manifests

Json = dict[str, Any]

TOLERANCE = {"cpu": 3.01, "memory": 4096}
"""Thousandths of a CPU, bytes; of other things one piece."""


def is_shares(scenario: Json) -> bool:
    """Tell a scenario of shares from the others."""
    return not {"deserved", "fairShare", "first"}.isdisjoint(scenario["expect"])


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario with the public core, in the form of its `expect`."""
    if "objects" in scenario:
        answer = _volcano(scenario)
    elif "queues" in scenario:
        answer = {"fairShare": _kai(scenario)}
    else:
        answer = {"first": _yunikorn(scenario)}
    return {"id": scenario["id"], **answer}


def _volcano(scenario: Json) -> Json:
    """One cycle of Volcano's queues."""
    division = "Proportion" if scenario["mode"] == "proportion" else "Capacity"
    policy = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "TenantPolicy", "shares": {"division": division}}
    scheduler = assemble(parse_settings([policy], scenario["id"])).new_scheduler()
    manifests = build_manifests(scenario["objects"], source=scenario["id"])
    scheduler.load(manifests, 0.0)
    decisions = scheduler.cycle(1.0)
    job_of = {pod.key: (pod.metadata.annotations or {})["scheduling.k8s.io/group-name"] for pod in manifests.pods}
    share = next(found for found in scheduler.sections(SharesSection) if isinstance(found.family, VolcanoFamily))
    assert share.sharing is not None, "there are queues in every scenario"
    deserved = {
        queue: {name: share.sharing.report(queue).deserved.get(name, 0) for name in amounts}
        for queue, amounts in scenario["expect"]["deserved"].items()
    }
    return {
        "deserved": deserved,
        "bound": Counter(job_of[PodKey(found.pod)] for found in decisions if isinstance(found, Bind)),
    }


def _kai(scenario: Json) -> Json:
    """What KAI's division gives each queue of each resource."""
    found: dict[str, dict[str, float]] = {queue["name"]: {} for queue in scenario["queues"]}
    for resource, total in scenario["total"].items():
        claims = [
            Claim(queue["name"], priority=queue["priority"], created=queue["created"], **queue["by"][resource])
            for queue in scenario["queues"]
        ]
        for name, share in fair_shares(total, claims, scenario["k"]).items():
            found[name][resource] = share
    return found


def _yunikorn(scenario: Json) -> list[int]:
    """Of each pair of queues or applications the one that comes first."""
    total = scenario["total"]
    if scenario["kind"] == "apps":
        keys: list[Any] = [application_key(item["allocated"], total) for item in scenario["items"]]
    else:
        keys = [
            queue_share(item["allocated"], item.get("guaranteed") or {}, {**total, **(item.get("max") or {})})
            for item in scenario["items"]
        ]
    return [(one > other) - (one < other) for one, other in combinations(keys, 2)]


def differences(expected: Json, answer: Json) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which an answer differs, with both values."""
    for field in ("deserved", "fairShare"):
        for queue, amounts in expected.get(field, {}).items():
            for name, want in amounts.items():
                have = answer.get(field, {}).get(queue, {}).get(name, 0)
                if name != "pods" and abs(want - have) > TOLERANCE.get(name, 1):
                    yield f"{field}.{queue}.{name}", want, have
    for field in ("bound", "first"):
        if expected.get(field, {}) != answer.get(field, {}):
            yield field, expected.get(field), answer.get(field)
