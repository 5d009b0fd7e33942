"""Events as kube-scheduler writes them: what became of a pod, for `kubectl describe`.

They are aggregated as client-go's recorder does it: a warning about the same pod, with the same reason and action, is
counted in a series of the first Event, whatever its note. The count is written when the series begins, and now and
then after that. Events wait behind everything else; where there are too many, the oldest are dropped and counted.
"""

import random
import socket
import time
from collections import OrderedDict, deque
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.api.requests import encode
from mooring.model.api.pods import Pod
from mooring.model.spam_filter import SpamFilter

MOST_WAITING = 100_000
MOST_SERIES = 20_000
SERIES_SECONDS = 1800.0
"""How often the count of a series is written after its beginning."""
FORGOTTEN_SECONDS = 360.0
"""What has not been said for so long is news when it is said again."""
FIRST_REPEAT = 2
"""The count with which a series begins."""
LONGEST_NOTE = 1024
Request = tuple[str, str, bytes]
"""Its method, path and body."""


class _Series:
    __slots__ = ("count", "first", "last", "name", "path", "written")

    def __init__(self, path: str, name: str, now: float) -> None:
        self.path, self.name = path, name
        self.count, self.first, self.last, self.written = 1, now, now, now

    def update(self, now: float) -> Request:
        series = {"count": self.count, "lastObservedTime": _micro(now)}
        return "PATCH", f"{self.path}/{self.name}", encode({"series": series})


class _Event(NamedTuple):
    """One that is to be written. Of those who wait there may be thousands: it is no more than what it is made of."""

    pod: Pod
    name: str
    reason: str
    action: str
    note: str
    now: float
    scheduler: str
    warning: bool
    related: dict[str, str] | None

    def request(self, host: str) -> Request:
        metadata, note = self.pod.metadata, self.note
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.name or _new_name(self.pod), "namespace": metadata.namespace},
            "eventTime": _micro(self.now),
            "reportingController": self.scheduler,
            "reportingInstance": f"{self.scheduler}-{host}",
            "action": self.action,
            "reason": self.reason,
            "regarding": reference(self.pod),
            "note": note if len(note) <= LONGEST_NOTE else f"{note[: LONGEST_NOTE - 3]}...",
            "type": "Warning" if self.warning else "Normal",
        }
        if self.related:
            body["related"] = self.related
        return "POST", _path(self.pod), encode(body)


class _Update(NamedTuple):
    """The count of a series, as of now."""

    series: _Series
    now: float

    def request(self, host: str) -> Request:
        return self.series.update(self.now)


class EventRecorder:
    """Says what happened to whom, behind all other requests."""

    def __init__(self, client: Client, dispatcher: Dispatcher) -> None:
        self._client, self._dispatcher = client, dispatcher
        self._host = socket.gethostname()
        self._waiting: deque[_Event | _Update] = deque()
        """Each makes a request. That it is made late costs no bind its time."""
        self._work = self._send_next
        self._series: OrderedDict[tuple[str, str, str], _Series] = OrderedDict()
        """By pod, reason and action; the series that was continued last is at the end."""
        self._spam = SpamFilter()
        self.dropped = 0

    def record(
        self,
        pod: Pod,
        reason: str,
        action: str,
        note: str,
        *,
        scheduler: str,
        warning: bool = False,
        related: dict[str, str] | None = None,
    ) -> None:
        """Note an event on a pod; it is sent when nothing more urgent waits."""
        now = time.time()
        key = (pod.metadata.uid, reason, action)
        known = self._series.get(key) if warning else None
        if known is not None and now - known.last < FORGOTTEN_SECONDS:
            known.count, known.last = known.count + 1, now
            self._series.move_to_end(key)
            if known.count == FIRST_REPEAT or now - known.written >= SERIES_SECONDS:
                known.written = now
                self._send(_Update(known, now))
            return
        name = ""
        if warning:
            if not self._spam.allows(pod.metadata.uid, now):
                self.dropped += 1
                return
            name = _new_name(pod)
            self._series[key] = _Series(_path(pod), name, now)
            self._series.move_to_end(key)
            self._forget_old(now)
        self._send(_Event(pod, name, reason, action, note, now, scheduler, warning, related))

    def _forget_old(self, now: float) -> None:
        """Let go of series that would begin anew, most of them of pods that are gone, and of those too many."""
        while True:
            key, oldest = next(iter(self._series.items()))
            if now - oldest.last < FORGOTTEN_SECONDS and len(self._series) <= MOST_SERIES:
                return
            del self._series[key]

    def _send(self, event: _Event | _Update) -> None:
        self._waiting.append(event)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        else:
            self._dispatcher.submit(Lane.EVENT, self._work)

    async def _send_next(self) -> None:
        if not self._waiting:
            return
        method, path, body = self._waiting.popleft().request(self._host)
        try:
            content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
            await self._client.request(method, path, body, content_type)
        except ApiError as error:
            if error.code == 429:
                self._dispatcher.pause(error)
            self.dropped += 1  # an event is no promise: its namespace may be on its way out


def _new_name(pod: Pod) -> str:
    return f"{pod.metadata.name}.{random.getrandbits(64):016x}"


def _path(pod: Pod) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{pod.metadata.namespace}/events"


def reference(pod: Pod) -> dict[str, str]:
    metadata = pod.metadata
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }


def _micro(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
