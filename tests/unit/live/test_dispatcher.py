"""Requests in flight: in the order of their lanes, and as many as the server bears."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mooring.drivers.live.api import dispatcher as dispatcher_module
from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.dispatcher import FEWEST, PATIENT_PART, PAUSE_SECONDS, START, Dispatcher, Lane


def run(story: Callable[[Dispatcher], Awaitable[None]]) -> None:
    async def play() -> None:
        await story(Dispatcher())

    asyncio.run(play())


def test_binds_go_first_and_events_last() -> None:
    async def story(dispatcher: Dispatcher) -> None:
        dispatcher.limit = 1.0
        done: list[str] = []

        def work(name: str) -> Callable[[], Awaitable[None]]:
            async def send() -> None:
                await asyncio.sleep(0)
                done.append(name)

            return send

        for lane in (Lane.EVENT, Lane.STATUS, Lane.EVENT, Lane.BIND, Lane.EVICT, Lane.BIND):
            dispatcher.submit(lane, work(lane.name))
        assert await dispatcher.drain(5)
        # The first was on its way when the others came.
        assert done == ["EVENT", "BIND", "BIND", "EVICT", "STATUS", "EVENT"]

    run(story)


def test_the_limit_falls_with_failures_and_rises_with_answers() -> None:
    async def story(dispatcher: Dispatcher) -> None:
        dispatcher.note(500, 0.01)
        assert dispatcher.limit == START / 2
        dispatcher.note(500, 0.01)  # of the same round
        assert dispatcher.limit == START / 2
        dispatcher.in_flight = int(dispatcher.limit)
        for _ in range(4 * START):
            dispatcher.note(200, 0.01)
            dispatcher.in_flight = int(dispatcher.limit)
        assert dispatcher.limit > START / 2 + 1

    run(story)


def test_a_server_that_asks_for_patience_gets_it() -> None:
    async def story(dispatcher: Dispatcher) -> None:
        loop = asyncio.get_running_loop()
        dispatcher.pause(ApiError(429, "TooManyRequests", "slow down", retry_after=0.2))
        assert dispatcher.limit == START / 2
        began, sent = loop.time(), list[float]()

        async def send() -> None:
            sent.append(loop.time() - began)

        dispatcher.submit(Lane.BIND, send)
        assert await dispatcher.drain(5)
        assert sent[0] >= 0.15

    run(story)


def test_there_are_always_a_few() -> None:
    async def story(dispatcher: Dispatcher) -> None:
        for _ in range(10):
            dispatcher._shrunk_at = 0.0
            dispatcher.note(0, 1.0)
        assert dispatcher.limit == FEWEST

    run(story)


def test_events_wait_until_binds_pause() -> None:
    async def story(dispatcher: Dispatcher) -> None:
        loop = asyncio.get_running_loop()
        sent: list[tuple[str, float]] = []

        def work(name: str, seconds: float = 0.0) -> Callable[[], Awaitable[None]]:
            async def send() -> None:
                sent.append((name, loop.time()))
                await asyncio.sleep(seconds)

            return send

        dispatcher.submit(Lane.BIND, work("bind", 0.05))
        dispatcher.submit(Lane.EVENT, work("event"))
        dispatcher.submit(Lane.STATUS, work("status"))
        await asyncio.sleep(0.1)
        dispatcher.submit(Lane.BIND, work("bind"))
        assert await dispatcher.drain(5)
        assert [name for name, _ in sent] == ["bind", "status", "bind", "event"]
        assert sent[3][1] - sent[2][1] >= PAUSE_SECONDS

    run(story)


def test_events_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher_module, "PATIENCE_SECONDS", 0.3)

    async def story(dispatcher: Dispatcher) -> None:
        dispatcher.limit = 8.0
        done: list[Lane] = []
        most = 0

        def work(lane: Lane) -> Callable[[], Awaitable[None]]:
            async def send() -> None:
                nonlocal most
                most = max(most, dispatcher._flying[Lane.EVENT])
                await asyncio.sleep(0.02)
                done.append(lane)

            return send

        dispatcher.submit(Lane.BIND, work(Lane.BIND))
        for _ in range(40):
            dispatcher.submit(Lane.EVENT, work(Lane.EVENT))
        async with asyncio.timeout(60):
            while Lane.EVENT not in done:  # binds never pause
                dispatcher.submit(Lane.BIND, work(Lane.BIND))
                await asyncio.sleep(0.005)
        assert done.count(Lane.EVENT) < 40
        assert most <= 8 * PATIENT_PART
        assert await dispatcher.drain(5)
        assert done.count(Lane.EVENT) == 40

    run(story)


def test_who_waits_for_something_else_takes_no_place() -> None:
    async def story(dispatcher: Dispatcher) -> None:
        dispatcher.limit = 1.0
        go_on, done = asyncio.Event(), list[str]()

        async def wait() -> None:
            async with dispatcher.aside():
                await go_on.wait()
            done.append("waited")

        async def send() -> None:
            done.append("sent")
            go_on.set()

        dispatcher.submit(Lane.EVICT, wait)
        dispatcher.submit(Lane.EVICT, send)
        assert await dispatcher.drain(5)
        assert done == ["sent", "waited"]
        assert dispatcher.in_flight == 0

    run(story)


def test_binds_do_not_pause_while_more_are_about_to_come() -> None:
    async def story(dispatcher: Dispatcher) -> None:
        sent: list[str] = []

        async def send() -> None:
            sent.append("event")

        dispatcher.expects_binds = lambda: True
        dispatcher.submit(Lane.EVENT, send)
        await asyncio.sleep(2 * PAUSE_SECONDS)
        assert sent == []
        dispatcher.expects_binds = lambda: False
        assert await dispatcher.drain(5)
        assert sent == ["event"]

    run(story)
