"""`--then`: what a later manifest of a pod changes while the pod runs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mooring.drivers.offline.reading import Inputs, Step, read
from mooring.drivers.offline.story import moments
from mooring.model.decisions import Bind
from mooring.observe.progress import Progress

Call = Callable[..., Any]

ONE_NODE = """
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: m, image: i, resources: {requests: {cpu: "1"}}}]}
"""
RESIZED = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: m, image: i, resources: {requests: {cpu: "%s"}}}]}
"""
RESIZES = [("3", "Done", 75), ("8", "Infeasible", 25), ("500m", "Done", 12.5)]
TOLERATES = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {tolerations: [{key: k, operator: Exists}], containers: [{name: m, image: i, resources: {requests: {cpu: "1"}}}]}
"""


def one_node(mooring: Call, write: Call, *texts: str, first: str = ONE_NODE) -> Any:
    files = [write(text, f"{number}.yaml") for number, text in enumerate([first, *texts])]
    then = [argument for file in files[1:] for argument in ("--then", file)]
    return mooring("schedule", "-q", "-o", "json", "-f", files[0], *then)


@pytest.mark.parametrize("bound", [False, True], ids=["placed here", "bound in the manifests"])
@pytest.mark.parametrize(("cpu", "outcome", "used"), RESIZES)
def test_a_resized_pod_stays_on_its_node(
    mooring: Call, write: Call, cpu: str, outcome: str, used: float, bound: bool
) -> None:
    first = ONE_NODE.replace("spec: {containers", "spec: {nodeName: n1, containers") if bound else ONE_NODE
    found = one_node(mooring, write, RESIZED % cpu, first=first)

    assert (found.code, found.err) == (0, "")
    result = json.loads(found.out)["steps"][1]["result"]
    assert (result["placements"], result["waiting"], result["lost"], result["evicted"]) == ([], [], [], [])
    assert result["summary"]["alreadyBound"] == 1
    assert result["resized"] == [{"pod": "p", "namespace": "default", "node": "n1", "outcome": outcome}]
    assert result["pools"][0]["resources"]["cpu"]["percent"] == pytest.approx(used)


def test_a_resize_waits_for_room_that_others_have(mooring: Call, write: Call) -> None:
    other = RESIZED.replace("name: p}", "name: q}") % 2
    found = one_node(
        mooring, write, RESIZED % 3, RESIZED.replace("name: p}", "name: r}") % "100m", first=ONE_NODE + "---" + other
    )

    _, second, third = (step["result"] for step in json.loads(found.out)["steps"])
    assert second["resized"][0]["outcome"] == "Deferred"
    assert (third["resized"], [pod["pod"] for pod in third["waiting"]]) == ([], ["r"])  # what is wanted counts


def test_a_running_pod_with_another_toleration_is_not_placed_again(mooring: Call, write: Call) -> None:
    found = one_node(mooring, write, TOLERATES)

    result = json.loads(found.out)["steps"][1]["result"]
    assert (result["placements"], result["resized"], result["summary"]["alreadyBound"]) == ([], [], 1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("nodeSelector: {disk: ssd}", "spec.nodeSelector: expected null, as it was when the pod was made, found"),
        ("priorityClassName: system-node-critical", "spec.priorityClassName: expected"),
        ("initContainers: [{name: s, image: i}]", "spec.initContainers: expected the containers of the pod (none)"),
    ],
)
def test_what_an_update_of_a_running_pod_may_not_change(mooring: Call, write: Call, change: str, field: str) -> None:
    found = one_node(mooring, write, (RESIZED % 1).replace("spec: {", f"spec: {{{change}, "))

    assert (found.code, found.out) == (2, "")
    assert f"1.yaml: Pod default/p, which is on node n1: {field}" in found.err
    assert len(found.err.splitlines()) == 1


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: m, image: i, resources: {requests: {cpu: "%s"}}}]}
"""


def test_another_template_of_a_workload_makes_other_pods(mooring: Call, write: Call) -> None:
    found = one_node(mooring, write, DEPLOYMENT % "1500m", first=ONE_NODE.partition("---")[0] + "---" + DEPLOYMENT % 1)

    result = json.loads(found.out)["steps"][1]["result"]
    assert len(result["placements"]) == 2  # rolled out anew
    assert result["pools"][0]["resources"]["cpu"]["percent"] == pytest.approx(75)


