"""The status of ClusterQueues and LocalQueues, as Kueue writes it: for kubectl and for whoever else shows queues."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from mooring.drivers.live.api.client import MERGE_PATCH, ApiError, Client
from mooring.drivers.live.api.discovery import Served
from mooring.drivers.live.api.requests import encode
from mooring.engine.cycle import Scheduler
from mooring.report.amounts import amount_text, in_units
from mooring.report.queues.standing import Amounts, Standing, standings

LOOK_SECONDS = 5.0
"""How often what is written is compared with how things stand: as often as Kueue's own status lags behind at most."""
CLUSTER_QUEUE, LOCAL_QUEUE = ("kueue.x-k8s.io", "ClusterQueue"), ("kueue.x-k8s.io", "LocalQueue")
_log = logging.getLogger(__name__)


class QueueStatusWriter:
    """Writes what changed, queue by queue, for as long as this scheduler admits."""

    def __init__(self, client: Client, scheduler: Callable[[], Scheduler], served: Callable[[], Served]) -> None:
        self._client, self._scheduler, self._served = client, scheduler, served
        self._written: dict[tuple[tuple[str, str], str], dict[str, Any]] = {}
        self._said = ""

    async def run(self) -> None:
        """Keep statuses as things stand."""
        while True:
            try:
                await self.write()
            except Exception:  # nobody is to lose admission for want of a figure
                _log.exception("the status of queues was not written")
            await asyncio.sleep(LOOK_SECONDS)

    async def write(self) -> None:
        """Write the statuses that are not what was written last."""
        found = standings(self._scheduler(), time.time())
        for key, standing in found.cluster_queues.items():
            await self._write(CLUSTER_QUEUE, key, cluster_queue_status(standing))
        for key, standing in found.local_queues.items():
            await self._write(LOCAL_QUEUE, key, local_queue_status(standing))
        gone = {(CLUSTER_QUEUE, key) for key in found.cluster_queues} | {(LOCAL_QUEUE, k) for k in found.local_queues}
        self._written = {key: status for key, status in self._written.items() if key in gone}

    async def _write(self, kind: tuple[str, str], key: str, status: dict[str, Any]) -> None:
        resource = self._served().get(kind)
        before = self._written.get((kind, key))
        if resource is None or before == status:
            return
        namespace, _, name = key.rpartition("/")
        now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [{**status["conditions"][0], "lastTransitionTime": now}]
        if before is not None and before["conditions"] == status["conditions"]:
            written = {field: value for field, value in status.items() if field != "conditions"}
        else:
            written = {**status, "conditions": conditions}
        try:
            await self._client.request(
                "PATCH", resource.path(namespace, name, "status"), encode({"status": written}), MERGE_PATCH
            )
        except ApiError as error:
            if error.message != self._said:
                _log.warning("the status of %s %s was not written: %s", resource.name, key, error.message)
                self._said = error.message
            return
        self._written[kind, key] = status


def cluster_queue_status(standing: Standing) -> dict[str, Any]:
    """In the fields of v1beta1 and v1beta2, which have these alike."""
    why = standing.inactive_reason
    message = f"Can't admit new workloads: {why}." if why else "Can admit new workloads"
    return {
        **_counts(standing),
        "conditions": [_active(why, message)],
        "flavorsReservation": _flavors(standing, standing.reserved, with_borrowed=True),
        "flavorsUsage": _flavors(standing, standing.used, with_borrowed=True),
    }


def local_queue_status(standing: Standing) -> dict[str, Any]:
    why = standing.inactive_reason
    message = f"Can't submit new workloads to localQueue: {why}" if why else "Can submit new workloads to localQueue"
    return {
        **_counts(standing),
        "conditions": [_active(why, message)],
        "flavorsReservation": _flavors(standing, standing.reserved, with_borrowed=False),
        "flavorsUsage": _flavors(standing, standing.used, with_borrowed=False),
    }


def _counts(standing: Standing) -> dict[str, Any]:
    return {
        "pendingWorkloads": standing.pending,
        "reservingWorkloads": standing.reserving,
        "admittedWorkloads": standing.admitted,
    }


_REASONS: Mapping[str, str] = {
    "is stopped": "Stopped",
    "cohort": "CohortCycle",
    "references missing ResourceFlavor": "FlavorNotFound",
    "references missing AdmissionCheck": "AdmissionCheckNotFound",
    "references inactive AdmissionCheck": "AdmissionCheckInactive",
}


def _active(why: str, message: str) -> dict[str, Any]:
    reason = next((found for words, found in _REASONS.items() if why.startswith(words)), "") if why else "Ready"
    if not reason:
        reason = "ClusterQueueDoesNotExist" if why.endswith("doesn't exist") else "ClusterQueueIsInactive"
    return {"type": "Active", "status": "False" if why else "True", "reason": reason, "message": message}


def _flavors(standing: Standing, amounts: Amounts, *, with_borrowed: bool) -> list[dict[str, Any]]:
    flavors: dict[str, list[dict[str, Any]]] = {}
    for column in standing.quotas:
        resource = column.resource
        shown = {"name": resource, "total": amount_text(resource, in_units(resource, amounts[column]))}
        if with_borrowed:
            borrowed = standing.borrowed(amounts, column)
            shown["borrowed"] = amount_text(resource, in_units(resource, borrowed))
        flavors.setdefault(column.flavor, []).append(shown)
    return [{"name": name, "resources": resources} for name, resources in flavors.items()]
