"""`mooring explain`: why this node, or what would make it fit, as the scheduler met the pod."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
EXAMPLES = Path(__file__).parents[2] / "examples"

NODES = """
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 20}}
---
apiVersion: v1
kind: Node
metadata: {name: large}
status: {allocatable: {cpu: 16, memory: 64Gi, pods: 20}}
---
apiVersion: v1
kind: Node
metadata: {name: tainted}
spec: {taints: [{key: team, value: a, effect: NoSchedule}]}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 20}}
"""

POD = """
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}{more}}}
spec:
  {spec}
  containers: [{{name: main, image: x, resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}}}}}]
"""


def pod(name: str, *, cpu: str = "1", spec: str = "priority: 0", more: str = "") -> str:
    return POD.format(name=name, cpu=cpu, spec=spec, more=more)


def data(mooring: Call, *arguments: Any) -> dict[str, Any]:
    outcome = mooring("explain", *arguments, "-o", "json")
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_a_placed_pod_is_shown_with_its_runner_up_and_who_made_the_difference(mooring: Call, write: Call) -> None:
    found = data(mooring, "p", "-f", write(NODES + pod("p")))

    assert (found["state"], found["node"]) == ("placed", "large")
    choice = found["choice"]
    assert choice["runnerUp"]["node"] == "small"
    assert choice["total"] - choice["runnerUp"]["total"] == choice["lead"] == sum(choice["leadByPlugin"].values())
    assert max(choice["leadByPlugin"], key=choice["leadByPlugin"].get) == "NodeResourcesFit"
    best = found["nodes"][0]
    assert best["node"] == "large"
    assert best["total"] == sum(score["weighted"] for score in best["scores"].values())
    assert all(score["weighted"] == score["score"] * score["weight"] for score in best["scores"].values())


def test_a_placed_pod_is_shown_as_the_scheduler_met_it(mooring: Call, write: Call) -> None:
    manifests = write(NODES + pod("late", cpu="12") + pod("early", cpu="12", spec="priority: 7"))

    early, late = data(mooring, "early", "-f", manifests), data(mooring, "late", "-f", manifests)

    assert (early["state"], early["node"], early["feasible"]) == ("placed", "large", 1)
    assert early["asOf"].startswith("as the scheduler met it in queue order")
    assert (late["state"], late["node"], late["feasible"]) == ("waiting", "", 0)
    assert late["asOf"].startswith("as things stand at the end")


def test_a_waiting_pod_is_told_what_would_make_it_fit(mooring: Call, write: Call) -> None:
    found = data(mooring, "p", "-f", write(NODES + pod("p", cpu="20")))

    assert found["message"] == "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    assert [(remedy["change"], remedy["nodes"]) for remedy in found["remedies"]] == [
        ("give the node 16 more cpu", ["large", "small"]),
        ("tolerate the taint team=a:NoSchedule", ["tainted"]),
        ("give the node 4 more cpu", ["large"]),
    ]
    assert found["refusals"] == [
        {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 2, "alone": 2},
        {"plugin": "TaintToleration", "reason": "node(s) had untolerated taint(s)", "nodes": 1, "alone": 1},
    ]


def test_every_refusal_of_a_node_is_shown_not_just_the_first(mooring: Call, write: Call) -> None:
    found = data(mooring, "p", "-f", write(NODES + pod("p", cpu="100")))

    (tainted,) = (node for node in found["nodes"] if node["node"] == "tainted")
    assert [verdict["plugin"] for verdict in tainted["verdicts"]] == ["TaintToleration", "NodeResourcesFit"]
    assert not tainted["feasible"]


def test_the_decision_explained_is_the_decision_taken(mooring: Call) -> None:
    for example in ("gpu-pools", "priorities", "data-locality", "zone-spread", "host-ports", "volumes"):
        result = json.loads(mooring("schedule", "-q", "-f", EXAMPLES / example, "-o", "json").out)
        for placement in result["placements"]:
            found = data(mooring, placement["pod"], "-q", "-f", EXAMPLES / example)
            assert (found["state"], found["node"]) == ("placed", placement["node"]), placement
            best = [node["node"] for node in found["nodes"] if node.get("total") == found["nodes"][0]["total"]]
            assert placement["node"] in best
        for waiting in result["waiting"]:
            found = data(mooring, waiting["pod"], "-q", "-f", EXAMPLES / example)
            assert (found["state"], found["message"]) == ("waiting", waiting["message"])


def test_a_pod_that_had_to_wait_for_a_friend_is_shown_at_the_moment_it_was_placed(mooring: Call, write: Call) -> None:
    near = (
        "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: friend}}}]}}"
    )
    manifests = write(NODES + pod("shy", spec=near) + pod("friend", more=", labels: {app: friend}"))

    found = data(mooring, "shy", "-f", manifests)

    assert (found["state"], found["node"]) == ("placed", "large")
    assert found["feasible"] == 1


@pytest.mark.parametrize(
    ("spec", "state", "words"),
    [
        pytest.param("schedulerName: volcano", "not ours", 'its schedulerName is "volcano"', id="not ours"),
        pytest.param("schedulingGates: [{name: example.com/x}]", "gated", "[example.com/x]", id="gated"),
        pytest.param("nodeName: small", "running", "it was bound before", id="bound"),
        pytest.param("nodeName: gone", "running", "to a node that is not known here", id="bound elsewhere"),
    ],
)
def test_a_pod_that_nothing_was_decided_about_says_so(
    mooring: Call, write: Call, spec: str, state: str, words: str
) -> None:
    manifests = write(NODES + pod("p", spec=spec))

    found = data(mooring, "p", "-f", manifests)
    table = mooring("explain", "p", "-f", manifests)

    assert found["state"] == state
    assert words in found["message"]
    assert table.code == 0
    assert words in table.out


@pytest.mark.parametrize(
    "name",
    ["web-7789cb7789-86m5k", "shop/web-7789cb7789-86m5k", "web", "deployment/web", "shop/web", "shop/deployment/web"],
)
def test_a_pod_is_found_by_its_name_or_by_its_workload(mooring: Call, write: Call, name: str) -> None:
    workload = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 2200m}}}]}
"""
    found = data(mooring, name, "-f", write(NODES + workload))

    assert found["state"] == "waiting", "of a workload, a pod that waits is chosen"
    assert found["namespace"] == "shop"


