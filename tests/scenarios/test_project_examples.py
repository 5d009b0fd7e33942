"""Manifests of the forms that people have for other projects do here what those projects say they do."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "examples" / "projects"


def told(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> dict[str, Any]:
    assert run(["schedule", "-q", "-o", "json", "-f", str(EXAMPLES / name / "cluster.yaml"), *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def placed(found: dict[str, Any]) -> Counter[str]:
    """How many pods have a node, by the first part of their names."""
    return Counter(each["pod"].partition("-")[0] for each in found["placements"])


def waits(found: dict[str, Any]) -> dict[str, str]:
    """By the first part of their names, why pods wait."""
    return {each["pod"].partition("-")[0]: each["message"] for each in found["waiting"]}


def nodes(found: dict[str, Any]) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in found["placements"]}


def test_jobs_of_many_kinds_share_a_queue_of_kueue(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "kueue")

    owners = sorted(each["owner"] for each in found["admitted"])
    single = [owner for owner in owners if not owner.startswith("Pod/serve-")]
    assert single == ["Job/plain-0", "Job/shrinks", "JobSet/set", "PodGroup/pair", "PyTorchJob/torch", "RayJob/ray"]
    assert len(owners) - len(single) == 2
    expected = {"plain": 2, "set": 3, "torch": 2, "ray": 3, "pair": 2, "serve": 2, "shrinks": 2}
    assert placed(found) == expected
    assert found["waiting"] == []
    assert {each["message"] for each in found["gated"]} == {
        "The workload is admitted with 2 of 20 pods of pod set main; the others start as those finish"
    }


def test_jobs_flows_and_deployments_of_volcano_start_in_their_queue(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "volcano", "--as", "volcano")

    assert placed(found) == {"train": 3, "nightly": 1, "weekly": 1, "notebook": 2}
    assert waits(found) == {"wide": "queue research deserves 15 cpu and holds 3; 20 more asked for"}


def test_groups_of_a_leader_worker_set_start_whole_and_apart(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "leaderworkerset")

    pool_of = {name: int(node.removeprefix("node-")) // 2 for name, node in nodes(found).items()}
    of_group = [{pool_of[name] for name in pool_of if name.startswith(f"apart-{group}")} for group in (0, 1)]
    assert [len(pools) for pools in of_group] == [1, 1]
    assert of_group[0].isdisjoint(of_group[1])
    halves = [{pool_of["halves-0"], pool_of["halves-0-1"]}, {pool_of["halves-0-2"], pool_of["halves-0-3"]}]
    assert [len(racks) for racks in halves] == [1, 1]
    assert halves[0].isdisjoint(halves[1])
    assert waits(found) == {"too": "gang default/too-large-0: room for 0 of 1 leader members, of 2 in all"}


def test_what_a_service_of_grove_needs_starts_together_and_copies_as_they_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = told(capsys, "grove")

    copies = Counter("-".join(name.split("-")[2:4]) for name in nodes(found) if "-model-" in name)
    assert copies == {"model-0": 4, "model-1": 4, "model-2": 4, "model-3": 4}
    assert len([name for name in nodes(found) if "-frontend-" in name]) == 2
    assert {each["pod"].partition("-leader")[0].partition("-worker")[0] for each in found["waiting"]} == {
        "service-0-model-4"
    }


def test_builds_stay_within_the_quota_of_kai_and_training_goes_beyond(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "kai", "--as", "kai-scheduler")

    assert placed(found) == {"build": 2, "notebook": 1, "pretrain": 4, "sweep": 2}
    reason = (
        "queue team has a quota of 2 nvidia.com/gpu, and its jobs that cannot be preempted hold 2; 1 more asked for"
    )
    assert waits(found) == {"build": reason}


def test_gangs_quotas_and_shares_of_koordinator_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "koordinator", "--as", "koord-scheduler")

    assert placed(found) == {"train": 4, "notebook": 1}
    assert nodes(found)["notebook"] == "node-0"
    assert waits(found) == {"wide": "queue kube-system/research deserves 10 cpu and holds 8; 3 more asked for"}


def test_cards_of_hami_are_shared_chosen_and_shunned(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "hami")

    assert nodes(found)["wants-a100"] == "a100"
    assert nodes(found)["not-on-a100"] == "v100"
    assert "slice" in nodes(found)
    (waiting,) = found["waiting"]
    assert (waiting["pod"], "didn't have enough GPUs of the requested kind: 1000 MiB" in waiting["message"]) == (
        "wants-that-one",
        True,
    )


def test_applications_of_yunikorn_stay_within_their_queues(capsys: pytest.CaptureFixture[str]) -> None:
    queues = str(EXAMPLES / "yunikorn" / "queues.yaml")

    found = told(capsys, "yunikorn", "--as", "yunikorn", "--config", queues)

    assert placed(found) == {"sleep": 2, "first": 8}
    held = "queue root.development may hold 8 cpu, 8 of it held; 1 more asked for"
    driver = "queue root.namespaces.analytics can have 16 cpu; jobs that were let in need 0, and this one 21"
    assert waits(found) == {"first": held, "second": held, "spark": driver}
