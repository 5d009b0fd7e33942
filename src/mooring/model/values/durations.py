"""Durations as Kubernetes writes them (`90s`, `1h30m`), and how long a pod says that it runs."""

import re
from functools import lru_cache

from mooring.model.api.pods import Pod

DURATION = "mooring.dev/duration"
JOB_DEADLINE = "mooring.dev/job-deadline"
"""Written on the pods of a Job that has a deadline: no pod of it runs longer than all of it may."""
EXPECTED_DURATION = "a duration such as 90s, 10m or 1h30m"

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"0|(?:{_PART.pattern})+", re.ASCII)


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> float | None:
    """Read a duration as Go does, without a sign, as seconds; None if it is none.

    >>> parse_duration("1h30m")
    5400.0
    """
    if not _WHOLE.fullmatch(text):
        return None
    return sum((float(number) * _UNITS[unit] for number, unit in _PART.findall(text)), 0.0)


def duration_seconds(pod: Pod) -> float | None:
    """How long a pod runs at most: what its annotation says, else its activeDeadlineSeconds or that of its Job.

    None if nothing does.
    """
    annotations = pod.metadata.annotations or {}
    if DURATION in annotations:
        seconds = parse_duration(annotations[DURATION])
        if seconds is not None:
            return seconds
    of_job = parse_duration(annotations[JOB_DEADLINE]) if JOB_DEADLINE in annotations else None
    own = pod.spec.active_deadline_seconds
    deadlines = [float(seconds) for seconds in (own, of_job) if seconds is not None]
    return min(deadlines, default=None)
