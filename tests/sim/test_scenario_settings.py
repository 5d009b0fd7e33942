"""Every field of a scenario changes an outcome, through the command: what one number is without it, and with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from scenario_parts import cluster, cluster_queue, job, node

from mooring.cli.main import run as mooring_command
from mooring.config.scheduler import ConfigObject
from mooring.drivers.sim import scenario as scenario_types
from mooring.model.api.kueue_labels import QUEUE_NAME

Parts = dict[str, Any]
BASE: Parts = {
    "apiVersion": "config.mooring.dev/v1alpha1",
    "kind": "Simulation",
    "horizon": "1000s",
    "cluster": cluster(),
    "work": [job("a")],
}
TWO_NODES = cluster(node("a", labels={"pool": "x"}), node("b", cpu=16, labels={"pool": "y"}))
FAILS = {"nodeFailures": [{"every": "50s", "repair": "20s"}]}
RECLAIM = {"every": "50s", "back": "20s", "notice": "10s"}
HALVES = [job("a", sizes=[{"weight": 1}])]
WINDOW = {
    "apiVersion": "config.mooring.dev/v1alpha1",
    "kind": "TenantPolicy",
    "quotaWindows": [
        {"queue": "team", "resource": "cpu", "flavor": "any", "from": "08:00", "to": "20:00", "nominalQuota": "8"}
    ],
}
QUEUED = {
    "cluster": cluster(node(), *cluster_queue("team", 0)),
    "work": [job("a", queue="team")],
    "policies": [{"name": "p", "settings": [WINDOW]}],
}
POD: Parts = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "$(name)", "annotations": {"mooring.dev/duration": "$(duration)"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]},
}


PAIR: Parts = {"cpu": 6, "pods": 2, "duration": "never"}
NO_CPU = {
    "cluster": cluster(node(gpus=8)),
    "work": [job("a", at="10s")],
    "typicalPods": [{"cpuMilli": 8000, "gpuMilli": 1000, "gpuCount": 1}],
}
"""For as long as the job has all the CPU, the GPUs are of no use."""
KUEUE = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta1",
    "kind": "Configuration",
    "waitForPodsReady": {"enable": True, "blockAdmission": True},
}
ONE_BY_ONE: Parts = {
    "cluster": cluster(node(), *cluster_queue("team", 8)),
    "work": [job("a", at=["0s", "0s"], cpu=4, queue="team")],
    "policies": [{"name": "p", "settings": [KUEUE]}],
}
"""The second is admitted when the first is ready."""


def only(name: str, **parts: Any) -> Parts:
    return {"work": [job(name, **parts)]}


# By field: the number that is looked at, the scenario without it, with it, and what the number is in both.
CASES: dict[str, tuple[str, Parts, Parts, float, float]] = {
    "Scenario.horizon": ("running", {}, {"horizon": "50s"}, 0, 1),
    "Scenario.interval": ("queueing.mean", only("a", at="5s"), {**only("a", at="5s"), "interval": "60s"}, 0.0, 55.0),
    "Scenario.start": (
        "finished",
        {**QUEUED, "start": "2026-01-01T02:00:00Z"},
        {**QUEUED, "start": "2026-01-01T09:00:00Z"},
        0,
        1,
    ),
    "Scenario.sampleEvery": (
        "fragmentation",
        {**NO_CPU, "sampleEvery": "1000s"},
        {**NO_CPU, "sampleEvery": "10s"},
        0.0,
        0.8,
    ),
    "Scenario.typicalPods": (
        "fragmentation",
        {"cluster": cluster(node(gpus=4)), "work": []},
        {
            "cluster": cluster(node(gpus=4)),
            "work": [],
            "typicalPods": [{"cpuMilli": 99000, "gpuMilli": 1000, "gpuCount": 1}],
        },
        0.56,
        4.0,
    ),
    "ClusterSource.objects": (
        "queueing.mean",
        only("a", at=["0s", "0s"]),
        {"cluster": cluster(node("a"), node("b")), **only("a", at=["0s", "0s"])},
        50.0,
        0.0,
    ),
    "Price.perHour": ("cost", {}, {"cluster": cluster(prices=[{"perHour": 3.6}])}, 0.0, 1.0),
    "Price.nodes": (
        "cost",
        {"cluster": {**TWO_NODES, "prices": [{"perHour": 3.6}]}},
        {"cluster": {**TWO_NODES, "prices": [{"perHour": 3.6, "nodes": {"pool": "x"}}]}},
        2.0,
        1.0,
    ),
    "KubeletTimings.pull": ("completion.mean", {}, {"cluster": cluster(timings={"pull": "7s"})}, 100.0, 107.0),
    "KubeletTimings.start": ("completion.mean", {}, {"cluster": cluster(timings={"start": "7s"})}, 100.0, 107.0),
    "KubeletTimings.ready": (
        "queueing.mean",
        ONE_BY_ONE,
        {**ONE_BY_ONE, "cluster": {**ONE_BY_ONE["cluster"], "timings": {"ready": "30s"}}},
        0.0,
        15.0,
    ),
    "KubeletTimings.stop": (
        "completion.mean",
        {"work": [job("low", duration="900s"), job("high", "10s", "50s", priority=5)]},
        {
            "cluster": cluster(timings={"stop": "20s"}),
            "work": [job("low", duration="900s"), job("high", "10s", "50s", priority=5)],
        },
        (960 + 50) / 2,
        (980 + 70) / 2,
    ),
    "WorkSource.every": ("jobs", {}, {"work": [job("a", at=[], every="300s")]}, 1, 3),
    "WorkSource.at": ("jobs", {}, only("a", at=["0s", "1s"]), 1, 2),
    "WorkSource.from": (
        "jobs",
        only("a", at=[], every="300s"),
        {"work": [{**job("a", at=[], every="300s"), "from": "500s"}]},
        3,
        1,
    ),
    "WorkSource.until": ("jobs", only("a", at=[], every="300s"), only("a", at=[], every="300s", until="650s"), 3, 2),
    "WorkSource.count": ("jobs", only("a", at=[], every="300s"), only("a", at=[], every="300s", count=1), 3, 1),
    "WorkSource.as": (
        "resources.0.allocation",
        only("a", **PAIR),
        {"work": [{**job("a", **PAIR), "as": "PodGroup"}]},
        0.75,
        0.0,
    ),
    "WorkSource.labels": (
        "finished",
        {"cluster": QUEUED["cluster"], "work": [{**job("a"), "as": "Pod"}]},
        {"cluster": QUEUED["cluster"], "work": [{**job("a", labels={QUEUE_NAME: "team"}), "as": "Pod"}]},
        1,
        0,
    ),
    "WorkSource.namespace": (
        "queues",
        {"work": [job("a"), job("b")]},
        {"work": [job("a"), job("b", namespace="other")]},
        1,
        2,
    ),
    "WorkSource.queue": (
        "finished",
        {"cluster": QUEUED["cluster"], **only("a")},
        {"cluster": QUEUED["cluster"], **only("a", queue="team")},
        1,
        0,
    ),
    "WorkSource.priority": (
        "evictions",
        {"work": [job("a"), job("b", "5s")]},
        {"work": [job("a"), job("b", "5s", priority=1)]},
        0,
        1,
    ),
    "WorkSource.pods": ("resources.0.allocation", only("a", cpu=4), only("a", cpu=4, pods=2), 0.05, 0.1),
    "WorkSource.requests": ("resources.0.allocation", {}, only("a", requests={"cpu": 4}), 0.1, 0.05),
    "WorkSource.duration": ("completion.mean", {}, only("a", duration="40s"), 100.0, 40.0),
    "WorkSource.annotations": (
        "failed",
        {},
        {"work": [{**job("a", annotations={"mooring.dev/exit-code": "1"}), "as": "Pod"}]},
        0,
        1,
    ),
    "WorkSource.nodeLabels": (
        "finished",
        {"cluster": TWO_NODES, **only("a")},
        {"cluster": TWO_NODES, **only("a", nodeLabels={"pool": ["z", "w"]})},
        1,
        0,
    ),
    "Size.weight": (
        "completion.mean",
        {"work": HALVES},
        only("a", sizes=[{"weight": 1e-9, "duration": "5s"}, {"weight": 1, "duration": "70s"}]),
        100.0,
        70.0,
    ),
    "Size.pods": ("resources.0.allocation", only("a", cpu=4), only("a", cpu=4, sizes=[{"pods": 2}]), 0.05, 0.1),
    "Size.requests": ("resources.0.allocation", {}, only("a", sizes=[{"requests": {"cpu": 2}}]), 0.1, 0.025),
    "Size.duration": ("completion.mean", {}, only("a", sizes=[{"duration": "30s"}]), 100.0, 30.0),
    "Size.priority": (
        "evictions",
        {"work": [job("a"), job("b", "5s")]},
        {"work": [job("a"), job("b", "5s", sizes=[{"priority": 1}])]},
        0,
        1,
    ),
    "Size.nodeLabels": (
        "finished",
        {"cluster": TWO_NODES, **only("a")},
        {"cluster": TWO_NODES, **only("a", sizes=[{"nodeLabels": {"pool": "z"}}])},
        1,
        0,
    ),
    "WorkSource.objects": (
        "completion.mean",
        {},
        {"work": [{"name": "m", "at": ["0s"], "objects": [POD], "duration": "33s"}]},
        100.0,
        33.0,
    ),
    "CheckpointRule.interval": (
        "workLostHours",
        {"work": [job("a"), job("b", "36s", priority=1)]},
        {"work": [job("a", checkpoints={"interval": "18s"}), job("b", "36s", priority=1)]},
        0.01,
        0.0,
    ),
    "CheckpointRule.onEviction": (
        "workLostHours",
        {"work": [job("a"), job("b", "36s", priority=1)]},
        {"work": [job("a", checkpoints={"onEviction": True}), job("b", "36s", priority=1)]},
        0.01,
        0.0,
    ),
    "NodeFailures.every": ("nodesUp", {}, {"faults": {"nodeFailures": [{"every": "990s", "repair": "1h"}]}}, 1.0, 0.99),
    "NodeFailures.repair": (
        "nodesUp",
        {"faults": {"nodeFailures": [{"every": "900s", "repair": "1h"}]}},
        {"faults": {"nodeFailures": [{"every": "900s", "repair": "50s"}]}},
        0.9,
        0.95,
    ),
    "NodeFailures.nodes": (
        "nodesUp",
        {"cluster": TWO_NODES, "faults": {"nodeFailures": [{"every": "900s", "repair": "1h"}]}},
        {"cluster": TWO_NODES, "faults": {"nodeFailures": [{"every": "900s", "repair": "1h", "nodes": {"pool": "x"}}]}},
        1.8,
        1.9,
    ),
    "Faults.detection": (
        "completion.mean",
        {
            "faults": {"nodeFailures": [{"every": "50s", "repair": "5000s", "nodes": {"pool": "x"}}]},
            "cluster": cluster(node("a", labels={"pool": "x"}), node("b", cpu=7)),
            **only("a", cpu=7, nodeLabels={}, checkpoints={"interval": "1s"}),
        },
        {
            "faults": {
                "detection": "0s",
                "nodeFailures": [{"every": "50s", "repair": "5000s", "nodes": {"pool": "x"}}],
            },
            "cluster": cluster(node("a", labels={"pool": "x"}), node("b", cpu=7)),
            **only("a", cpu=7, nodeLabels={}, checkpoints={"interval": "1s"}),
        },
        440.0,
        400.0,
    ),
    "SpotReclaim.every": ("nodesUp", {}, {"faults": {"spotReclaims": [{"every": "890s", "notice": "10s"}]}}, 1.0, 0.9),
    "SpotReclaim.notice": (
        "nodesUp",
        {"faults": {"spotReclaims": [{"every": "900s", "notice": "0s"}]}},
        {"faults": {"spotReclaims": [{"every": "900s", "notice": "50s"}]}},
        0.9,
        0.95,
    ),
    "SpotReclaim.back": (
        "nodesUp",
        {"faults": {"spotReclaims": [{"every": "900s", "notice": "0s"}]}},
        {"faults": {"spotReclaims": [{"every": "900s", "notice": "0s", "back": "20s"}]}},
        0.9,
        0.98,
    ),
    "SpotReclaim.nodes": (
        "nodesUp",
        {"cluster": TWO_NODES, "faults": {"spotReclaims": [{"every": "900s", "notice": "0s"}]}},
        {"cluster": TWO_NODES, "faults": {"spotReclaims": [{"every": "900s", "notice": "0s", "nodes": {"pool": "x"}}]}},
        1.8,
        1.9,
    ),
    "PlannedChange.at": (
        "nodesUp",
        {"changes": [{"at": "900s", "fail": {}}]},
        {"changes": [{"at": "500s", "fail": {}}]},
        0.9,
        0.5,
    ),
    "PlannedChange.objects": ("nodesUp", {}, {"changes": [{"at": "500s", "objects": [node("b")]}]}, 1.0, 1.5),
    "PlannedChange.cordon": ("finished", {}, {"changes": [{"at": "0s", "cordon": {}}]}, 1, 0),
    "PlannedChange.uncordon": (
        "finished",
        {"changes": [{"at": "0s", "cordon": {}}]},
        {"changes": [{"at": "0s", "cordon": {}}, {"at": "9s", "uncordon": {}}]},
        0,
        1,
    ),
    "PlannedChange.fail": ("nodesUp", {}, {"changes": [{"at": "500s", "fail": {}}]}, 1.0, 0.5),
    "PlannedChange.repair": (
        "nodesUp",
        {"changes": [{"at": "500s", "fail": {}}]},
        {"changes": [{"at": "500s", "fail": {}}, {"at": "600s", "repair": {}}]},
        0.5,
        0.9,
    ),
    "NodeChoice.names": (
        "nodesUp",
        {"cluster": TWO_NODES, "changes": [{"at": "500s", "fail": {}}]},
        {"cluster": TWO_NODES, "changes": [{"at": "500s", "fail": {"names": ["a"]}}]},
        1.0,
        1.5,
    ),
    "NodeChoice.labels": (
        "nodesUp",
        {"cluster": TWO_NODES, "changes": [{"at": "500s", "fail": {}}]},
        {"cluster": TWO_NODES, "changes": [{"at": "500s", "fail": {"labels": {"pool": "x"}}}]},
        1.0,
        1.5,
    ),
    "Policy.settings": (
        "finished",
        {"cluster": QUEUED["cluster"], "work": QUEUED["work"], "start": "2026-01-01T09:00:00Z"},
        {**QUEUED, "start": "2026-01-01T09:00:00Z"},
        0,
        1,
    ),
    "Policy.objects": ("nodesUp", {}, {"policies": [{"name": "p", "objects": [node("more")]}]}, 1.0, 2.0),
    "Policy.scores": (
        "nodesNeeded",
        {"cluster": cluster(node("a"), node("b")), **only("a", cpu=2, at=["0s", "1s"])},
        {
            "cluster": cluster(node("a"), node("b")),
            **only("a", cpu=2, at=["0s", "1s"]),
            "policies": [{"name": "p", "scores": ["BestFit"]}],
        },
        2,
        1,
    ),
    "Policy.interval": (
        "queueing.mean",
        only("a", at="5s"),
        {**only("a", at="5s"), "policies": [{"name": "p", "interval": "60s"}]},
        0.0,
        55.0,
    ),
}


@pytest.fixture
def measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Parts, str], float]:
    """One number of what `mooring simulate -o json` prints."""

    def run(parts: Parts, metric: str) -> float:
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump({**BASE, **parts}))
        capsys.readouterr()
        assert mooring_command(["simulate", str(path), "-o", "json"]) == 0
        found: Any = json.loads(capsys.readouterr().out)["runs"][0]
        for step in metric.split("."):
            found = found[int(step)] if step.isdecimal() else found[step]
        return float(len(found) if isinstance(found, list) else found)

    return run


@pytest.mark.parametrize("field", CASES)
def test_a_field_changes_the_outcome(measure: Callable[[Parts, str], float], field: str) -> None:
    metric, without, with_it, before, after = CASES[field]

    assert (measure(without, metric), measure(with_it, metric)) == pytest.approx((before, after))


FILES: dict[str, tuple[str, str, Parts, Parts, float, float]] = {
    "ClusterSource.manifests": (
        "nodesUp",
        yaml.safe_dump(node("more")),
        {},
        {"cluster": cluster(manifests=["file.yaml"], objects=[node()])},
        *(1.0, 2.0),
    ),
    "WorkSource.manifests": (
        "completion.mean",
        yaml.safe_dump(POD),
        {},
        {"work": [{"name": "m", "at": ["0s"], "manifests": ["file.yaml"], "duration": "33s"}]},
        *(100.0, 33.0),
    ),
    "PlannedChange.apply": (
        "nodesUp",
        yaml.safe_dump(node("more")),
        {},
        {"changes": [{"at": "500s", "apply": ["file.yaml"]}]},
        *(1.0, 1.5),
    ),
    "Policy.manifests": (
        "nodesUp",
        yaml.safe_dump(node("more")),
        {},
        {"policies": [{"name": "p", "manifests": ["file.yaml"]}]},
        *(1.0, 2.0),
    ),
    "Policy.config": (
        "finished",
        yaml.safe_dump(WINDOW),
        {**QUEUED, "start": "2026-01-01T09:00:00Z", "policies": [{"name": "p"}]},
        {**QUEUED, "start": "2026-01-01T09:00:00Z", "policies": [{"name": "p", "config": "file.yaml"}]},
        *(0, 1),
    ),
    "Policy.plugins": (
        "finished",
        "import numpy as np\n\nfrom mooring.plugin import Filter\n\n\nclass Never(Filter):\n"
        "    def filter(self, pod, nodes):\n        return np.zeros(len(nodes), bool)\n",
        {},
        {"policies": [{"name": "p", "plugins": ["file.py"]}]},
        *(1, 0),
    ),
    "Policy.schedulers": (
        "finished",
        yaml.safe_dump({**POD, "spec": {**POD["spec"], "schedulerName": "volcano"}}),
        {"work": [{"name": "m", "at": ["0s"], "manifests": ["file.yaml"], "duration": "33s"}]},
        {
            "work": [{"name": "m", "at": ["0s"], "manifests": ["file.yaml"], "duration": "33s"}],
            "policies": [{"name": "p", "schedulers": ["volcano"]}],
        },
        *(0, 1),
    ),
    "TraceSource.path": (
        "completion.mean",
        "submit_time,duration,cpu\n0,44,1\n",
        {},
        {"work": [{"name": "t", "trace": {"format": "jobs", "path": "file.csv"}}]},
        *(100.0, 44.0),
    ),
    "TraceSource.options": (
        "completion.mean",
        "submit_time,duration,cpu\n0,44,1\n",
        {"work": [{"name": "t", "trace": {"format": "jobs", "path": "file.csv"}}]},
        {"work": [{"name": "t", "trace": {"format": "jobs", "path": "file.csv", "options": {"speedup": 2}}}]},
        *(44.0, 22.0),
    ),
}


@pytest.mark.parametrize("field", FILES)
def test_a_file_that_a_field_names_changes_the_outcome(
    measure: Callable[[Parts, str], float], tmp_path: Path, field: str
) -> None:
    metric, text, without, with_it, before, after = FILES[field]
    for name in ("file.yaml", "file.py", "file.csv"):
        (tmp_path / name).write_text(text)

    assert (measure(without, metric), measure(with_it, metric)) == pytest.approx((before, after))


ELSEWHERE = {
    "Scenario.name": "test_simulate_command: the first line of the table",
    "Scenario.seeds": "test_simulate_command: a run for each",
    "Policy.name": "test_simulate_command: a column for each",
    "WorkSource.name": "test_virtual_time: jobs are called so",
    "ClusterSource.decisionLog": "test_replay",
    "ClusterSource.trace": "test_a_list_of_nodes_is_the_cluster",
    "TraceSource.format": "test_a_list_of_nodes_is_the_cluster",
}
NESTED = {
    *("Scenario.cluster", "Scenario.work", "Scenario.faults", "Scenario.changes", "Scenario.policies"),
    *("ClusterSource.prices", "ClusterSource.timings", "WorkSource.sizes", "WorkSource.checkpoints"),
    *("WorkSource.trace", "Faults.nodeFailures", "Faults.spotReclaims", "Scenario.apiVersion", "Scenario.kind"),
}


def test_a_list_of_nodes_is_the_cluster(measure: Callable[[Parts, str], float], tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1024,2,T4\nn1,8000,1024,2,T4\n")
    trace = {"format": "alibaba-gpu-2023", "path": "nodes.csv"}

    assert measure({"cluster": {"trace": trace}}, "nodesUp") == 2.0


def test_no_field_is_forgotten() -> None:
    fields = {
        f"{name}.{field.encode_name}"
        for name, found in vars(scenario_types).items()
        if isinstance(found, type) and issubclass(found, ConfigObject) and found is not ConfigObject
        for field in msgspec.structs.fields(found)
    }

    assert sorted(fields - set(CASES) - set(FILES) - set(ELSEWHERE) - NESTED) == []
