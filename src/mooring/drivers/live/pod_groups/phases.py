"""The phase of PodGroups of Volcano that wait to be let in: its controllers make a group's pods once it is Inqueue.

A phase is written onto the version of the group that was read: what anybody else made of it meanwhile is a conflict,
and looked at before it is tried again. So no phase is ever taken back, and several schedulers may say the same.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mooring.drivers.live.api.client import MERGE_PATCH, ApiError, Client
from mooring.drivers.live.api.discovery import Served
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.api.requests import encode
from mooring.drivers.live.object_events import ObjectEvents
from mooring.drivers.live.pod_groups.status import VOLCANO_CONDITIONS, VOLCANO_KIND
from mooring.model.api.meta import timestamp_text
from mooring.model.decisions import Decision, Enqueue, KeepOut
from mooring.model.gangs.dialects.volcano import INQUEUE, PENDING, WAITS, VolcanoPodGroup

SAY_AGAIN_SECONDS = 10.0
"""How long a group is left alone after it was told why it is not let in: amounts in that change with every other."""
MOST_KEPT = 20_000
"""Groups of which it is kept in mind when they were told; one that is forgotten is told again."""
CONFLICT = 409
LOOK_SECONDS = 0.2
"""How soon it is looked again at a group that somebody else wrote to: by then that is seen."""
_log = logging.getLogger(__name__)
Name = tuple[str, str]
"""Namespace and name."""


class GroupPhases:
    """Writes the last word on each group, for as long as it waits to be let in."""

    def __init__(
        self,
        client: Client,
        dispatcher: Dispatcher,
        find: Callable[[str, str], VolcanoPodGroup | None],
        *,
        failed: Callable[[Decision, str], None],
    ) -> None:
        """`find` gives a group as the world has it; `failed` is told of every decision that was refused."""
        self._client, self._dispatcher, self._find, self._failed = client, dispatcher, find, failed
        self._events = ObjectEvents(client, dispatcher)
        self.served: Served = {}
        self._wanted: dict[Name, Enqueue | KeepOut] = {}
        self._writing: set[Name] = set()
        self._told: OrderedDict[Name, float] = OrderedDict()
        """When groups were last told why they are kept out."""

    def carry_out(self, decision: Enqueue | KeepOut) -> None:
        """Let a group know; who is let in at once, who is kept out when there is time."""
        if VOLCANO_KIND not in self.served:
            return
        _, namespace, name = decision.gang.split("/")
        key = (namespace, name)
        is_known, self._wanted[key] = key in self._wanted, decision
        if isinstance(decision, Enqueue):
            self._submit(key)
        elif not is_known:
            told = self._told.get(key)
            self._submit_after(0.0 if told is None else told + SAY_AGAIN_SECONDS - time.monotonic(), key)

    def _submit(self, key: Name) -> None:
        self._dispatcher.submit(Lane.STATUS, lambda: self._write(key))

    def _submit_after(self, seconds: float, key: Name) -> None:
        if seconds > 0:
            asyncio.get_running_loop().call_later(seconds, self._submit, key)
        else:
            self._submit(key)

    async def _write(self, key: Name) -> None:
        """Write the last word on a group, one at a time: of two that fail, the last is the one to be tried again."""
        if key in self._writing or key not in self._wanted:
            return
        decision = self._wanted.pop(key)
        self._writing.add(key)
        try:
            later = await self._try(key, decision)
        finally:
            self._writing.discard(key)
        if later:
            self._wanted.setdefault(key, decision)
        if key in self._wanted:
            self._submit_after(later, key)

    async def _try(self, key: Name, decision: Enqueue | KeepOut) -> float:
        """Write it; after how many seconds to look again because the group has changed, else 0."""
        group, message = self._find(*key), decision.message if isinstance(decision, KeepOut) else ""
        if group is None or group.status.phase not in WAITS:
            return 0.0
        try:
            path = self.served[VOLCANO_KIND].path(*key, "status")
            await self._client.request("PATCH", path, encode(self._body(key, group, message)), MERGE_PATCH)
        except ApiError as error:
            if error.code == CONFLICT:
                return LOOK_SECONDS
            if error.code != 404:
                _log.warning("the phase of PodGroup %s/%s could not be written: %s", *key, error.message)
                self._failed(decision, error.message)
            return 0.0
        self._note(key, group, message)
        return 0.0

    def _body(self, key: Name, group: VolcanoPodGroup, message: str) -> dict[str, Any]:
        status: dict[str, Any] = {"phase": PENDING if message else INQUEUE}
        if message:
            type_, reason = VOLCANO_CONDITIONS["False"]
            now = timestamp_text(time.time())
            condition = {"type": type_, "status": "True", "reason": reason, "message": message}
            status["conditions"] = [{**condition, "lastTransitionTime": now}]
        elif key in self._told:
            status["conditions"] = None
        return {"metadata": {"resourceVersion": group.metadata.resource_version}, "status": status}

    def _note(self, key: Name, group: VolcanoPodGroup, message: str) -> None:
        """It was told; that it is kept out is an event as well, the first time."""
        known = self._told.pop(key, None)
        if not message:
            return
        self._told[key] = time.monotonic()
        if len(self._told) > MOST_KEPT:
            self._told.popitem(last=False)
        if known is None:
            self._events.record(group, group.metadata.uid, VOLCANO_CONDITIONS["False"][0], message)
