"""Events do not stay for ever: an hour after they were last seen they are removed, as on a cluster."""

from datetime import datetime

import msgspec

from mooring.kubeapi.controllers.controller import Controller, Key

KEPT_SECONDS, PERIOD_SECONDS = 3600.0, 60.0


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


class EventExpiry(Controller):
    """Removes old Events once a minute; the key is always the same."""

    name = "event-expiry"
    _all: Key = ("", "all events")

    def start(self) -> None:
        self.enqueue(self._all, after=PERIOD_SECONDS)

    def sync(self, key: Key) -> None:
        self.enqueue(key, after=PERIOD_SECONDS)
        store, oldest = self.api.store, self.now - KEPT_SECONDS
        for record in [each for each in store.records("events") if _last_seen(each.data) < oldest]:
            store.remove("events", record.namespace, record.name, record.decode())


def _last_seen(data: bytes) -> float:
    event = _decode(data)
    observed = event.series.last_observed_time if event.series is not None else None
    times = (event.metadata.creation_timestamp, event.last_timestamp, event.event_time, observed)
    return max((_seconds(time) for time in times if time), default=0.0)


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
