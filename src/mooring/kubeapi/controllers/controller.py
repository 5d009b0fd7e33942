"""What a controller is: keys come in from changes and from the clock, and `sync` brings one of them into order.

All controllers share one runner and its queue. In a process with an event loop it works in short turns, so that
requests are answered in between; a test lets it run until nothing is left to do. A key is in the queue once, however
often it is added; one whose `sync` failed comes back later and later.
"""

import asyncio
import heapq
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from mooring.kubeapi.controllers.informers import Informer, controller_of, namespace_of
from mooring.kubeapi.status import ApiError

if TYPE_CHECKING:
    from mooring.kubeapi.controllers.context import Context

log = logging.getLogger(__name__)
Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""

TURN_SECONDS = 0.005
"""How long the runner works before it lets others have the loop."""
LONGEST_REST_SECONDS = 0.25
"""How long the loop is left to requests after a turn that took longer: each needs the loop several times."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.005, 60.0


class Controller:
    """Brings objects of one kind into order, one key at a time."""

    name: ClassVar[str]
    goes_first: ClassVar[bool] = False
    """Whether its keys come before those of other controllers: requests wait for what it makes."""

    def __init__(self, context: "Context") -> None:
        self.context = context
        self.api = context.api
        self.informers = context.informers

    def start(self) -> None:
        """Follow what concerns this controller, and take up what is there."""
        raise NotImplementedError

    def sync(self, key: Key) -> None:
        """Bring one key into order; whatever is raised puts it back."""
        raise NotImplementedError

    def enqueue(self, key: Key, after: float = 0.0) -> None:
        self.context.runner.add(self, key, after)

    def try_again(self, key: Key) -> None:
        """Come back later, and later each time until a look at the key succeeds without this."""
        self.context.runner.retry(self, key)

    def follow(self, resource: str) -> Informer[Object]:
        """Bring each object of a resource into order now and whenever it changes; returns their informer."""
        informer = self.informers.of(resource)
        informer.on_change(self._object_changed)
        return informer

    def _object_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.enqueue((new["metadata"].get("namespace", ""), new["metadata"]["name"]))

    def follow_controlled(self, informer: Informer[Any], kind: str, api_group: str = "") -> None:
        """Bring a controller of a kind into order whenever something changes that it controls, or did."""

        def changed(old: Any, new: Any) -> None:
            for found in (old, new):
                owner = controller_of(found) if found is not None else None
                if owner is not None and owner["kind"] == kind and owner["apiVersion"].startswith(api_group):
                    self.enqueue((namespace_of(found), owner["name"]))

        informer.on_change(changed)

    @property
    def now(self) -> float:
        return self.context.now()


class Runner:
    """Works off the keys of all controllers, urgent ones first, then first come first served; none before its time."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ready: deque[tuple[Controller, Key]] = deque()
        self._queued: set[tuple[str, Key]] = set()
        self._timers: list[tuple[float, int, Controller, Key]] = []
        self._due: dict[tuple[str, Key], float] = {}
        self._numbers = itertools.count()
        self._failures: dict[tuple[str, Key], int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.Handle | None = None
        self._rests_until = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self.is_stopped = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on work by itself, in this loop."""
        self._loop = loop
        self._wake()

    def stop(self) -> None:
        self.is_stopped = True
        for handle in (self._turn, self._alarm):
            if handle is not None:
                handle.cancel()

    def add(self, controller: Controller, key: Key, after: float = 0.0) -> None:
        mark = controller.name, key
        if after <= 0:
            if mark not in self._queued:
                self._queued.add(mark)
                (self._ready.appendleft if controller.goes_first else self._ready.append)((controller, key))
                self._wake()
            return
        at = self._now() + after
        if self._due.get(mark, at + 1) <= at:
            return
        self._due[mark] = at
        heapq.heappush(self._timers, (at, next(self._numbers), controller, key))
        self._set_alarm()

    def next_at(self) -> float | None:
        """When the next timer rings, if nothing is to be done at once."""
        return self._timers[0][0] if self._timers else None

    def run_until_idle(self, most: int = 1_000_000) -> None:
        """Work until nothing is left to do now; for tests, and for the start."""
        for _ in range(most):
            self._ring()
            if not self._ready:
                return
            self._work_off_one()

    def _ring(self) -> None:
        now = self._now()
        while self._timers and self._timers[0][0] <= now:
            at, _, controller, key = heapq.heappop(self._timers)
            mark = controller.name, key
            if self._due.get(mark) == at:
                del self._due[mark]
                self.add(controller, key)

    def _work_off_one(self) -> None:
        controller, key = self._ready.popleft()
        mark = controller.name, key
        self._queued.discard(mark)
        failures = self._failures.get(mark, 0)
        try:
            controller.sync(key)
        except ApiError as error:
            log.debug("%s %s: %s", controller.name, key, error)
            self.retry(controller, key)
        except Exception:
            log.exception("%s failed on %s", controller.name, key)
            self.retry(controller, key)
        if self._failures.get(mark, 0) == failures:
            self._failures.pop(mark, None)

    def retry(self, controller: Controller, key: Key) -> None:
        """Put a key back that could not be brought into order, to be looked at later each time."""
        mark = controller.name, key
        failures = self._failures[mark] = self._failures.get(mark, 0) + 1
        self.add(controller, key, min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(failures, 20)))

    def _wake(self) -> None:
        if self._loop is not None and self._turn is None and self._ready and not self.is_stopped:
            rest = self._rests_until - time.monotonic()
            if rest > 0:
                self._turn = self._loop.call_later(rest, self._take_turn)
            else:
                self._turn = self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        start = time.monotonic()
        self._ring()
        while self._ready and time.monotonic() < start + TURN_SECONDS:
            self._work_off_one()
        end = time.monotonic()
        if end - start > 2 * TURN_SECONDS:  # one key may take long, as an object with very many pods does
            self._rests_until = end + min((end - start) / 2, LONGEST_REST_SECONDS)
        self._turn = None
        self._wake()
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._loop is None or not self._timers or self.is_stopped:
            return
        at = self._timers[0][0]
        if self._alarm is not None:
            if self._alarm_at <= at:
                return
            self._alarm.cancel()
        self._alarm_at = at
        # Never at once: a loop may give another kind of handle for that.
        self._alarm = self._loop.call_later(max(0.001, at - self._now()), self._sound)

    def _sound(self) -> None:
        self._alarm = None
        self._ring()
        self._wake()
        self._set_alarm()
