"""Room that was made for a pod is not taken by another before the pod is bound: each of these commands went wrong."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.cli.main import run

FAULTS = Path(__file__).parent.parent / "data" / "faults"
MOST_SECONDS = 120
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """A command that evicts and places the same pods without end fails, instead of keeping all tests from ending."""

    def give_up(number: int, frame: object) -> None:
        raise AssertionError(f"the command did not end within {MOST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(MOST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def last_step(capsys: pytest.CaptureFixture[str], folder: str, first: str, *then: str) -> Json:
    """What `mooring schedule` decides in the last step."""
    options = ["-f", str(FAULTS / folder / first)]
    for step in then:
        after, _, name = step.rpartition(":")
        options += ["--then", f"{after}:{FAULTS / folder / name}" if after else str(FAULTS / folder / name)]
    assert run(["schedule", *options, "-q", "-o", "json"]) == 0
    found: Json = msgspec.json.decode(capsys.readouterr().out)["steps"][-1]["result"]
    return found


def placed(result: Json) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in result["placements"]}


def evicted(result: Json) -> list[str]:
    return [each["pod"] for each in result["evicted"]]


def test_a_victim_does_not_come_back_and_spoil_the_spread_of_the_pod_it_left_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = last_step(capsys, "spread-endless-simple", "1.yaml", "2.yaml")

    assert placed(result) == {"urgent": "n2", "low": "n2"}
    assert evicted(result) == ["low"]


def test_a_fraction_does_not_get_the_card_that_a_whole_gpu_pod_was_promised(capsys: pytest.CaptureFixture[str]) -> None:
    result = last_step(capsys, "promised-card-taken", "1.yaml", "2.yaml")

    assert placed(result) == {"whole": "n0"}
    assert evicted(result) == ["running"]


def test_a_pod_of_an_elastic_quota_does_not_take_the_room_that_was_made_for_a_gang(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = last_step(capsys, "elastic-quota-endless", "1.yaml", "2m:2.yaml", "3.yaml", "6m:4.yaml", "10s:5.yaml")

    assert placed(result) == {"gang6-1": "n4", "gang6-2": "n4", "w7": "n4", "w1": "n4"}
