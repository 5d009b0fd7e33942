"""The recorded decisions of Kueue, file by file: ours must be the same in every case."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.testing.queueing_conformance import answer_scenario, differences, is_queueing

FOLDER = Path(__file__).parent
FILES = ("quota", "borrowing", "preemption", "hierarchy", "fairsharing", "partial")
CASES_PER_FILE = 150


def read_scenarios(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", FILES)
def test_every_recorded_case_is_decided_as_kueue_decides_it(name: str) -> None:
    scenarios = read_scenarios(name)

    wrong = {
        scenario["id"]: found
        for scenario in scenarios
        if (found := list(differences(scenario["expect"], answer_scenario(scenario))))
    }

    assert len(scenarios) == CASES_PER_FILE
    assert all(is_queueing(scenario) for scenario in scenarios)
    assert wrong == {}


@pytest.mark.parametrize("name", FILES)
def test_heads_queues_usage_and_shares_are_the_same_cycle_by_cycle(name: str) -> None:
    for scenario in read_scenarios(name):
        expected, answer = scenario["expect"], answer_scenario(scenario)

        for part in ("stopped", "admitted", "pending", "usage", "weightedShare"):
            assert answer.get(part) == expected.get(part), (scenario["id"], part)
        for want, have in zip(expected["cycles"], answer["cycles"], strict=True):
            for part in ("heads", "admitted", "preempted", "borrowing"):
                assert have[part] == want[part], (scenario["id"], want["cycle"], part)


def test_a_wrong_answer_is_told_apart() -> None:
    scenario = read_scenarios("preemption")[0]
    answer = answer_scenario(scenario)
    story = next(cycle for cycle in answer["cycles"] if cycle["admitted"] or cycle["preempted"])
    story["admitted"], story["preempted"] = [], []
    answer["admitted"] = []

    topics = [topic for topic, _, _ in differences(scenario["expect"], answer)]

    assert topics == ["deciding cycle 1", "admitted at the end"]


def test_no_answer_is_a_wrong_answer() -> None:
    assert list(differences({}, None)) == [("answer", "expected one", "none given")]