TABLE = """\
pod default/p waits: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.
preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.
shown as things stand at the end, when every pod that fits has its place

0 of 3 nodes will do
NODES  ONLY THIS  PLUGIN            REASON
    2          2  NodeResourcesFit  Insufficient cpu
    1          1  TaintToleration   node(s) had untolerated taint(s)

WHAT WOULD MAKE IT FIT
  give the node 16 more cpu: opens 2 nodes (large, small)
  tolerate the taint team=a:NoSchedule: opens 1 node (tainted)
  give the node 4 more cpu: opens 1 node (large)

REFUSALS: the nearest to fitting first
NODE     PLUGIN            REASON
small    NodeResourcesFit  Insufficient cpu
large    NodeResourcesFit  Insufficient cpu
tainted  TaintToleration   node(s) had untolerated taint(s)
"""


def test_the_table_says_first_what_is_wrong_then_what_helps_then_node_by_node(mooring: Call, write: Call) -> None:
    assert mooring("explain", "p", "-f", write(NODES + pod("p", cpu="20"))) == (0, TABLE, "")


def test_the_table_of_a_placed_pod_says_why_this_node(mooring: Call, write: Call) -> None:
    out = mooring("explain", "p", "-f", write(NODES + pod("p"))).out

    assert out.startswith("pod default/p goes to large\nshown as the scheduler met it in queue order")
    assert "\nWHY THIS NODE\nlarge has " in out
    assert "the runner-up is small with" in out
    assert "\n  NodeResourcesFit +" in out


def test_a_large_table_shows_the_foremost_nodes_unless_asked_for_all(mooring: Call) -> None:
    shown = mooring("explain", "vision/notebook-ada", "-f", EXAMPLES / "ai-platform").out
    every = mooring("explain", "vision/notebook-ada", "-f", EXAMPLES / "ai-platform", "--all").out

    assert "REFUSALS (12 of 370 nodes; --all shows every one)" in shown
    assert len(shown.splitlines()) < 40 < 370 < len(every.splitlines())
    assert "tolerate the taint nvidia.com/gpu=present:NoSchedule: opens " in shown


def test_a_pod_refused_before_any_node_was_looked_at_says_why(mooring: Call, write: Call) -> None:
    spec = "volumes: [{name: v, persistentVolumeClaim: {claimName: nowhere}}]"

    found = data(mooring, "p", "-f", write(NODES + pod("p", spec=spec)))

    assert found["refused"]["plugin"] in ("VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits")
    assert 'persistentvolumeclaim "nowhere" not found' in found["message"]
    assert found["nodes"] == []
