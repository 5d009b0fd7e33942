"""The recorded decisions of the descheduler: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing import conformance
from mooring.testing.rebalance_conformance import answer_scenario, differences, is_rebalancing

FOLDER = Path(__file__).parent
FILES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.gz"))
CASES = {name: 66 if name == "policies" else 50 for name in FILES}


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", FILES)
def test_every_recorded_case_is_decided_alike(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {s["id"]: fields for s in scenarios if (fields := list(differences(s["expect"], answer_scenario(s))))}

    assert len(scenarios) == CASES[name]
    assert all(is_rebalancing(scenario) for scenario in scenarios)
    assert wrong == {}


def test_there_is_a_file_for_every_topic() -> None:
    assert len(FILES) == 14


@pytest.mark.parametrize(
    ("name", "order", "field"),
    [
        pytest.param("podlifetime", "total", "evicted, in order", id="total"),
        pytest.param("antiaffinity", "node", "evicted, by node in order", id="node"),
        pytest.param("nodetaints", "set", "evicted", id="set"),
        pytest.param("duplicates", "counts", "evicted, counts", id="counts"),
    ],
)
def test_one_eviction_fewer_is_a_wrong_answer(name: str, order: str, field: str) -> None:
    scenario, answer = next(
        (scenario, answer)
        for scenario in read_scenarios(name)
        if scenario["expect"]["order"] == order and (answer := answer_scenario(scenario))["evicted"]
    )
    answer["evicted"].pop()

    assert [topic for topic, _, _ in differences(scenario["expect"], answer)] == [field]


def test_a_policy_that_is_taken_for_valid_is_a_wrong_answer() -> None:
    scenario = next(one for one in read_scenarios("policies") if one["expect"].get("invalid"))

    assert list(differences(scenario["expect"], {"evicted": []})) == [("invalid", True, False)]


def test_the_command_answers_such_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / "limits.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "AGREE 50/50 limits.jsonl.gz\n"
