"""Files of measurements become reports, in every form; what is wrong with them is one line with the field."""

import json
from pathlib import Path

import pytest

from mooring.drivers.load.reading import read_loads
from mooring.errors import InputError
from mooring.model.keys import PodKey
from mooring.model.load.reports import CardLoad, GpuReport, Level, NodeReport, PodUsage

NODES = """
apiVersion: metrics.k8s.io/v1beta1
kind: NodeMetricsList
items:
- {metadata: {name: a}, timestamp: "2026-03-02T12:00:00Z", window: 30s, usage: {cpu: 250m, memory: 1Gi}}
---
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {name: p, namespace: team}
containers: [{name: c, usage: {cpu: 100m}}, {name: d, usage: {cpu: 50m, memory: 10Mi}}]
"""
KOORDINATOR = """
apiVersion: slo.koordinator.sh/v1alpha1
kind: NodeMetric
metadata: {name: a}
spec: {metricCollectPolicy: {reportIntervalSeconds: 30}}
status:
  updateTime: "2026-03-02T12:00:00Z"
  nodeMetric:
    nodeUsage: {resources: {cpu: "3"}}
    aggregatedNodeUsages: [{duration: 5m0s, usage: {p95: {resources: {cpu: "5"}}}}]
  podsMetric: [{name: p, namespace: team, priority: koord-prod, podUsage: {resources: {cpu: 100m}}}]
"""
WATCHER = {
    "window": {"duration": "15m", "start": 1789999100, "end": 1790000000},
    "data": {
        "NodeMetricsMap": {
            "a": {
                "metrics": [
                    {"type": "CPU", "operator": "AVG", "value": 42.5},
                    {"type": "Disk", "operator": "AVG", "value": 1},
                ]
            }
        }
    },
}
DCGM = """
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="a"} 75 1790000000000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",Hostname="a"} 30
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1",Hostname="a"} 10
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="a"} 61
DCGM_FI_PROF_SM_OCCUPANCY{gpu="0",UUID="GPU-1",Hostname="a"} 0.5
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-2",Hostname="b"} 5
"""
NOON = 1772452800.0


def written(folder: Path, text: str) -> Path:
    path = folder / "metrics"
    path.write_text(text)
    return path


def test_node_and_pod_metrics_are_amounts(tmp_path: Path) -> None:
    pods = {PodKey("team/p"): PodUsage({"cpu": 150, "memory": 10 << 20})}

    assert read_loads([written(tmp_path, NODES)]).reports == [
        NodeReport("a", NOON, usage={"cpu": 250, "memory": 1 << 30}, pods=pods)
    ]


def test_a_node_metric_of_koordinator_has_aggregates_and_an_interval(tmp_path: Path) -> None:
    (found,) = read_loads([written(tmp_path, KOORDINATOR)]).reports

    assert isinstance(found, NodeReport)
    assert (found.at, found.interval_seconds, found.usage) == (NOON, 30.0, {"cpu": 3000})
    assert found.aggregated("p95", 300.0) == {"cpu": 5000}
    assert found.aggregated("p95", 600.0) is None
    assert found.pods == {"team/p": PodUsage({"cpu": 100}, "koord-prod")}


def test_the_answer_of_a_load_watcher_is_in_percent(tmp_path: Path) -> None:
    found = read_loads([written(tmp_path, json.dumps(WATCHER))]).reports

    assert found == [NodeReport("a", 1790000000.0, levels=(Level("cpu", "AVG", 42.5),))]


def test_metrics_of_dcgm_exporter_are_of_now_unless_they_say_when(tmp_path: Path) -> None:
    found = read_loads([written(tmp_path, DCGM)], now=7.0).reports

    assert found == [
        GpuReport("a", 1790000000.0, {"GPU-1": CardLoad(75.0, 75.0, 61.0, None, 50.0)}),
        GpuReport("b", 7.0, {"GPU-2": CardLoad(5.0)}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod", "document 1: kind: expected NodeMetrics, PodMetrics, NodeMetric, a list of them"),
        ("[1]", "document 1: expected NodeMetrics"),
        ("a: b: c", "document 1"),
        ("kind: NodeMetrics\nusage: {cpu: much}", 'document 1: usage.cpu: expected a quantity, found "much"'),
        ("kind: NodeMetricsList\nitems: [{usage: [1]}]", "document 1: items[0]: usage: expected object, found array"),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 1', "DCGM_FI_DEV_GPU_UTIL: expected a label Hostname or node"),
        ("DCGM_FI_DEV_GPU_UTIL{gpu= 1", "expected metrics in Prometheus' text form"),
    ],
)
def test_a_file_that_is_none_gets_one_line_with_the_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_loads([written(tmp_path, text)])

    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--metrics: .*: expected a file of text, found No such file"):
        read_loads([tmp_path / "none"])
