"""How much of each resource was requested over time, for the chart on the overview."""

from msgspec import Struct

from mooring.report.pools import Pool

MOST_POINTS = 2000
"""Then every second one is dropped."""


class Series(Struct):
    """Moments, and by resource the requested part of all that is allocatable, in percent."""

    times: list[float]
    percents: dict[str, list[float | None]]


class Allocation:
    """Collects points; at most so many are kept, evenly spread."""

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most, self._step = most, 0.0
        self._points: list[tuple[float, dict[str, float]]] = []

    def note(self, at: float, pools: list[Pool]) -> None:
        """Note what the pools have; points that come too soon after another take its place."""
        requested: dict[str, float] = {}
        allocatable: dict[str, float] = {}
        for pool in pools:
            for resource, usage in pool.resources.items():
                requested[resource] = requested.get(resource, 0.0) + usage.requested
                allocatable[resource] = allocatable.get(resource, 0.0) + usage.allocatable
        parts = {name: round(100 * requested[name] / there, 2) for name, there in allocatable.items() if there}
        if len(self._points) > 1 and at - self._points[-2][0] < self._step:
            self._points.pop()
        self._points.append((at, parts))
        if len(self._points) > self._most:
            last = self._points[-1]
            self._points = [*self._points[:-1:2], last]
            self._step = max(self._step * 2, (last[0] - self._points[0][0]) / self._most)

    def series(self) -> Series:
        names = list(dict.fromkeys(name for _, parts in self._points for name in parts))
        return Series(
            [at for at, _ in self._points], {name: [parts.get(name) for _, parts in self._points] for name in names}
        )
