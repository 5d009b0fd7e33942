"""How much a scheduler decides on at a time: less where binds conflict with those of others, or cycles take long."""

import asyncio
import logging
from typing import Any

import pytest

from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.measuring import Measuring
from mooring.drivers.live.pacing import FIRST_SLICE, LONGEST_PAUSE, MUCH, SHORTEST_PAUSE, SLICE, SMALLEST_SLICE, Pacing
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.testing.builders import make_scheduler


def play(outcomes: list[bool]) -> tuple[Live, int]:
    """A driver of whose binds these were conflicts, and how many pods it decides on at a time."""
    nobody: Any = None

    async def take() -> tuple[Live, int]:
        live = Live(make_scheduler(), ObjectCache(), nobody, Dispatcher())
        for _ in range(10):
            live.pacing.note_cycle(0.01, SLICE)
        for is_conflict in outcomes:
            live.pacing.note_bind(is_conflict)
        return live, live._room()

    return asyncio.run(take())


def test_a_tenth_of_conflicts_is_nothing_to_speak_of(caplog: pytest.LogCaptureFixture) -> None:
    live, room = play([number % 10 == 9 for number in range(200)])
    assert (live.pacing.conflict_rate, room, caplog.messages) == (0.1, SLICE, [])


def test_more_than_a_tenth_is_warned_of_and_halves_what_is_decided_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    _, room = play([False] * 44 + [True] * 6)
    assert room == SLICE // 2
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (
            logging.WARNING,
            f"12 % of the latest binds were conflicts with other schedulers: deciding on {SLICE // 2} pods at a time",
        )
    ]


def test_however_many_conflict_some_pods_are_decided_on() -> None:
    _, room = play([True] * 1000)
    assert room == SMALLEST_SLICE


def test_without_conflicts_more_is_decided_at_a_time_again() -> None:
    _, room = play([False] * 44 + [True] * 6 + [False] * 200)
    assert room == SLICE


def test_where_cycles_take_long_less_is_decided_in_each() -> None:
    pacing = Pacing()
    assert pacing.slice == FIRST_SLICE
    pacing.note_cycle(2.0, 400)  # 5 ms for each
    assert pacing.slice == 20
    pacing.note_cycle(3.0, 1)  # one that nothing makes shorter
    assert pacing.slice == SMALLEST_SLICE
    for _ in range(10):
        pacing.note_cycle(0.01, 16)
    assert pacing.slice == SLICE


def test_whoever_comes_next_waits_for_a_slow_server_only_while_that_has_much_to_do() -> None:
    pacing = Pacing()
    assert pacing.pause(0.001, 0.04, MUCH - 1) == SHORTEST_PAUSE
    assert pacing.pause(0.001, 0.04, MUCH) == 0.02
    assert pacing.pause(0.001, 1.0, MUCH) == LONGEST_PAUSE
    assert pacing.pause(0.3, 1.0, 0) == 0.15, "requests and watches have their turn in any case"


def test_lists_at_the_start_do_not_count_as_a_server_that_is_slow_to_bind() -> None:
    dispatcher = Dispatcher()
    measuring, before = Measuring(dispatcher), dispatcher.limit
    for _ in range(50):
        measuring.answered("GET", 200, 2.0)
    assert (dispatcher.latency, dispatcher.limit) == (0.0, before)
    measuring.answered("POST", 201, 0.02)
    assert 0.0 < dispatcher.latency < 0.02
    measuring.answered("GET", 503, 0.1)
    assert dispatcher.limit == before / 2, "a server that is not well is left in peace, whatever was asked"
