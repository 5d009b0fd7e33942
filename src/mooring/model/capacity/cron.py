"""Cron schedules as budgets write them: five fields or a name such as `@daily`, in UTC."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mooring.model.values.durations import parse_duration

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FURTHEST_DAYS = 366 * 5
"""A schedule that never comes up in five years never does."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes at which something starts."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Days of the month, or of the week, were not restricted; if both were, one of them is enough."""

    def is_on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month and of_week if self.any_day else of_month or of_week

    def last_start(self, now_seconds: float) -> float | None:
        """The latest start that is not after `now_seconds`."""
        now = datetime.fromtimestamp(now_seconds, UTC)
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(_FURTHEST_DAYS):
            if self.is_on(day):
                for hour in sorted(self.hours, reverse=True):
                    for minute in sorted(self.minutes, reverse=True):
                        start = day.replace(hour=hour, minute=minute)
                        if start <= now:
                            return start.timestamp()
            day -= timedelta(days=1)
        return None


@lru_cache(maxsize=1024)
def parse_schedule(text: str) -> Schedule | None:
    """Read a schedule; None if it is none."""
    fields = _NAMED.get(text.strip(), text).lower().split()
    if len(fields) != 5:
        return None
    minutes = _parse_field(fields[0], 0, 59, ())
    hours = _parse_field(fields[1], 0, 23, ())
    days = _parse_field(fields[2], 1, 31, ())
    months = _parse_field(fields[3], 1, 12, _MONTHS)
    weekdays = _parse_field(fields[4], 0, 6, _DAYS)
    if minutes is None or hours is None or days is None or months is None or weekdays is None:
        return None
    any_day = fields[2][0] in "*?" or fields[4][0] in "*?"
    return Schedule(minutes, hours, days, months, weekdays, any_day)


def is_open(schedule: str, duration: str, now_seconds: float) -> bool | None:
    """Tell whether a window of this length that starts by this schedule is open now; None if it cannot be read."""
    length = parse_duration(duration)
    if length is None:
        return None
    if schedule.startswith("@every "):
        every = parse_duration(schedule.removeprefix("@every ").strip())
        return None if every is None else max(every, 1.0) <= length
    parsed = parse_schedule(schedule)
    if parsed is None:
        return None
    start = parsed.last_start(now_seconds)
    return start is not None and start > now_seconds - length


def _parse_field(text: str, lowest: int, highest: int, names: tuple[str, ...]) -> frozenset[int] | None:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, ()) if slash else 1
        if not step:
            return None
        if span in ("*", "?"):
            first, last = lowest, highest
        else:
            start_text, dash, end_text = span.partition("-")
            start = _number(start_text, names, lowest)
            # A single value with a step runs to the end of its range.
            end = _number(end_text, names, lowest) if dash else highest if slash else start
            if start is None or end is None:
                return None
            first, last = start, end
        if first < lowest or last > highest or first > last:
            return None
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, names: tuple[str, ...], first: int = 0) -> int | None:
    if text in names:
        return names.index(text) + first
    return int(text) if text.isascii() and text.isdigit() else None
