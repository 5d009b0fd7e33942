"""Quota windows agree with somebody who looks at the clock on the wall every minute."""

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.actions.admit.quota.windows import Override, QuotaKey, QuotaSchedule
from mooring.config.tenant_policy import DAYS, QuotaWindow
from mooring.state.quota_tree import Quota

MINUTE = 60.0
DAY = 86400.0

DAYS_TO_LOOK_AT = (
    date(2026, 7, 15),
    date(2026, 3, 29),  # Berlin's clocks jump from 2 to 3
    date(2026, 10, 25),  # and back from 3 to 2
    date(2026, 11, 1),  # New York's, back from 2 to 1
    date(2026, 4, 5),  # Lord Howe's, back by half an hour
    date(2026, 3, 28),  # Beirut's jump at midnight
    date(2026, 10, 24),  # and go back from midnight to 23
    date(2011, 12, 30),  # Apia has no such day
)
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Pacific/Apia",
)
TIMES = ("00:00", "00:30", "01:30", "02:00", "02:30", "03:00", "06:00", "12:00", "22:00", "23:30", "23:59")


@st.composite
def drawn_windows(draw: st.DrawFn) -> list[QuotaWindow]:
    windows = []
    for number in range(draw(st.integers(1, 4))):
        from_ = draw(st.sampled_from(TIMES))
        windows.append(
            QuotaWindow(
                queue=draw(st.sampled_from(("a", "b"))),
                resource="cpu",
                flavor="default",
                from_=from_,
                to=draw(st.sampled_from([time for time in TIMES if time != from_])),
                days=draw(st.none() | st.lists(st.sampled_from(DAYS), min_size=1, unique=True)),
                time_zone=draw(st.sampled_from(ZONES)),
                nominal_quota=number if draw(st.booleans()) else None,
                lending_limit=10 + number,
                borrowing_limit=20 + number if draw(st.booleans()) else None,
            )
        )
    return windows


class Watchman:
    """Looks at the clock once a minute, and notes when it first shows a time or has passed it."""

    def __init__(self, start: float, days: int) -> None:
        self.moments = [start + minute * MINUTE for minute in range(days * 1440)]
        self._walls: dict[str, list[datetime]] = {}

    def first(self, zone: str, wall: datetime) -> float:
        if zone not in self._walls:
            local = [datetime.fromtimestamp(moment, ZoneInfo(zone)).replace(tzinfo=None) for moment in self.moments]
            latest, so_far = datetime.min, []
            for shown in local:
                latest = max(latest, shown)
                so_far.append(latest)
            self._walls[zone] = so_far
        index = bisect_left(self._walls[zone], wall)
        return self.moments[index] if index < len(self.moments) else self.moments[-1] + MINUTE

    def is_open(self, window: QuotaWindow, first_day: date, days: int) -> list[tuple[float, float]]:
        """When a window is open, for all days on which it may begin."""
        spans = []
        hours, minutes = (int(part) for part in window.from_.split(":"))
        to_hours, to_minutes = (int(part) for part in window.to.split(":"))
        for offset in range(days):
            begin = datetime.combine(first_day + timedelta(days=offset), datetime.min.time())
            if window.days is not None and DAYS[begin.weekday()] not in window.days:
                continue
            end = begin if window.from_ < window.to else begin + timedelta(days=1)
            opens = self.first(window.time_zone, begin + timedelta(hours=hours, minutes=minutes))
            closes = self.first(window.time_zone, end + timedelta(hours=to_hours, minutes=to_minutes))
            spans.append((opens, closes))
        return spans


Values = tuple[int | None, int | None, int | None]


def plain_quotas(windows: list[QuotaWindow], spans: list[list[tuple[float, float]]], now: float) -> dict[str, Values]:
    """By queue: nominal, borrowing and lending as the open windows say, the later ones in the list on top."""
    found: dict[str, list[int | None]] = {}
    for window, times in zip(windows, spans, strict=True):
        if any(opens <= now < closes for opens, closes in times):
            values = found.setdefault(window.queue, [None, None, None])
            for index, given_value in enumerate((window.nominal_quota, window.borrowing_limit, window.lending_limit)):
                if given_value is not None:
                    values[index] = int(given_value)
    return {queue: (values[0], values[1], values[2]) for queue, values in found.items()}


@examples(40)
@given(drawn_windows(), st.sampled_from(DAYS_TO_LOOK_AT), st.data())
def test_windows_are_open_when_the_clock_on_the_wall_says_so(
    windows: list[QuotaWindow], day: date, data: st.DataObject
) -> None:
    noon = datetime.combine(day, datetime.min.time(), tzinfo=UTC).timestamp()
    watchman = Watchman(noon - 5 * DAY, 8)
    spans = [watchman.is_open(window, day - timedelta(days=3), 7) for window in windows]
    schedule = QuotaSchedule(windows)
    looked_at = [moment for moment in watchman.moments if noon - DAY <= moment < noon + 2 * DAY]

    history = [plain_quotas(windows, spans, moment) for moment in looked_at]

    for moment, expected in zip(looked_at, history, strict=True):
        assert {key.queue: tuple(value) for key, value in schedule.overrides(moment).items()} == expected, moment
    for index in data.draw(st.lists(st.integers(0, len(looked_at) - 1), max_size=5)):
        change = next(
            (
                at
                for at, seen in zip(looked_at, history, strict=True)
                if at > looked_at[index] and seen != history[index]
            ),
            None,
        )
        found = schedule.next_change(looked_at[index])
        if change is None:
            assert found is None or found > looked_at[-1]
        else:
            assert found == change


@given(drawn_windows(), st.sampled_from(DAYS_TO_LOOK_AT), st.integers(0, 2 * 1440))
def test_a_quota_is_its_base_but_for_what_open_windows_say(windows: list[QuotaWindow], day: date, minute: int) -> None:
    schedule = QuotaSchedule(windows)
    now = datetime.combine(day, datetime.min.time(), tzinfo=UTC).timestamp() + minute * MINUTE
    base = Quota(77_000, None, 66_000)

    for queue in ("a", "b"):
        key = QuotaKey(queue, "default", "cpu")
        override = schedule.overrides(now).get(key, Override())
        nominal, borrowing, lending = override

        assert override.on(base, key.resource) == Quota(
            77_000 if nominal is None else int(nominal) * 1000,
            None if borrowing is None else int(borrowing) * 1000,
            66_000 if lending is None else int(lending) * 1000,
        )


@given(drawn_windows(), st.sampled_from(DAYS_TO_LOOK_AT))
def test_between_two_changes_nothing_changes(windows: list[QuotaWindow], day: date) -> None:
    schedule = QuotaSchedule(windows)
    now = datetime.combine(day, datetime.min.time(), tzinfo=UTC).timestamp()
    for _ in range(4):
        change = schedule.next_change(now)
        if change is None:
            break

        assert now < change
        assert schedule.overrides(change - 1) == schedule.overrides(now) != schedule.overrides(change)
        now = change
