"""Which plugins a profile runs, with which weight and arguments, changes what is decided: through the commands."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

Call = Callable[..., Any]

NODES = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 20}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {kind: b}}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 20}}
"""


def pod(name: str, cpu: int = 1, spec: str = "") -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec: {{containers: [{{name: c, image: x, resources: {{requests: {{cpu: {cpu}}}}}}}]{spec}}}
"""


def config(profile: dict[str, Any], **more: Any) -> str:
    version = "kubescheduler.config.k8s.io/v1"
    return yaml.safe_dump({"apiVersion": version, "kind": "KubeSchedulerConfiguration", "profiles": [profile], **more})


def arguments(plugin: str, **args: Any) -> str:
    return config({"pluginConfig": [{"name": plugin, "args": args}]})


@pytest.fixture
def told(mooring: Call, write: Call) -> Call:
    def result(text: str, *options: Any, settings: str = "") -> dict[str, Any]:
        given = ("--config", write(settings, "config.yaml")) if settings else ()
        outcome = mooring("schedule", "-q", "-o", "json", "-f", write(text), *given, *options)
        assert (outcome.code, outcome.err) == (0, "")
        found: dict[str, Any] = json.loads(outcome.out)
        return found

    return result


def placed(found: dict[str, Any]) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in found["placements"]}


TAINTED = NODES.replace("labels: {kind: b}}", "labels: {kind: b}}\nspec: {taints: [{key: x, effect: NoSchedule}]}")
CLASS = "\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n"
TO_B = "nodeSelector: {kind: b}"
RATHER_B = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference:"
RATHER_B += " {matchExpressions: [{key: kind, operator: Exists}]}}]}}"
FULL_B = pod("old", 7, ", nodeName: b")


@pytest.mark.parametrize(
    ("plugins", "text", "expected"),
    [
        pytest.param({}, TAINTED + pod("p", spec=f", {TO_B}"), {}, id="a taint"),
        pytest.param(
            {"filter": {"disabled": [{"name": "TaintToleration"}]}},
            TAINTED + pod("p", spec=f", {TO_B}"),
            {"p": "b"},
            id="a filter that does not run",
        ),
        pytest.param(
            {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}},
            TAINTED + pod("p", spec=f", {TO_B}"),
            {"p": "b"},
            id="a plugin that runs nowhere",
        ),
        pytest.param({}, NODES + pod("p", spec=", schedulingGates: [{name: g}]"), {}, id="a gate"),
        pytest.param(
            {"preEnqueue": {"disabled": [{"name": "SchedulingGates"}]}},
            NODES + pod("p", spec=", schedulingGates: [{name: g}]"),
            {"p": "a"},
            id="gates that nobody looks at",
        ),
        pytest.param({}, NODES + FULL_B + pod("p", spec=f", {RATHER_B}"), {"p": "b"}, id="a wish"),
        pytest.param(
            {"score": {"disabled": [{"name": "NodeAffinity"}]}},
            NODES + FULL_B + pod("p", spec=f", {RATHER_B}"),
            {"p": "a"},
            id="a score that does not count",
        ),
        pytest.param(
            {
                "score": {
                    "disabled": [{"name": "NodeResourcesFit"}],
                    "enabled": [{"name": "NodeResourcesFit", "weight": 9}],
                }
            },
            NODES + FULL_B + pod("p", spec=f", {RATHER_B}"),
            {"p": "a"},
            id="a score that counts for more",
        ),
        pytest.param(
            {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 9}]}},
            NODES + FULL_B + pod("p", spec=f", {RATHER_B}"),
            {"p": "a"},
            id="at all points",
        ),
    ],
)
def test_which_plugins_run_and_what_they_count_for(
    told: Call, plugins: dict[str, Any], text: str, expected: dict[str, str]
) -> None:
    assert placed(told(text, settings=config({"plugins": plugins}))) == expected


@pytest.mark.parametrize(("plugins", "expected"), [({}, ["old"]), ({"postFilter": {"disabled": [{"name": "*"}]}}, [])])
def test_without_its_plugin_nobody_preempts(told: Call, plugins: dict[str, Any], expected: list[str]) -> None:
    urgent = pod("p", 8, f", priorityClassName: high, {TO_B}")

    found = told(NODES + CLASS + FULL_B + urgent, settings=config({"plugins": plugins}))

    assert [each["pod"] for each in found["evicted"]] == expected


OWN = """
from mooring.plugin import Bind, Permit, PostBind, PreBind, Reserve


