"""The recorded decisions of the Cluster Autoscaler: ours must be the same in every case."""

import copy
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from mooring.actions.capacity.autoscaler.scale_down import scale_down
from mooring.actions.capacity.autoscaler.scale_up import scale_up
from mooring.assembly import assemble
from mooring.state.cluster import Cluster
from mooring.testing import conformance
from mooring.testing.autoscaler_conformance import (
    answer_scenario,
    differences,
    is_autoscaling,
    read_settings,
    read_situation,
)

FOLDER = Path(__file__).parent
SCALE_UP = (
    "atomic",
    "balance",
    "basic",
    "constraints",
    "daemons",
    "existing",
    "expanders",
    "fastpath",
    "limits",
    "mixup",
)
SCALE_DOWN = ("drain", "mixdown", "placement", "shrink", "timing", "utilization")
FEWER = {"constraints": 29, "mixup": 28, "placement": 39}

Json = dict[str, Any]


def read_scenarios(name: str) -> list[Json]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def disagreements(scenarios: list[Json]) -> dict[str, Any]:
    return {s["id"]: fields for s in scenarios if (fields := list(differences(s["expect"], answer_scenario(s))))}


@pytest.mark.parametrize("name", [*SCALE_UP, *SCALE_DOWN])
def test_every_recorded_case_is_decided_alike(name: str) -> None:
    scenarios = read_scenarios(name)

    assert len(scenarios) == FEWER.get(name, 30 if name in SCALE_UP else 40)
    assert all(is_autoscaling(scenario) for scenario in scenarios)
    assert disagreements(scenarios) == {}


def test_there_is_a_file_for_every_topic() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.gz")) == sorted(
        f"{name}.jsonl.gz" for name in (*SCALE_UP, *SCALE_DOWN)
    )


@pytest.mark.parametrize("name", ["mixup", "limits"])
def test_the_order_of_groups_and_pods_does_not_matter_to_a_scale_up(name: str) -> None:
    scenarios = read_scenarios(name)
    for seed, scenario in enumerate(scenarios):
        shuffle = random.Random(seed).shuffle
        shuffle(scenario["nodeGroups"])
        shuffle(scenario["pending"])

    assert disagreements(scenarios) == {}


@pytest.mark.parametrize("name", ["basic", "daemons", "fastpath", "limits", "mixup"])
def test_counting_amounts_comes_to_the_same_as_placing_every_pod(name: str) -> None:
    scenarios = read_scenarios(name)

    placed = {s["id"]: answer_scenario(s, counts_amounts=False) for s in scenarios}

    assert {s["id"]: fields for s in scenarios if (fields := list(differences(s["expect"], placed[s["id"]])))} == {}


def picture(cluster: Cluster) -> Any:
    """Who is where, and what is taken; columns of resources that nobody has say nothing."""
    nodes = cluster.nodes.fingerprint()
    nodes["columns"] = {name: column for name, column in nodes["columns"].items() if any(column)}
    places = {key: (record.row, record.node_name) for key, record in cluster.pods.records.items()}
    return copy.deepcopy((nodes, places, cluster.pods.on_row))


@pytest.mark.parametrize("name", ["constraints", "daemons", "placement", "mixdown"])
def test_a_decision_leaves_the_cluster_as_it_was(name: str) -> None:
    for scenario in read_scenarios(name)[:12]:
        situation, settings = read_situation(scenario), read_settings(scenario)
        assembly = assemble()
        cluster = assembly.new_cluster()
        situation.populate(cluster)
        before = picture(cluster)

        decide = scale_up if scenario["kind"] == "scale-up" else scale_down
        decide(cluster, assembly.default_profile, situation, settings)

        assert picture(cluster) == before


def test_one_node_more_is_a_wrong_answer() -> None:
    scenario = next(s for s in read_scenarios("basic") if s["expect"]["scaleUp"])
    answer = answer_scenario(scenario)
    group = next(iter(answer["scaleUp"]))
    answer["scaleUp"][group][1] += 1

    assert [topic for topic, _, _ in differences(scenario["expect"], answer)] == ["scaleUp"]


def test_one_deletion_fewer_is_a_wrong_answer() -> None:
    scenario, answer = next(
        (s, answer) for s in read_scenarios("timing") if (answer := answer_scenario(s))["loops"][-1]["delete"]["empty"]
    )
    answer["loops"][-1]["delete"]["empty"].pop()

    last = scenario["loops"][-1]
    assert [topic for topic, _, _ in differences(scenario["expect"], answer)] == [f"at {last} delete.empty"]


def test_where_chance_decides_any_choice_of_the_right_size_is_right() -> None:
    scenario, loop = next(
        (s, index)
        for s in read_scenarios("shrink")
        for index, loop in enumerate(s["expect"]["loops"])
        if isinstance(loop["delete"]["empty"], dict) and "groups" not in loop["delete"]["empty"]
    )
    answer = answer_scenario(scenario)
    given = scenario["expect"]["loops"][loop]["delete"]["empty"]

    answer["loops"][loop]["delete"]["empty"] = given["from"][-given["count"] :]
    assert list(differences(scenario["expect"], answer)) == []

    answer["loops"][loop]["delete"]["empty"] = ["a-stranger"] * given["count"]
    assert len(list(differences(scenario["expect"], answer))) == 1


def test_the_command_answers_such_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(FOLDER / "limits.jsonl.gz"), str(FOLDER / "timing.jsonl.gz")]) == 0
    assert capsys.readouterr().out == "AGREE 30/30 limits.jsonl.gz\nAGREE 40/40 timing.jsonl.gz\n"
