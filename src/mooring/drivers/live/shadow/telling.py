"""What a shadow tells: every comparison as metrics and a line of its log file, differences in the program's log."""

import logging
import time
from collections.abc import Callable

from mooring.model.decisions import Decision
from mooring.observe.shadow_log import (
    ComparedAdmission,
    ComparedPod,
    ComparedPreemption,
    Outcome,
    ShadowLine,
    ShadowLog,
    Side,
)
from mooring.observe.shadow_metrics import ShadowMetrics
from mooring.report.shadow import describe_pod

LINES, LINES_SECONDS = 10, 60.0
"""At most so many differences are logged in so many seconds."""
_log = logging.getLogger(__name__)


class Telling:
    """Told of every comparison of one run."""

    def __init__(self, log: ShadowLog, clock: Callable[[], float] = time.monotonic) -> None:
        self.metrics = ShadowMetrics()
        self._log, self._clock = log, clock
        self._since, self._logged, self._left_out = clock(), 0, 0

    def note(self, line: ShadowLine) -> None:
        self._log.note(line)
        match line:
            case ComparedPod():
                self._count(line)
                if line.outcome not in (Outcome.SAME, Outcome.TIE):
                    self._say(describe_pod(line))
            case ComparedPreemption():
                self.metrics.preemptions.labels(line.side.value).inc()
                if line.side is not Side.BOTH:
                    what = "would evict it for " + line.preemptor if line.side is Side.OURS else "would not evict it"
                    self._say(f"pod {line.victim} on {line.node}: Mooring {what}")
            case ComparedAdmission():
                self.metrics.admissions.labels(line.side.value).inc()
                if line.side is not Side.BOTH:
                    what = "would admit it" if line.side is Side.OURS else "would not have admitted it"
                    self._say(f"workload {line.workload} in {line.queue}: Mooring {what}: {line.message}")

    def cycled(self, seconds: float, decisions: list[Decision]) -> None:
        self.metrics.deciding_seconds.observe(seconds)
        for decision in decisions:
            self.metrics.decisions.labels(type(decision).__name__).inc()

    def _count(self, line: ComparedPod) -> None:
        metrics = self.metrics
        metrics.pods.labels(line.outcome.value).inc()
        if line.hindsight:
            metrics.hindsight.labels(line.hindsight).inc()
        if line.ours_seconds is not None:
            metrics.ours_seconds.observe(line.ours_seconds)
        if line.theirs_seconds is not None:
            metrics.theirs_seconds.observe(line.theirs_seconds)
        if line.outcome is Outcome.OTHER:
            if line.difference is not None:
                metrics.difference.observe(line.difference)
            preferring = [name for name, part in line.plugins.items() if part > 0]
            for plugin in preferring + [each.partition(":")[0] for each in line.refused_by]:
                metrics.plugins.labels(plugin).inc()

    def _say(self, text: str) -> None:
        now = self._clock()
        if now >= self._since + LINES_SECONDS:
            if self._left_out:
                _log.info("%d more differences were not logged: the report has them all", self._left_out)
            self._since, self._logged, self._left_out = now, 0, 0
        if self._logged < LINES:
            self._logged += 1
            _log.info("%s", text)
        else:
            self._left_out += 1
