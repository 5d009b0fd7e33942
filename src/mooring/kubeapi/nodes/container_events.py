"""What a kubelet tells people of its pods: Events, as kubectl describe shows them.

They are written while the cluster is small enough for somebody to read them: three for each container that starts would
be most of what a large one stores.
"""

from typing import Any

from mooring.kubeapi.controllers.recorder import Recorder
from mooring.model.kubelet.containers import RUNNING, WAITING, ContainerLife
from mooring.model.kubelet.life import PodLife

Object = dict[str, Any]
MOST_PODS = 1_000
"""With more than that nothing is told."""

Seen = dict[str, tuple[str, str, int]]


def seen_of(life: PodLife) -> Seen:
    """How each container is: what is told is what changes."""
    return {one.plan.name: (one.state, one.reason, one.restart_count) for one in life.everyone}


class ContainerEvents:
    """Tells what happened to the containers of a pod."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def tell(self, pod: Object, before: Seen, life: PodLife) -> None:
        after = seen_of(life)
        for container in life.everyone:
            name = container.plan.name
            if before.get(name) != after[name]:
                self._tell_of(pod, container, before.get(name))

    def tell_stopping(self, pod: Object, life: PodLife) -> None:
        for container in life.everyone:
            if container.state == RUNNING:
                self._event(pod, "Normal", "Killing", f"Stopping container {container.plan.name}")

    def tell_of_resize(self, pod: Object, reason: str, message: str) -> None:
        type_ = "Warning" if reason in ("ResizeDeferred", "ResizeInfeasible") else "Normal"
        self._event(pod, type_, reason, message)

    def warn(self, pod: Object, reason: str, message: str) -> None:
        self._event(pod, "Warning", reason, message)

    def _tell_of(self, pod: Object, container: ContainerLife, before: tuple[str, str, int] | None) -> None:
        name, image = container.plan.name, container.plan.image
        has_run = before is not None and before[2] != container.restart_count
        if container.state == RUNNING or (has_run and container.state != WAITING):
            self._event(pod, "Normal", "Pulled", f'Container image "{image}" already present on machine')
            self._event(pod, "Normal", "Created", f"Container created: {name}")
            self._event(pod, "Normal", "Started", f"Container started: {name}")
        elif container.reason == "ErrImagePull":
            self._event(pod, "Warning", "Failed", f'Failed to pull image "{image}": not found')
        elif container.reason in ("ImagePullBackOff", "CrashLoopBackOff"):
            self._event(pod, "Warning", "BackOff", container.message)

    def _event(self, pod: Object, type_: str, reason: str, message: str) -> None:
        self._recorder.event(pod, type_, reason, message, "kubelet")
