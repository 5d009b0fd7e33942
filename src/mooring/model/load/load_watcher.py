"""What Trimaran's load-watcher serves at /watcher, as reports of load."""

from collections.abc import Iterator

import msgspec

from mooring.model.load.reports import Level, NodeReport
from mooring.model.values.requests import CPU, MEMORY

RESOURCES = {"CPU": CPU, "Memory": MEMORY}
"""By type of metric; other types say nothing here."""


class Metric(msgspec.Struct):
    type: str = ""
    operator: str = ""
    value: float = 0.0


class NodeMetrics(msgspec.Struct):
    metrics: list[Metric] | None = None


class Window(msgspec.Struct):
    end: int


class Data(msgspec.Struct, rename={"nodes": "NodeMetricsMap"}):
    nodes: dict[str, NodeMetrics] = {}


class WatcherMetrics(msgspec.Struct):
    """The answer of load-watcher: a window of time, and metrics by node."""

    window: Window
    data: Data


def from_load_watcher(found: WatcherMetrics) -> Iterator[NodeReport]:
    for name, node in found.data.nodes.items():
        levels = tuple(
            Level(RESOURCES[one.type], one.operator, one.value) for one in node.metrics or () if one.type in RESOURCES
        )
        yield NodeReport(name, float(found.window.end), levels=levels)
