"""Keeps the latest picture, takes a new one now and then, and tells the open pages that there is one."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from mooring.dashboard.picture import Picture, Source
from mooring.errors import MooringError

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15.0
"""A line is sent so often to pages that wait, so that a proxy between does not take the connection for dead."""


class Watching:
    """The pictures of one source. `latest` is what pages draw; `fault` says why it could not be renewed."""

    def __init__(self, source: Source, first: Picture, every_seconds: float) -> None:
        self._source, self._every = source, every_seconds
        self.latest = first
        self.fault = ""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_renewed(self) -> bool:
        """Manifests stand still; a cluster is read again and again."""
        return self._source.is_a_cluster

    def start(self) -> None:
        if self.is_renewed and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._renew())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                self.latest = await asyncio.to_thread(self._source.take)
                self.fault = ""
            except (MooringError, OSError) as error:
                if str(error) != self.fault:
                    log.warning("the cluster cannot be read: %s", error)
                self.fault = str(error)
            self._changed.set()
            self._changed = asyncio.Event()

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events: the number of each picture from now on."""
        yield f"event: hello\ndata: {self.latest.number}\n\n"
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), KEEP_ALIVE_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            yield f"event: picture\ndata: {self.latest.number}\n\n"
