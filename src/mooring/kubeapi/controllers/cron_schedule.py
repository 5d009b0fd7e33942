"""When a cron schedule is due: five fields, names of months and days, `@hourly` and the like, time zones."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from mooring.model.values.durations import parse_duration

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {"janfebmaraprmayjunjulaugsepoctnovdec"[3 * index : 3 * index + 3]: index + 1 for index in range(12)}
_DAYS = {"sunmontuewedthufrisat"[3 * index : 3 * index + 3]: index for index in range(7)}
_NAMES = {3: _MONTHS, 4: _DAYS}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_LONGEST_SEARCH = timedelta(days=5 * 366)


class ScheduleError(ValueError):
    """A schedule that cannot be read."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """The minutes at which something is due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool
    zone: tzinfo = UTC
    every: timedelta | None = None

    def next_after(self, moment: float) -> float | None:
        """The first due moment after another, as seconds since 1970; None if there is none for years."""
        if self.every is not None:
            return moment - moment % 1 + self.every.total_seconds()
        found = datetime.fromtimestamp(moment, self.zone).replace(second=0, microsecond=0) + timedelta(minutes=1)
        limit = found + _LONGEST_SEARCH
        while found < limit:
            if found.month not in self.months:
                found = (found.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            elif not self._is_due_on(found):
                found = found.replace(hour=0, minute=0) + timedelta(days=1)
            elif found.hour not in self.hours:
                found = found.replace(minute=0) + timedelta(hours=1)
            elif found.minute not in self.minutes:
                found += timedelta(minutes=1)
            else:
                return found.timestamp()
        return None

    def _is_due_on(self, day: datetime) -> bool:
        """Where both kinds of day are restricted, one of them is enough."""
        by_day, by_weekday = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday


def parse_schedule(text: str, zone: str | None = None) -> CronSchedule:
    """Read a schedule; raises ScheduleError."""
    for prefix in ("TZ=", "CRON_TZ="):
        if text.startswith(prefix):
            named, _, text = text.removeprefix(prefix).partition(" ")
            zone = zone or named
    try:
        where: tzinfo = ZoneInfo(zone) if zone else UTC
    except (KeyError, ValueError, OSError) as error:
        raise ScheduleError(f"unknown time zone {zone}") from error
    text = text.strip()
    if text.startswith("@every "):
        return _every(text.removeprefix("@every "), where)
    fields = _MACROS.get(text, text).split()
    if len(fields) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{text}]")
    minutes, hours, days, months, weekdays = (
        _field(field, least, most, _NAMES.get(index, {}))
        for index, (field, (least, most)) in enumerate(zip(fields, _BOUNDS, strict=True))
    )
    any_day, any_weekday = fields[2] in ("*", "?"), fields[4] in ("*", "?")
    return CronSchedule(minutes, hours, days, months, weekdays, any_day, any_weekday, where)


def _every(text: str, zone: tzinfo) -> CronSchedule:
    seconds = parse_duration(text.strip())
    if not seconds:
        raise ScheduleError(f"failed to parse duration @every {text}")
    nothing: frozenset[int] = frozenset()
    every = timedelta(seconds=max(1.0, seconds))
    return CronSchedule(nothing, nothing, nothing, nothing, nothing, False, False, zone, every)


def _field(text: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        extent, _, step_text = part.partition("/")
        step = _number(step_text, {}) if step_text else 1
        if extent in ("*", "?"):
            first, last = least, most
        else:
            first_text, dash, last_text = extent.partition("-")
            first = _number(first_text, names)
            last = _number(last_text, names) if dash else (most if step_text else first)
        if names is _DAYS and last == 7:
            found.add(0)
            last = 6 if first < 7 else -1
        is_within = least <= first <= last <= most
        if step < 1 or not (is_within or last == -1):
            raise ScheduleError(f"{text} is not within {least}-{most}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not text.isdecimal():
        raise ScheduleError(f"failed to parse int from {text}")
    return int(text)
