"""Colocation offline: ClusterColocationProfiles make batch pods of pods, through `mooring schedule`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: 16, memory: 64Gi, pods: 110, kubernetes.io/batch-cpu: 8000, kubernetes.io/batch-memory: 20Gi}}
---
apiVersion: v1
kind: Namespace
metadata: {name: lab, labels: {lent: "yes"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: koord-batch}
value: 5000
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: lab}
spec:
  parallelism: 3
  completions: 3
  template:
    metadata: {labels: {app: train}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: x, resources: {requests: {cpu: 3, memory: 4Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}
"""
PROFILE = """
---
apiVersion: config.koordinator.sh/v1alpha1
kind: ClusterColocationProfile
metadata: {name: lab}
spec:
  namespaceSelector: {matchLabels: {lent: "yes"}}
  qosClass: BE
  priorityClassName: koord-batch
"""


@pytest.fixture
def schedule(mooring: Call, write: Call) -> Callable[[str], dict[str, Any]]:
    def call(text: str) -> dict[str, Any]:
        outcome = mooring("schedule", "-f", write(text), "-o", "json")
        assert outcome.code == 0, outcome.err
        found: dict[str, Any] = json.loads(outcome.out)
        return found

    return call


def test_pods_of_a_job_ask_for_batch_resources_where_a_profile_says_so(schedule: Callable[[str], Any]) -> None:
    found = schedule(CLUSTER + PROFILE)

    assert [(pod["namespace"], pod["priority"]) for pod in found["placements"]] == [
        ("lab", 5000),
        ("lab", 5000),
        ("shop", 0),
    ]
    (waiting,) = found["waiting"]
    assert waiting["message"] == "0/1 nodes are available: 1 Insufficient kubernetes.io/batch-cpu."


def test_without_a_profile_they_ask_for_what_they_say(schedule: Callable[[str], Any]) -> None:
    found = schedule(CLUSTER)

    assert (len(found["placements"]), found["waiting"]) == (4, [])


def test_pods_that_run_stay_as_they_are(schedule: Callable[[str], Any]) -> None:
    running = """
---
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: lab}
spec: {nodeName: a, containers: [{name: c, image: x, resources: {requests: {cpu: 15}}}]}
status: {phase: Running}
"""

    found = schedule(CLUSTER + PROFILE + running)

    assert [pod["namespace"] for pod in found["placements"]] == ["lab", "lab", "shop"]
    (cpu,) = (pool["resources"]["cpu"] for pool in found["pools"])
    assert cpu["requested"] == 16


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param(("qosClass: BE", "qosClass: LS"), "must specify koordinator QoS BE", id="batch-without-BE"),
        pytest.param(
            ("priorityClassName: koord-batch", "labels: {x: y}"),
            "koordinator.sh/qosClass=BE and priorityClass= cannot be used in combination",
            id="BE-without-a-class",
        ),
    ],
)
def test_pods_that_contradict_themselves_are_forbidden(
    schedule: Callable[[str], Any], said: tuple[str, str], reason: str
) -> None:
    found = schedule(CLUSTER + PROFILE.replace(*said))

    assert len(found["forbidden"]) == 3
    assert all(reason in each["message"] for each in found["forbidden"])
    assert [pod["namespace"] for pod in found["placements"]] == ["shop"]


def test_a_probability_takes_in_a_part_of_the_pods_the_same_each_time(schedule: Callable[[str], Any]) -> None:
    many = CLUSTER.replace("parallelism: 3", "parallelism: 100").replace("completions: 3", "completions: 100")
    small = many.replace("cpu: 3, memory: 4Gi", "cpu: 10m")

    first, second = (schedule(small + PROFILE + "  probability: 30%\n") for _ in range(2))

    of_class = [pod["priority"] for pod in first["placements"]].count(5000)
    assert 15 <= of_class <= 45
    assert first["placements"] == second["placements"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(
            ("priorityClassName: koord-batch", "priorityClassName: none"),
            "spec.priorityClassName: expected the name of a PriorityClass that is there",
            id="class",
        ),
        pytest.param(("qosClass: BE", "qosClass: best"), "spec.qosClass: expected", id="qos"),
        pytest.param(("qosClass: BE", "probability: often"), "spec.probability: expected 0 to 100", id="probability"),
        pytest.param(("qosClass: BE", "qosClas: BE"), "spec.qosClas", id="field"),
        pytest.param(("qosClass: BE", "patch: {spec: {containers: [{image: y}]}}"), "spec.patch: expected", id="patch"),
        pytest.param(("qosClass: BE", "patch: {spec: 5}"), "spec.patch: expected", id="patched"),
    ],
)
def test_a_bad_profile_gets_one_line(mooring: Call, write: Call, said: tuple[str, str], expected: str) -> None:
    outcome = mooring("schedule", "-f", write(CLUSTER + PROFILE.replace(*said)))

    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "document 6 (ClusterColocationProfile lab)" in outcome.err
    assert expected in outcome.err


