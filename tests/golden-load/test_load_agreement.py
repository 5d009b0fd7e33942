"""The recorded answers of load-aware plugins: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing import conformance
from mooring.testing.load_conformance import answer_scenario, differences, is_load

FOLDER = Path(__file__).parent
CASES = {
    "loadaware": 120,
    "loadvariationriskbalancing": 110,
    "lowriskovercommitment": 110,
    "peaks": 110,
    "targetloadpacking": 110,
}


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_case_is_answered_alike(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {s["id"]: fields for s in scenarios if (fields := list(differences(s["expect"], answer_scenario(s))))}

    assert len(scenarios) == CASES[name]
    assert all(is_load(scenario) for scenario in scenarios)
    assert wrong == {}


def test_a_score_that_is_one_too_high_is_a_wrong_answer() -> None:
    scenario = read_scenarios("peaks")[0]
    answer = answer_scenario(scenario)
    answer["scores"]["node-0"] += 1

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["scores"]


def test_the_command_answers_such_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / "loadaware.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "AGREE 120/120 loadaware.jsonl.gz\n"
