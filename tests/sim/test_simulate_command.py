"""`mooring simulate` as people call it: tables, data, files, and mistakes that are refused."""

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from scenario_parts import cluster, job, node

from mooring.cli.main import run as mooring_command

HEAD = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "Simulation", "name": "small"}
SMALL: dict[str, Any] = {
    **HEAD,
    "horizon": "10m",
    "cluster": cluster(),
    "work": [job("train", every="exponential(20s)", at=[], duration="uniform(10s, 60s)", cpu=4)],
}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def mooring(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*arguments: str | Path) -> Outcome:
        capfd.readouterr()
        code = mooring_command(["simulate", *map(str, arguments)])
        return Outcome(code, *capfd.readouterr())

    return call


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    def write(**parts: Any) -> Path:
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump({**SMALL, **parts}, sort_keys=False))
        return path

    return write


def test_the_table_has_a_column_for_each_policy(mooring: Callable[..., Outcome], scenario: Callable[..., Path]) -> None:
    policies = [{"name": "spread"}, {"name": "pack", "scores": ["BestFit"]}]

    found = mooring(scenario(policies=policies, work=[job("a"), job("b", "10s", "50s")]), "--jobs", "1")

    lines = found.out.splitlines()
    assert (found.code, found.err) == (0, "")
    assert lines[0] == "small: 1 seed for each policy"
    assert lines[1].split() == ["METRIC", "spread", "pack"]
    assert [line.split() for line in lines if line.startswith("queueing mean")] == [
        ["queueing", "mean", "45.0s", "45.0s"]
    ]


def test_json_has_every_run_and_the_means_over_seeds(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path]
) -> None:
    found = mooring(scenario(seeds=[1, 2]), "-o", "json", "--jobs", "1")

    data = json.loads(found.out)
    assert [(run["policy"], run["seed"]) for run in data["runs"]] == [("default", 1), ("default", 2)]
    (policy,) = data["policies"]
    means = [run["queueing"]["mean"] for run in data["runs"]]
    assert policy["values"]["queueing mean"] == pytest.approx(sum(means) / 2)
    assert means[0] != means[1]
    assert data["failed"] == []


def test_the_same_command_prints_the_same(mooring: Callable[..., Outcome], scenario: Callable[..., Path]) -> None:
    path = scenario()

    assert mooring(path, "-o", "json") == mooring(path, "-o", "json")


def test_a_seed_on_the_command_line_stands_for_those_of_the_scenario(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path]
) -> None:
    path = scenario(seeds=[1, 2])

    found = json.loads(mooring(path, "-o", "json", "--seed", "2").out)

    assert [run["seed"] for run in found["runs"]] == [2]


def test_one_policy_can_be_chosen(mooring: Callable[..., Outcome], scenario: Callable[..., Path]) -> None:
    path = scenario(policies=[{"name": "one"}, {"name": "two"}])

    found = json.loads(mooring(path, "-o", "json", "--policy", "two").out)

    assert [run["policy"] for run in found["runs"]] == ["two"]


def test_raw_results_are_csv_files_with_a_row_a_job(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], tmp_path: Path
) -> None:
    mooring(scenario(work=[job("a"), job("b", "10s", "50s")]), "--results", tmp_path / "out")

    with (tmp_path / "out" / "default" / "seed-0" / "jobs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["job"], row["started"], row["ended"], row["state"]) for row in rows] == [
        ("default/a-0", "0", "100", "Finished"),
        ("default/b-0", "100", "150", "Finished"),
    ]
    assert {path.name for path in (tmp_path / "out" / "default" / "seed-0").iterdir()} == {
        *("jobs.csv", "stays.csv", "nodes.csv", "node_changes.csv", "samples.csv", "amounts.csv", "queues.csv"),
    }


def test_raw_results_as_parquet_have_the_same_columns(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], tmp_path: Path
) -> None:
    import pyarrow.parquet

    mooring(scenario(work=[job("a")]), "--results", tmp_path / "out", "--format", "parquet")

    table = pyarrow.parquet.read_table(tmp_path / "out" / "default" / "seed-0" / "jobs.parquet")
    assert table.column("ended").to_pylist() == [100.0]
    assert table.column("job").to_pylist() == ["default/a-0"]


def test_wide_tables_tell_queues_sizes_and_priorities_apart(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path]
) -> None:
    found = mooring(scenario(), "--wide")

    heads = [line.split()[0] for line in found.out.splitlines() if line[:1].isupper()]
    assert heads == ["METRIC", "RESOURCE", "QUEUE", "GPUS", "PRIORITY"]


