"""Events as kube-scheduler writes them: what became of a pod, for `kubectl describe`.

What is said again of the same pod is counted in a series, and the count is written now and then. Events wait behind
everything else; where there are too many, the oldest are dropped and counted.
"""

import random
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mooring.drivers.live.client import ApiError, Client
from mooring.drivers.live.dispatcher import Dispatcher, Lane
from mooring.drivers.live.requests import encode
from mooring.model.api.pods import Pod

MOST_WAITING = 100_000
MOST_SERIES = 20_000
SERIES_SECONDS = 30.0
"""How often the count of a series is written at most."""
FORGOTTEN_SECONDS = 360.0
"""What has not been said for so long is news when it is said again."""
LONGEST_NOTE = 1024


class _Series:
    __slots__ = ("count", "first", "last", "name", "note", "path", "written")

    def __init__(self, path: str, name: str, note: str, now: float) -> None:
        self.path, self.name, self.note = path, name, note
        self.count, self.first, self.last, self.written = 1, now, now, now

    def update(self, now: float) -> tuple[str, str, bytes]:
        series = {"count": self.count, "lastObservedTime": _micro(now)}
        return "PATCH", f"{self.path}/{self.name}", encode({"series": series})


class EventRecorder:
    """Says what happened to whom, behind all other requests."""

    def __init__(self, client: Client, dispatcher: Dispatcher) -> None:
        self._client, self._dispatcher = client, dispatcher
        self._host = socket.gethostname()
        self._waiting: deque[Callable[[], tuple[str, str, bytes]]] = deque()
        """Each makes a request: its method, path and body. That it is made late costs no bind its time."""
        self._series: OrderedDict[tuple[str, str], _Series] = OrderedDict()
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
        key = (pod.metadata.uid, reason)
        known = self._series.get(key)
        if warning and known is not None and known.note == note and now - known.last < FORGOTTEN_SECONDS:
            known.count, known.last = known.count + 1, now
            if now - known.written >= SERIES_SECONDS:
                known.written = now
                self._send(lambda: known.update(now))
            return
        metadata = pod.metadata
        name = f"{metadata.name}.{random.getrandbits(64):016x}"
        path = f"/apis/events.k8s.io/v1/namespaces/{metadata.namespace}/events"
        if warning:
            self._series[key] = _Series(path, name, note, now)
            self._series.move_to_end(key)
            if len(self._series) > MOST_SERIES:
                self._series.popitem(last=False)

        def creation() -> tuple[str, str, bytes]:
            body: dict[str, Any] = {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": metadata.namespace},
                "eventTime": _micro(now),
                "reportingController": scheduler,
                "reportingInstance": f"{scheduler}-{self._host}",
                "action": action,
                "reason": reason,
                "regarding": reference(pod),
                "note": note if len(note) <= LONGEST_NOTE else f"{note[: LONGEST_NOTE - 3]}...",
                "type": "Warning" if warning else "Normal",
            }
            if related:
                body["related"] = related
            return "POST", path, encode(body)

        self._send(creation)

    def _send(self, request: Callable[[], tuple[str, str, bytes]]) -> None:
        self._waiting.append(request)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        else:
            self._dispatcher.submit(Lane.EVENT, self._send_next)

    async def _send_next(self) -> None:
        if not self._waiting:
            return
        method, path, body = self._waiting.popleft()()
        try:
            content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
            await self._client.request(method, path, body, content_type)
        except ApiError as error:
            if error.code == 429:
                self._dispatcher.pause(error)
            self.dropped += 1  # an event is no promise: its namespace may be on its way out


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
