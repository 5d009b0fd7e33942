"""The recorded decisions of Kueue's topology-aware scheduling, file by file: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing import conformance
from mooring.testing.topology_conformance import answer_scenario, differences, is_topology

FOLDER = Path(__file__).parent
CASES = {
    "required": 80,
    "preferred": 80,
    "unconstrained": 80,
    "slices": 80,
    "groups": 80,
    "mixed": 79,
    "usage": 80,
    "preemption": 80,
    "balanced": 40,
}


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_case_is_decided_and_explained_as_kueue_does(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {
        scenario["id"]: found
        for scenario in scenarios
        if (found := list(differences(scenario["expect"], answer_scenario(scenario))))
    }

    assert len(scenarios) == CASES[name]
    assert all(is_topology(scenario) for scenario in scenarios)
    assert wrong == {}


def test_a_pod_that_is_assigned_elsewhere_is_a_wrong_answer() -> None:
    scenario = read_scenarios("required")[0]
    answer = answer_scenario(scenario)
    first = next(found for cycle in answer["cycles"] for found in cycle["admitted"])
    first["podSets"][0]["topologyAssignment"]["domains"][0]["count"] += 1

    assert [topic for topic, _, _ in differences(scenario["expect"], answer)] == ["deciding cycle 1"]


def test_another_reason_for_waiting_is_a_wrong_answer() -> None:
    scenario = next(found for found in read_scenarios("required") if found["expect"]["pending"]["cq"]["inadmissible"])
    answer = answer_scenario(scenario)
    waiting = answer["pending"]["cq"]["inadmissible"][0]
    for cycle in answer["cycles"]:
        if workload := cycle["outcomes"].get(waiting):
            workload["reason"] = "Pending"

    assert [topic for topic, _, _ in differences(scenario["expect"], answer)] == [f"reason of {waiting}"]


def test_the_command_tells_the_kinds_of_golden_files_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / "balanced.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "AGREE 40/40 balanced.jsonl.gz\n"
