"""A real cluster as the start: what kubectl printed of it, and what a log of decisions says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenario_parts import job, node

from mooring.drivers.sim.runs import Prepared, simulate
from mooring.errors import ConfigError
from mooring.report.simulation.results import Run

START = "2026-03-01T12:00:00Z"


def running(name: str, cpu: int, where: str = "", since: str = "", **annotations: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "creationTimestamp": "2026-03-01T11:00:00Z",
            "annotations": {f"mooring.dev/{key}": value for key, value in annotations.items()},
        },
        "spec": {"restartPolicy": "Never", "containers": [container], **({"nodeName": where} if where else {})},
        "status": {"phase": "Running", "startTime": since} if since else {"phase": "Pending"},
    }


@pytest.fixture
def dump(tmp_path: Path) -> Callable[..., str]:
    def write(*objects: dict[str, Any]) -> str:
        (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        return "cluster.json"

    return write


def test_pods_of_a_dump_run_on_since_they_started(prepare: Callable[..., Prepared], dump: Callable[..., str]) -> None:
    old = running("old", 6, "n", "2026-03-01T11:59:20Z", duration="100s")
    file = dump(node(), old, running("waits", 6, duration="30s"))

    found = simulate(prepare(horizon="200s", start=START, cluster={"manifests": [file]}, work=[]), "default", 0)

    # 40 s of 100 s were over at the start.
    assert ends(found) == {"default/old": (0.0, 60.0), "default/waits": (60.0, 90.0)}
    assert found.jobs.submitted.tolist() == [-3600.0, -3600.0]


def test_what_ran_before_the_start_is_lost_as_well(prepare: Callable[..., Prepared], dump: Callable[..., str]) -> None:
    file = dump(node(), running("old", 6, "n", "2026-03-01T11:59:20Z", duration="100s"))
    urgent = job("urgent", at="10s", duration="20s", priority=9)

    found = simulate(prepare(horizon="200s", start=START, cluster={"manifests": [file]}, work=[urgent]), "default", 0)

    assert found.jobs.lost.tolist() == [50.0, 0.0]
    assert ends(found)["default/old"] == (0.0, 130.0)


def test_work_arrives_beside_what_runs_already(prepare: Callable[..., Prepared], dump: Callable[..., str]) -> None:
    file = dump(node(), running("endless", 4, "n", "2026-03-01T11:00:00Z"))
    parts = {"horizon": "100s", "start": START, "cluster": {"manifests": [file]}}

    found = simulate(prepare(**parts, work=[job("fits", cpu=4, duration="10s"), job("large", cpu=8)]), "default", 0)

    assert dict(zip(found.jobs.job, found.jobs.state, strict=True)) == {
        "default/endless": "Running",
        "default/fits-0": "Finished",
        "default/large-0": "Waiting",
    }


def test_pods_are_where_a_decision_log_says(
    prepare: Callable[..., Prepared], dump: Callable[..., str], tmp_path: Path
) -> None:
    lines = [
        {"time": 1.0, "kind": "Bind", "pod": "default/moved", "node": "a"},
        {"time": 2.0, "kind": "Evict", "pod": "default/moved", "node": "a"},
        {"time": 3.0, "kind": "Bind", "pod": "default/moved", "node": "b"},
        {"time": 4.0, "kind": "Bind", "pod": "default/gone", "node": "b"},
        {"time": 5.0, "kind": "Evict", "pod": "default/gone", "node": "b"},
    ]
    (tmp_path / "decisions.log").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    file = dump(node("a"), node("b"), running("moved", 8, duration="50s"), running("gone", 8, duration="20s"))
    cluster = {"manifests": [file], "decisionLog": "decisions.log"}

    found = simulate(prepare(horizon="100s", start=START, cluster=cluster, work=[]), "default", 0)

    where = {
        found.jobs.job[job]: found.nodes.node[node] for job, node in zip(found.stays.job, found.stays.node, strict=True)
    }
    assert where == {"default/moved": "b", "default/gone": "a"}


def test_a_decision_log_whose_time_goes_backwards_is_refused_with_its_line(
    prepare: Callable[..., Prepared], dump: Callable[..., str], tmp_path: Path
) -> None:
    lines = [{"time": time, "kind": "Bind", "pod": "default/p", "node": "n"} for time in (5.0, 1.0)]
    (tmp_path / "decisions.log").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    cluster = {"manifests": [dump(node())], "decisionLog": "decisions.log"}

    with pytest.raises(ConfigError) as refused:
        prepare(horizon="100s", cluster=cluster, work=[])

    assert (
        str(refused.value)
        == f"{tmp_path / 'decisions.log'}: line 2: time: expected not before 5.000000, found 1.000000"
    )


def ends(found: Run) -> dict[str, tuple[float, float]]:
    jobs = found.jobs
    return dict(zip(jobs.job, zip(jobs.started.tolist(), jobs.ended.tolist(), strict=True), strict=True))
