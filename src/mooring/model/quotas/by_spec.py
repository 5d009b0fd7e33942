"""What follows from a pod's spec, worked out once for all pods that agree in the parts that matter.

Replicas share their spec, so most pods are found by its identity. Pods of a StatefulSet or a DaemonSet have a spec
each, different in volumes or node affinity alone, and pods read one by one share nothing: these are found by value.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from mooring.model.api.pods import PodSpec

MOST_KEPT = 16384
"""More than the distinct specs of a large cluster; then all are forgotten, so that a long-lived user does not grow."""

Found = TypeVar("Found")
_encode = msgspec.msgpack.Encoder().encode


class BySpec(Generic[Found]):
    """Remembers what `work_out` says about a spec's containers, resources, priority class, deadline and affinity."""

    def __init__(self, work_out: Callable[[PodSpec], Found]) -> None:
        self._work_out = work_out
        self._same: dict[int, tuple[PodSpec, Found]] = {}
        self._equal: dict[bytes, Found] = {}

    def of(self, spec: PodSpec) -> Found:
        known = self._same.get(id(spec))
        if known is not None:
            return known[1]
        parts = _parts(spec)
        found = self._equal.get(parts)
        if found is None:
            found = self._work_out(spec)
            if len(self._equal) >= MOST_KEPT:
                self._equal.clear()
            self._equal[parts] = found
        if len(self._same) >= MOST_KEPT:
            self._same.clear()
        self._same[id(spec)] = spec, found  # the spec is kept, so that no other can take its id
        return found


def _parts(spec: PodSpec) -> bytes:
    affinity = spec.affinity
    return _encode(
        (
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            spec.priority_class_name,
            spec.active_deadline_seconds,
            affinity and (affinity.pod_affinity, affinity.pod_anti_affinity),
        )
    )
