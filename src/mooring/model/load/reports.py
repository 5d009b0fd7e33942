"""Reports of load: what one source measured on one node, and when.

Sources differ. A load watcher tells percentages of a node's capacity by statistic, metrics-server and Koordinator tell
amounts, DCGM exporter tells of GPUs. A report keeps what its source told; the state makes columns of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mooring.model.keys import PodKey
from mooring.model.values.quantity import parse_quantity, to_millis, to_units
from mooring.model.values.requests import CPU

AVERAGE, DEVIATION, LATEST = "AVG", "STD", "Latest"
"""Statistics, under the names that load-watcher has for them."""
FIRST_LEVEL, LAST_LEVEL = "first", "last"
"""Not what was measured but which of AVERAGE and LATEST a list of figures has first, or last."""
PERCENTILES = ("avg", "p50", "p90", "p95", "p99")
"""Aggregations of Koordinator."""
REPORT_INTERVAL = 60.0
"""Seconds between two reports, where a source does not say."""

Amounts = Mapping[str, int]
"""CPU in millicores, everything else in whole units."""


def to_amounts(resources: Mapping[str, str | int | float] | None) -> dict[str, int]:
    """Quantities as amounts."""
    found = {}
    for name, text in (resources or {}).items():
        nanos = parse_quantity(text)
        found[name] = to_millis(nanos) if name == CPU else to_units(nanos)
    return found


@dataclass(frozen=True, slots=True)
class Level:
    """One figure: a percentage of what the node has of a resource."""

    resource: str
    statistic: str
    """AVERAGE, DEVIATION or LATEST; empty where the source does not say which, which is as LATEST but for packing."""
    percent: float


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What was used of a node over some time, by aggregation (one of PERCENTILES)."""

    duration_seconds: float
    usage: Mapping[str, Amounts]


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What one pod was measured to use."""

    amounts: Amounts
    priority: str | None = None
    """The priority class that the source had for the pod; None from sources that know none."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What was measured on a node: percentages, or amounts, or both."""

    node: str
    at: float | None
    """Seconds since 1970: the end of the time that it tells of. None if the source does not say: it is out of date."""
    interval_seconds: float = REPORT_INTERVAL
    """How often the source reports."""
    levels: tuple[Level, ...] = ()
    usage: Amounts | None = None
    system: Amounts = field(default_factory=dict)
    """What was used outside of pods."""
    aggregates: tuple[Aggregate, ...] = ()
    pods: Mapping[PodKey, PodUsage] = field(default_factory=dict)

    def aggregated(self, kind: str, duration_seconds: float) -> Amounts | None:
        """Usage by an aggregation over a duration; 0 for the longest that is reported, else usage as it is.

        None if there is none: a duration that is not reported.
        """
        reported = [one for one in self.aggregates if kind in one.usage]
        if duration_seconds:
            return next((one.usage[kind] for one in reported if one.duration_seconds == duration_seconds), None)
        if not reported:
            return self.usage
        return max(reported, key=lambda one: one.duration_seconds).usage[kind]


@dataclass(frozen=True, slots=True)
class CardLoad:
    """What was measured of one GPU; None for what the source does not tell."""

    utilization_percent: float | None = None
    memory_percent: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    occupancy_percent: float | None = None
    """How much of the time its multiprocessors had warps to run."""


@dataclass(frozen=True, slots=True)
class GpuReport:
    """What was measured of the GPUs of a node, by index or uuid."""

    node: str
    at: float | None
    cards: Mapping[str, CardLoad] = field(default_factory=dict)


LoadReport = NodeReport | GpuReport
