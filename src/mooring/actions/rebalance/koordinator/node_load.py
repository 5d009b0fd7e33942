"""How loaded nodes are, by what was measured of their pods, and against which thresholds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from mooring.config.low_node_load import Pool
from mooring.model.api.meta import Resources
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.colocation.classes import PROD, priority_class
from mooring.model.keys import PodKey
from mooring.model.load.reports import NodeReport
from mooring.model.values.quantity import QuantityError, parse_quantity, to_millis, to_units

RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"

Amounts = dict[str, int]
"""CPU in millicores, everything else in whole units."""


def read_amounts(resources: Resources | None) -> Amounts:
    amounts: Amounts = {}
    for name, text in (resources or {}).items():
        nanos = parse_quantity(text)
        amounts[name] = to_millis(nanos) if name == "cpu" else to_units(nanos)
    return amounts


@dataclass(slots=True)
class Thresholds:
    """The percentages of a pool, by resource."""

    low: dict[str, float]
    high: dict[str, float]
    is_deviation: bool

    @classmethod
    def of(
        cls, pool: Pool, resources: Iterable[str], low: Mapping[str, float], high: Mapping[str, float]
    ) -> "Thresholds":
        """A resource without a low threshold is never too loaded; one without a high threshold always is."""
        never = 0.0 if pool.use_deviation_thresholds else 100.0
        return cls(
            {name: low.get(name, never) for name in resources},
            {name: high.get(name, 0.0) if name in low else never for name in resources},
            pool.use_deviation_thresholds,
        )


@dataclass(slots=True)
class NodeLoad:
    """One node: what it has, what is used of it, and the levels that are too little and too much."""

    node: Node
    allocatable: Amounts
    used: Amounts
    prod_used: Amounts
    pod_usage: dict[PodKey, Amounts]
    low: Amounts = field(default_factory=dict)
    high: Amounts = field(default_factory=dict)
    prod_low: Amounts = field(default_factory=dict)
    prod_high: Amounts = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.metadata.name


def measure(
    node: Node, report: NodeReport | None, pods: Mapping[PodKey, Pod], now: float, expires: int
) -> NodeLoad | None:
    """What a node's report says; None without one, or where it is too old.

    What was used outside of pods is counted with what they used. A source that does not tell it apart tells of the node
    as a whole, and may tell of pods on other nodes.
    """
    if report is None or report.usage is None or report.at is None or 0 < expires <= now - report.at:
        return None
    is_whole = not report.system
    used = dict(report.usage if is_whole else report.system)
    prod_used: Amounts = {}
    pod_usage = {}
    for key, found in report.pods.items():
        if is_whole and key not in pods:
            continue
        usage = dict(found.amounts)
        if not is_whole:
            _add(used, usage)
        pod_usage[key] = usage
        if key in pods and priority_class(pods[key]) == PROD:
            _add(prod_used, usage)
    prods = [pod for pod in pods.values() if priority_class(pod) == PROD]
    used["pods"], prod_used["pods"] = len(pods), len(prods)
    return NodeLoad(node, _allocatable(node), used, prod_used, pod_usage)


def set_levels(loads: Sequence[NodeLoad], thresholds: Thresholds, prod: Thresholds) -> None:
    """Turn percentages into amounts for each node."""
    for load in loads:
        load.low, load.high = _levels(loads, load, thresholds, prod=False)
        load.prod_low, load.prod_high = _levels(loads, load, prod, prod=True)


def _levels(loads: Sequence[NodeLoad], load: NodeLoad, given: Thresholds, *, prod: bool) -> tuple[Amounts, Amounts]:
    low: Amounts = {}
    high: Amounts = {}
    for name, below in given.low.items():
        above, capacity = given.high[name], load.allocatable.get(name, 0)
        if given.is_deviation and below == 0:
            low[name] = high[name] = capacity
            continue
        if given.is_deviation:
            average = _average(loads, name, prod=prod)
            below, above = _clamp(average - below), _clamp(average + above)
        low[name], high[name] = _level(below, capacity), _level(above, capacity)
    return low, high


def _average(loads: Sequence[NodeLoad], name: str, *, prod: bool) -> float:
    total = 0.0
    for load in loads:
        capacity = load.allocatable.get(name, 0)
        if capacity:
            total += float((load.prod_used if prod else load.used).get(name, 0)) / float(capacity) * 100
    return total / len(loads)


def is_over(used: Mapping[str, int], high: Mapping[str, int]) -> bool:
    return any(used.get(name, 0) > level for name, level in high.items())


def is_under(used: Mapping[str, int], low: Mapping[str, int]) -> bool:
    return all(used.get(name, 0) <= level for name, level in low.items())


def _allocatable(node: Node) -> Amounts:
    text = (node.metadata.annotations or {}).get(RAW_ALLOCATABLE)
    amounts = read_amounts(node.status.allocatable)
    if text is not None:
        try:
            amounts |= read_amounts(msgspec.json.decode(text.encode(), type=dict[str, str | int | float]))
        except (msgspec.DecodeError, QuantityError):
            return amounts
    return amounts


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _level(percent: float, capacity: int) -> int:
    return int(percent * 0.01 * float(capacity))


def _clamp(percent: float) -> float:
    return min(max(percent, 0.0), 100.0)
