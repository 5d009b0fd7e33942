"""The recorded decisions of right-sizing: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing import conformance
from mooring.testing.vpa_conformance import answer_scenario, differences, is_right_sizing

FOLDER = Path(__file__).parent
CASES = {"recommender": 60, "admission": 45, "updater": 45}


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_case_is_decided_alike(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {s["id"]: fields for s in scenarios if (fields := list(differences(s["expect"], answer_scenario(s))))}

    assert len(scenarios) == CASES[name]
    assert all(is_right_sizing(scenario) for scenario in scenarios)
    assert wrong == {}


def test_one_byte_more_is_a_wrong_answer() -> None:
    scenario = read_scenarios("recommender")[0]
    answer = answer_scenario(scenario)
    answer["recommendation"][0]["upperBound"]["memory"] += 1

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["recommendation"]


def test_another_order_of_updates_is_a_wrong_answer() -> None:
    scenario = next(one for one in read_scenarios("updater") if len(one["expect"]["updates"]) > 1)
    answer = answer_scenario(scenario)
    answer["updates"].reverse()

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["updates"]


def test_the_command_answers_such_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / "admission.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "AGREE 45/45 admission.jsonl.gz\n"
