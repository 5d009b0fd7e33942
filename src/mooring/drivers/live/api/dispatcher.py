"""Requests in flight: what is more urgent goes first, and no more at once than the API server bears.

Events wait until binds pause: one that is sent while pods are still being decided on takes the API server's time from
their binds. They do not wait for ever.

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

from mooring.drivers.live.api.client import ApiError

FEWEST, MOST = 4, 256
START = 64
LATEST_PART = 0.05
"""How much one answer counts in the average of late."""
SLOW = 3.0
"""Answers that take so many times as long as the best of late are too many at once..."""
SLOW_SECONDS = 0.4
"""...if they also take as long as that: an idle server answers in two milliseconds, and five do no harm."""
PAUSE_SECONDS = 0.2
"""Binds pause when none was sent, or was under way, for so long."""
PATIENCE_SECONDS = 10.0
"""How long events wait for such a pause. Then they go along with binds, with a part of the places in flight."""
PATIENT_PART = 0.25
_log = logging.getLogger(__name__)


class Lane(enum.IntEnum):
    """How urgent a request is; each waits for all before it."""

    BIND = 0
    EVICT = 1
    STATUS = 2
    EVENT = 3


Work = Callable[[], Awaitable[None] | None]
"""Begins something, and returns what is to be awaited until it is done; None if it tells by itself, by `done`, or goes
on in its place by `go_on`: a task costs more than all else about a request that simply succeeds."""


class Dispatcher:
    """Starts work in the order of its lanes, as many at once as the limit allows."""

    def __init__(self, on_room: Callable[[], None] = lambda: None) -> None:
        """`on_room` is called when the lane of binds has become empty."""
        self.limit = float(START)
        self.ceiling = float(MOST)
        self.in_flight = self._aside = 0
        self.on_room = on_room
        self.expects_binds: Callable[[], bool] = lambda: False
        """Whether more binds are about to be submitted: then they do not pause."""
        self._lanes: tuple[deque[Work], ...] = tuple(deque() for _ in Lane)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None  # looking it up asks the system who we are, each time
        self._best = 0.0
        self.latency = 0.0
        """Seconds that answers took of late, on average."""
        self._paused_until = 0.0
        self._shrunk_at = 0.0
        self._flying = [0 for _ in Lane]
        self._bound_at = self._events_since = float("-inf")
        """When the last bind was done, and since when events have been waiting."""
        self._looks_again: asyncio.TimerHandle | None = None

    def submit(self, lane: Lane, work: Work) -> None:
        if lane is Lane.EVENT and not self._lanes[lane]:
            self._events_since = time.monotonic()
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
        loop = self._loop = self._loop or asyncio.get_running_loop()
        while self.in_flight < int(self.limit):
            lane = self._next()
            if lane is None:
                return
            work = self._lanes[lane].popleft()
            if lane is Lane.BIND and not self._lanes[lane]:
                self.on_room()
            self.in_flight += 1
            self._flying[lane] += 1
            loop.call_soon(self._begin, lane, work)

    def _begin(self, lane: Lane, work: Work) -> None:
        if self._paused_until:
            pause = self._paused_until - time.monotonic()
            if pause > 0:
                assert self._loop is not None
                self._loop.call_later(pause, self._begin, lane, work)
                return
            self._paused_until = 0.0
        try:
            awaited = work()
        except Exception:
            _log.exception("a request could not be dealt with")
            self.done(lane)
            return
        if awaited is not None:
            self.go_on(lane, awaited)

    def _next(self) -> Lane | None:
        """The lane whose turn it is."""
        for lane in (Lane.BIND, Lane.EVICT, Lane.STATUS):
            if self._lanes[lane]:
                return lane
        return Lane.EVENT if self._lanes[Lane.EVENT] and self._may_send_event() else None

    def _may_send_event(self) -> bool:
        now = time.monotonic()
        if self._flying[Lane.BIND] or self.expects_binds():
            self._bound_at = now
        elif now >= self._bound_at + PAUSE_SECONDS:
            return True
        if now >= self._events_since + PATIENCE_SECONDS and self._flying[Lane.EVENT] < self.limit * PATIENT_PART:
            return True
        if self._looks_again is None:
            self._looks_again = asyncio.get_running_loop().call_later(PAUSE_SECONDS / 2, self._look_again)
        return False

    def _look_again(self) -> None:
        self._looks_again = None
        self._pump()

    async def _run(self, lane: Lane, awaited: Awaitable[None]) -> None:
        try:
            await awaited
        except Exception:
            _log.exception("a request could not be dealt with")
        finally:
            self.done(lane)

    def go_on(self, lane: Lane, awaited: Awaitable[None]) -> None:
        """Work that has begun goes on in a task, and is done when that is."""
        assert self._loop is not None
        task = self._loop.create_task(self._run(lane, awaited))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def done(self, lane: Lane) -> None:
        """Work is done: somebody else may have its place."""
        self.in_flight -= 1
        self._flying[lane] -= 1
        if lane is Lane.BIND:
            self._bound_at = time.monotonic()
        self._pump()

    # What the answers say.

    def note(self, code: int, seconds: float) -> None:
        """An answer came, after so many seconds."""
        if code == 0 or code >= 500:
            self._shrink(0.5)
            return
        self.latency += LATEST_PART * (seconds - self.latency)
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
