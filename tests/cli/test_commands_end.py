"""Decisions that never come to rest, here by the fault of a plugin: every command ends, and names the pods."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Call = Callable[..., Any]

TROUBLE = """
from mooring.plugin import Permit, Rejection


class Trouble(Permit):
    '''Refuses an urgent pod whenever room was made for it.'''

    def permit(self, pod, cluster, row):
        return Rejection("not now") if "urgent" in pod.key else None
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Trouble}]}}}]
"""
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "20"}},
}
PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 100,
}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize("command", [("schedule",), ("queues",), ("explain", "low")])
def test_a_story_that_does_not_come_to_rest_ends_and_names_the_pods(
    mooring: Call, write: Call, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "trouble.py").write_text(TROUBLE)
    first = write(yaml.safe_dump_all([NODE, PRIORITY, pod("low")]), "1.yaml")
    then = write(yaml.safe_dump(pod("urgent", priorityClassName="urgent")), "2.yaml")
    last = write(yaml.safe_dump(pod("late")), "3.yaml")

    found = mooring(
        *command,
        *("-q", "-f", first, "--then", then, "--then", last),
        *("--plugin", str(tmp_path / "trouble.py"), "--config", write(CONFIG, "config.yaml")),
    )

    assert found.code == 1
    assert found.err.startswith("error: ")
    assert "default/urgent" in found.err
    assert "default/low" in found.err
    assert len(found.err.splitlines()) == 1


def test_a_simulation_that_does_not_come_to_rest_ends_and_names_the_pods(
    mooring: Call, write: Call, tmp_path: Path
) -> None:
    (tmp_path / "trouble.py").write_text(TROUBLE)
    scenario = {
        "apiVersion": "config.mooring.dev/v1alpha1",
        "kind": "Simulation",
        "horizon": "8760h",
        "cluster": {"objects": [NODE]},
        "work": [
            {"name": "low", "at": ["0s"], "duration": "never", "requests": {"cpu": 1}},
            {"name": "urgent", "at": ["60s"], "priority": 100, "duration": "1h", "requests": {"cpu": 1}},
        ],
        "policies": [{"name": "only", "plugins": ["trouble.py"], "settings": [yaml.safe_load(CONFIG)]}],
    }

    found = mooring("simulate", "-q", write(yaml.safe_dump(scenario), "scenario.yaml"))

    assert found.code == 1
    assert found.err.startswith("error: policy only, seed 0: ")
    assert "default/urgent-0-" in found.err
    assert "default/low-0-" in found.err