class Everywhere(Reserve, Permit, PreBind, Bind, PostBind):
    def reserve(self, pod, cluster, row):
        print("reserve", end=" ")
        return ()

    def permit(self, pod, cluster, row):
        print("permit", end=" ")

    def pre_bind(self, pod, cluster, row):
        print("preBind", end=" ")

    def bind(self, pod, cluster, row):
        print("bind", end=" ")
        return True

    def post_bind(self, pod, cluster, row):
        print("postBind", end=" ")
"""
LATE = ("reserve", "permit", "preBind", "bind", "postBind")


@pytest.mark.parametrize("without", [None, *LATE])
def test_a_plugin_runs_at_the_points_that_name_it(mooring: Call, write: Call, without: str | None) -> None:
    points = [point for point in LATE if point != without]
    named = {"enabled": [{"name": "Everywhere"}]}
    plugins: dict[str, Any] = dict.fromkeys(points, named)
    if without != "bind":
        plugins["bind"] = named | {"disabled": [{"name": "*"}]}
    files = ("-f", write(NODES + pod("p")), "--plugin", write(OWN, "own.py"))

    outcome = mooring("schedule", "-q", *files, "--config", write(config({"plugins": plugins}), "config.yaml"))

    assert outcome.out.splitlines()[0].split()[: len(points)] == points


BY_NAME = """
from mooring.plugin import QueueSort


class ByName(QueueSort):
    def sort_key(self, pod, queued_at):
        return pod.metadata.name
