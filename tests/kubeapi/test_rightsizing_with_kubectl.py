"""Right-sizing on `mooring up`, as people with a real kubectl see it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from with_kubectl import KUBECTL, Kubectl, cluster_up, eventually

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl here")

Object = dict[str, Any]
NODE = """
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "20"}}
"""
DEPLOYMENT = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {mooring.dev/resize-delay: 1s}}
    spec:
      priorityClassName: urgent
      containers:
      - name: web
        image: web
        resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: "1", memory: 2Gi}}
        resizePolicy:
        - {resourceName: cpu, restartPolicy: NotRequired}
        - {resourceName: memory, restartPolicy: MEMORY}
---
apiVersion: v1
kind: Pod
metadata: {name: batch}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: batch, image: batch, resources: {requests: {cpu: "3"}}}]
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: InPlace}
"""

HORIZONTAL = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    (tmp_path / "node.yaml").write_text(NODE)
    with cluster_up(tmp_path, "--nodes", "0", "-f", str(tmp_path / "node.yaml")) as run:
        yield run


def pods(kubectl: Kubectl, label: str = "app=web") -> list[Object]:
    items: list[Object] = json.loads(kubectl(f"get pods -l {label} -o json"))["items"]
    return items


def containers(kubectl: Kubectl) -> list[Object]:
    return [one for pod in pods(kubectl) for one in pod["status"].get("containerStatuses") or ()]


def conditions(kubectl: Kubectl) -> set[tuple[str, str]]:
    found = (one for pod in pods(kubectl) for one in pod["status"].get("conditions") or ())
    return {(one["type"], one.get("reason", "")) for one in found if one["type"].startswith("PodResize")}


def recommend(kubectl: Kubectl, **amounts: str) -> None:
    one = {"containerName": "web", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    status = json.dumps({"status": {"recommendation": {"containerRecommendations": [one]}}}, separators=(",", ":"))
    kubectl(f"patch vpa web --subresource=status --type=merge -p {status}")


def start(kubectl: Kubectl, memory_policy: str = "NotRequired") -> None:
    kubectl("apply -f -", DEPLOYMENT.replace("MEMORY", memory_policy))
    kubectl("wait --for=condition=Ready pod --all --timeout=120s")


def test_on_a_full_node_a_resize_is_deferred_until_room_is_made_for_it(kubectl: Kubectl) -> None:
    """Two pods of 500m and one of three CPUs fill the node; the recommendation is 1500m each."""
    start(kubectl)
    names = kubectl("get pods -l app=web -o name")

    recommend(kubectl, cpu="1500m", memory="1Gi")

    eventually(
        lambda: all(one["resources"]["requests"]["cpu"] == "1500m" for one in containers(kubectl)),
        lambda: kubectl("describe pods"),
    )
    eventually(lambda: not conditions(kubectl))
    assert kubectl("get pods -l app=web -o name") == names
    assert [one["restartCount"] for one in containers(kubectl)] == [0, 0]
    assert [one["allocatedResources"]["cpu"] for one in containers(kubectl)] == ["1500m", "1500m"]
    assert [one["resources"]["limits"]["cpu"] for one in containers(kubectl)] == ["3", "3"]
    assert kubectl("get pods -o name") == names  # the batch pod made room
    events = kubectl("get events --sort-by=.metadata.creationTimestamp")
    assert "which grows in place on node small" in events
    assert "ResizeDeferred" in events
    assert "ResizeStarted" in events
    assert "ResizeCompleted" in events
    described = kubectl("describe vpa web")
    assert "Container Name:  web" in described
    assert "Cpu:     1500m" in described
    assert "1500m" in kubectl("get vpa web")


def test_a_user_s_own_resize_that_waits_gets_room_too(kubectl: Kubectl) -> None:
    start(kubectl)
    name = kubectl("get pods -l app=web -o name").split()[0]
    amounts = {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}
    patch = {"spec": {"containers": [{"name": "web", "resources": amounts}]}}

    kubectl(f"patch {name} --subresource=resize -p {json.dumps(patch, separators=(',', ':'))}")

    eventually(lambda: "2" in [one["resources"]["requests"]["cpu"] for one in containers(kubectl)])
    assert "batch" not in kubectl("get pods -o name")


def test_what_the_node_could_never_hold_is_infeasible(kubectl: Kubectl) -> None:
    start(kubectl)
    name = kubectl("get pods -l app=web -o name").split()[0]
    amounts = {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}}
    patch = {"spec": {"containers": [{"name": "web", "resources": amounts}]}}

    kubectl(f"patch {name} --subresource=resize -p {json.dumps(patch, separators=(',', ':'))}")

    eventually(lambda: ("PodResizePending", "Infeasible") in conditions(kubectl))
    assert "batch" in kubectl("get pods -o name")
    assert "ResizeInfeasible" in kubectl(f"describe {name}")


def test_a_container_whose_policy_says_so_is_restarted_for_its_resize(kubectl: Kubectl) -> None:
    start(kubectl, "RestartContainer")
    names = kubectl("get pods -l app=web -o name")

    recommend(kubectl, cpu="400m", memory="512Mi")

    eventually(lambda: [one["restartCount"] for one in containers(kubectl)] == [1, 1], lambda: containers(kubectl))
    assert kubectl("get pods -l app=web -o name") == names
    assert [one["resources"]["requests"]["memory"] for one in containers(kubectl)] == [str(512 << 20)] * 2


def test_in_mode_recreate_pods_are_evicted_and_come_back_with_the_recommendation(kubectl: Kubectl) -> None:
    start(kubectl)
    kubectl("delete pod batch")
    kubectl('patch vpa web --type=merge -p {"spec":{"updatePolicy":{"updateMode":"Recreate"}}}')
    before = set(kubectl("get pods -l app=web -o name").split())

    recommend(kubectl, cpu="750m", memory="1Gi")

    def is_done() -> bool:
        found = pods(kubectl)
        cpus = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in found]
        return cpus == ["750m", "750m"] and all(pod["status"]["phase"] == "Running" for pod in found)

    eventually(is_done, lambda: kubectl("describe pods"))
    after = pods(kubectl)
    assert not before & {f"pod/{pod['metadata']['name']}" for pod in after}
    assert "Pod resources updated by web" in after[0]["metadata"]["annotations"]["vpaUpdates"]
    assert "Evicted by right-sizing" in kubectl("get events")


def test_an_autoscaler_says_why_its_pods_stay_as_they_are(kubectl: Kubectl) -> None:
    start(kubectl)
    kubectl("apply -f -", HORIZONTAL)

    recommend(kubectl, cpu="250m", memory="512Mi")

    eventually(lambda: {one["resources"]["requests"]["memory"] for one in containers(kubectl)} == {str(512 << 20)})
    eventually(lambda: "HorizontalPodAutoscaler web scales" in kubectl("describe vpa web"))
    assert {one["resources"]["requests"]["cpu"] for one in containers(kubectl)} == {"500m"}
