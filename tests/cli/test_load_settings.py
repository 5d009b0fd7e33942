"""Every argument of a load-aware plugin changes what it says of nodes: through `mooring explain`."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

Call = Callable[..., Any]
Said = dict[str, int | str]
"""By node: the score, or why it is refused."""

NOW = "2026-03-02T12:00:00Z"
NODES = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: 10, memory: 10Gi}, allocatable: {cpu: 10, memory: 10Gi, pods: 20, nvidia.com/gpu: 4}}
---
apiVersion: v1
kind: Node
metadata: {name: b}
status: {capacity: {cpu: 10, memory: 10Gi}, allocatable: {cpu: 20, memory: 10Gi, pods: 20, nvidia.com/gpu: 4}}
"""
POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {scheduling.koordinator.sh/load-estimated-scaling-factors: '{"cpu": 10}'}}
spec:
  priority: 9000
  containers: [{name: c, image: x, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi}}}]
"""
SILENT = "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}]}\n"
ASKS_FOR_GPU = POD.replace("cpu: 1, memory: 1Gi}", "cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}").replace(
    "memory: 2Gi}", "memory: 2Gi, nvidia.com/gpu: 1}"
)
OLD = """
---
apiVersion: v1
kind: Pod
metadata: {name: old}
spec:
  nodeName: a
  priority: 9000
  containers: [{name: c, image: x, resources: {requests: {cpu: 4}, limits: {cpu: 12}}}]
status:
  conditions:
  - {type: PodScheduled, status: "True", lastTransitionTime: "2026-03-02T11:00:00Z"}
  - {type: Initialized, status: "True", lastTransitionTime: "2026-03-02T11:30:00Z"}
