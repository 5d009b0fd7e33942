"""Events stay an hour after they were last seen."""

from worlds import START, World

from mooring.kubeapi.controllers.event_expiry import EventExpiry


def test_events_go_an_hour_after_they_were_last_seen() -> None:
    world = World(EventExpiry)
    assert START == 1_800_000_000.0
    store = world.api.store
    eight = {"metadata": {"creationTimestamp": "2027-01-15T08:00:00Z"}}
    store.put("events", "default", "old", {**eight})
    store.put("events", "default", "seen-again", {**eight, "lastTimestamp": "2027-01-15T09:00:00Z"})
    series = {"series": {"lastObservedTime": "2027-01-15T09:00:00.000000Z"}}
    store.put("events", "default", "in-a-series", {**eight, **series})
    store.put("events", "default", "odd", {**eight, "lastTimestamp": "0001-01-01T00:00:00Z"})

    world.run(3_700)

    assert [record.name for record in store.records("events")] == ["in-a-series", "seen-again"]