"""


@pytest.mark.parametrize("by_name", [False, True])
def test_the_order_of_the_queue_is_that_of_its_plugin(told: Call, write: Call, by_name: bool) -> None:
    """Room for one: the more important, or the first by name."""
    text = NODES + CLASS + pod("a", 8, f", {TO_B}") + pod("z", 8, f", {TO_B}, priorityClassName: high")
    plugins: dict[str, Any] = {"postFilter": {"disabled": [{"name": "*"}]}}
    if by_name:
        plugins["queueSort"] = {"enabled": [{"name": "ByName"}], "disabled": [{"name": "*"}]}
    own = ("--plugin", write(BY_NAME, "own.py")) if by_name else ()

    found = told(text, *own, settings=config({"plugins": plugins}))

    assert list(placed(found)) == (["a"] if by_name else ["z"])


@pytest.mark.parametrize(("share", "expected"), [(0, "b"), (50, "a")])
@pytest.mark.parametrize("of_profile", [False, True], ids=["of the file", "of the profile"])
def test_the_search_ends_at_a_share_of_the_nodes(told: Call, share: int, expected: str, of_profile: bool) -> None:
    many = NODES.replace("name: a}", 'name: "a-{i}", annotations: {mooring.dev/replicas: "150"}}')
    settings = {"percentageOfNodesToScore": share}

    found = told(
        many + pod("p", spec=f", {RATHER_B}"), settings=config(settings) if of_profile else config({}, **settings)
    )

    assert placed(found)["p"][0] == expected


@pytest.mark.parametrize(("weight", "expected"), [(0, "b"), (100, "a")])
def test_who_has_to_be_near_others_attracts_them_too(told: Call, weight: int, expected: str) -> None:
    term = "{labelSelector: {matchLabels: {app: p}}, topologyKey: kubernetes.io/hostname}"
    hosts = NODES.replace("name: a}", "name: a, labels: {kubernetes.io/hostname: a}}").replace(
        "kind: b}", "kind: b, kubernetes.io/hostname: b}"
    )
    affinity = f"podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}"
    old = pod("old", 4, f", nodeName: a, affinity: {{{affinity}}}")

    found = told(hosts + old + pod("p"), settings=arguments("InterPodAffinity", hardPodAffinityWeight=weight))

    assert placed(found) == {"p": expected}


@pytest.mark.parametrize("kind", ["a", "b"])
def test_an_affinity_can_be_added_to_every_pods_own(told: Call, kind: str) -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [kind]}]}]
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    assert placed(told(NODES + pod("p"), settings=arguments("NodeAffinity", addedAffinity=added))) == {"p": kind}


@pytest.mark.parametrize(("resources", "expected"), [(["cpu", "memory"], "a"), (["cpu", "example.com/x"], "b")])
def test_balance_is_between_the_resources_that_are_named(told: Call, resources: list[str], expected: str) -> None:
    """On node a the pod takes as much of the memory as of the CPUs, on b as much of the other one."""
    shapes = ("pods: 20, example.com/x: 8", "pods: 20, example.com/x: 2")
    one, other = NODES.split("---")
    nodes = one.replace("pods: 20", shapes[0]) + "---" + other.replace("pods: 20", shapes[1]).replace("32Gi", "128Gi")
    asks = pod("p").replace("cpu: 1}", "cpu: 4, memory: 16Gi, example.com/x: 1}, limits: {example.com/x: 1}")
    named = [{"name": name, "weight": 1} for name in resources]
    settings = config(
        {
            "plugins": {"score": {"disabled": [{"name": "NodeResourcesFit"}]}},
            "pluginConfig": [{"name": "NodeResourcesBalancedAllocation", "args": {"resources": named}}],
        }
    )

    assert placed(told(nodes + asks, settings=settings)) == {"p": expected}


@pytest.mark.parametrize(("initial", "most", "expected"), [(1, 10, "first"), (60, 60, "second"), (60, 3600, "second")])
def test_who_was_tried_in_vain_stays_behind_for_as_long_as_the_backoff_says(
    told: Call, write: Call, initial: int, most: int, expected: str
) -> None:
    """Room for one comes after twenty seconds, and with it somebody new."""
    gone = "apiVersion: v1\nkind: Pod\nmetadata: {name: old}\nstatus: {phase: Succeeded}\n"
    then = write(gone + pod("second", 8, f", {TO_B}"), "then.yaml")
    settings = config({}, podInitialBackoffSeconds=initial, podMaxBackoffSeconds=most)

    found = told(NODES + FULL_B + pod("first", 8, f", {TO_B}"), "--then", f"20s:{then}", settings=settings)

    assert list(placed(found["steps"][1]["result"])) == [expected]


# Preemption that hits the same workload again and again.

DEPLOYMENT = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeSelector: {kind: b}, containers: [{name: c, image: x, resources: {requests: {cpu: 8}}}]}
"""
URGENT = f", priorityClassName: high, {TO_B}"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, [1, 1]),
        ({"mostPreemptionsPerWorkload": 1}, [1, 0]),
        ({"mostPreemptionsPerWorkload": 2}, [1, 1]),
        ({"mostPreemptionsPerWorkload": 1, "windowSeconds": 60}, [1, 1]),
    ],
    ids=["no limit", "once", "twice", "once a minute"],
)
def test_a_workload_is_preempted_no_more_often_than_allowed(
    told: Call, write: Call, args: dict[str, int], expected: list[int]
) -> None:
    first = pod("one", 8, URGENT) + CLASS
    done = "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nstatus: {phase: Succeeded}\n"
    then = [write(first.lstrip("\n-"), "1.yaml"), write(done, "2.yaml"), write(pod("two", 8, URGENT)[5:], "3.yaml")]

    found = told(
        NODES + CLASS + DEPLOYMENT,
        *(word for file in then for word in ("--then", f"5m:{file}")),
        settings=arguments("PreemptionCost", **args),
    )

    evicted = [len(step["result"]["evicted"]) for step in found["steps"]]
    assert [evicted[1], evicted[3]] == expected
