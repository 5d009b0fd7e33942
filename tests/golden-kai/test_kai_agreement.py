"""The recorded decisions of KAI's actions: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing import conformance
from mooring.testing.kai_conformance import answer_scenario, differences, is_kai

FOLDER = Path(__file__).parent
CASES = {
    "consolidation": 40,
    "departments": 34,
    "elastic": 39,
    "fractions": 37,
    "full": 40,
    "gangs": 40,
    "minruntime": 40,
    "preempt": 40,
    "reclaim": 40,
}


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_case_is_decided_alike(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {s["id"]: fields for s in scenarios if (fields := list(differences(s["expect"], answer_scenario(s))))}

    assert len(scenarios) == CASES[name]
    assert all(is_kai(scenario) for scenario in scenarios)
    assert wrong == {}


def test_another_node_is_a_wrong_answer() -> None:
    scenario = read_scenarios("consolidation")[0]
    answer = answer_scenario(scenario)
    answer["rounds"][0]["new8"] = [["nominated", "node0"]]

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["round 1, new8"]


def test_tasks_that_were_on_different_nodes_are_not_interchangeable() -> None:
    scenario = read_scenarios("gangs")[0]
    answer = answer_scenario(scenario)
    answer["rounds"][0]["run1"].reverse()

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["round 1, run1"]


def test_the_command_answers_such_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / "preempt.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "AGREE 40/40 preempt.jsonl.gz\n"
