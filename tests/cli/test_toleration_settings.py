"""Pods that tolerate preemption for a while: by the plugin PreemptionToleration, or by the setting alone."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}, capacity: {cpu: 2, memory: 8Gi, pods: 10}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: batch
  annotations:
    preemption-toleration.scheduling.sigs.k8s.io/minimum-preemptable-priority: "10000"
    preemption-toleration.scheduling.sigs.k8s.io/toleration-seconds: "3600"
value: 8000
---
apiVersion: v1
kind: Pod
metadata: {name: running}
spec:
  nodeName: a
  priorityClassName: batch
  priority: 8000
  containers: [{name: c, image: x, resources: {requests: {cpu: 2}}}]
status:
  phase: Running
  startTime: "2026-03-02T11:30:00Z"
  conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-03-02T11:30:00Z"}]
---
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  priority: PRIORITY
  containers: [{name: c, image: x, resources: {requests: {cpu: 2}}}]
"""
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- %s\n"
PLUGIN = (
    CONFIG % "plugins: {postFilter: {disabled: [{name: DefaultPreemption}], enabled: [{name: PreemptionToleration}]}}"
)
SETTING = CONFIG % "pluginConfig: [{name: PreemptionCost, args: {heedTolerations: true}}]"


@pytest.mark.parametrize(
    ("config", "priority", "now", "evicted"),
    [
        (CONFIG % "{}", 9000, "12:00", ["running"]),
        (PLUGIN, 9000, "12:00", []),
        (SETTING, 9000, "12:00", []),
        (PLUGIN, 9000, "12:30", ["running"]),
        (PLUGIN, 10000, "12:00", ["running"]),
    ],
)
def test_pods_tolerate_preemption_as_their_priority_class_says(
    mooring: Call, write: Call, config: str, priority: int, now: str, evicted: list[str]
) -> None:
    cluster = write(CLUSTER.replace("PRIORITY", str(priority)))
    file = write(config, "scheduler.yaml")

    outcome = mooring("schedule", "-f", cluster, "--config", file, "--now", f"2026-03-02T{now}:00Z", "-o", "json")

    assert outcome.code == 0, outcome.err
    assert [found["pod"] for found in json.loads(outcome.out)["evicted"]] == evicted
