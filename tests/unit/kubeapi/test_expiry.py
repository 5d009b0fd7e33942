"""Events stay an hour after they were last seen."""

from mooring.kubeapi.expiry import Expiry
from mooring.kubeapi.store.store import Store


def test_events_go_an_hour_after_they_were_last_seen() -> None:
    store = Store()
    eight = {"metadata": {"creationTimestamp": "2027-01-15T08:00:00Z"}}
    store.put("events", "default", "old", {**eight})
    store.put("events", "default", "seen-again", {**eight, "lastTimestamp": "2027-01-15T09:00:00Z"})
    series = {"series": {"lastObservedTime": "2027-01-15T09:00:00.000000Z"}}
    store.put("events", "default", "in-a-series", {**eight, **series})

    gone = Expiry(store).expire(1_800_000_000.0 + 3_601)

    assert gone == 1
    assert [record.name for record in store.records("events")] == ["in-a-series", "seen-again"]
