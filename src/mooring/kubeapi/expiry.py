"""Events do not stay for ever: an hour after they were last seen they are gone, as on a cluster."""

import asyncio
from collections.abc import Callable
from datetime import datetime

import msgspec

from mooring.kubeapi.store.store import Store

Clock = Callable[[], float]
STAY_SECONDS = 3600.0
LOOK_EVERY_SECONDS = 60.0


class _About(msgspec.Struct, rename="camel"):
    creation_timestamp: str = ""


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class _Event(msgspec.Struct, rename="camel"):
    metadata: _About
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None


_decode = msgspec.json.Decoder(_Event).decode


class Expiry:
    """Looks after the events of a store once a minute."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next: asyncio.TimerHandle | None = None

    def attach(self, loop: asyncio.AbstractEventLoop, now: Clock) -> None:
        self._next = loop.call_later(LOOK_EVERY_SECONDS, self._look, loop, now)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop, now: Clock) -> None:
        self.expire(now())
        self.attach(loop, now)

    def expire(self, now: float) -> int:
        """Remove what is older than an hour; returns how many."""
        old = [record for record in self._store.records("events") if _last_seen(record.data) < now - STAY_SECONDS]
        for record in old:
            self._store.remove("events", record.namespace, record.name, record.decode())
        return len(old)


def _last_seen(data: bytes) -> float:
    event = _decode(data)
    observed = event.series.last_observed_time if event.series is not None else None
    times = (event.metadata.creation_timestamp, event.last_timestamp, event.event_time, observed)
    return max((_seconds(time) for time in times if time), default=0.0)


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
