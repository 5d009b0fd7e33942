"""What became of a PodGroup, in its status: of `scheduling.k8s.io`, the condition that kube-scheduler keeps there; of
`scheduling.volcano.sh`, Volcano's condition, and that it runs. Until then `phases.py` sees to its phase."""

import asyncio
import logging
import time
from typing import Any

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import MERGE_PATCH, STRATEGIC_PATCH, ApiError, Client
from mooring.drivers.live.api.discovery import Served
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.api.requests import encode
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.gangs.dialects.volcano import RUNNING
from mooring.model.gangs.membership import VOLCANO_GROUPS

GROUP_KIND = ("scheduling.k8s.io", "PodGroup")
VOLCANO_KIND = ("scheduling.volcano.sh", "PodGroup")
CONDITION = "PodGroupInitiallyScheduled"
MOST_KEPT = 20_000
"""Groups of which it is kept in mind what was written; of one that is forgotten, it may be written again."""
SCHEDULED, UNSCHEDULABLE = ("True", "Scheduled"), ("False", "Unschedulable")
VOLCANO_CONDITIONS = {
    "True": ("Scheduled", "tasks in gang are ready to be scheduled"),
    "False": ("Unschedulable", "NotEnoughResources"),
}
"""By whether the members have a place: the type of Volcano's condition, which is true, and the reason."""
_log = logging.getLogger(__name__)
GroupKey = tuple[tuple[str, str], str, str]
"""Group and kind, namespace, name."""


class PodGroupStatus:
    """Writes what became of a gang when it changes; that it was scheduled stays."""

    def __init__(self, client: Client, dispatcher: Dispatcher) -> None:
        self._client, self._dispatcher = client, dispatcher
        self.served: Served = {}
        self._written: dict[GroupKey, tuple[str, str]] = {}
        self._wanted: dict[GroupKey, tuple[str, str, str]] = {}
        self._writing: dict[GroupKey, tuple[str, str, str]] = {}
        self._backoff = Backoff()

    def bound(self, pod: Pod) -> None:
        """A member was bound: members are, when all that are needed have a place."""
        self._want(pod, *SCHEDULED, "")

    def waiting(self, pod: Pod, message: str) -> None:
        self._want(pod, *UNSCHEDULABLE, message)

    def _want(self, pod: Pod, status: str, reason: str, message: str) -> None:
        key = self._key(pod)
        if key is None:
            return
        last = self._wanted.get(key) or self._writing.get(key)
        said = last[::2] if last is not None else self._written.get(key, ("", ""))
        if said[0] == "True" or said == (status, message):
            return
        if key not in self._wanted and key not in self._writing:
            self._submit(key)
        self._wanted[key] = (status, reason, message)

    def _key(self, pod: Pod) -> GroupKey | None:
        """The group of a pod, if this cluster has the kind that it is of."""
        if pod.spec.scheduling_group is not None:
            kind, name = GROUP_KIND, pod.spec.scheduling_group.pod_group_name
        else:
            annotations = pod.metadata.annotations or {}
            kind, name = VOLCANO_KIND, next((annotations[key] for key in VOLCANO_GROUPS if key in annotations), None)
        return (kind, pod.metadata.namespace, name) if name and kind in self.served else None

    def _submit(self, key: GroupKey) -> None:
        self._dispatcher.submit(Lane.STATUS, lambda: self._write(key))

    async def _write(self, key: GroupKey) -> None:
        """Write the last word on a group, one at a time: of two that fail, the last is the one to be tried again."""
        wanted = self._writing[key] = self._wanted.pop(key)
        try:
            later = await self._try(key, *wanted)
        finally:
            del self._writing[key]
        if later:  # nobody says it again of a gang that runs
            self._wanted.setdefault(key, wanted)
        if key in self._wanted:
            asyncio.get_running_loop().call_later(later, self._submit, key)

    async def _try(self, key: GroupKey, status: str, reason: str, message: str) -> float:
        """Write it; after how many seconds to try again, 0 if that is of no use."""
        kind, namespace, name = key
        path = self.served[kind].path(namespace, name, "status")
        merge = STRATEGIC_PATCH if kind == GROUP_KIND else MERGE_PATCH
        body = encode({"status": self._status(key, status, reason, message)})
        try:
            await self._client.request("PATCH", path, body, merge)
        except ApiError as error:
            if error.is_passing or error.code == 409:
                return self._backoff.next(error.retry_after)
            if error.code != 404:
                _log.warning("the status of PodGroup %s/%s could not be written: %s", namespace, name, error.message)
            return 0.0
        self._written.pop(key, None)
        self._written[key] = (status, message)
        if len(self._written) > MOST_KEPT:
            del self._written[next(iter(self._written))]
        self._backoff.reset()
        return 0.0

    def _status(self, key: GroupKey, status: str, reason: str, message: str) -> dict[str, Any]:
        before = self._written.get(key)
        found: dict[str, Any] = {}
        if key[0] == VOLCANO_KIND:
            type_, reason = VOLCANO_CONDITIONS[status]
            if status == "True":  # who waits for a place may wait to be let in, or run already without some of its pods
                found["phase"] = RUNNING
            condition = {"type": type_, "status": "True", "reason": reason, "message": message}
        else:
            condition = {"type": CONDITION, "status": status, "reason": reason, "message": message}
        if before is None or before[0] != status or key[0] == VOLCANO_KIND:
            condition["lastTransitionTime"] = timestamp_text(time.time())
        found["conditions"] = [condition]
        return found
