"""Events are aggregated as client-go does it: by object, reason and action, with limits."""

import asyncio
from typing import Any

import msgspec
import pytest

from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.pods import event_recorder
from mooring.drivers.live.pods.event_recorder import EventRecorder
from mooring.model.spam_filter import BURST, SECONDS_FOR_ONE, SpamFilter
from mooring.testing.builders import make_pod


class Server:
    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    async def request(self, method: str, path: str, body: bytes, content_type: str) -> bytes:
        found = msgspec.json.decode(body)
        self.sent.append((method, found["series"]["count"] if method == "PATCH" else (found["reason"], found["note"])))
        return b"{}"


def test_a_note_that_changes_makes_no_new_event() -> None:
    server: Any = Server()

    async def play() -> None:
        dispatcher = Dispatcher()
        recorder = EventRecorder(server, dispatcher)
        for note in ("0/3 nodes", "0/4 nodes", "0/5 nodes", "0/6 nodes"):
            recorder.record(make_pod("p"), "FailedScheduling", "Scheduling", note, scheduler="s", warning=True)
            assert await dispatcher.drain(5)
        recorder.record(make_pod("q"), "FailedScheduling", "Scheduling", "0/6 nodes", scheduler="s", warning=True)
        assert await dispatcher.drain(5)

    asyncio.run(play())
    first, other = ("FailedScheduling", "0/3 nodes"), ("FailedScheduling", "0/6 nodes")
    assert server.sent == [("POST", first), ("PATCH", 2), ("POST", other)]


def test_the_count_of_a_long_series_is_written_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    server: Any = Server()
    monkeypatch.setattr(event_recorder, "SERIES_SECONDS", 0.0)

    async def play() -> None:
        dispatcher = Dispatcher()
        recorder = EventRecorder(server, dispatcher)
        for _ in range(4):
            recorder.record(make_pod("p"), "FailedScheduling", "Scheduling", "no", scheduler="s", warning=True)
            assert await dispatcher.drain(5)

    asyncio.run(play())
    assert [found for method, found in server.sent if method == "PATCH"] == [2, 3, 4]


def test_an_object_gets_25_events_at_once_and_one_more_in_five_minutes() -> None:
    found = SpamFilter()
    assert [found.allows("a", 0.0) for _ in range(BURST + 1)] == [True] * BURST + [False]
    assert found.allows("b", 0.0)
    assert not found.allows("a", SECONDS_FOR_ONE - 1.0)
    assert found.allows("a", SECONDS_FOR_ONE)
    assert not found.allows("a", SECONDS_FOR_ONE)
