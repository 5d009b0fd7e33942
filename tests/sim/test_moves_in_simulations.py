"""Pods that run are moved in virtual time, by the same action as everywhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenario_parts import cluster, job, node

from mooring.report.simulation.results import Run

POLICY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
---
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: RemovePodsViolatingNodeTaints, args: {}}]
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
---
apiVersion: config.mooring.dev/v1alpha1
kind: RebalancePolicy
intervalSeconds: 60
"""


def tainted(name: str) -> dict[str, Any]:
    found = node(name)
    found["spec"] = {"taints": [{"key": "old", "effect": "NoSchedule"}]}
    return found


@pytest.mark.parametrize(("policy", "nodes"), [(POLICY, ["a", "b"]), ("", ["a"])])
def test_a_job_leaves_a_node_that_is_tainted_at_the_next_run(
    run: Callable[..., Run], tmp_path: Path, policy: str, nodes: list[str]
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(policy or POLICY.partition("---")[0])
    found = run(
        horizon="1000s",
        cluster=cluster(node("a"), tainted("b")),
        work=[{**job("train", duration="600s", cpu=4), "as": "Job"}],
        changes=[{"at": "90s", "objects": [tainted("a"), node("b")]}],
        policies=[{"name": "default", "config": str(config)}],
    )

    stays = found.stays
    names = list(found.nodes.node)
    assert [names[row] for row in stays.node.tolist()] == nodes
    if len(nodes) > 1:
        assert 90 <= stays.bound.tolist()[1] <= 125