TWO_POLICIES = [{"name": "one"}, {"name": "two"}]
PRIORITY_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "odd"},
    "value": 2_000_000_000,
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "$(name)"},
    "spec": {"priorityClassName": "nobody's", "containers": [{"name": "main", "image": "x"}]},
}
MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    (
        "unknown policy",
        {"policies": [{"name": "odd", "scores": ["BestFitt"]}]},
        "policies[0].scores[0]: expected a Score plugin (did you mean BestFit?)",
    ),
    (
        "negative duration",
        {"work": [job("a", duration="-5m")]},
        "work[0].duration: expected a duration such as 90s",
    ),
    (
        "most before least",
        {"work": [job("a", duration="uniform(2h, 1h)")]},
        "work[0].duration: expected a duration such as 90s",
    ),
    ("time that goes backwards", {"work": [job("a", at=["9m", "3m"])]}, "work[0].at[1]: expected a time that is not"),
    ("changes out of order", {"changes": [{"at": "2m"}, {"at": "1m"}]}, "changes[1].at: expected a time that is not"),
    (
        "work after the end",
        {"work": [job("a", at=["1m", "20m"])]},
        'work[0].at[1]: expected a time within the horizon, 10m, found "20m"',
    ),
    (
        "work from after the end on",
        {"work": [{**job("a", every="1s", at=[]), "from": "11m"}]},
        'work[0].from: expected a time within the horizon, 10m, found "11m"',
    ),
    (
        "change after the end",
        {"changes": [{"at": "10m"}, {"at": "601s"}]},
        'changes[1].at: expected a time within the horizon, 10m, found "601s"',
    ),
    *(
        (
            f"{act} of no node",
            {"changes": [{"at": "1m", act: {"names": ["n", "m"]}}]},
            f'changes[0].{act}.names[1]: expected a node that is there by then, found "m"',
        )
        for act in ("cordon", "uncordon", "fail", "repair")
    ),
    (
        "fail of a node that comes later",
        {"changes": [{"at": "1m", "fail": {"names": ["late"]}}, {"at": "2m", "objects": [node("late")]}]},
        'changes[0].fail.names[0]: expected a node that is there by then, found "late"',
    ),
    (
        "bad object of the cluster",
        {"cluster": cluster(node(), PRIORITY_CLASS), "policies": TWO_POLICIES},
        "cluster.objects[1] (PriorityClass odd): value: expected",
    ),
    (
        "bad object of a policy",
        {"policies": [{"name": "fine"}, {"name": "odd", "objects": [PRIORITY_CLASS]}]},
        "policies[1].objects[0] (PriorityClass odd): value: expected",
    ),
    (
        "bad object of a change",
        {"changes": [{"at": "1m", "objects": [node("b"), PRIORITY_CLASS]}], "policies": TWO_POLICIES},
        "changes[0].objects[1] (PriorityClass odd): value: expected",
    ),
    (
        "bad object of work",
        {"work": [{"name": "w", "at": ["9m"], "objects": [POD]}], "policies": TWO_POLICIES},
        "work[0].objects[0] (Pod default/w-0): spec.priorityClassName: expected a known PriorityClass",
    ),
    (
        "work that no cluster takes",
        {"work": [job("a", namespace="Bad Name")], "policies": TWO_POLICIES},
        "work[0]: metadata.namespace: expected",
    ),
    *(
        (f"no file in {field}", parts, f"{field}: expected a file, found no such file: ")
        for field, parts in (
            ("work[0].trace.path", {"work": [{"name": "t", "trace": {"format": "jobs", "path": "x.csv"}}]}),
            ("cluster.trace.path", {"cluster": {"trace": {"format": "alibaba-gpu-2023", "path": "x.csv"}}}),
            ("cluster.manifests[0]", {"cluster": cluster(manifests=["x.yaml"])}),
            ("cluster.decisionLog", {"cluster": cluster(decisionLog="x.jsonl")}),
            ("changes[0].apply[0]", {"changes": [{"at": "1m", "apply": ["x.yaml"]}]}),
            ("policies[0].config", {"policies": [{"name": "p", "config": "x.yaml"}]}),
            ("policies[0].plugins[0]", {"policies": [{"name": "p", "plugins": ["x.py"]}]}),
            ("policies[0].manifests[0]", {"policies": [{"name": "p", "manifests": ["x.yaml"]}]}),
        )
    ),
    ("unknown key", {"horizn": "1h"}, "horizn: expected a known key (did you mean horizon?)"),
    ("unknown form", {"work": [{**job("a"), "as": "Jobb"}]}, "work[0].as: expected one of Pod, Job"),
    ("no time", {"work": [{"name": "a"}]}, "work[0]: expected every or at"),
    ("no duration", {"work": [{"name": "a", "at": ["0s"]}]}, "work[0].duration: expected how long each pod works"),
    ("two of a name", {"work": [job("a"), job("a")]}, "work[1].name: expected a name that no other work has"),
    ("no nodes", {"cluster": {"objects": []}}, "cluster: expected at least one Node, found none"),
    ("bad request", {"work": [job("a", requests={"cpu": "-1"})]}, "work[0].requests.cpu: expected a quantity"),
    ("no pods", {"work": [job("a", pods=0)]}, "work[0].pods: expected at least 1, found 0"),
    ("bad seed", {"seeds": [-1]}, "seeds[0]: expected from 0 to 4294967295, found -1"),
    ("bad horizon", {"horizon": "0s"}, "horizon: expected more than 0s"),
    ("bad price", {"cluster": cluster(prices=[{"perHour": -1}])}, "cluster.prices[0].perHour: expected at least 0"),
    (
        "unknown trace",
        {"work": [{"name": "t", "trace": {"format": "alibaba", "path": "x.csv"}}]},
        "work[0].trace.format: expected one of alibaba-gpu-2023, jobs",
    ),
    (
        "endless failures",
        {"faults": {"nodeFailures": [{"every": "0s", "repair": "1h"}]}},
        "faults.nodeFailures[0].every: expected more than 0s",
    ),
    ("bad weight", {"work": [job("a", sizes=[{"weight": 0}])]}, "work[0].sizes[0].weight: expected more than 0"),
    ("wrong kind", {"kind": "Simulacrum"}, 'kind: expected Simulation, found "Simulacrum"'),
    ("bad start", {"start": "noon"}, "start: expected a time such as"),
    ("wrong type", {"seeds": "many"}, "seeds: expected array"),
]


