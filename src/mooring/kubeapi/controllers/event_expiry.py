"""Events are kept for an hour."""

import msgspec

from mooring.kubeapi.controllers.controller import Controller, Key
from mooring.kubeapi.controllers.informers import View
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds

KEPT_SECONDS, PERIOD_SECONDS = 3600.0, 60.0
_decode = msgspec.json.Decoder(View).decode


class EventExpiry(Controller):
    """Removes old Events now and then; the key is always the same."""

    name = "event-expiry"
    _all: Key = ("", "all events")

    def start(self) -> None:
        self._table = self.api.registry.find("events").storage
        self._first_seen: dict[tuple[str, str, int], float] = {}
        self.enqueue(self._all, after=PERIOD_SECONDS)

    def sync(self, key: Key) -> None:
        self.enqueue(key, after=PERIOD_SECONDS)
        seen: dict[tuple[str, str, int], float] = {}
        for record in list(self.api.store.records(self._table)):
            # One that is written again, because it happened again, begins anew.
            mark = (*record.key, record.revision)
            since = self._first_seen.get(mark) or self._written_at(record.data)
            if since + KEPT_SECONDS > self.now:
                seen[mark] = since
                continue
            try:
                self.api.delete("events", *record.key)
            except ApiError as error:
                if error.code != 404:
                    raise
        self._first_seen = seen

    def _written_at(self, data: bytes) -> float:
        created = timestamp_seconds(_decode(data).metadata.creation_timestamp) or self.now
        # It was written since the last look, or is from before our time.
        return max(created, self.now - PERIOD_SECONDS)