def test_limits_that_come_later_do_not_touch_pods_that_are_there(mooring: Call, write: Call) -> None:
    limits = """
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, defaultRequest: {memory: 1Gi}}]}
"""
    found = one_node(mooring, write, limits)

    result = json.loads(found.out)["steps"][1]["result"]
    assert (result["placements"], result["resized"], result["summary"]["alreadyBound"]) == ([], [], 1)


SHARED_CARDS = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {nvidia.com/gpu.count: "2", nvidia.com/gpu.memory: "40000"}}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "20", nvidia.com/gpu: "2"}}
"""
FRACTION = """
---
apiVersion: v1
kind: Pod
metadata: {name: %s, annotations: {gpu-fraction: "%s"}}
spec: {containers: [{name: m, image: i, resources: {requests: {cpu: "%s"}}}]}
"""


def test_a_resized_pod_keeps_its_gpu(mooring: Call, write: Call) -> None:
    pods = [("a", "0.5"), ("ends", "0.5"), ("other", "0.4")]
    first = SHARED_CARDS + "".join(FRACTION % (name, share, 1) for name, share in pods)
    ends = "{apiVersion: v1, kind: Pod, metadata: {name: ends}, status: {phase: Succeeded}}"

    found = one_node(mooring, write, ends, FRACTION % ("a", "0.5", 2), first=first)

    cards = [step["result"]["gpus"][0]["gpus"] for step in json.loads(found.out)["steps"]]
    assert [[[share["pod"] for share in card["shares"]] for card in step] for step in cards] == [
        [["a", "ends"], ["other"]],
        [["a"], ["other"]],
        [["a"], ["other"]],
    ]


def test_a_pod_that_has_ended_does_not_run_again_when_its_manifest_changes(mooring: Call, write: Call) -> None:
    lasting = ONE_NODE.replace("{name: p}", "{name: p, annotations: {mooring.dev/duration: 30s}}")
    found = one_node(mooring, write, RESIZED % 2, RESIZED % 3, first=lasting)

    assert (found.code, found.err) == (0, "")
    first, second, third = (step["result"] for step in json.loads(found.out)["steps"])
    assert [placement["pod"] for placement in first["placements"]] == ["p"]
    assert [ended["pod"] for ended in second["ended"]] == ["p"]
    assert (second["placements"], third["placements"], third["waiting"]) == ([], [], [])


def test_a_pod_that_is_resized_as_its_node_goes_is_placed_once(write: Call) -> None:
    gone = "{apiVersion: v1, kind: Node, metadata: {name: n1, deletionTimestamp: 2026-01-01T00:00:00Z}}\n---\n"
    other = ONE_NODE.partition("---")[0].replace("n1", "n2") + "---\n"
    files = [write(text, f"{number}.yaml") for number, text in enumerate([ONE_NODE, gone + other + RESIZED % 2])]
    loaded = read(Inputs([str(files[0])], then=(Step(str(files[1]), 60.0),)), Progress())

    (_, after) = moments(loaded, Progress())
    assert [decision for decision in after.decisions if isinstance(decision, Bind)] == [Bind("default/p", "n2")]
    assert [lost.node for lost in after.offline.lost] == ["n1"]
    assert after.offline.scheduler.cluster.nodes.requested("cpu").sum() == 2000


AUTOSCALED = """
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: "1", controller: true}]
spec: {nodeName: n1, priority: 5, containers: [{name: m, image: i, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: batch}
spec: {nodeName: n1, containers: [{name: m, image: i, resources: {requests: {cpu: "2", memory: 1Gi}}}]}
"""
AUTOSCALER = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: s}
spec:
  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: s}
  updatePolicy: {updateMode: InPlaceOrRecreate, minReplicas: 1}
status:
  recommendation:
    containerRecommendations:
      - {containerName: m, target: {cpu: "%s"}, lowerBound: {cpu: "%s"}, upperBound: {cpu: "%s"}}
"""


@pytest.mark.parametrize(("cpu", "evicted", "used"), [("2", [], 100), ("3", ["batch"], 75), ("500m", [], 62.5)])
def test_an_autoscaler_resizes_its_pods_and_room_is_made_for_it(
    mooring: Call, write: Call, cpu: str, evicted: list[str], used: float
) -> None:
    found = one_node(mooring, write, AUTOSCALER % (cpu, cpu, cpu), first=AUTOSCALED)

    assert (found.code, found.err) == (0, "")
    result = json.loads(found.out)["steps"][1]["result"]
    assert [(one["pod"], one["outcome"]) for one in result["resized"]] == [("p", "Done")]
    assert [one["pod"] for one in result["evicted"]] == evicted
    assert result["pools"][0]["resources"]["cpu"]["percent"] == pytest.approx(used)
