"""Decisions as lines of JSON: what is empty is left out, and whoever is asked about is found."""

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.model.decisions import Bind, Decision, Evict, Suspend, Wait
from mooring.observe.decision_log import DecisionLog, read_log

DECISIONS: list[Decision] = [
    Bind("default/low-sn9kg", "n7"),
    Bind("default/low-0-b2x4z", "n7"),
    Bind("default/low-prior", "n7"),
    Bind("team/low-sn9kg", "n7"),
    Suspend("default/job-low-a4fe0", "InClusterQueue", "Preempted", "default/job-high-00c1f"),
    Suspend("default/job-very-low-a4fe0", "InClusterQueue", "Preempted"),
    Evict("default/other", "n7", "default/job-low-a4fe0", "Preempted"),
    Wait("default/web", "no room", ("NodeResourcesFit",)),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "decisions.jsonl"
    log = DecisionLog(str(found))
    log.decided(1.5, DECISIONS)
    log.became(2.5, "Bound", pod="default/low-sn9kg", node="n7", message="")
    log.close()
    return found


def test_what_is_empty_is_left_out(path: Path) -> None:
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {"time": 1.5, "kind": "Bind", "pod": "default/low-sn9kg", "node": "n7"}
    assert lines[-1] == {"time": 2.5, "kind": "Bound", "pod": "default/low-sn9kg", "node": "n7"}


def names(path: Path, about: str) -> list[str]:
    return [found.get("pod") or found["workload"] for found in read_log(path, about)]


OF_LOW = ["default/low-sn9kg", "default/low-0-b2x4z", "default/job-low-a4fe0", "default/other", "default/low-sn9kg"]


@pytest.mark.parametrize("about", ["default/low", "default/job/low"])
def test_a_job_is_found_by_its_own_name(path: Path, about: str) -> None:
    assert names(path, about) == OF_LOW


@pytest.mark.parametrize("about", ["low", "job/low", "Job/low"])
def test_a_job_without_a_namespace_is_found_in_all(path: Path, about: str) -> None:
    assert names(path, about) == [*OF_LOW[:2], "team/low-sn9kg", *OF_LOW[2:]]


def test_pods_and_workloads_are_found_by_their_names(path: Path) -> None:
    assert names(path, "web") == ["default/web"]
    assert names(path, "default/low-prior") == ["default/low-prior"]
    assert names(path, "job-low-a4fe0") == ["default/job-low-a4fe0", "default/other"]
    assert names(path, "pytorchjob/low") == []


def test_a_decision_log_is_its_owners_alone_and_goes_on_in_a_new_file_when_it_is_long(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    path.touch(mode=0o644)
    log = DecisionLog(str(path), most_bytes=150)
    for number in range(3):
        log.became(float(number), "Bound", pod=f"default/{'x' * 60}-{number}")
    log.close()

    before = tmp_path / "decisions.jsonl.1"
    assert [found.stat().st_mode & 0o777 for found in (path, before)] == [0o600, 0o600]
    assert [len(found.read_bytes().splitlines()) for found in (before, path)] == [2, 1]
