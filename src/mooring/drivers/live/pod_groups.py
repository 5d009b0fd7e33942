"""What became of a PodGroup of `scheduling.k8s.io`, in its status: the condition that kube-scheduler keeps there."""

import asyncio
import logging
import time

from mooring.drivers.live.backoff import Backoff
from mooring.drivers.live.client import STRATEGIC_PATCH, ApiError, Client
from mooring.drivers.live.discovery import Served
from mooring.drivers.live.dispatcher import Dispatcher, Lane
from mooring.drivers.live.requests import encode
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod

GROUP_KIND = ("scheduling.k8s.io", "PodGroup")
CONDITION = "PodGroupInitiallyScheduled"
MOST_KEPT = 20_000
"""Groups of which it is kept in mind what was written; of one that is forgotten, it may be written again."""
SCHEDULED, UNSCHEDULABLE = ("True", "Scheduled"), ("False", "Unschedulable")
_log = logging.getLogger(__name__)


class PodGroupStatus:
    """Writes the condition when it changes; once true, it stays."""

    def __init__(self, client: Client, dispatcher: Dispatcher) -> None:
        self._client, self._dispatcher = client, dispatcher
        self.served: Served = {}
        self._written: dict[tuple[str, str], tuple[str, str]] = {}
        self._wanted: dict[tuple[str, str], tuple[str, str, str]] = {}
        self._backoff = Backoff()

    def bound(self, pod: Pod) -> None:
        """A member was bound: members are, when all that are needed have a place."""
        self._want(pod, *SCHEDULED, "")

    def waiting(self, pod: Pod, message: str) -> None:
        self._want(pod, *UNSCHEDULABLE, message)

    def _want(self, pod: Pod, status: str, reason: str, message: str) -> None:
        group = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None
        if not group or GROUP_KIND not in self.served:
            return
        key = (pod.metadata.namespace, group)
        said = self._wanted[key][::2] if key in self._wanted else self._written.get(key, ("", ""))
        if said[0] == "True" or said == (status, message):
            return
        if key not in self._wanted:
            self._submit(key)
        self._wanted[key] = (status, reason, message)

    def _submit(self, key: tuple[str, str]) -> None:
        self._dispatcher.submit(Lane.STATUS, lambda: self._write(key))

    async def _write(self, key: tuple[str, str]) -> None:
        status, reason, message = self._wanted.pop(key)
        before = self._written.get(key)
        condition = {"type": CONDITION, "status": status, "reason": reason, "message": message}
        if before is None or before[0] != status:
            condition["lastTransitionTime"] = timestamp_text(time.time())
        namespace, name = key
        path = self.served[GROUP_KIND].path(namespace, name, "status")
        try:
            await self._client.request("PATCH", path, encode({"status": {"conditions": [condition]}}), STRATEGIC_PATCH)
            self._written.pop(key, None)
            self._written[key] = (status, message)
            if len(self._written) > MOST_KEPT:
                del self._written[next(iter(self._written))]
            self._backoff.reset()
        except ApiError as error:
            if error.is_passing or error.code == 409:  # nobody says it again of a gang that runs
                if key not in self._wanted:
                    self._wanted[key] = (status, reason, message)
                    later = self._backoff.next(error.retry_after)
                    asyncio.get_running_loop().call_later(later, self._submit, key)
            elif error.code != 404:
                _log.warning("the status of PodGroup %s/%s could not be written: %s", namespace, name, error.message)