"""


def watcher(**levels: dict[str, float]) -> str:
    """What load-watcher tells, by node and statistic; it is 100 seconds old."""
    nodes = {
        node: {
            "metrics": [
                {"type": kind, "operator": statistic, "value": value}
                for kind in ("CPU", "Memory")
                for statistic, value in found.items()
            ]
        }
        for node, found in levels.items()
    }
    return json.dumps({"window": {"end": 1772452700}, "data": {"NodeMetricsMap": nodes}})


LEVELS = watcher(a={"AVG": 30, "STD": 16}, b={"AVG": 50, "STD": 4})


def metric(name: str, cpu: str, at: str, **more: Any) -> dict[str, Any]:
    usage = {"resources": {"cpu": cpu, "memory": "2Gi"}}
    return {
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "status": {
            "updateTime": at,
            "nodeMetric": {
                "nodeUsage": usage,
                "systemUsage": {"resources": {"cpu": "2"}},
                "aggregatedNodeUsages": [
                    {"duration": "5m", "usage": {"p95": {"resources": {"cpu": "6", "memory": "2Gi"}}}},
                    {"duration": "10m", "usage": {"p95": {"resources": {"cpu": "9", "memory": "2Gi"}}}},
                ],
            },
            "podsMetric": [
                {
                    "name": "old",
                    "namespace": "default",
                    "priority": "koord-prod",
                    "podUsage": {"resources": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
        },
    }


MEASURED = yaml.safe_dump_all([metric("a", "5", "2026-03-02T11:59:50Z"), metric("b", "5", "2026-03-02T11:50:00Z")])
DCGM = """
DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="a"} 20 1772452790000
DCGM_FI_DEV_FB_USED{gpu="0",Hostname="a"} 60 1772452790000
DCGM_FI_DEV_FB_FREE{gpu="0",Hostname="a"} 40 1772452790000
DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="a"} 60 1772452790000
DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="b"} 0 1772452000000
"""


@pytest.fixture
def told(mooring: Call, write: Call) -> Call:
    def result(plugin: str, args: dict[str, Any], metrics: str, pods: str = POD) -> Said:
        profile = {
            "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
            "pluginConfig": [{"name": plugin, "args": args}],
        }
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        config["profiles"] = [profile]  # type: ignore[assignment]
        given = ("-f", write(NODES + pods), "--config", write(yaml.safe_dump(config), "config.yaml"))
        more = ("--metrics", write(metrics, "metrics"), "--now", NOW)
        outcome = mooring("explain", "p", "-q", "-o", "json", *given, *more)
        assert (outcome.code, outcome.err) == (0, "")
        return {node["node"]: _said(node, plugin) for node in json.loads(outcome.out)["nodes"]}

    return result


def _said(node: dict[str, Any], plugin: str) -> int | str:
    refused = [verdict["reasons"][0] for verdict in node["verdicts"] if verdict["plugin"] == plugin]
    said: int | str = refused[0] if refused else node["scores"][plugin]["score"]
    return said


EXPIRED = "node(s) nodeMetric expired"
OVER, OVER_AGGREGATED = "node(s) cpu usage exceed threshold", "node(s) cpu aggregated usage exceed threshold"
BUSY, FULL, HOT = (
    f"node(s) had GPUs above the threshold of {what}" for what in ("utilization", "memory", "temperature")
)
GPU_EXPIRED = "node(s) had GPU metrics that expired"
SCORED = {"aggregated": {"scoreAggregationType": "p95"}}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, {"a": 53, "b": EXPIRED}),
        ({"usageThresholds": {"cpu": 55}}, {"a": OVER, "b": EXPIRED}),
        ({"prodUsageThresholds": {"cpu": 15}}, {"a": OVER, "b": EXPIRED}),
        ({"prodUsageThresholds": {"cpu": 25}}, {"a": 53, "b": EXPIRED}),
        ({"prodUsageThresholds": {"cpu": 25}, "prodUsageIncludeSys": True}, {"a": OVER, "b": EXPIRED}),
        ({"scoreAccordingProdUsage": True}, {"a": 78, "b": EXPIRED}),
        ({"enableScheduleWhenNodeMetricsExpired": True}, {"a": 53, "b": 0}),
        ({"filterExpiredNodeMetrics": False}, {"a": 53, "b": 0}),
        ({"nodeMetricExpirationSeconds": 700}, {"a": 53, "b": 67}),
        ({"resourceWeights": {"cpu": 1}}, {"a": 41, "b": EXPIRED}),
        ({"dominantResourceWeight": 1}, {"a": 41, "b": EXPIRED}),
        ({"estimatedScalingFactors": {"cpu": 50}}, {"a": 55, "b": EXPIRED}),
        ({"allowCustomizeEstimation": True}, {"a": 57, "b": EXPIRED}),
        ({"estimatedSecondsAfterPodScheduled": 3600}, {"a": OVER, "b": EXPIRED}),
        ({"estimatedSecondsAfterInitialized": 1800}, {"a": OVER, "b": EXPIRED}),
        (
            {"aggregated": {"usageThresholds": {"cpu": 75}, "usageAggregationType": "p95"}},
            {"a": OVER_AGGREGATED, "b": EXPIRED},
        ),
        (
            {
                "aggregated": {
                    "usageThresholds": {"cpu": 75},
                    "usageAggregationType": "p95",
                    "usageAggregatedDuration": "5m",
                }
            },
            {"a": 53, "b": EXPIRED},
        ),
        (SCORED, {"a": 33, "b": EXPIRED}),
        ({"aggregated": SCORED["aggregated"] | {"scoreAggregatedDuration": "5m"}}, {"a": 48, "b": EXPIRED}),
    ],
)
def test_what_load_aware_scheduling_says(told: Call, args: dict[str, Any], expected: Said) -> None:
    assert told("LoadAwareScheduling", args, MEASURED, OLD + POD) == expected


@pytest.mark.parametrize(
    ("args", "pods", "expected"),
    [
        ({}, POD, {"a": 37, "b": 23}),
        ({"targetUtilization": 80}, POD, {"a": 91, "b": 96}),
        ({"defaultRequestsMultiplier": "3"}, POD, {"a": 27, "b": 13}),
        ({}, SILENT, {"a": 100, "b": 27}),
        ({"defaultRequests": {"cpu": "4"}}, SILENT, {"a": 20, "b": 7}),
        ({"metricsExpirationSeconds": 60}, POD, {"a": 0, "b": 0}),
    ],
)
def test_what_target_load_packing_says(told: Call, args: dict[str, Any], pods: str, expected: Said) -> None:
    assert told("TargetLoadPacking", args, LEVELS, pods) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, {"a": 72, "b": 68}),
        ({"safeVarianceMargin": 3}, {"a": 56, "b": 64}),
        ({"safeVarianceSensitivity": 2}, {"a": 60, "b": 60}),
        ({"metricsExpirationSeconds": 60}, {"a": 0, "b": 0}),
    ],
)
def test_what_load_variation_risk_balancing_says(told: Call, args: dict[str, Any], expected: Said) -> None:
    assert told("LoadVariationRiskBalancing", args, LEVELS) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, {"a": 65, "b": 100}),
        ({"smoothingWindowSize": 1}, {"a": 68, "b": 100}),
        ({"riskLimitWeights": {"cpu": 1, "memory": 1}}, {"a": 63, "b": 100}),
        ({"metricsExpirationSeconds": 60}, {"a": 0, "b": 0}),
    ],
)
def test_what_low_risk_over_commitment_says(told: Call, args: dict[str, Any], expected: Said) -> None:
    assert told("LowRiskOverCommitment", args, LEVELS, OLD + POD) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, {"a": 0, "b": 0}),
        ({"nodePowerModel": {"a": {"k1": 1, "k2": 0.01}, "b": {"k1": 2, "k2": 0.01}}}, {"a": 100, "b": 0}),
        ({"nodePowerModel": {"a": {"k1": 9, "k2": 0.01}, "b": {"k1": 2, "k2": 0.01}}}, {"a": 0, "b": 100}),
        ({"NodePowerModel": {"a": {"k1": 1, "k2": 0.09}, "b": {"k1": 2, "k2": 0.01}}}, {"a": 0, "b": 100}),
        (
            {
                "metricsExpirationSeconds": 60,
                "nodePowerModel": {"a": {"k1": 1, "k2": 0.01}, "b": {"k1": 2, "k2": 0.01}},
            },
            {"a": 0, "b": 0},
        ),
    ],
)
def test_what_peaks_says(told: Call, args: dict[str, Any], expected: Said) -> None:
    assert told("Peaks", args, LEVELS) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, {"a": 100, "b": 0}),
        ({"mode": "Most"}, {"a": 0, "b": 100}),
        ({"resources": [{"name": "memory", "weight": 1}]}, {"a": 0, "b": 0}),
        ({"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1 << 40}]}, {"a": 0, "b": 0}),
    ],
)
def test_what_node_resources_allocatable_says(told: Call, args: dict[str, Any], expected: Said) -> None:
    assert told("NodeResourcesAllocatable", args, LEVELS) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"thresholds": {"utilization": 0}}, {"a": 20, "b": 0}),
        ({"thresholds": {"utilization": 95}}, {"a": BUSY, "b": 0}),
        ({"thresholds": {"utilization": 0, "memory": 50}}, {"a": FULL, "b": 0}),
        ({"thresholds": {"utilization": 0, "temperature": 50}}, {"a": HOT, "b": 0}),
        ({"thresholds": {"utilization": 0}, "estimatedUtilization": 40}, {"a": 40, "b": 0}),
        ({"thresholds": {"utilization": 0}, "weights": {"utilization": 0}}, {"a": 40, "b": 0}),
        ({"thresholds": {"utilization": 0}, "weights": {"memory": 0}}, {"a": 0, "b": 0}),
        ({"thresholds": {"utilization": 0}, "weights": {"temperature": 2}}, {"a": 35, "b": 0}),
        ({"thresholds": {"utilization": 0}, "weights": {"temperature": 2}, "coolCelsius": 0}, {"a": 27, "b": 0}),
        ({"thresholds": {"utilization": 0}, "weights": {"temperature": 2}, "hotCelsius": 130}, {"a": 45, "b": 0}),
        ({"thresholds": {"utilization": 0}, "expirationSeconds": 5}, {"a": 0, "b": 0}),
        ({"thresholds": {"utilization": 0}, "whenExpired": "Refuse"}, {"a": 20, "b": GPU_EXPIRED}),
        ({"thresholds": {"utilization": 0}, "whenExpired": "Keep"}, {"a": 20, "b": 20}),
    ],
)
def test_what_gpu_load_says(told: Call, args: dict[str, Any], expected: Said) -> None:
    assert told("GpuLoad", args, DCGM, ASKS_FOR_GPU) == expected


@pytest.mark.parametrize(
    ("plugin", "args", "line"),
    [
        (
            "TargetLoadPacking",
            {"targetUtilization": 101},
            "targetUtilization: expected a percentage from 1 to 100, found 101",
        ),
        (
            "TargetLoadPacking",
            {"defaultRequestsMultiplier": "x"},
            'defaultRequestsMultiplier: expected a number of 0 or more as text, found "x"',
        ),
        (
            "LowRiskOverCommitment",
            {"riskLimitWeights": {"cpu": 2}},
            "riskLimitWeights.cpu: expected a number from 0 to 1, found 2",
        ),
        (
            "LoadAwareScheduling",
            {"usageThresholds": {"cpu": 120}},
            "usageThresholds.cpu: expected a percentage from 0 to 100, found 120",
        ),
        (
            "LoadAwareScheduling",
            {"usageThreshold": {}},
            'usageThreshold: expected a known key (did you mean usageThresholds?), found "usageThreshold"',
        ),
        (
            "LoadAwareScheduling",
            {"aggregated": {"usageAggregationType": "p42"}},
            'aggregated.usageAggregationType: expected one of avg, p50, p90, p95, p99, found "p42"',
        ),
        ("GpuLoad", {"whenExpired": "Zero"}, 'whenExpired: expected one of Pass, Refuse, Keep, found "Zero"'),
        ("GpuLoad", {"hotCelsius": 20}, "hotCelsius: expected more than coolCelsius (30), found 20"),
        ("NodeResourcesAllocatable", {"mode": "Some"}, 'mode: expected one of Least, Most, found "Some"'),
    ],
)
def test_an_argument_that_is_wrong_gets_one_line_with_the_field(
    mooring: Call, write: Call, plugin: str, args: dict[str, Any], line: str
) -> None:
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config["profiles"] = [{"pluginConfig": [{"name": plugin, "args": args}]}]  # type: ignore[assignment]
    path = write(yaml.safe_dump(config), "config.yaml")

    outcome = mooring("schedule", "-q", "-f", write(NODES), "--config", path)

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert f"pluginConfig[0].args.{line}" in outcome.err
