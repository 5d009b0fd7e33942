"""What a KubeSchedulerConfiguration says changes what is decided: every setting, through the commands."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]


def node(name: str, zone: str = "z", more: str = "") -> str:
    return f"""
---
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: {zone}}}}}
status: {{allocatable: {{cpu: 8, memory: 32Gi, pods: 20{more}}}}}"""


def pod(name: str, cpu: float = 1, *, memory: str = "1Gi", more: str = "", meta: str = "", limits: str = "") -> str:
    resources = f"{{requests: {{cpu: {cpu}, memory: {memory}}}, limits: {{{limits}}}}}"
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}{meta}}}
spec: {{containers: [{{name: c, image: x, resources: {resources}}}]{more}}}"""


def config(plugin: str, args: str) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]
"""


def told(mooring: Call, *arguments: Any) -> dict[str, Any]:
    outcome = mooring("schedule", "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def placed(mooring: Call, *arguments: Any) -> dict[str, str]:
    """pod -> node"""
    return {found["pod"]: found["node"] for found in told(mooring, *arguments)["placements"]}


@pytest.mark.parametrize("args", ["{ignoredResources: [example.com/x]}", "{ignoredResourceGroups: [example.com]}"])
def test_resources_can_be_left_unchecked(mooring: Call, write: Call, args: str) -> None:
    file = write(node("a") + pod("p", limits="example.com/x: 1"))

    assert placed(mooring, "-f", file) == {}
    assert placed(mooring, "-f", file, "--config", write(config("NodeResourcesFit", args), "c.yaml")) == {"p": "a"}


RATIO = "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: %s}}}"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("{scoringStrategy: {type: LeastAllocated}}", "b"),
        ("{scoringStrategy: {type: MostAllocated}}", "a"),
        (RATIO % "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]", "a"),
        (RATIO % "[{utilization: 0, score: 10}, {utilization: 100, score: 0}]", "b"),
    ],
    ids=["least", "most", "the fuller the better", "the emptier the better"],
)
def test_the_scoring_strategy_chooses_the_node(mooring: Call, write: Call, args: str, expected: str) -> None:
    file = write(node("a") + node("b") + pod("old", 3, memory="12Gi", more=", nodeName: a") + pod("p"))

    assert placed(mooring, "-f", file, "--config", write(config("NodeResourcesFit", args), "c.yaml")) == {"p": expected}


@pytest.mark.parametrize(("resource", "expected"), [("cpu", "b"), ("memory", "a")])
def test_the_strategy_looks_at_the_resources_that_it_names(
    mooring: Call, write: Call, resource: str, expected: str
) -> None:
    used = pod("one", 4, more=", nodeName: a") + pod("two", 0.1, memory="16Gi", more=", nodeName: b")
    args = f"{{scoringStrategy: {{type: LeastAllocated, resources: [{{name: {resource}, weight: 100}}]}}}}"
    disabled = "plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}, pluginConfig"
    text = config("NodeResourcesFit", args).replace("pluginConfig", disabled)

    file = write(node("a") + node("b") + used + pod("p"))

    assert placed(mooring, "-f", file, "--config", write(text, "c.yaml")) == {"p": expected}


def test_default_constraints_spread_what_a_controller_makes(mooring: Call, write: Call) -> None:
    deployment = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}"""
    full = pod("old", 8, more=", nodeName: b")
    constraint = "{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}"
    args = f"{{defaultingType: List, defaultConstraints: [{constraint}]}}"
    file = write(node("a", "one") + node("b", "two") + full + deployment)

    assert Counter(placed(mooring, "-f", file).values()) == {"a": 4}
    listed = write(config("PodTopologySpread", args), "c.yaml")
    assert Counter(placed(mooring, "-f", file, "--config", listed).values()) == {"a": 1}


@pytest.mark.parametrize(("ignores", "expected"), [("false", "a"), ("true", "b")])
def test_what_existing_pods_prefer_can_be_ignored(mooring: Call, write: Call, ignores: str, expected: str) -> None:
    term = "{labelSelector: {matchLabels: {app: web}}, topologyKey: kubernetes.io/hostname}"
    preferred = f"preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 100, podAffinityTerm: {term}}}]"
    old = pod("old", 4, memory="16Gi", more=f", nodeName: a, affinity: {{podAffinity: {{{preferred}}}}}")
    file = write(node("a") + node("b") + old + pod("p", meta=", labels: {app: web}"))
    args = f"{{ignorePreferredTermsOfExistingPods: {ignores}}}"

    assert placed(mooring, "-f", file, "--config", write(config("InterPodAffinity", args), "c.yaml")) == {"p": expected}


