"""Wrong decisions of admission that were found once: a folder holds the manifests, a test what must not return."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mooring.actions.admit.lifecycle import settling
from mooring.cli.main import run
from mooring.model.api.kueue import STRICT_FIFO
from mooring.testing.queueing_builders import make_queue
from mooring.testing.tenant_builders import TenantWorld, make_job

HERE = Path(__file__).parent
LONGEST_SECONDS = 60


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """Fail a test that does not end."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it did not end within {LONGEST_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def schedule(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    def call(folder: str, first: str, *then: str, more: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        steps = []
        for step in then:
            delay, _, name = step.rpartition(":")
            steps += ["--then", f"{delay}:{HERE / folder / name}" if delay else str(HERE / folder / name)]
        code = run(["schedule", "-q", "-o", "json", "-f", str(HERE / folder / first), *steps, *more])
        found = capsys.readouterr()
        assert (code, found.err) == (0, "")
        return [step["result"] for step in json.loads(found.out)["steps"]]

    return call


def placed(result: dict[str, Any]) -> dict[str, str]:
    return {found["pod"]: found["node"] for found in result["placements"]}


# A cycle of admission that never returned: a workload gave up the room held for it with its first flavor, and was
# promised room again with its second.


def test_a_lost_node_with_two_flavors_and_held_room_does_not_keep_admission_busy_for_ever(
    schedule: Callable[..., list[dict[str, Any]]],
) -> None:
    folder = "admission-endless"
    steps = schedule(
        folder,
        "1.yaml",
        "90m:2.yaml",
        "30s:3.yaml",
        "90m:4.yaml",
        "5.yaml",
        "40m:6.yaml",
        more=("--config", str(HERE / folder / "config.yaml")),
    )

    last = steps[-1]
    assert {found["workload"] for found in last["admitted"]} == {"job-j2-a0ae5", "job-j4-17369"}
    assert {name.rpartition("-")[0] for name in placed(last)} == {"j2", "j4"}
    assert not last["waiting"]


@pytest.mark.faults
def test_heads_that_are_ever_new_and_decide_nothing_are_reported_and_left_until_something_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = iter(range(10**9))
    monkeypatch.setattr(settling, "_scan_state", lambda pending: next(numbers))
    world = TenantWorld([make_queue(strategy=STRICT_FIFO)], [make_job("large", cpu=1000)])

    world.cycle()

    (fault,) = world.scheduler.take_faults()
    assert fault.turn == "default/large"
    assert "again and again" in fault.message
    assert next(numbers) <= 3 * settling.MOST_TRIES
    world.cycle()
    assert not world.scheduler.take_faults()
    world.submit(make_job("small", second=1))
    world.cycle()
    assert len(world.scheduler.take_faults()) == 1


# Pods on nodes of another flavor than the one that they were admitted to.


def test_pods_admitted_to_a_deleted_flavor_stay_off_the_nodes_of_other_flavors(
    schedule: Callable[..., list[dict[str, Any]]],
) -> None:
    first, second = schedule("flavor-gone-wrong-node", "1.yaml", "2.yaml")

    assert list(placed(first).values()) == ["n1"]
    assert not placed(second)
    assert "didn't match Pod's node affinity/selector" in json.dumps(second["waiting"])


def test_pods_admitted_to_a_flavor_that_no_queue_names_any_more_stay_off_the_nodes_of_other_flavors(
    schedule: Callable[..., list[dict[str, Any]]],
) -> None:
    first, second = schedule("flavor-gone-wrong-node", "1.yaml", "2-no-queue.yaml")

    assert list(placed(first).values()) == ["n1"]
    assert not placed(second)
