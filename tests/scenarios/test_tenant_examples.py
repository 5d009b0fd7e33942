"""The stories under examples/tenants make their point, step by step."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "examples" / "tenants"
TEAMS = sorted((EXAMPLES / "two-teams").glob("*.yaml"))
USERS = [EXAMPLES / "drf" / "1-cluster.yaml", EXAMPLES / "drf" / "2-user-b-is-done.yaml"]
GPU = "nvidia.com/gpu"


def tell(capsys: pytest.CaptureFixture[str], command: str, files: list[Path], *options: str) -> list[Any]:
    """The result of a command after each step."""
    first, *then = files
    steps = [part for file in then for part in ("--then", f"10m:{file}")]
    assert run([command, "-q", "-f", str(first), *steps, *options, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return [step["result"] for step in found["steps"]] if then else [found]


def placed(result: Any) -> Counter[str]:
    return Counter(found["owner"] for found in result["placements"])


def admitted(result: Any) -> dict[str, dict[str, int]]:
    """The workloads that were given quota, each with what its queue borrows then."""
    return {found["owner"]: found["borrowed"] for found in result["admitted"]}


def quotas(result: Any) -> dict[str, tuple[float, ...]]:
    """Of each queue: nominal, used, borrowed, lent at least and at most."""
    parts = ("nominal", "used", "borrowed", "lentAtLeast", "lentAtMost")
    return {queue["name"]: tuple(queue["quotas"][0][part] for part in parts) for queue in result["queues"]}


# Two teams.


def test_research_borrows_and_production_gets_its_own_back(capsys: pytest.CaptureFixture[str]) -> None:
    own, borrowing, reclaimed, lent_again = tell(capsys, "schedule", TEAMS)

    assert placed(own) == {"Job/pretrain": 4, "Job/evaluate": 2, "Job/serve": 8}
    assert admitted(own) == {"Job/pretrain": {}, "Job/evaluate": {}, "Job/serve": {}}

    assert placed(borrowing) == {"Job/finetune": 6}
    assert admitted(borrowing) == {"Job/finetune": {GPU: 4}}
    assert borrowing["suspended"] == []

    assert placed(reclaimed) == {"Job/rank": 8}
    assert admitted(reclaimed) == {"Job/rank": {}}
    (suspended,) = reclaimed["suspended"]
    assert (suspended["owner"], suspended["preemptorOwner"]) == ("Job/finetune", "Job/rank")
    assert suspended["reason"] == "InCohortReclamation"
    assert "due to reclamation within the cohort" in suspended["message"]
    assert Counter(found["owner"] for found in reclaimed["evicted"]) == {"Job/finetune": 6}
    assert {found["message"] for found in reclaimed["gated"]} == {
        f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor h100, 4 more needed"
    }

    assert placed(lent_again) == {"Job/finetune": 6}
    assert admitted(lent_again) == {"Job/finetune": {GPU: 4}}
    assert lent_again["gated"] == []


def test_the_queues_of_the_two_teams_at_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    own, borrowing, reclaimed, lent_again = tell(capsys, "queues", TEAMS)

    assert quotas(own) == {"production": (16, 8, 0, 0, 0), "research": (8, 6, 0, 0, 0)}
    assert quotas(borrowing) == {"production": (16, 8, 0, 4, 4), "research": (8, 12, 4, 0, 0)}
    assert quotas(reclaimed) == {"production": (16, 16, 0, 0, 0), "research": (8, 6, 0, 0, 0)}
    assert quotas(lent_again) == quotas(borrowing)
    assert all(result["cohorts"][0]["quotas"][0]["nominal"] == 24 for result in (own, borrowing, reclaimed))


def test_what_the_job_of_research_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    research = next(queue for queue in tell(capsys, "queues", TEAMS[:3])[-1]["queues"] if queue["name"] == "research")

    (waiting,) = research["waitingWorkloads"]
    assert (waiting["owner"], waiting["position"], waiting["asks"]) == ("Job/finetune", 1, {GPU: 6})
    assert [(given["owner"], given["amounts"], given["forbiddenBy"]) for given in waiting["givesBack"]] == [
        ("Job/pretrain", {GPU: 4}, "withinClusterQueue: Never")
    ]


def test_no_gpu_is_used_twice_at_any_step(capsys: pytest.CaptureFixture[str]) -> None:
    used = [result["pools"][0]["resources"][GPU]["requested"] for result in tell(capsys, "schedule", TEAMS)]

    assert used == [14, 20, 22, 20]


def test_the_reclaim_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [part for file in TEAMS[1:3] for part in ("--then", str(file))]
    assert run(["schedule", "-q", "-f", str(TEAMS[0]), *steps]) == 0

    lines = capsys.readouterr().out.splitlines()
    (told,) = [line for line in lines if line.startswith("research Job/finetune for production Job/rank: ")]
    assert "InCohortReclamation" in told
    assert "research   Job/finetune  6     h100     research (borrows 4 nvidia.com/gpu)" in lines


# Dominant shares.


def shares(result: Any) -> dict[str, tuple[float, str]]:
    return {queue["name"]: (queue["dominantShare"], queue["dominantResource"]) for queue in result["volcanoQueues"]}


def test_dominant_shares_are_equal(capsys: pytest.CaptureFixture[str]) -> None:
    both, alone = tell(capsys, "queues", USERS)

    assert shares(both) == {"user-a": (0.5, "cpu"), "user-b": (0.5, "memory")}
    assert shares(alone) == {"user-a": (1.0, "cpu"), "user-b": (0.0, "")}


def test_each_user_runs_as_many_tasks_as_its_share_is_worth(capsys: pytest.CaptureFixture[str]) -> None:
    both, alone = tell(capsys, "schedule", USERS)

    assert placed(both) == {"Job/simulate": 2, "Job/index": 2}
    assert {found["owner"]: found["message"] for found in both["waiting"]} == {
        "Job/simulate": "queue user-a deserves 4 cpu and holds 4; 2 more asked for",
        "Job/index": "queue user-b deserves 16Gi memory and holds 16Gi; 8Gi more asked for",
    }
    assert placed(alone) == {"Job/simulate": 2}


def test_turns_go_to_whoever_has_less(capsys: pytest.CaptureFixture[str]) -> None:
    (result,) = tell(capsys, "schedule", USERS[:1])

    assert [found["owner"] for found in result["placements"]] == [
        "Job/simulate",
        "Job/index",
        "Job/simulate",
        "Job/index",
    ]


def test_shares_differ_by_no_more_than_a_task_if_nothing_may_lie_idle(capsys: pytest.CaptureFixture[str]) -> None:
    (result,) = tell(capsys, "queues", USERS[:1], "--config", str(EXAMPLES / "drf" / "use-all.yaml"))

    found = shares(result)
    assert found == {"user-a": (0.75, "cpu"), "user-b": (0.5, "memory")}
    one_task = 2 / 8
    assert abs(found["user-a"][0] - found["user-b"][0]) <= one_task