CLASSES = "".join(
    f"\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}"
    for name, value in (("low", 1), ("other", 1), ("high", 100))
)


def running(name: str, on: str, since: str, *, of: str = "low", meta: str = "") -> str:
    more = f", nodeName: {on}, priorityClassName: {of}"
    status = f'\nstatus: {{phase: Running, startTime: "2026-03-02T{since}:00Z"}}'
    return pod(name, 8, more=more, meta=meta) + status


NOW = ("--now", "2026-03-02T12:00:00Z")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("{}", "young"),
        ("{leastWorkLost: true}", "young"),
        ("{minimumRuntimeSeconds: 600}", "old"),
        ("{minimumRuntimeSecondsByPriorityClass: {other: 600}}", "old"),
        ("{minimumRuntimeSecondsByPriorityClass: {low: 86400}}", "young"),
        ("{minimumRuntimeSeconds: 86400}", None),
    ],
)
def test_preemption_spares_those_that_have_not_run_for_long(
    mooring: Call, write: Call, args: str, expected: str | None
) -> None:
    work = running("old", "a", "08:00") + running("young", "b", "11:55", of="other")
    urgent = pod("p", 8, more=", priorityClassName: high")
    file = write(CLASSES + node("a") + node("b") + work + urgent)

    found = told(mooring, "-f", file, *NOW, "--config", write(config("PreemptionCost", args), "c.yaml"))

    assert [gone["pod"] for gone in found.get("evicted", ())] == ([] if expected is None else [expected])


@pytest.mark.parametrize(("least", "expected"), [("false", "young"), ("true", "old")])
def test_preemption_can_take_those_whose_work_is_saved(mooring: Call, write: Call, least: str, expected: str) -> None:
    saved = ', annotations: {mooring.dev/last-checkpoint: "2026-03-02T11:59:00Z"}'
    work = running("old", "a", "08:00", meta=saved) + running("young", "b", "11:30")
    urgent = pod("p", 8, more=", priorityClassName: high")
    file = write(CLASSES + node("a") + node("b") + work + urgent)
    args = write(config("PreemptionCost", f"{{leastWorkLost: {least}}}"), "c.yaml")

    found = told(mooring, "-f", file, *NOW, "--config", args)

    assert [gone["pod"] for gone in found["evicted"]] == [expected]


@pytest.mark.parametrize(("seconds", "expected"), [(60, 1), (3600, 0)])
def test_a_gang_that_is_not_completed_in_time_is_released(
    mooring: Call, write: Call, seconds: int, expected: int
) -> None:
    gang = ', annotations: {mooring.dev/gang-name: g, mooring.dev/gang-minimum: "2"}'
    first = write(node("a") + node("b") + pod("one", 8, meta=gang) + pod("two", 8, meta=gang), "first.yaml")
    gone = node("b").replace("metadata: {", 'metadata: {deletionTimestamp: "1970-01-01T00:01:00Z", ')
    later = write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", "later.yaml")
    args = write(config("GangScheduling", f"{{timeoutSeconds: {seconds}}}"), "c.yaml")

    story = ("-f", first, "--then", write(gone, "then.yaml"), "--then", f"10m:{later}", "--config", args)
    steps = told(mooring, *story)["steps"]

    assert sum(len(step["result"].get("evicted", ())) for step in steps) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(-1, ["small"]), (60, []), (36000, ["small"])])
def test_room_is_kept_for_a_gang_that_has_waited_long(
    mooring: Call, write: Call, seconds: int, expected: list[str]
) -> None:
    gang = ', annotations: {mooring.dev/gang-name: g, mooring.dev/gang-minimum: "2"}'
    taken = pod("old", 8, more=", nodeName: a")
    waits = pod("one", 8, meta=gang) + pod("two", 8, meta=gang)
    first = write(node("a") + node("b") + taken + waits, "first.yaml")
    args = write(config("GangScheduling", f"{{reserveAfterSeconds: {seconds}}}"), "c.yaml")

    story = ("-f", first, "--then", f"10m:{write(pod('small', 8)[5:], 'small.yaml')}", "--config", args)
    _, second = told(mooring, *story)["steps"]

    assert [found["pod"] for found in second["result"]["placements"]] == expected
