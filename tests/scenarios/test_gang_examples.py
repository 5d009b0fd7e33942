"""Every story under examples/gangs makes its point, step by step."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "examples" / "gangs"


def story(capsys: pytest.CaptureFixture[str], name: str, *delays: str) -> list[Any]:
    """What is decided at each step; `delays` say after how long the steps behind the first come."""
    first, *then = sorted((EXAMPLES / name).glob("*.yaml"))
    after = [*delays, *("1m" for _ in then[len(delays) :])]
    arguments = [part for delay, file in zip(after, then, strict=True) for part in ("--then", f"{delay}:{file}")]
    assert run(["schedule", "-q", "-f", str(first), *arguments, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return [step["result"] for step in found["steps"]] if then else [found]


def placed(result: Any) -> Counter[str]:
    """How many pods of each workload, or bare pod, were placed."""
    return Counter(found.get("owner") or found["pod"] for found in result["placements"])


def waiting(result: Any) -> dict[str, str]:
    return {found.get("owner") or found["pod"]: found["message"] for found in result["waiting"]}


def test_a_gang_of_sixteen_waits_without_holding_any_of_twelve_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = story(capsys, "waits-whole")

    assert placed(before) == {}
    assert waiting(before) == {"Job/train": "gang research/train: room for 12 of 16 members"}
    assert before["pools"][0]["resources"]["nvidia.com/gpu"]["requested"] == 4
    assert placed(after) == {"Job/train": 16}


def test_of_two_gangs_one_runs_and_the_other_has_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = story(capsys, "two-gangs")

    assert placed(before) == {"Job/first": 6}
    assert list(waiting(before)) == ["Job/second"]
    assert before["pools"][0]["resources"]["nvidia.com/gpu"]["requested"] == 6
    assert placed(after) == {"Job/second": 6}


def test_an_elastic_gang_shrinks_to_make_room_and_grows_back(capsys: pytest.CaptureFixture[str]) -> None:
    first, shrunk, grown = story(capsys, "elastic")

    assert placed(first) == {"Job/elastic": 8}
    assert placed(shrunk) == {"chat": 1}
    assert [found["owner"] for found in shrunk["evicted"]] == ["Job/elastic"] * 2
    assert placed(grown) == {"Job/elastic": 2}


def test_inference_evicts_development_and_touches_no_training(capsys: pytest.CaptureFixture[str]) -> None:
    (result,) = story(capsys, "inference-first")

    assert [(found["pod"], found["node"]) for found in result["placements"]] == [("chat", "gpu-1")]
    assert sorted((found["pod"], found["node"]) for found in result["evicted"]) == [
        (f"notebook-{index}", "gpu-1") for index in range(4)
    ]


def test_a_gang_goes_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = story(capsys, "preempted-whole")

    assert placed(before) == {"Job/sweep": 8}
    assert placed(after) == {"Job/train": 4}
    assert Counter(found["node"] for found in after["evicted"]) == {"gpu-0": 4, "gpu-1": 4}
    assert {found["owner"] for found in after["evicted"]} == {"Job/sweep"}
    assert list(waiting(after)) == ["Job/sweep"]


def test_a_reservation_lets_short_work_pass_and_keeps_the_room_from_long(capsys: pytest.CaptureFixture[str]) -> None:
    first, reserved, started = story(capsys, "reservation", "10m", "50m")

    assert placed(first) == {"busy": 1}
    assert placed(reserved) == {"short": 1}
    assert waiting(reserved)["long"] == "room is kept for gang research/large, which is ahead"
    assert placed(started) == {"Job/large": 8}
    assert list(waiting(started)) == ["long"]


def test_workloads_of_kai_are_the_gangs_that_its_pod_grouper_makes(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = story(capsys, "kai-workloads")

    assert placed(before) == {"Job/prepare": 2, "small-model": 1}
    assert waiting(before) == {
        "PyTorchJob/train": "gang research/pg-train: room for 5 of 6 worker members, of 7 in all",
    }
    assert placed(after) == {"PyTorchJob/train": 7}


def test_gangs_of_koordinator_in_one_group_start_together(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = story(capsys, "koordinator-groups")

    assert placed(before) == {"old-1": 1}
    assert set(waiting(before).values()) == {"gang research/workers, servers/servers: room for 4 of 6 members"}
    assert sorted(placed(after)) == ["server-0", "server-1", *(f"worker-{index}" for index in range(4))]


def test_the_story_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    folder = EXAMPLES / "waits-whole"
    files = [str(folder / "1-cluster.yaml"), "--then", str(folder / "2-notebook-ends.yaml")]

    assert run(["schedule", "-q", "-f", *files]) == 0

    lines = capsys.readouterr().out.splitlines()
    steps = [line for line in lines if line.startswith("STEP")]
    assert [line.partition(":")[0] for line in steps] == ["STEP 1, at first", "STEP 2, 1m later"]
    assert "The notebook ends, and its four GPUs are free: all sixteen pods start at once." in lines


@pytest.mark.parametrize("text", ["soon:file.yaml", "v1:file.yaml"])
def test_a_step_that_says_no_duration_is_a_file_that_is_not_there(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(EXAMPLES / "waits-whole" / "1-cluster.yaml")

    assert run(["schedule", "-f", file, "--then", text]) == 2
    assert "expected a readable file" in capsys.readouterr().err


def test_a_step_with_a_wrong_duration_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "waits-whole" / "1-cluster.yaml")

    assert run(["schedule", "-f", file, "--then", f"10:{file}"]) == 2
    assert "expected a duration such as 90s or 10m" in capsys.readouterr().err
