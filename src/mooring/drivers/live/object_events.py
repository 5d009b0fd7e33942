"""Events on Workloads as Kueue writes them, on PodGroups as Volcano does, and on autoscalers, for `kubectl describe`:
behind everything else, and no promise."""

import random
import socket
import time
from collections import deque
from datetime import UTC, datetime

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.api.requests import encode
from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.kueue_workload import Workload
from mooring.model.api.meta import OwnerReference
from mooring.model.gangs.dialects.volcano import VolcanoPodGroup
from mooring.model.spam_filter import SpamFilter

CONTROLLER = "mooring"
MOST_WAITING = 20_000
LONGEST_NOTE = 1024


class ObjectEvents:
    """Says what became of whom; where too many wait, the oldest are dropped."""

    def __init__(self, client: Client, dispatcher: Dispatcher) -> None:
        self._client, self._dispatcher = client, dispatcher
        self._host = socket.gethostname()
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._spam = SpamFilter()

    def record(
        self,
        about: Workload | VolcanoPodGroup | VerticalPodAutoscaler,
        uid: str,
        reason: str,
        note: str,
        *,
        warning: bool = False,
    ) -> None:
        """Note an event on an object, which has that uid in the world."""
        self._record(
            OwnerReference(api_version=about.api_version, kind=about.kind, name=about.metadata.name, uid=uid),
            about.metadata.namespace,
            reason,
            note,
            warning=warning,
        )

    def record_on_owners(self, about: Workload, reason: str, note: str) -> None:
        """Note an event on those that a Workload was made for."""
        for owner in about.metadata.owner_references or ():
            self._record(owner, about.metadata.namespace, reason, note)

    def _record(self, about: OwnerReference, namespace: str, reason: str, note: str, *, warning: bool = False) -> None:
        now = time.time()
        if not self._spam.allows(about.uid, now):
            return
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name}.{random.getrandbits(64):016x}", "namespace": namespace},
            "eventTime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER,
            "reportingInstance": f"{CONTROLLER}-{self._host}",
            "action": reason,
            "reason": reason,
            "regarding": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "note": note if len(note) <= LONGEST_NOTE else f"{note[: LONGEST_NOTE - 3]}...",
            "type": "Warning" if warning else "Normal",
        }
        self._waiting.append((f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", encode(body)))
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
        else:
            self._dispatcher.submit(Lane.EVENT, self._send_next)

    async def _send_next(self) -> None:
        if not self._waiting:
            return
        path, body = self._waiting.popleft()
        try:
            await self._client.post(path, body)
        except ApiError as error:
            if error.code == 429:
                self._dispatcher.pause(error)
