"""How much of a node is asked for: of the larger of CPU and memory, or of its GPUs alone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mooring.actions.capacity.autoscaler.situation import gpu_resource, is_daemon, is_mirror
from mooring.config.autoscaler import ScaleDownSettings
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.values.quantity import parse_quantity, to_millis
from mooring.model.values.requests import CPU, MEMORY, pod_requests

DEFAULT_GRACE_SECONDS = 30
LONG_SECONDS = 30
"""A pod that is this much longer about to end than it was given is not waited for."""


@dataclass(frozen=True, slots=True)
class Utilization:
    """The share of one resource that is asked for; the resource with the largest share counts."""

    resource: str
    share: float


def utilization(
    node: Node, pods: Iterable[Pod], settings: ScaleDownSettings, gpu_label: str, now: float
) -> Utilization | None:
    """The utilisation of a node; None if it does not say how much CPU and memory it has."""
    counted, aside = list[Pod](), list[Pod]()
    for pod in pods:
        is_ignored = (settings.ignore_daemon_sets_utilization and is_daemon(pod)) or (
            settings.ignore_mirror_pods_utilization and is_mirror(pod)
        )
        if is_ignored:
            aside.append(pod)
        elif not is_long_terminating(pod, now):
            counted.append(pod)
    gpu = gpu_resource(node, gpu_label)
    if gpu is not None:
        # A node whose GPUs are not usable yet, or no more, may go.
        return Utilization(gpu, _share(node, gpu, counted, aside) or 0.0)
    cpu, memory = _share(node, CPU, counted, aside), _share(node, MEMORY, counted, aside)
    if cpu is None or memory is None:
        return None
    return Utilization(CPU, cpu) if cpu > memory else Utilization(MEMORY, memory)


def _share(node: Node, resource: str, counted: Iterable[Pod], aside: Iterable[Pod]) -> float | None:
    """What is asked for of what is left beside the pods that are set aside; None if the node has none at all."""
    allocatable = to_millis(parse_quantity((node.status.allocatable or {}).get(resource, 0)))
    if not allocatable:
        return None
    asked, left = _sum(counted, resource), allocatable - _sum(aside, resource)
    if not left:
        return math.inf if asked else math.nan
    return asked / left


def _sum(pods: Iterable[Pod], resource: str) -> int:
    return to_millis(sum(pod_requests(pod).get(resource, 0) for pod in pods))


def is_long_terminating(pod: Pod, now: float) -> bool:
    """Whether a pod should have been gone for a while."""
    deleted = timestamp_seconds(pod.metadata.deletion_timestamp)
    if deleted is None:
        return False
    grace = pod.spec.termination_grace_period_seconds
    return deleted + (DEFAULT_GRACE_SECONDS if grace is None else grace) + LONG_SECONDS < now
