"""`mooring bench`: every workload runs, is verified, and says what it measured."""

import json

import pytest

from mooring.cli.main import run
from mooring.testing.measure import measure
from mooring.testing.workloads import bench_folder, load_workload

NAMES = (
    "basic",
    "churn",
    "default-spread",
    "distinct",
    "extended-resources",
    "hard-spread",
    "mix",
    "node-affinity",
    "preferred-affinity",
    "preferred-anti-affinity",
    "required-affinity",
    "required-anti-affinity",
    "soft-spread",
    "unschedulable",
)


def test_the_workloads_are_the_ones_people_compare() -> None:
    assert tuple(sorted(path.stem for path in bench_folder().glob("*.yaml"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_runs_and_its_final_state_is_verified(name: str) -> None:
    result = measure(load_workload(bench_folder() / f"{name}.yaml"), nodes=60, pods=240)

    assert (result.workload, result.nodes, result.pods) == (name, 60, 240)
    assert result.placed + result.waiting == 240
    assert result.placed > 0
    assert result.pods_per_second > 0
    assert 0 < result.p50_us <= result.p99_us


def test_pods_that_cannot_fit_wait_and_the_others_do_not() -> None:
    result = measure(load_workload(bench_folder() / "unschedulable.yaml"), nodes=60, pods=300)

    assert (result.placed, result.waiting) == (200, 100)


def test_json_is_a_list_of_objects_with_the_figures(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "--workload", "basic", "--nodes", "20", "--pods", "50", "-o", "json"])

    (result,) = json.loads(capfd.readouterr().out)
    assert code == 0
    figures = {"workload", "nodes", "pods", "pods_per_second", "p50_us", "p99_us", "peak_rss_mib"}
    assert figures <= set(result)
    assert (result["workload"], result["nodes"], result["pods"]) == ("basic", 20, 50)


def test_the_table_shows_kube_scheduler_beside_ours(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "-w", "basic", "--nodes", "20", "--pods", "50"])

    lines = capfd.readouterr().out.splitlines()
    assert code == 0
    assert lines[0].split()[:4] == ["WORKLOAD", "NODES", "PODS", "PODS/S"]
    assert lines[1].split()[-2:] == ["789/s", "108/s"]


def test_an_unknown_workload_is_bad_input(capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["bench", "--workload", "basix"])

    captured = capfd.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err == 'error: --workload: expected a workload (did you mean basic?), found "basix"\n'
