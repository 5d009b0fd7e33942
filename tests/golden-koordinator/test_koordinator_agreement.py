"""The recorded decisions of Koordinator: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing import conformance
from mooring.testing.koordinator_conformance import answer_scenario, differences, is_koordinator

FOLDER = Path(__file__).parent
CASES = {"lownodeload": 180, "profile": 240, "colocation": 240, "quota": 200, "reservation": 160}


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def disagreements(scenario: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """What differs from the answer of Koordinator, or from that of its next version where that is recorded too."""
    answer = answer_scenario(scenario)
    found = list(differences(scenario["expect"], answer))
    return found if "also" not in scenario or list(differences(scenario["also"], answer)) else []


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_case_is_decided_alike(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {s["id"]: fields for s in scenarios if (fields := disagreements(s))}

    assert len(scenarios) == CASES[name]
    assert all(is_koordinator(scenario) for scenario in scenarios)
    assert wrong == {}


def test_another_order_of_evictions_is_a_wrong_answer() -> None:
    scenario = next(
        one for one in read_scenarios("lownodeload") if any(len(turn) > 1 for turn in one["expect"]["evicted"])
    )
    answer = answer_scenario(scenario)
    next(turn for turn in answer["evicted"] if len(turn) > 1).reverse()

    assert [field for field, _, _ in differences(scenario["expect"], answer)] == ["evicted"]


@pytest.mark.parametrize("name", CASES)
def test_the_command_answers_such_files(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / f"{name}.jsonl.gz")]) == 0
    assert capsys.readouterr().out == f"AGREE {CASES[name]}/{CASES[name]} {name}.jsonl.gz\n"


def test_quantities_are_compared_as_amounts_and_annotations_as_json() -> None:
    name = "node.koordinator.sh/extended-resource-spec"
    expected = {"resources": {"c": {"requests": {"cpu": "1"}}}, "annotations": {name: '{"containers": {}}'}}
    answer = {"resources": {"c": {"requests": {"cpu": "1000m"}}}, "annotations": {name: '{"containers":{}}'}}

    assert list(differences(expected, answer)) == []
    assert [field for field, _, _ in differences(expected, {**answer, "resources": {}})] == ["resources"]
