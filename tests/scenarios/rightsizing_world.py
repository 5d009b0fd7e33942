"""An autoscaler with a recommendation, the pods that it is about, and what is decided on them."""

from typing import Any

import msgspec

from mooring.engine.cycle import Scheduler
from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision, Resize, Wait
from mooring.model.events import PodSeen
from mooring.model.keys import PodKey
from mooring.model.pod_patch import ContainerResources, PodPatch
from mooring.testing.builders import make_owner, make_pod

GIB = 1 << 30
OWNER = make_owner("web", kind="StatefulSet")


def autoscaler(cpu: str = "2", memory: str = "2Gi", mode: str = "InPlace", **given: Any) -> VerticalPodAutoscaler:
    amounts = {"cpu": cpu, "memory": memory}
    recommended = {"containerName": "main", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    document = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
            "updatePolicy": {"updateMode": mode, "minReplicas": 1},
            **given,
        },
        "status": {"recommendation": {"containerRecommendations": [recommended]}},
    }
    return msgspec.convert(document, VerticalPodAutoscaler)


def web(name: str = "web-0", cpu: str = "1", node: str = "a", **given: Any) -> Pod:
    given.setdefault("owner", OWNER)
    return make_pod(name, cpu=cpu, memory="1Gi", node=node, **given)


def resized(name: str, cpu: str = "2000m", memory: int = 2 * GIB) -> Resize:
    return Resize(f"default/{name}", (ContainerResources("main", (("cpu", cpu), ("memory", str(memory)))),))


def decided(found: Scheduler, now: float, *events: Any) -> list[Decision]:
    found.handle(*events)
    return [decision for decision in found.cycle(now) if not isinstance(decision, Wait)]


def requested_cpu(found: Scheduler, node: str = "a") -> int:
    return int(found.cluster.nodes.requested("cpu")[found.cluster.nodes.row_of[node]])


def confirmed(found: Scheduler, resize: Resize) -> PodSeen:
    record = found.cluster.pods.records[PodKey(resize.pod)]
    return PodSeen(PodPatch(resources=resize.resources).apply(record.pod))
