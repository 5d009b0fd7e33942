"""Resizes on simulated nodes, from the request to the running container: pending, in progress, done.

What a node has granted counts at once (`allocatedResources`); what a container has (`resources`) follows when the
kubelet has carried it out, which takes as long as the annotation `mooring.dev/resize-delay` of the pod says.
"""

import math
from typing import Any, NamedTuple

from mooring.kubeapi.nodes.allotment import Allotments
from mooring.model.kubelet.distributions import draw
from mooring.model.kubelet.plan import resize_delay

Object = dict[str, Any]
IN_PROGRESS: Object = {"type": "PodResizeInProgress", "status": "True"}


class Resizing(NamedTuple):
    """What a status says of a pod's resize, and what the kubelet has to do now."""

    allocated: dict[str, Object] | None = None
    """What the containers were granted; None: what the spec says."""
    actual: dict[str, Object] | None = None
    """What the containers run with; None: what they were granted."""
    conditions: tuple[Object, ...] = ()
    restarts: tuple[str, ...] = ()
    """The containers that are started anew now."""
    due: float = math.inf
    """When a resize that is in progress is done."""
    was_granted: bool = False
    events: tuple[tuple[str, str], ...] = ()
    """Reason and message of each."""

    @property
    def is_deferred(self) -> bool:
        return any(one.get("reason") == "Deferred" for one in self.conditions)


class _Underway(NamedTuple):
    until: float
    before: dict[str, Object]
    restarts: tuple[str, ...]


class Resizes:
    """Carries out what `Allotments` grants."""

    def __init__(self, allotments: Allotments) -> None:
        self._allotments = allotments
        self._underway: dict[str, _Underway] = {}
        self._told: dict[str, str] = {}
        """By pod, the reason for which its resize is pending, as an event told it."""

    def forget(self, uid: str) -> None:
        self._underway.pop(uid, None)
        self._told.pop(uid, None)

    def look(self, node: Object, pod: Object, now: float) -> Resizing:
        """Let a pod's resize go on by what its spec and the node say now."""
        uid = pod["metadata"]["uid"]
        answer = self._allotments.resize(node, pod)
        events: list[tuple[str, str]] = []
        if answer.before is not None:
            seconds = resize_delay(pod).at(draw(0, uid, "resize", pod["metadata"].get("generation") or 0, "delay"))
            first = self._underway.get(uid)
            before = first.before if first is not None else answer.before
            restarts = answer.restarts if first is None else tuple(sorted({*first.restarts, *answer.restarts}))
            self._underway[uid] = _Underway(now + seconds, before, restarts)
            if seconds:
                events.append(("ResizeStarted", "Pod resize started"))
        conditions: list[Object] = []
        if answer.pending is not None:
            conditions.append(answer.pending)
            reason = answer.pending["reason"]
            if self._told.get(uid) != reason:
                events.append((f"Resize{reason}", answer.pending["message"]))
            self._told[uid] = reason
        else:
            self._told.pop(uid, None)
        underway = self._underway.get(uid)
        now_restarted: tuple[str, ...] = ()
        if underway is not None and underway.until <= now:
            del self._underway[uid]
            now_restarted, underway = underway.restarts, None
            events.append(("ResizeCompleted", "Pod resize completed"))
        if underway is not None:
            conditions.append(IN_PROGRESS)
        return Resizing(
            answer.granted,
            underway.before if underway is not None else None,
            tuple(conditions),
            now_restarted,
            underway.until if underway is not None else math.inf,
            answer.before is not None,
            tuple(events),
        )