@pytest.mark.parametrize(("parts", "said"), [pytest.param(parts, said, id=name) for name, parts, said in MISTAKES])
def test_a_scenario_with_a_mistake_is_refused_with_its_line(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], parts: dict[str, Any], said: str
) -> None:
    path = scenario(**parts)

    found = mooring(path)

    field = said.partition(":")[0]
    assert (found.code, found.out) == (2, "")
    start, _, rest = found.err.partition(": line ")
    line, _, message = rest.partition(": ")
    assert (start, message[: len(said)]) == (f"error: {path}", said)
    last = field.rpartition(".")[2].partition("[")[0]
    text = path.read_text().splitlines()[int(line) - 1]
    assert last in text or text.lstrip().startswith("- "), text


def test_a_file_of_work_without_objects_is_refused(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")

    found = mooring(scenario(work=[{"name": "w", "at": ["9m"], "manifests": ["empty.yaml"]}]))

    assert found.code == 2
    assert "work[0].manifests: expected at least one object, found none" in found.err


def test_a_trace_with_a_missing_column_is_refused_with_its_line(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text("submit_time,cpu\n0,1\n")

    found = mooring(scenario(work=[{"name": "t", "trace": {"format": "jobs", "path": "jobs.csv"}}]))

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"error: {tmp_path / 'jobs.csv'}: line 1: ")
    assert "duration" in found.err


def test_a_trace_whose_time_goes_backwards_is_refused_with_its_line(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text("submit_time,duration,cpu\n10,5,1\n0,5,1\n")

    found = mooring(scenario(work=[{"name": "t", "trace": {"format": "jobs", "path": "jobs.csv"}}]))

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"error: {tmp_path / 'jobs.csv'}: line 3: submit_time: ")


def test_a_policy_that_does_not_exist_cannot_be_chosen(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path]
) -> None:
    found = mooring(scenario(), "--policy", "other")

    assert found == (2, "", 'error: --policy: expected one of default, found "other"\n')


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_backend_that_is_not_installed_is_said(
    mooring: Callable[..., Outcome],
    scenario: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    package: str,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    found = mooring(scenario(), "--backend", backend, "--scheduler", "127.0.0.1:9")

    said = f"--backend {backend}: expected the package {package} (pip install 'mooring[{backend}]'), found none"
    assert found == (2, "", f"error: {said}\n")


@pytest.mark.parametrize("options", [["--backend", "ray"], ["--backend", "dask"], ["--scheduler", "127.0.0.1:9"]])
def test_a_cluster_has_a_backend_and_an_address(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], options: list[str]
) -> None:
    found = mooring(scenario(), *options)

    said = "--scheduler: expected it together with --backend dask or ray, found one without the other"
    assert found == (2, "", f"error: {said}\n")


def test_jobs_of_a_csv_run_as_it_says(
    mooring: Callable[..., Outcome], scenario: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text("submit_time,duration,pods,cpu,queue\n0,30,2,4,\n10,5,1,8,\n")
    work = [{"name": "t", "as": "Pod", "trace": {"format": "jobs", "path": "jobs.csv"}}]

    mooring(scenario(work=work), "--results", tmp_path / "out")

    with (tmp_path / "out" / "default" / "seed-0" / "jobs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["pods"], row["started"], row["ended"]) for row in rows] == [("2", "0", "30"), ("1", "30", "35")]
