"""Samples of usage, and containers that were killed for want of memory: what a recommender hears of."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Container, ContainerStatus, Pod
from mooring.model.rightsizing.amounts import MEMORY, read_amounts
from mooring.model.rightsizing.updating import OOM_KILLED


class UsageSample(NamedTuple):
    """What one container used at one time."""

    at: float
    """Seconds since 1970."""
    namespace: str
    pod: str
    container: str
    cpu_millis: int
    memory_bytes: int
    labels: Mapping[str, str]
    """Of the pod, as far as the source tells them: a pod that is gone is known by them alone."""


class OutOfMemory(NamedTuple):
    """A container that was killed for want of memory."""

    at: float
    namespace: str
    pod: str
    container: str
    requested_bytes: int


def out_of_memory_kills(pods: Iterable[Pod]) -> Iterator[OutOfMemory]:
    """The kills that the status of each pod tells of: at most one a container, the last."""
    for pod in pods:
        containers = {container.name: container for container in pod.spec.containers}
        for status in pod.status.container_statuses or ():
            container = containers.get(status.name)
            at = _killed_at(status)
            if container is not None and at is not None:
                yield OutOfMemory(at, pod.metadata.namespace, pod.metadata.name, status.name, _requested(container))


def _killed_at(status: ContainerStatus) -> float | None:
    for state in (status.state, status.last_state):
        terminated = state.terminated if state is not None else None
        if terminated is not None and terminated.reason == OOM_KILLED:
            return timestamp_seconds(terminated.finished_at)
    return None


def _requested(container: Container) -> int:
    resources = container.resources
    return read_amounts(resources.requests if resources is not None else None).get(MEMORY, 0)
