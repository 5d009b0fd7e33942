"""Decisions recorded from Karpenter itself (`tests/golden-provisioning`), taken again by ours: they agree exactly."""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing.conformance import main
from mooring.testing.provisioning_conformance import answer_scenario, differences

GOLDEN = Path(__file__).parents[1] / "golden-provisioning"
PROVISIONING = (
    "basic",
    "requirements",
    "taints_daemonsets",
    "topology",
    "affinity",
    "gpu",
    "limits_weights",
    "spot_prices",
    "existing_nodes",
    "reserved",
    "mix",
)
CONSOLIDATION = ("empty", "single", "multi", "budgets", "balanced")


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", [*PROVISIONING, *CONSOLIDATION])
def test_every_scenario_is_decided_as_karpenter_decides_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code = main([str(GOLDEN / f"{name}.jsonl.gz")])

    assert (capsys.readouterr().out, exit_code) == (f"AGREE 60/60 {name}.jsonl.gz\n", 0)


@pytest.mark.parametrize("name", ["mix", "topology", "multi"])
def test_the_order_of_lists_decides_nothing(name: str) -> None:
    for scenario in read_scenarios(name)[:20]:
        turned = {
            **scenario,
            **{
                key: list(reversed(scenario.get(key) or ()))
                for key in ("nodePools", "nodes", "nodeClaims", "pods", "pending", "daemonSets", "instanceTypes")
            },
        }

        assert list(differences(scenario["expect"], answer_scenario(turned))) == [], scenario["id"]


def test_one_instance_type_less_is_a_wrong_answer() -> None:
    scenario = read_scenarios("basic")[0]
    answer = answer_scenario(scenario)
    answer["claims"][0]["instanceTypes"].pop()

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["claims"]


def test_zones_may_be_exchanged_only_where_the_recording_says_so() -> None:
    scenario = next(
        one
        for one in read_scenarios("topology")
        if one["expect"].get("zones") == "interchangeable"
        and not list(differences(one["expect"], answer_scenario(one)))
    )
    strict = copy.deepcopy(scenario["expect"])
    del strict["zones"]
    exchanged = json.loads(
        json.dumps(scenario["expect"])
        .replace('"zone-a"', '"zone-?"')
        .replace('"zone-b"', '"zone-a"')
        .replace('"zone-?"', '"zone-b"')
    )

    assert list(differences(scenario["expect"], exchanged)) == []
    assert list(differences(strict, exchanged)) != []


def test_a_pod_on_another_node_is_a_wrong_answer() -> None:
    scenario = next(one for one in read_scenarios("existing_nodes") if len(one["expect"].get("existing") or {}) > 1)
    answer = answer_scenario(scenario)
    first, second, *_ = answer["existing"]
    answer["existing"][first], answer["existing"][second] = answer["existing"][second], answer["existing"][first]

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["existing"]
