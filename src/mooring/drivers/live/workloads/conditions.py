"""What stands on Workloads: that they are there, why they wait, how they ended. None of it is urgent.

Only the last word on each is kept, and written when nothing more urgent waits. Of a long line, each costs a request
when what is said of it changes, and not before ten seconds have passed since the last.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.object_events import ObjectEvents
from mooring.drivers.live.pods.refusals import Refusals
from mooring.drivers.live.workloads.requests import condition, is_outdated
from mooring.drivers.live.workloads.writer import WorkloadWriter
from mooring.model.api.kueue_workload import ADMITTED, FINISHED, QUOTA_RESERVED, Workload
from mooring.model.decisions import Defer
from mooring.model.keys import WorkloadKey
from mooring.model.queued.building import MADE_UID
from mooring.model.queued.gathering import QueuedWorkload

SAY_AGAIN_SECONDS = 10.0
"""How long a Workload is left alone after it was told why it waits."""
LATER_SECONDS = 1.0
"""When it is tried again to write what could not be."""
UNSEEN_SECONDS = 5.0
"""How long a Workload that was made may not be seen before it is asked for: it may have been deleted at once."""
PENDING = "Pending"
"""The reason of events on who waits."""
_log = logging.getLogger(__name__)

Alone = Callable[[WorkloadKey, Callable[[], Awaitable[None]]], Awaitable[None]]


class WorkloadConditions:
    """Makes the Workloads of jobs that come, and keeps on them what is said."""

    def __init__(
        self,
        writer: WorkloadWriter,
        events: ObjectEvents,
        dispatcher: Dispatcher,
        *,
        find: Callable[[WorkloadKey], QueuedWorkload | None],
        alone: Alone,
        wrote: Callable[[WorkloadKey, int], None],
        vanished: Callable[[WorkloadKey], None],
    ) -> None:
        """`find` gives a workload as the scheduler knows it; `alone` does something to one while nobody else does;
        `wrote` is told which version a Workload has after we wrote it, `vanished` that one is not there any more."""
        self._writer, self._events, self._dispatcher = writer, events, dispatcher
        self._find, self._alone, self._wrote, self._vanished = find, alone, wrote, vanished
        self._conditions: dict[WorkloadKey, Defer] = {}
        self._to_write: OrderedDict[WorkloadKey, None] = OrderedDict()
        self._later: set[WorkloadKey] = set()
        self._written_at: dict[WorkloadKey, float] = {}
        self._unseen_since: dict[WorkloadKey, float] = {}
        """The Workloads that are known to be made, and since when they are waited for."""
        self._refusals = Refusals()
        """The Workloads that could not be made."""

    def arrived(self, queued: QueuedWorkload) -> None:
        """A workload is there: if nobody has made its Workload, its job has become another, or it gives another
        reason to wait than was last said, see to that."""
        workload = queued.workload
        is_missing = _is_made(workload) and not self._writer.uid_of(workload)
        if (is_missing or is_outdated(workload) or self._is_wrong(workload)) and self._writer.has_kind:
            self._submit(workload.key)

    def _is_wrong(self, workload: Workload) -> bool:
        """Whether a Workload that waits says something else than why: others write there too, our own evictions among
        them, and what could not be written is not there."""
        said = self._conditions.get(workload.key)
        is_waiting = workload.status.admission is None and not _is_made(workload)
        return said is not None and is_waiting and not _says(workload, said)

    def say(self, decision: Defer) -> None:
        """Write why a workload waits."""
        key = WorkloadKey(decision.workload)
        self._conditions[key] = decision
        if self._writer.has_kind:
            self._submit(key)

    def take_back(self, key: WorkloadKey) -> None:
        """A workload does not wait any more, or for another reason that is yet to be said."""
        self._conditions.pop(key, None)

    def forget(self, key: WorkloadKey) -> None:
        self._conditions.pop(key, None)
        self._written_at.pop(key, None)
        self._unseen_since.pop(key, None)
        self._refusals.forget(key)

    def finish(self, workload: Workload, reason: str, message: str) -> None:
        """Write that the job of a Workload is over."""
        if self._writer.has_kind and workload.condition(FINISHED) is None:
            self._dispatcher.submit(
                Lane.STATUS, lambda: self._alone(workload.key, lambda: self._finish(workload, reason, message))
            )

    # When.

    def _submit(self, key: WorkloadKey) -> None:
        if key in self._to_write or key in self._later:
            return
        written = self._written_at.get(key)
        pause = 0.0 if written is None else written + SAY_AGAIN_SECONDS - asyncio.get_running_loop().time()
        if pause > 0:
            self._postpone(key, pause)
            return
        self._to_write[key] = None
        self._dispatcher.submit(Lane.STATUS, self._write_next)

    def _postpone(self, key: WorkloadKey, seconds: float) -> None:
        if key not in self._to_write and key not in self._later:
            self._later.add(key)
            asyncio.get_running_loop().call_later(seconds, self._take_up, key)

    def _take_up(self, key: WorkloadKey) -> None:
        self._later.discard(key)
        if self._find(key) is not None:
            self._to_write[key] = None
            self._dispatcher.submit(Lane.STATUS, self._write_next)

    async def _write_next(self) -> None:
        if self._to_write:
            key, _ = self._to_write.popitem(last=False)
            await self._alone(key, lambda: self._write(key))

    # What.

    async def _write(self, key: WorkloadKey) -> None:
        queued = self._find(key)
        if queued is None:
            return
        try:
            version = await self._see_to(queued.workload)
            self._refusals.forget(key)
            if version is None:
                self._postpone(key, LATER_SECONDS)  # until it is seen
            else:
                await self._write_words(queued.workload, version)
        except ApiError as error:
            if error.is_passing or error.code == 409:  # it is not what we know: by then we shall
                self._postpone(key, LATER_SECONDS)
                return
            if error.code != 404:
                _log.warning("Workload %s could not be written: %s", key, error.message)
            if not self._writer.uid_of(queued.workload):
                # Its kind may be on its way back, or a webhook may be: no job is left without a Workload.
                self._postpone(key, self._refusals.note(key, time.monotonic(), at_once=0))

    async def _see_to(self, workload: Workload) -> str | None:
        """Have a Workload in the world that asks for what its job does; its version, None if that is not known."""
        if not _is_made(workload):
            self._unseen_since.pop(workload.key, None)
            if not is_outdated(workload):
                return workload.metadata.resource_version
            found = await self._writer.respecify(workload)
        elif self._writer.uid_of(workload) and await self._is_there(workload):
            return None
        else:
            made = await self._writer.create(workload)
            if made is None:
                return None
            found = made
        self._wrote(workload.key, int(found.resource_version or 0))
        return found.resource_version

    async def _is_there(self, workload: Workload) -> bool:
        """Whether a Workload that was made exists, as far as that is not for the watch to show."""
        now = asyncio.get_running_loop().time()
        if now < self._unseen_since.setdefault(workload.key, now) + UNSEEN_SECONDS:
            return True
        del self._unseen_since[workload.key]
        if await self._writer.exists(workload):
            return True
        self._vanished(workload.key)
        return False

    async def _write_words(self, workload: Workload, version: str) -> None:
        key, status, condition_writer = workload.key, workload.status, self._conditions.get(workload.key)
        if status.admission is not None:
            if _is_made(workload):  # it ran before anybody wrote that it may
                new = [condition(type_, "True", type_, "It runs already") for type_ in (QUOTA_RESERVED, ADMITTED)]
                admission = {"admission": msgspec.to_builtins(status.admission)}
                self._wrote(key, await self._writer.write_status(workload, admission, new, version=version))
            elif condition_writer is not None:  # that it has lost it is yet to be seen
                self._postpone(key, LATER_SECONDS)
            return
        if condition_writer is None or _says(workload, condition_writer):
            return
        new = [condition(QUOTA_RESERVED, "False", condition_writer.reason, condition_writer.message)]
        self._wrote(key, await self._writer.write_status(workload, {}, new, version=version))
        self._written_at[key] = asyncio.get_running_loop().time()
        self._events.record(workload, self._writer.uid_of(workload), PENDING, condition_writer.message, warning=True)

    async def _finish(self, workload: Workload, reason: str, message: str) -> None:
        try:
            await self._writer.write_status(workload, {}, [condition(FINISHED, "True", reason, message)])
            self._events.record(workload, self._writer.uid_of(workload), FINISHED, message)
        except ApiError as error:
            if error.code != 404:
                _log.warning("Workload %s could not be said to be over: %s", workload.key, error.message)


def _is_made(workload: Workload) -> bool:
    """Whether a Workload is ours alone: nobody has seen it in the world."""
    return workload.metadata.uid.startswith(MADE_UID)


def _says(workload: Workload, condition_writer: Defer) -> bool:
    """Whether a Workload has these words already."""
    said = ("False", condition_writer.reason, condition_writer.message)
    found = [found for found in workload.status.conditions or () if found.type == QUOTA_RESERVED]
    return any((each.status, each.reason, each.message) == said for each in found)
