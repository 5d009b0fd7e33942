"""What was last measured on each node, as columns: percentages by resource and statistic, GPUs, and when it was.

A report stays until the next one replaces it, and says how old it is: whoever reads a column decides what is out of
date. Pods that came since are no part of a report: `RowFacts` adds up what plugins estimate for them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.nodes import Node
from mooring.model.load.reports import (
    AVERAGE,
    DEVIATION,
    FIRST_LEVEL,
    LAST_LEVEL,
    LATEST,
    CardLoad,
    GpuReport,
    LoadReport,
    NodeReport,
    to_amounts,
)
from mooring.state.columns import Column

UNKNOWN = math.nan
"""In a column: nothing was measured."""

NODE, GPUS = "node", "gpus"
"""Sources: what is measured of a node and its pods, and of its GPUs."""

_MEAN, _HIGHEST, _SUM = (lambda found: sum(found) / len(found)), max, sum
_CARD_FACTS: dict[str, tuple[Callable[[list[float]], float], Callable[[CardLoad], float | None]]] = {
    "count": (_SUM, lambda card: 1.0),
    "utilization": (_MEAN, lambda card: card.utilization_percent),
    "memory": (_MEAN, lambda card: card.memory_percent),
    "temperature": (_HIGHEST, lambda card: card.temperature_celsius),
    "power": (_SUM, lambda card: card.power_watts),
    "occupancy": (_MEAN, lambda card: card.occupancy_percent),
}
"""What the cards of a node come to, by fact: how, and of what."""

Floats = NDArray[np.float64]


class RowLoad(NamedTuple):
    """What is known of the load of one row."""

    node: NodeReport | None = None
    gpus: GpuReport | None = None


NOTHING_REPORTED = RowLoad()


class LoadTable:
    """Reports by node, and columns of them; only the cluster writes to it."""

    def __init__(self, nodes: Sequence[Node | None], capacity: int) -> None:
        """The nodes are those of the table, by row."""
        self._nodes = nodes
        self._capacity = capacity
        self.now = -math.inf
        """The time that ages are counted to."""
        self.of_node: dict[str, NodeReport] = {}
        self.gpus_of_node: dict[str, GpuReport] = {}
        self.columns: dict[tuple[str, str], Column] = {}
        """By what they are about and which fact; made when first asked for."""
        self.horizons: dict[tuple[str, float], NDArray[np.bool_]] = {}
        """By source and age in seconds at which it is too old: which rows were found to be so."""

    # Writing.

    def describe(self, row: int) -> None:
        """A node came to a row, went from it, or has other capacity; reports wait for their node."""
        self._fill(row, self.columns)

    def put(self, report: LoadReport, row: int | None) -> None:
        """Take in a report; the row of its node is None while that is not known."""
        if isinstance(report, NodeReport):
            self.of_node[report.node] = report
        else:
            self.gpus_of_node[report.node] = report
        if row is not None:
            self._fill(row, self.columns)

    def remove(self, node: str, row: int | None, *, of_node: bool = True, of_gpus: bool = True) -> None:
        """Nothing is reported of a node any more, or of its GPUs, or of both."""
        if of_node:
            self.of_node.pop(node, None)
        if of_gpus:
            self.gpus_of_node.pop(node, None)
        if row is not None:
            self._fill(row, self.columns)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self.columns.values():
            column.grow(capacity)
        for key, found in self.horizons.items():
            self.horizons[key] = np.concatenate([found, np.ones(capacity - len(found), np.bool_)])

    def pass_time(self, now: float) -> NDArray[np.intp]:
        """Find out what is too old by now for those that asked; return the rows on which that has changed."""
        self.now = now
        changed = [np.zeros(0, np.intp)]
        for (source, seconds), known in self.horizons.items():
            is_stale = self._is_stale(source, seconds)
            changed.append(np.flatnonzero(is_stale != known))
            self.horizons[source, seconds] = is_stale
        return np.unique(np.concatenate(changed))

    def next_stale(self, now: float) -> float | None:
        """When the next report that somebody reads is too old."""
        ends = [self.column(source, "at").values + seconds for source, seconds in self.horizons]
        later = np.concatenate([np.zeros(0), *(end[end > now] for end in ends)])
        return float(later.min()) if len(later) else None

    # Reading.

    def is_stale(self, source: str, seconds: float) -> NDArray[np.bool_]:
        """Whether what a source (NODE or GPUS) told of each row is so old, or unknown; 0: only whether it is unknown.

        Whoever asks is told of rows that become so: they count as changed.
        """
        if not seconds:
            unknown: NDArray[np.bool_] = np.isnan(self.column(source, "at").values)
            return unknown
        known = self.horizons.get((source, seconds))
        if known is None:
            known = self.horizons[source, seconds] = self._is_stale(source, seconds)
        return known

    def _is_stale(self, source: str, seconds: float) -> NDArray[np.bool_]:
        stale: NDArray[np.bool_] = ~(self.now - self.column(source, "at").values < seconds)
        return stale

    def reported(self, row: int) -> RowLoad:
        """What was last reported of the node on a row, and of its GPUs."""
        node = self._nodes[row]
        if node is None:
            return NOTHING_REPORTED
        name = node.metadata.name
        return RowLoad(self.of_node.get(name), self.gpus_of_node.get(name))

    def column(self, about: str, fact: str) -> Column:
        """One fact about each row, UNKNOWN where nothing is reported.

        About a resource: AVERAGE, DEVIATION, LATEST, FIRST_LEVEL or LAST_LEVEL, in percent of its capacity, and
        "capacity" itself. About GPUS: "count", "utilization", "memory" and "occupancy" (the mean of the cards),
        "temperature" (the highest), "power" (the sum). About NODE and GPUS: "at".
        """
        found = self.columns.get((about, fact))
        if found is None:
            found = self.columns[about, fact] = Column(np.float64, self._capacity, fill=UNKNOWN)
            for row in range(len(self._nodes)):
                self._fill(row, ((about, fact),))
        return found

    def _fill(self, row: int, columns: Iterable[tuple[str, str]]) -> None:
        node = self._nodes[row]
        for about, fact in columns:
            value = None if node is None else self._value(node, about, fact)
            self.columns[about, fact].writable[row] = UNKNOWN if value is None else value
        for (source, seconds), known in self.horizons.items():
            known[row] = not self.now - self.column(source, "at").values[row] < seconds

    def _value(self, node: Node, about: str, fact: str) -> float | None:
        name = node.metadata.name
        if about == GPUS:
            gpus = self.gpus_of_node.get(name)
            return None if gpus is None else gpus.at if fact == "at" else _of_cards(gpus, fact)
        if fact == "capacity":
            return to_amounts(node.status.capacity or node.status.allocatable).get(about, 0)
        report = self.of_node.get(name)
        if report is None:
            return None
        return report.at if about == NODE else _level(report, node, about, fact)


def _of_cards(report: GpuReport, fact: str) -> float | None:
    combine, of = _CARD_FACTS[fact]
    found = [value for card in report.cards.values() if (value := of(card)) is not None]
    return combine(found) if found else None


def _level(report: NodeReport, node: Node, resource: str, statistic: str) -> float | None:
    """A percentage, from what a source tells in percent, or else in amounts."""
    levels = [level for level in report.levels if level.resource == resource]
    if not levels and report.usage is not None and resource in report.usage:
        capacity = to_amounts(node.status.capacity or node.status.allocatable).get(resource, 0)
        if statistic == DEVIATION or not capacity:
            return None
        if statistic == AVERAGE:
            average = report.aggregated("avg", 0) or report.usage
            return 100.0 * average.get(resource, report.usage[resource]) / capacity
        return 100.0 * report.usage[resource] / capacity
    if statistic == FIRST_LEVEL:
        return next((one.percent for one in levels if one.statistic in (AVERAGE, LATEST)), None)
    wanted = {LAST_LEVEL: (AVERAGE, LATEST), LATEST: (LATEST, "")}.get(statistic, (statistic,))
    return next((one.percent for one in reversed(levels) if one.statistic in wanted), None)
