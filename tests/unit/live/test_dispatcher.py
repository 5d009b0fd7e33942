"""Requests in flight: in the order of their lanes, and as many as the server bears."""

import asyncio
from collections.abc import Awaitable, Callable

from mooring.drivers.live.client import ApiError
from mooring.drivers.live.dispatcher import FEWEST, START, Dispatcher, Lane


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
