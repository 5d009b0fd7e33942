"""Pods as documents, and their lives told as a list of moments."""

import math
from typing import Any

from mooring.model.kubelet.life import PodLife
from mooring.model.kubelet.plan import DEFAULT_TIMINGS, Timings, plan_of

Document = dict[str, Any]


def container(name: str = "main", *command: str, **fields: Any) -> Document:
    return {"name": name, "image": "busybox:1.36", "command": list(command), **fields}


def pod(*containers: Document, annotations: dict[str, str] | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "u1",
            "generation": 1,
            "annotations": annotations or {},
        },
        "spec": {"containers": list(containers), "restartPolicy": "Never", **spec},
    }


def live(document: Document, timings: Timings = DEFAULT_TIMINGS, **given: Any) -> PodLife:
    return PodLife(plan_of(document, timings), identity="u1", at=0.0, **given)


def story(life: PodLife, until: float = math.inf) -> list[tuple[float, str, dict[str, str]]]:
    """What is seen at every moment at which something happens: the phase, and the state of each container."""
    moments = []
    while life.next_at <= until and life.next_at < math.inf:
        at = life.next_at
        life.advance(at)
        states = {one.plan.name: f"{one.state} {one.reason}".strip() for one in life.everyone}
        moments.append((at, life.phase, states))
    return moments
