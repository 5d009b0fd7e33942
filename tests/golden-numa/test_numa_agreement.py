"""The recorded decisions about NUMA, of kubelets and of a plugin: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing import conformance
from mooring.testing.numa_conformance import answer_scenario, differences, is_numa

FOLDER = Path(__file__).parent
CASES = {"numa": 120, "numa-options": 110, "numa-large": 40, "noderesourcetopology": 120}


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_case_is_decided_alike(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {s["id"]: found for s in scenarios if (found := list(differences(s["expect"], answer_scenario(s))))}

    assert len(scenarios) == CASES[name]
    assert all(is_numa(scenario) for scenario in scenarios)
    assert wrong == {}


def test_another_cpu_is_a_wrong_answer() -> None:
    scenario = next(
        found for found in read_scenarios("numa") if found["expect"].get("steps", [{"admitted": False}])[0]["admitted"]
    )
    answer = answer_scenario(scenario)
    share = next(iter(answer["steps"][0]["containers"].values()))
    share["cpus"] += ",999"

    assert [topic for topic, _, _ in differences(scenario["expect"], answer)] == [f"step {answer['steps'][0]['pod']}"]


def test_memory_that_is_not_given_back_is_a_wrong_answer() -> None:
    scenario = next(found for found in read_scenarios("numa") if found["expect"].get("freeMemory"))
    answer = answer_scenario(scenario)
    next(iter(answer["freeMemory"].values()))["memory"] -= 1

    assert [topic for topic, _, _ in differences(scenario["expect"], answer)] == ["left free"]


def test_the_command_answers_such_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / "numa-large.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "AGREE 40/40 numa-large.jsonl.gz\n"
