"""Requests in flight: what is more urgent goes first, and no more at once than the API server bears.

The limit follows the server: it grows by one for each full round of answers while they come as fast as the best of
late, and shrinks when the server asks for patience (429), fails, or answers ever more slowly.
"""

import asyncio
import contextlib
import enum
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from mooring.drivers.live.client import ApiError

FEWEST, MOST = 4, 256
START = 48
SLOW = 3.0
"""Answers that take so many times as long as the best of late are too many at once..."""
SLOW_SECONDS = 0.4
"""...if they also take as long as that: an idle server answers in two milliseconds, and five do no harm."""
_log = logging.getLogger(__name__)


class Lane(enum.IntEnum):
    """How urgent a request is; each waits for all before it."""

    BIND = 0
    EVICT = 1
    STATUS = 2
    EVENT = 3


Work = Callable[[], Awaitable[None]]


class Dispatcher:
    """Starts work in the order of its lanes, as many at once as the limit allows."""

    def __init__(self, on_room: Callable[[], None] = lambda: None) -> None:
        """`on_room` is called when the lane of binds has become empty."""
        self.limit = float(START)
        self.ceiling = float(MOST)
        self.in_flight = self._aside = 0
        self.on_room = on_room
        self._lanes: tuple[deque[Work], ...] = tuple(deque() for _ in Lane)
        self._tasks: set[asyncio.Task[None]] = set()
        self._best = 0.0
        self._paused_until = 0.0
        self._shrunk_at = 0.0

    def submit(self, lane: Lane, work: Work) -> None:
        self._lanes[lane].append(work)
        self._pump()

    @contextlib.asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Work that waits for something else than an answer lets others have its place: it may be for long."""
        self.in_flight -= 1
        self._aside += 1
        self._pump()
        try:
            yield
        finally:
            self._aside -= 1
            self.in_flight += 1

    def backlog(self, lane: Lane) -> int:
        return len(self._lanes[lane])

    def __len__(self) -> int:
        return self.in_flight + self._aside + sum(map(len, self._lanes))

    async def drain(self, seconds: float) -> bool:
        """Wait until everything is done, at most so long."""
        deadline = time.monotonic() + seconds
        while len(self) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        return not len(self)

    def _pump(self) -> None:
        while self.in_flight < int(self.limit):
            work = self._next()
            if work is None:
                return
            self.in_flight += 1
            task = asyncio.ensure_future(self._run(work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next(self) -> Work | None:
        for number, lane in enumerate(self._lanes):
            if lane:
                work = lane.popleft()
                if number == Lane.BIND and not lane:
                    self.on_room()
                return work
        return None

    async def _run(self, work: Work) -> None:
        pause = self._paused_until - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)
        try:
            await work()
        except Exception:
            _log.exception("a request could not be dealt with")
        finally:
            self.in_flight -= 1
            self._pump()

    # What the answers say.

    def note(self, code: int, seconds: float) -> None:
        """An answer came, after so many seconds."""
        if code == 0 or code >= 500:
            self._shrink(0.5)
            return
        best = self._best
        self._best = seconds if not best else min(seconds, best) if seconds < best else best + 0.001 * (seconds - best)
        if seconds > SLOW_SECONDS and seconds > SLOW * self._best:
            self._shrink(0.9)
        elif self.in_flight >= int(self.limit) - 1:
            self.limit = min(self.limit + 1.0 / self.limit, self.ceiling)

    def pause(self, error: ApiError) -> None:
        """The server asked for patience: nothing new until then."""
        self._shrink(0.5)
        self._paused_until = max(self._paused_until, time.monotonic() + min(error.retry_after or 1.0, 30.0))

    def _shrink(self, factor: float) -> None:
        now = time.monotonic()
        if now - self._shrunk_at > 0.5:  # once for all that were in flight together
            self._shrunk_at = now
            self.limit = max(FEWEST, self.limit * factor)
