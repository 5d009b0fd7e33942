"""When a quota window is open: times of day on certain days, in the time of some place, as moments.

A window opens at the first moment at which the clock on the wall there shows its `from`, or a later time, on a day on
which it begins; it closes likewise at its `to`. So it opens and closes once a day whatever happens to the clock: of an
hour that comes twice the first counts, and a time that is skipped is over as soon as the clock has jumped. A window
that lies within a skipped hour does not open.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from mooring.config.tenant_policy import DAYS, QuotaWindow

_DAYS_BEFORE = 2
"""How many days before today a window may have begun that is still open: one, and one that a clock may have skipped."""
_DAYS_AHEAD = 400
"""How far ahead to look for a next time; every window that ever opens does so within a year."""


class Span(NamedTuple):
    """From when to when a window is open, in seconds since 1970; the end is not part of it."""

    opens: float
    closes: float


class WindowTimes:
    """The spans of one window, one for each day on which it begins."""

    def __init__(self, from_: str, to: str, days: Collection[str] | None, zone: tzinfo) -> None:
        self._from, self._to = time.fromisoformat(from_), time.fromisoformat(to)
        self._weekdays = frozenset(DAYS.index(day) for day in (DAYS if days is None else days))
        self._zone = zone
        self._spans: dict[date, Span | None] = {}

    def is_open(self, now: float) -> bool:
        # Tomorrow's too: right after midnight the clock may have been set back to today.
        return any(opens <= now < closes for opens, closes in self._spans_from(now, _DAYS_BEFORE + 2))

    def changes_after(self, now: float) -> Iterator[float]:
        """The moments after now at which it opens or closes, in order, for about a year."""
        for span in self._spans_from(now, _DAYS_AHEAD):
            yield from (moment for moment in span if moment > now)

    def _spans_from(self, now: float, days: int) -> Iterator[Span]:
        """The spans that begin on so many days, in order, from the earliest that may be open now."""
        first = datetime.fromtimestamp(now, self._zone).date() - timedelta(days=_DAYS_BEFORE)
        for offset in range(days):
            span = self._span(first + timedelta(days=offset))
            if span is not None:
                yield span

    def _span(self, day: date) -> Span | None:
        if day.weekday() not in self._weekdays:
            return None
        if day not in self._spans:
            if len(self._spans) > 2 * _DAYS_AHEAD:
                self._spans.clear()
            opens = first_moment(day, self._from, self._zone)
            last_day = day if self._from < self._to else day + timedelta(days=1)
            closes = first_moment(last_day, self._to, self._zone)
            self._spans[day] = Span(opens, closes) if opens < closes else None
        return self._spans[day]


def times_of(window: QuotaWindow) -> WindowTimes:
    """The times of a window that was checked before."""
    zone = UTC if window.time_zone == "UTC" else ZoneInfo(window.time_zone)
    return WindowTimes(window.from_, window.to, window.days, zone)


def first_moment(day: date, at: time, zone: tzinfo) -> float:
    """The first moment at which a clock in the zone shows that time of that day, or a later one."""
    wall = datetime.combine(day, at)
    first = wall.replace(tzinfo=zone, fold=0).timestamp()
    second = wall.replace(tzinfo=zone, fold=1).timestamp()
    if first <= second:
        return first
    # The clock jumps over that time. Read by the offset before the jump it lies after it, and the other way round.
    low, high = int(second), int(first)
    while low < high:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).replace(tzinfo=None) >= wall:
            high = middle
        else:
            low = middle + 1
    return float(high)
