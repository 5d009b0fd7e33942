"""`mooring rebalance`: the plan of the example, and bad input in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "rebalance"
CLUSTER, POLICY, CONFIG = EXAMPLE / "cluster.yaml", EXAMPLE / "policy.yaml", EXAMPLE / "scheduler.yaml"
Call = Callable[..., Any]


def planned(mooring: Call, *arguments: str | Path) -> dict[str, Any]:
    outcome = mooring("rebalance", "-f", CLUSTER, "--policy", POLICY, *arguments, "-o", "json")
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_the_plan_says_of_each_step_where_to_why_and_what_it_is_worth(mooring: Call) -> None:
    found = planned(mooring, "--config", CONFIG)

    assert found["summary"] == {
        "moves": 6,
        "pods": 6,
        "stays": 1,
        "gain": 421.25,
        "cost": 6.0,
        "emptied": ["cpu-old", "gpu-0", "gpu-1"],
        "placedFirst": 0,
        "compatible": False,
    }
    assert found["steps"][2] == {
        "pod": "web-a",
        "namespace": "shop",
        "node": "cpu-busy",
        "strategy": "LowNodeUtilization",
        "profile": "default",
        "reason": "node cpu-busy is above its target for cpu",
        "gain": 12.5,
        "cost": 1.0,
        "move": 3,
        "target": "cpu-idle",
        "owner": "ReplicaSet/web",
    }
    assert [(stay["pod"], stay["reason"]) for stay in found["stays"]] == [
        ("index-a", "it would return to node cpu-busy")
    ]
    assert [one["strategy"] for one in found["strategies"]] == [
        "RemovePodsViolatingNodeTaints",
        "LowNodeUtilization",
        "HighNodeUtilization",
    ]


def test_without_a_profile_for_them_pods_of_another_scheduler_stay(mooring: Call) -> None:
    found = planned(mooring)

    assert [stay["reason"] for stay in found["stays"] if stay["namespace"] == "ml"] == [
        "it has another scheduler: gpu-scheduler"
    ] * 2


def test_compatible_evicts_what_the_descheduler_evicts(mooring: Call) -> None:
    found = planned(mooring, "--config", CONFIG, "--compatible")

    evicted = ["cart-a", "cart-b", "index-a", "web-a", "serve-a", "serve-b"]
    assert [step["pod"] for step in found["steps"]] == evicted
    assert all("target" not in step for step in found["steps"])


def test_one_namespace_of_all(mooring: Call) -> None:
    found = planned(mooring, "--config", CONFIG, "-n", "ml")

    assert [step["pod"] for step in found["steps"]] == ["serve-a", "serve-b"]


def test_failed_pods_are_known_from_manifests(mooring: Call, write: Call) -> None:
    policy = write(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: p\n"
        "  pluginConfig: [{name: RemoveFailedPods, args: {minPodLifetimeSeconds: 60}}]\n"
        "  plugins: {deschedule: {enabled: [RemoveFailedPods]}}\n",
        "policy.yaml",
    )
    failed = CLUSTER.read_text().replace("phase: Running", "phase: Failed", 1)
    cluster = write(failed)

    outcome = mooring("rebalance", "-f", cluster, "--policy", policy, "--now", "2026-03-02T12:00:00Z", "-o", "json")

    steps = json.loads(outcome.out)["steps"]
    assert [(step["pod"], step["cost"]) for step in steps] == [("cart-a", 0.0)]


def measured(cpu_idle: str, web: str) -> str:
    nodes = {"cpu-busy": "13", "cpu-idle": cpu_idle, "cpu-old": "4"}
    texts = [
        f"apiVersion: metrics.k8s.io/v1beta1\nkind: NodeMetrics\nmetadata: {{name: {name}}}\n"
        f'timestamp: "2026-03-02T08:00:00Z"\nusage: {{cpu: "{cpu}", memory: 1Gi}}\n'
        for name, cpu in nodes.items()
    ]
    texts += [
        f"apiVersion: metrics.k8s.io/v1beta1\nkind: PodMetrics\nmetadata: {{name: web-{name}, namespace: shop}}\n"
        f'timestamp: "2026-03-02T08:00:00Z"\ncontainers: [{{name: main, usage: {{cpu: "{web}", memory: 1Gi}}}}]\n'
        for name in "abcde"
    ]
    return "---\n".join(texts)


@pytest.mark.parametrize(
    ("cpu_idle", "web", "moved"),
    [("1", "4", ["web-a"]), ("1", "2", ["web-a", "web-b"]), ("9", "2", [])],
)
def test_what_was_measured_counts_where_the_policy_says_so(
    mooring: Call, write: Call, cpu_idle: str, web: str, moved: list[str]
) -> None:
    text = POLICY.read_text().replace(
        "      targetThresholds: {cpu: 60}\n",
        "      targetThresholds: {cpu: 60}\n      metricsUtilization: {source: KubernetesMetrics}\n",
    )
    metrics = write(measured(cpu_idle, web), "metrics.yaml")

    outcome = mooring("rebalance", "-f", CLUSTER, "--policy", write(text, "p.yaml"), "--metrics", metrics, "-o", "json")

    steps = json.loads(outcome.out)["steps"]
    assert [step["pod"] for step in steps if step["strategy"] == "LowNodeUtilization"] == moved


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param(
            "deschedule: {enabled: [RemovePodsViolatingNodeTaints]}",
            "deschedule: {enabled: [NodeTaints]}",
            "document 1: profiles[0].plugins.deschedule.enabled[0]: expected one of PodLifeTime,",
            id="unknown strategy",
        ),
        pytest.param(
            "targetThresholds: {cpu: 60}",
            "targetThresholds: {cpu: 160}",
            "document 1: profiles[0].pluginConfig[2].args.targetThresholds.cpu: expected a percentage from 0 to 100, "
            "found 160",
            id="threshold above 100",
        ),
        pytest.param(
            "descheduler/v1alpha2",
            "descheduler/v1",
            'document 1: apiVersion: expected descheduler/v1alpha2, found "descheduler/v1"',
            id="version",
        ),
        pytest.param(
            "targetThresholds: {cpu: 60}",
            "targetThresholds: {cpu: 60}\n      metricsUtilization: {metricsServer: true}",
            "profiles[default].pluginConfig[LowNodeUtilization].args.metricsUtilization: "
            "expected --metrics FILE with it, found none",
            id="no metrics",
        ),
        pytest.param(
            "  plugins:\n",
            "  - {name: LowNodeLoad, args: {highThresholds: {cpu: 101}}}\n  plugins:\n",
            "document 1: profiles[0].pluginConfig[4].args.highThresholds.cpu: expected a percentage from 0 to 100, "
            "found 101",
            id="threshold of LowNodeLoad",
        ),
        pytest.param(
            "  plugins:\n    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}\n    balance: {enabled: [",
            "  - {name: LowNodeLoad, args: {highThresholds: {cpu: 80}}}\n"
            "  plugins:\n    balance: {enabled: [LowNodeLoad, ",
            "profiles[default].pluginConfig[LowNodeLoad]: expected --metrics FILE with it, found none",
            id="no metrics for LowNodeLoad",
        ),
        pytest.param(
            "intervalSeconds: 600",
            "intervalSeconds: 0",
            "document 2: intervalSeconds: expected a number above 0, found 0",
            id="interval",
        ),
        pytest.param(
            "intervalSeconds: 600",
            "mostMovesPerRun: 0",
            "document 2: mostMovesPerRun: expected a whole number above 0, found 0",
            id="moves",
        ),
        pytest.param(
            "intervalSeconds: 600",
            "restartCost: -1",
            "document 2: restartCost: expected a number of at least 0, found -1",
            id="cost",
        ),
        pytest.param(
            "config.mooring.dev/v1alpha1",
            "config.mooring.dev/v2",
            'document 2: apiVersion: expected config.mooring.dev/v1alpha1, found "config.mooring.dev/v2"',
            id="version of our own",
        ),
    ],
)
def test_bad_policies_get_one_line_with_the_field(mooring: Call, write: Call, old: str, new: str, said: str) -> None:
    text = POLICY.read_text()
    assert old in text
    path = write(text.replace(old, new), "policy.yaml")

    outcome = mooring("rebalance", "-f", CLUSTER, "--policy", path)

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {path}: {said}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: config.mooring.dev/v1alpha1\nkind: RebalancePolicy\n", "expected a DeschedulerPolicy beside"),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
            "kind: expected DeschedulerPolicy",
        ),
        ("", "expected a KubeSchedulerConfiguration, found nothing"),
    ],
)
def test_a_file_without_strategies_is_bad_input(mooring: Call, write: Call, text: str, said: str) -> None:
    outcome = mooring("rebalance", "-f", CLUSTER, "--policy", write(text, "policy.yaml"))

    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_files_that_are_missing_are_bad_input(mooring: Call) -> None:
    assert mooring("rebalance", "-f", CLUSTER, "--policy", "/does/not/exist").code == 2
    assert mooring("rebalance", "-f", CLUSTER).code == 2
    assert mooring("rebalance", "-f", CLUSTER, "--policy", POLICY, "--metrics", "/does/not/exist").code == 2
