"""How many pods are placed together, seen through `mooring bench`: it changes no decision, only who waits for whom."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run
from mooring.testing.builders import make_config

WORKLOAD = """
name: batches
description: pods of one shape
sizes: {nodes: 20, pods: 2000}
nodes:
- {apiVersion: v1, kind: Node, metadata: {name: "n-{i}"}, status: {allocatable: {cpu: 64, memory: 64Gi, pods: 110}}}
objects:
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: interactive}, value: 9}
pods:
- template:
    apiVersion: v1
    kind: Pod
    metadata: {name: "p-{i}"}
    spec:
      priorityClassName: interactive
      containers: [{name: c, image: x, resources: {requests: {cpu: 10m}}}]
config: %s
"""


@pytest.fixture
def bench(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def measure(**args: Any) -> dict[str, Any]:
        profile = {"pluginConfig": [{"name": "Batching", "args": args}]}
        file = tmp_path / "batches.yaml"
        file.write_text(WORKLOAD % json.dumps(make_config(profile)))
        capfd.readouterr()
        assert run(["bench", "--workload", str(file), "-o", "json"]) == 0
        (found,) = json.loads(capfd.readouterr().out)
        return dict(found)

    return measure


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, 500),
        ({"mode": "Adaptive"}, 500),
        ({"mode": "Fixed"}, 1024),
        ({"mode": "Fixed", "size": 100}, 100),
        ({"mode": "PriorityClass", "size": 100}, 100),
        ({"mode": "PriorityClass", "size": 100, "sizes": {"interactive": 7}}, 7),
        ({"mode": "Time", "milliseconds": 600_000}, 2000),
    ],
    ids=["a quarter of those who wait", "so said", "fixed", "of 100", "by class", "small for this class", "by time"],
)
def test_batches_are_as_large_as_the_settings_say(
    bench: Callable[..., dict[str, Any]], args: dict[str, Any], expected: int
) -> None:
    found = bench(**args)

    assert (found["placed"], found["largest_batch"]) == (2000, expected)


def test_a_batch_ends_when_its_time_is_over(bench: Callable[..., dict[str, Any]]) -> None:
    found = bench(mode="Time", milliseconds=1)

    assert found["placed"] == 2000
    assert found["largest_batch"] < 2000
