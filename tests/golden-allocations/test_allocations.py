"""What Kubernetes' allocator gives claims on each node: ours gives the very same, or refuses for the same reason."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec

from mooring.assembly import assemble
from mooring.engine.evaluate import evaluate
from mooring.model.events import PodSeen
from mooring.model.loading.manifests import build_manifests
from mooring.model.values.quantity import parse_quantity
from mooring.state.loading import populate
from mooring.testing.conformance import OBJECTS

RECORDED = Path(__file__).parent / "allocations.jsonl.gz"
Json = dict[str, Any]


def read_scenarios() -> list[Json]:
    with gzip.open(RECORDED, "rt") as lines:
        return [json.loads(line) for line in lines]


def answer(scenario: Json) -> Json:
    """By node, the allocations of the pod's claims if it comes there, or why it cannot."""
    assembly = assemble(None)
    cluster = assembly.new_cluster()
    documents = [document for key in OBJECTS for document in scenario.get(key) or ()]
    manifests = build_manifests([*documents, scenario["pod"]], source=scenario["id"])
    pod = manifests.pods.pop()
    populate(cluster, manifests)
    cluster.observe(PodSeen(pod))
    evaluation = evaluate(assembly.default_profile, cluster, cluster.shape_for(pod))
    if evaluation.refused is not None:
        return dict.fromkeys((node["metadata"]["name"] for node in scenario["nodes"]), evaluation.refused.reasons[0])
    found: Json = {}
    for position, row in enumerate(evaluation.rows.tolist()):
        verdict = evaluation.verdict(position)
        if verdict is not None:
            found[cluster.nodes.name(row)] = verdict.reasons[0]
            continue
        with cluster.what_if():
            cluster.assume(pod.key, row)
            states = [cluster.claims.state(key) for key, _ in cluster.claims.claims_of(pod)]
            found[cluster.nodes.name(row)] = [msgspec.to_builtins(state.allocation) for state in states]
    return found


def comparable(answers: Json) -> Json:
    return {
        node: each if isinstance(each, str) else [_allocation(one) for one in each] for node, each in answers.items()
    }


def _allocation(written: Json) -> Json:
    results = [_result(_without_nothing(each)) for each in written["devices"].get("results") or ()]
    return {"results": results, "nodeSelector": _without_nothing(written.get("nodeSelector"))}


def _result(written: Json) -> Json:
    amounts = {name: parse_quantity(each) for name, each in written.get("consumedCapacity", {}).items()}
    return written | {"shareID": "shareID" in written, "consumedCapacity": amounts}


def _without_nothing(written: Any) -> Any:
    """Without what is empty or says what is so anyway."""
    if isinstance(written, dict):
        kept = {key: _without_nothing(value) for key, value in written.items() if value not in (None, "", [], {})}
        return {key: value for key, value in kept.items() if (key, value) != ("operator", "Equal")}
    return [_without_nothing(each) for each in written] if isinstance(written, list) else written


def test_every_claim_gets_the_devices_that_kubernetes_gives_it() -> None:
    scenarios = read_scenarios()

    wrong = {
        scenario["id"]: (expected, given)
        for scenario in scenarios
        if (expected := comparable(scenario["expect"]["allocations"])) != (given := comparable(answer(scenario)))
    }

    assert len(scenarios) == 120
    assert wrong == {}


def test_another_device_is_a_wrong_answer() -> None:
    scenario = next(each for each in read_scenarios() if isinstance(next(iter(answer(each).values())), list))
    given = answer(scenario)
    next(iter(given.values()))[0]["devices"]["results"][0]["device"] = "another"

    assert comparable(given) != comparable(scenario["expect"]["allocations"])