METRIC = """
apiVersion: slo.koordinator.sh/v1alpha1
kind: NodeMetric
metadata: {name: a}
status:
  updateTime: "2026-03-02T12:00:00Z"
  nodeMetric:
    nodeUsage: {resources: {cpu: "4", memory: 8Gi}}
    systemUsage: {resources: {cpu: "1", memory: 2Gi}}
"""
LENDING = """
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data:
  colocation-config: '{"enable": true, "cpuReclaimThresholdPercent": 50}'
  resource-qos-config: '{"clusterStrategy": {}}'
"""


@pytest.fixture
def placed(mooring: Call, write: Call) -> Callable[..., int]:
    """How many pods of the lab are placed."""

    def call(config: str, *more: str, cluster: str = CLUSTER + PROFILE) -> int:
        files = (
            *("-f", write(cluster)),
            *("--config", write(config, "config.yaml")),
            *("--metrics", write(METRIC, "metrics.yaml")),
        )
        outcome = mooring("schedule", *files, "-o", "json", *more)
        assert outcome.code == 0, outcome.err
        return [pod["namespace"] for pod in json.loads(outcome.out)["placements"]].count("lab")

    return call


def test_a_node_lends_what_is_left_below_the_reclaim_threshold(placed: Callable[..., int]) -> None:
    # Half of 16 CPUs less 1 of the system: 7, room for two pods of 3. At 80 percent 11.8: all three fit.
    assert placed(LENDING) == 2
    assert placed(LENDING.replace('Percent": 50', 'Percent": 80')) == 3


def test_a_node_lends_nothing_by_a_report_that_is_too_old(placed: Callable[..., int]) -> None:
    assert placed(LENDING, "--now", "2026-03-02T12:15:00Z") == 2
    assert placed(LENDING, "--now", "2026-03-02T12:15:01Z") == 0
    lasting = LENDING.replace('"enable": true', '"enable": true, "degradeTimeMinutes": 60')
    assert placed(lasting, "--now", "2026-03-02T12:15:01Z") == 2


def test_where_it_is_off_no_node_lends(placed: Callable[..., int]) -> None:
    assert placed(LENDING.replace("true", "false")) == 0


def test_a_node_may_have_a_strategy_of_its_own(placed: Callable[..., int]) -> None:
    labelled = CLUSTER.replace("{name: a}", '{name: a, labels: {node.koordinator.sh/cpu-reclaim-ratio: "0.3"}}')

    assert placed(LENDING, cluster=labelled + PROFILE) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("'{'", "data[colocation-config]: expected JSON, an object", id="json"),
        pytest.param(
            """'{"degradeTimeMinutes": "soon"}'""",
            "data[colocation-config]: degradeTimeMinutes: expected int, found str",
            id="type",
        ),
        pytest.param(
            """'{"midCPUThresholdPercent": 101}'""",
            "data[colocation-config]: expected percentages of at least 0, those for mid at most 100",
            id="percent",
        ),
    ],
)
def test_a_bad_strategy_gets_one_line(mooring: Call, write: Call, text: str, expected: str) -> None:
    config = f"kind: ConfigMap\ndata:\n  colocation-config: {text}\n"

    outcome = mooring("schedule", "-f", write(CLUSTER), "--config", write(config, "config.yaml"))

    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert expected in outcome.err


def test_what_changes_nothing_is_said(mooring: Call, write: Call) -> None:
    amplified = (
        LENDING + """  resource-amplification-config: '{"enable": true, "resourceAmplificationRatio": {"cpu": 2}}'\n"""
    )
    config = write(amplified, "config.yaml")

    assert (
        "resource-amplification-config: nodes are not amplified"
        in mooring("schedule", "-f", write(CLUSTER), "--config", config).err
    )
    assert (
        "slo-controller-config is configuration, not applied here: give its file with --config"
        in mooring("schedule", "-f", write(CLUSTER), "-f", config).err
    )
