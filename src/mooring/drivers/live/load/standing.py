"""How one source of load does: what it last reported, since when it fails, and why."""

import logging
import time
from collections.abc import Iterable

from mooring.config.load_sources import LoadSources
from mooring.drivers.live.load.source import ReportKey, key_of
from mooring.model.load.reports import LoadReport

_log = logging.getLogger(__name__)


class Standing:
    """One source of a configuration."""

    def __init__(self, name: str, address: str, settings: LoadSources) -> None:
        self.name, self.settings = name, settings
        self.where = f"load source {name} ({address})"
        self.reports: dict[ReportKey, LoadReport] = {}
        self.failures = 0
        self.problem = ""
        """Why the last attempt failed; empty if it did not."""
        self._failing_since = 0.0

    def fail(self, problem: str, *, is_said: bool = False) -> None:
        """Note a failure; it is logged once until the source recovers, unless it has been logged elsewhere."""
        self.failures += 1
        if not self.problem:
            self._failing_since = time.monotonic()
            if not is_said:
                _log.warning("%s: %s; %s", self.where, problem, self._consequence())
        self.problem = problem

    def recover(self) -> None:
        if self.problem:
            _log.info("%s answers again", self.where)
        self.problem = ""

    def _consequence(self) -> str:
        """What becomes of the nodes meanwhile."""
        if not self.reports:
            return "the load of its nodes is unknown until it answers"
        if self.settings.when_stale == "Forget":
            return f"its reports are forgotten when they are {self.settings.stale_after_seconds:g} s old"
        return "its last reports are kept and grow old"

    def take(self, reports: Iterable[LoadReport], now: float) -> list[LoadReport]:
        """Keep what is newer than what is known, and return it."""
        fresh = []
        for report in reports:
            key = key_of(report)
            known = self.reports.get(key)
            if known is not None and report.at is not None and known.at == report.at:
                continue
            if self.settings.when_stale == "Forget" and self._is_stale(report, now):
                continue
            self.reports[key] = report
            fresh.append(report)
        return fresh

    def stale(self, now: float) -> list[ReportKey]:
        """Reports that are to be forgotten."""
        if self.settings.when_stale == "Keep":
            return []
        return [key for key, report in self.reports.items() if self._is_stale(report, now)]

    def _is_stale(self, report: LoadReport, now: float) -> bool:
        return report.at is None or now - report.at >= self.settings.stale_after_seconds

    def count(self, now: float) -> tuple[int, int]:
        """How many reports are fresh, and how many are stale."""
        stale = sum(self._is_stale(report, now) for report in self.reports.values())
        return len(self.reports) - stale, stale

    def age(self, now: float) -> float | None:
        """The seconds since the newest report; None if there is none with a time."""
        newest = max((report.at for report in self.reports.values() if report.at is not None), default=None)
        return None if newest is None else max(0.0, now - newest)

    def complaint(self, now: float) -> str:
        """What readiness says of it; empty if it is in order."""
        if self.problem:
            since = time.monotonic() - self._failing_since
            return f"fails since {since:.0f} s: {self.problem}; {self._consequence()}"
        fresh, stale = self.count(now)
        if fresh:
            return ""
        if stale:
            age = self.age(now)
            return f"all {stale} reports are stale" + ("" if age is None else f", the newest is {age:.0f} s old")
        return "no node is reported"
