"""Workloads as they are written: made, followed up, told what became of them. Who decides on that is elsewhere."""

import asyncio
from collections.abc import Callable
from typing import Any

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import JSON, MERGE_PATCH, ApiError, Client
from mooring.drivers.live.api.discovery import Served
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.api.requests import encode
from mooring.drivers.live.watching.informer import decode_head
from mooring.drivers.live.workloads.requests import all_conditions, new_workload, respecified
from mooring.model.api.kueue_workload import Workload
from mooring.model.api.meta import ObjectMeta
from mooring.model.keys import WorkloadKey
from mooring.model.queued.building import MADE_UID

MOST_TRIES = 5
WORKLOAD = ("kueue.x-k8s.io", "Workload")


class WorkloadWriter:
    """Sends requests about Workloads until somebody answers, and knows the uids of those that it made."""

    def __init__(self, client: Client, dispatcher: Dispatcher) -> None:
        self._client, self._dispatcher = client, dispatcher
        self.served: Served = {}
        self._uids: dict[WorkloadKey, str] = {}
        self.on_made: Callable[[Workload], None] = lambda workload: None
        """Told of every Workload that is made."""

    @property
    def has_kind(self) -> bool:
        return WORKLOAD in self.served

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        found = self.served.get(WORKLOAD)
        if found is None:
            raise ApiError(404, "NotFound", "this cluster has no Workloads of kueue.x-k8s.io")
        return found.path(namespace, name, subresource)

    def path_of(self, workload: Workload, subresource: str = "") -> str:
        return self.path(workload.metadata.namespace, workload.metadata.name, subresource)

    def uid_of(self, workload: Workload) -> str:
        """The uid that a Workload has in the world; empty if it is not known to be there."""
        uid = workload.metadata.uid
        return self._uids.get(workload.key, "") if uid.startswith(MADE_UID) else uid

    def forget(self, key: WorkloadKey) -> None:
        """It is gone."""
        self._uids.pop(key, None)

    async def exists(self, workload: Workload) -> bool:
        """Whether a Workload is in the world at this moment."""
        try:
            await self.insist("GET", self.path_of(workload), None)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    async def create(self, workload: Workload) -> ObjectMeta | None:
        """Make a Workload; None if it is there already, and we have not seen it yet."""
        found = self.served.get(WORKLOAD)
        body = new_workload(workload, found.api_version if found is not None else "")
        try:
            made = decode_head(await self.insist("POST", self.path(workload.metadata.namespace), body)).metadata
        except ApiError as error:
            if error.code != 409:
                raise
            made = decode_head(await self.insist("GET", self.path_of(workload), None)).metadata
            self._uids[workload.key] = made.uid
            return None
        self._uids[workload.key] = made.uid
        self.on_made(workload)
        return made

    async def respecify(self, workload: Workload) -> ObjectMeta:
        """Let a Workload ask for what its job asks for now."""
        return decode_head(await self.insist("PATCH", self.path_of(workload), respecified(workload))).metadata

    async def write_status(
        self,
        workload: Workload,
        status: dict[str, Any],
        new: list[dict[str, str]],
        *,
        tries: float = MOST_TRIES,
        version: str = "",
    ) -> int:
        """Write conditions beside those that there are, and more; the version that it then has.

        Onto the given version only, if one is given: who knows a Workload as it was must not take back what it is.
        """
        body: dict[str, Any] = {"status": {**status, "conditions": all_conditions(workload, new)}}
        if version:
            body["metadata"] = {"resourceVersion": version}
        answer = await self.insist("PATCH", self.path_of(workload, "status"), body, tries, at_version=bool(version))
        return int(decode_head(answer).metadata.resource_version or 0)

    async def insist(
        self, method: str, path: str, body: Any, tries: float = MOST_TRIES, *, at_version: bool = False
    ) -> bytes:
        """Send what may be sent twice without harm, at most so often; the answer."""
        backoff, content = Backoff(), None if body is None else encode(body)
        while True:
            tries -= 1
            try:
                return await self._client.request(method, path, content, MERGE_PATCH if method == "PATCH" else JSON)
            except ApiError as error:
                # A patch that names no version conflicts only in that somebody else was at it.
                is_passing = error.is_passing or (error.code == 409 and method == "PATCH" and not at_version)
                if not is_passing or tries <= 0:
                    raise
                async with self._dispatcher.aside():
                    await asyncio.sleep(backoff.next(error.retry_after))
