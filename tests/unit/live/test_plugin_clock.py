"""Plugins are timed in one cycle of ten, and left alone in the others."""

from collections.abc import Iterator

import pytest

from mooring.assembly import assemble
from mooring.drivers.live.plugin_clock import EVERY, PluginClock, Timed
from mooring.engine.cycle import Scheduler
from mooring.model.events import PodSeen
from mooring.testing.builders import make_node, make_pod, make_scheduler


def ticks() -> Iterator[float]:
    at = 0.0
    while True:
        yield at
        at += 1.0


def timed_cycle(clock: PluginClock, scheduler: Scheduler, now: float) -> dict[Timed, float]:
    clock.begin(scheduler.profiles.values())
    scheduler.cycle(now)
    return clock.end()


def test_the_plugins_of_a_cycle_are_timed_by_extension_point() -> None:
    scheduler = make_scheduler(nodes=[make_node("a"), make_node("b")])
    clock = PluginClock(ticks().__next__)
    scheduler.handle(PodSeen(make_pod("p", cpu=1)))

    seconds = timed_cycle(clock, scheduler, 1.0)

    profile = "default-scheduler"
    assert seconds[Timed(profile, "NodeResourcesFit", "Filter", "Success")] >= 1.0
    assert seconds[Timed(profile, "TaintToleration", "Score", "Success")] >= 1.0
    assert {timed.status for timed in seconds} == {"Success"}


def test_one_cycle_in_ten_is_timed_and_plugins_are_as_before_in_the_others() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    clock = PluginClock()
    timed = []
    for cycle in range(2 * EVERY):
        scheduler.handle(PodSeen(make_pod(f"p{cycle}", cpu=1 + cycle % 3)))
        timed.append(bool(timed_cycle(clock, scheduler, float(cycle))))
        plugins = [plugin for profile in scheduler.profiles.values() for plugin in profile.plugins]
        assert not any("filter" in vars(plugin) or "score" in vars(plugin) for plugin in plugins)

    assert timed == ([True] + [False] * (EVERY - 1)) * 2


def test_a_plugin_that_raises_is_counted_as_an_error() -> None:
    profile = assemble(None).default_profile
    plugin = next(found for found in profile.plugins if found.name == "SchedulingGates")
    clock = PluginClock()
    clock.begin([profile])

    with pytest.raises(AttributeError):
        plugin.pre_enqueue(None)  # type: ignore[attr-defined]

    assert [timed.status for timed in clock.end()] == ["Error"]
