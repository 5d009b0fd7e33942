"""How long plugins take at each extension point: one cycle in ten is timed, as kube-scheduler times one pod in ten.

Cycles in which no plugin is asked do not count. In a cycle that is timed, the methods of plugins are timed where they
are called; in the others nothing is in their way.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mooring.engine.plugin import Plugin
from mooring.engine.profile import Profile

EVERY = 10
"""One cycle in so many is timed."""
SUCCESS, ERROR = "Success", "Error"
POINTS = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "passes": "Filter",
    "filter_without": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "permit": "Permit",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
"""kube-scheduler's names of extension points, by our methods."""


class Timed(NamedTuple):
    """A plugin of a profile at an extension point, and whether it raised."""

    profile: str
    plugin: str
    point: str
    status: str


class PluginClock:
    """Times the plugins of some profiles."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._left_out = 0
        """So many cycles are not timed yet."""
        self._timing: list[Plugin] = []
        self._is_inside = False
        """A plugin that calls itself is timed once."""
        self._seconds: dict[Timed, float] = {}

    def begin(self, profiles: Iterable[Profile]) -> None:
        """A cycle begins: time its plugins if it is its turn."""
        if self._left_out:
            self._left_out -= 1
            return
        if self._timing:  # the cycle before did not come to its end
            return
        for profile in profiles:
            for plugin in profile.plugins:
                self._timing.append(plugin)
                for name, point in POINTS.items():
                    method = getattr(plugin, name, None)
                    if method is not None:
                        vars(plugin)[name] = self._timed(method, profile.name, plugin.name, point)

    def end(self) -> dict[Timed, float]:
        """The cycle is over: the seconds that its plugins took together for all its pods, if they were timed."""
        for plugin in self._timing:
            for name in POINTS:
                vars(plugin).pop(name, None)
        self._timing.clear()
        seconds, self._seconds = self._seconds, {}
        if seconds:
            self._left_out = EVERY - 1
        return seconds

    def _timed(self, method: Callable[..., Any], profile: str, plugin: str, point: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if self._is_inside or not self._timing:
                return method(*args)
            self._is_inside, status, started = True, ERROR, self._now()
            try:
                answer = method(*args)
                status = SUCCESS
                return answer
            finally:
                self._is_inside = False
                timed = Timed(profile, plugin, point, status)
                self._seconds[timed] = self._seconds.get(timed, 0.0) + self._now() - started

        return call
