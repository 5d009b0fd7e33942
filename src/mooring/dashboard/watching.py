"""Keeps the latest picture, renews it while pages are open, and tells them that there is a new one."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from mooring.dashboard.picture import Picture, Source
from mooring.errors import MooringError

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 15.0
"""A line is sent so often to pages that wait, so that a proxy between does not take the connection for dead."""
REST = 4
"""The pause after a picture is at least so many times as long as taking it: a large cluster is read less often."""


class Watching:
    """The pictures of one source. `latest` is what pages draw; `fault` says why it could not be renewed.

    Manifests stand still. A cluster is read again and again only while a page is open.
    """

    def __init__(self, source: Source, first: Picture, every_seconds: float) -> None:
        self._source, self._every = source, every_seconds
        self.latest = first
        self.fault = ""
        self._open_pages = 0
        self._changed, self._opened = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_renewed(self) -> bool:
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
        pause = 0.0  # what was read before the first page was opened may be old
        while True:
            await self._opened.wait()
            await asyncio.sleep(pause)
            start = time.monotonic()
            try:
                self.latest = await asyncio.to_thread(self._source.take)
                self.fault = ""
            except (MooringError, OSError) as error:
                if str(error) != self.fault:
                    log.warning("the cluster cannot be read: %s", error)
                self.fault = str(error)
            pause = max(self._every, REST * (time.monotonic() - start))
            self._changed.set()
            self._changed = asyncio.Event()

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events for one open page: the number of each picture from now on."""
        self._open_pages += 1
        self._opened.set()
        try:
            yield f"event: hello\ndata: {self.latest.number}\n\n"
            while True:
                try:
                    await asyncio.wait_for(self._changed.wait(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                yield f"event: picture\ndata: {self.latest.number}\n\n"
        finally:
            self._open_pages -= 1
            if not self._open_pages:
                self._opened.clear()
