from typing import Any

from pods import Document, container, live, pod

from mooring.model.kubelet.life import PodLife
from mooring.model.kubelet.qos import qos_class
from mooring.model.kubelet.status import status_of

START = "1970-01-01T00:00:00Z"


def status(life: PodLife, document: Document, at: float = 0.0, **given: Any) -> Document:
    return status_of(life, document, at, host_ip="127.1.0.1", pod_ip="127.2.0.1", **given)


def conditions(found: Document) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one.get("reason", "")) for one in found["conditions"]}


def test_the_status_of_a_running_pod_is_whole() -> None:
    asked = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    document = pod(container("main", "sleep", "10", resources=asked))
    life = live(document)
    life.advance(0)

    found = status(life, document)

    stamp = {"lastProbeTime": None, "lastTransitionTime": START, "observedGeneration": 1}
    shown = found["containerStatuses"][0]
    assert found == {
        "phase": "Running",
        "observedGeneration": 1,
        "conditions": [
            {"type": "PodReadyToStartContainers", "status": "True", **stamp},
            {"type": "Initialized", "status": "True", **stamp},
            {"type": "Ready", "status": "True", **stamp},
            {"type": "ContainersReady", "status": "True", **stamp},
            {"type": "PodScheduled", "status": "True", **stamp},
        ],
        "hostIP": "127.1.0.1",
        "hostIPs": [{"ip": "127.1.0.1"}],
        "podIP": "127.2.0.1",
        "podIPs": [{"ip": "127.2.0.1"}],
        "startTime": START,
        "containerStatuses": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "imageID": shown["imageID"],
                "containerID": shown["containerID"],
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": START}},
                "lastState": {},
                "resources": asked,
                "allocatedResources": {"cpu": "1"},
            }
        ],
        "qosClass": "Burstable",
    }
    assert shown["imageID"].startswith("busybox@sha256:")
    assert shown["containerID"].startswith("containerd://")


def test_a_pod_is_ready_only_when_its_gates_are() -> None:
    document = pod(container("main"), readinessGates=[{"conditionType": "example.com/up"}])
    life = live(document)
    life.advance(0)

    without = status(life, document)
    document["status"] = {"conditions": [{"type": "example.com/up", "status": "True"}]}
    with_it = status(life, document)

    assert conditions(without)["Ready"] == ("False", "ReadinessGatesNotReady")
    assert conditions(with_it) == {
        "example.com/up": ("True", ""),
        "PodReadyToStartContainers": ("True", ""),
        "Initialized": ("True", ""),
        "Ready": ("True", ""),
        "ContainersReady": ("True", ""),
        "PodScheduled": ("True", ""),
    }


def test_the_moment_of_a_transition_stays_while_the_condition_does() -> None:
    document = pod(container("main", "sleep", "60", readinessProbe={"initialDelaySeconds": 30}))
    life = live(document)
    life.advance(0)
    document["status"] = status(life, document, at=0)
    life.advance(30)

    found = status(life, document, at=30)

    moments = {one["type"]: one["lastTransitionTime"] for one in found["conditions"]}
    later = "1970-01-01T00:00:30Z"
    assert moments == {
        "PodReadyToStartContainers": START,
        "Initialized": START,
        "Ready": later,
        "ContainersReady": later,
        "PodScheduled": START,
    }


def test_a_pod_that_ended_says_why_it_is_not_ready() -> None:
    document = pod(container("main", "sleep", "10"), initContainers=[container("first", "true")])
    life = live(document)
    before = conditions(status(life, document))
    life.advance(100)

    after = status(life, document)

    assert before["Initialized"] == ("False", "ContainersNotInitialized")
    assert conditions(after) == {
        "PodReadyToStartContainers": ("False", ""),
        "Initialized": ("True", "PodCompleted"),
        "Ready": ("False", "PodCompleted"),
        "ContainersReady": ("False", "PodCompleted"),
        "PodScheduled": ("True", ""),
    }
    assert after["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert after["initContainerStatuses"][0]["ready"] is True


def test_a_container_that_is_started_again_remembers_how_it_ended() -> None:
    document = pod(container("main", "false"), restartPolicy="Always")
    life = live(document)
    life.advance(2)

    found = status(life, document)["containerStatuses"][0]

    assert found["restartCount"] == 1
    assert found["state"] == {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off 10s restarting failed container=main",
        }
    }
    assert found["lastState"]["terminated"]["exitCode"] == 1


def test_a_rejected_pod_fails_with_the_reason() -> None:
    document = pod(container("main"))
    life = live(document)

    life.reject("NodePorts", "Predicate NodePorts failed")

    assert status(life, document) == {
        "phase": "Failed",
        "reason": "NodePorts",
        "message": "Pod was rejected: Predicate NodePorts failed",
        "startTime": START,
        "qosClass": "BestEffort",
        "observedGeneration": 1,
    }


def test_a_resize_that_the_node_has_not_granted_shows_what_it_has() -> None:
    document = pod(container("main", resources={"requests": {"cpu": "4"}}))
    life = live(document)
    life.advance(0)

    found = status(
        life,
        document,
        allocated={"main": {"requests": {"cpu": "1"}}},
        resize=[{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
    )

    assert found["containerStatuses"][0]["allocatedResources"] == {"cpu": "1"}
    assert conditions(found)["PodResizePending"] == ("True", "Deferred")


def test_quality_of_service_follows_requests_and_limits() -> None:
    equal = {"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}

    classes = [
        qos_class({"containers": [{"name": "a", "resources": resources}]})
        for resources in ({}, equal, {"limits": {"cpu": "1"}}, {"requests": {"nvidia.com/gpu": "1"}})
    ]

    assert classes == ["BestEffort", "Guaranteed", "Burstable", "BestEffort"]
