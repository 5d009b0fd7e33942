"""One look at one node: what Koordinator's manager writes to it of batch and mid resources, ratios and NUMA zones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec

from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.meta import KubeObject, Resources, timestamp_seconds
from mooring.model.api.node_resource_topology import NodeResourceTopology, Zone
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.colocation.amounts import THOUSAND, Amount
from mooring.model.colocation.classes import BATCH, MID
from mooring.model.colocation.cpu_ratios import (
    AMPLIFICATION_ANNOTATION,
    NORMALIZATION_ANNOTATION,
    RatioError,
    amplification_text,
    annotated_normalization,
    normalization_ratio,
    ratio_text,
)
from mooring.model.colocation.estimates import NAMES
from mooring.model.colocation.node_resources import Situation, lent_to_batch, lent_to_mid, node_sums, situation
from mooring.model.colocation.strategy import (
    AMPLIFICATION_KEY,
    NORMALIZATION_KEY,
    STRATEGY_KEY,
    ColocationStrategy,
    node_strategy,
)
from mooring.model.colocation.zone_resources import zone_sums, zones_of
from mooring.model.values.quantity import QuantityError, parse_quantity, to_units
from mooring.model.values.requests import CPU, MEMORY

BATCH_CPU, BATCH_MEMORY = NAMES[BATCH][CPU], NAMES[BATCH][MEMORY]
MID_CPU, MID_MEMORY = NAMES[MID][CPU], NAMES[MID][MEMORY]
LENT = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)
THIRD_PARTIES_ANNOTATION = "node.koordinator.sh/thirdPartyAllocations"
RATIO_DIFFERENCE = 0.01


@dataclass(frozen=True)
class NodeSync:
    """What is written; None where that part of the node stays as it is."""

    status: dict[str, int] | None = None
    """Batch and mid resources, CPU in thousandths; a name that is not there is removed."""
    origin: dict[str, int] | None = None
    """Batch resources before what third parties were given of them."""
    annotations: dict[str, str] | None = None
    """The ratios of the node afterwards."""
    zones: dict[str, dict[str, Fraction]] | None = None
    """Batch resources of each zone."""


@dataclass(frozen=True)
class Observed:
    """All that is known of one node."""

    node: Node
    metric: NodeMetric | None
    pods: Sequence[Pod]
    topology: NodeResourceTopology | None = None
    last_sync_seconds: float | None = None
    """When this node was last written."""


def sync_node(config: Mapping[str, Any], seen: Observed, now_seconds: float) -> NodeSync:
    """Decide what to write, by the parsed data of the ConfigMap slo-controller-config."""
    strategy = node_strategy(config.get(STRATEGY_KEY) or {}, seen.node)
    if strategy is None:
        return NodeSync()
    ratio = _normalization(config, seen) if strategy.enable else None
    annotations = _annotations(config, seen.node, strategy, ratio)
    metric = seen.metric if strategy.enable else None
    if metric is None or _is_stale(metric, strategy, now_seconds):
        status, origin = _status(seen, {}, {}, strategy, now_seconds)
        return NodeSync(status, origin, annotations)
    about = situation(seen.node, metric, seen.pods)
    lent = lent_amounts(about, strategy, ratio)
    third = _third_parties(seen.node)
    batch = {name: lent[name] for name in (BATCH_CPU, BATCH_MEMORY)}
    kept = lent | {name: max(0, amount - third.get(name, 0)) for name, amount in batch.items()}
    status, origin = _status(seen, kept, batch, strategy, now_seconds)
    return NodeSync(status, origin, annotations, _zones(about, seen, strategy, ratio, now_seconds))


def lent_amounts(about: Situation, strategy: ColocationStrategy, ratio: float | None = None) -> dict[str, int]:
    """Batch and mid resources of a node, CPU in thousandths and memory in bytes."""
    batch, mid = lent_to_batch(node_sums(about), strategy), lent_to_mid(about, strategy)
    return {
        BATCH_CPU: math.ceil(_normalized(batch.cpu, ratio)),
        BATCH_MEMORY: _bytes(batch),
        MID_CPU: mid.cpu,
        MID_MEMORY: _bytes(mid),
    }


def _bytes(amount: Amount) -> int:
    return -(-amount.memory // THOUSAND)


def _normalized(cpu: int, ratio: float | None) -> Fraction:
    """CPU that counts for more on a fast node; down to thousandths of thousandths."""
    return Fraction(int(THOUSAND * cpu * ratio), THOUSAND) if ratio is not None and ratio > 1 else Fraction(cpu)


def _is_stale(metric: NodeMetric, strategy: ColocationStrategy, now_seconds: float) -> bool:
    updated = timestamp_seconds(metric.status.update_time)
    return updated is None or now_seconds > updated + strategy.degrade_time_minutes * 60


def _is_late(seen: Observed, strategy: ColocationStrategy, now_seconds: float) -> bool:
    last = seen.last_sync_seconds
    return last is None or now_seconds - last > strategy.update_time_threshold_seconds


def _differs(old: float, new: float, strategy: ColocationStrategy) -> bool:
    return abs(new - old) > old * strategy.resource_diff_threshold


def _status(
    seen: Observed, new: Mapping[str, int], origin: Mapping[str, int], strategy: ColocationStrategy, now_seconds: float
) -> tuple[dict[str, int] | None, dict[str, int] | None]:
    allocatable = seen.node.status.allocatable or {}
    old = {name: to_units(parse_quantity(allocatable[name])) for name in LENT if name in allocatable}
    is_needed = old.keys() != new.keys() or any(_differs(old[name], new[name], strategy) for name in old)
    if not is_needed and not _is_late(seen, strategy, now_seconds):
        return None, None
    return dict(new), {name: origin.get(name, 0) for name in (BATCH_CPU, BATCH_MEMORY)}


# Ratios.


def _normalization(config: Mapping[str, Any], seen: Observed) -> float | None:
    """The ratio of a node; None where it cannot be found out."""
    try:
        return normalization_ratio(config.get(NORMALIZATION_KEY) or {}, seen.node, seen.topology)
    except RatioError:
        return None


def _annotations(
    config: Mapping[str, Any], node: Node, strategy: ColocationStrategy, ratio: float | None
) -> dict[str, str] | None:
    had = node.metadata.annotations or {}
    amplified = amplification_text(config.get(AMPLIFICATION_KEY) or {}, node) if strategy.enable else None
    if not _ratio_changed(node, ratio) and amplified == had.get(AMPLIFICATION_ANNOTATION):
        return None
    normalized = had.get(NORMALIZATION_ANNOTATION) if ratio is None else ratio_text(ratio)
    after = {NORMALIZATION_ANNOTATION: normalized, AMPLIFICATION_ANNOTATION: amplified}
    return {name: text for name, text in after.items() if text is not None}


def _ratio_changed(node: Node, ratio: float | None) -> bool:
    if ratio is None:
        return False
    try:
        old = annotated_normalization(node)
    except RatioError:
        return True
    return old is None or abs(old - float(ratio_text(ratio))) > RATIO_DIFFERENCE


# Third parties.


class _Allocation(KubeObject):
    priority: str = ""
    resources: Resources | None = None


class _Allocations(KubeObject):
    allocations: list[_Allocation] | None = None


def _third_parties(node: Node) -> dict[str, int]:
    """What others than Kubernetes were given of the batch resources of a node."""
    text = (node.metadata.annotations or {}).get(THIRD_PARTIES_ANNOTATION)
    total: dict[str, int] = {}
    try:
        found = msgspec.json.decode(text, type=_Allocations) if text else _Allocations()
        for allocation in found.allocations or ():
            if allocation.priority == BATCH:
                for name, amount in (allocation.resources or {}).items():
                    total[name] = total.get(name, 0) + to_units(parse_quantity(amount))
    except (msgspec.DecodeError, QuantityError):
        return {}
    return total


# Zones.


def _zones(
    about: Situation, seen: Observed, strategy: ColocationStrategy, ratio: float | None, now_seconds: float
) -> dict[str, dict[str, Fraction]] | None:
    zones = zones_of(seen.topology)
    if not zones:
        return None
    found, has_changed = {}, _is_late(seen, strategy, now_seconds)
    for zone, sums in zip(zones, zone_sums(about, zones), strict=True):
        lent = lent_to_batch(sums, strategy)
        new = {BATCH_CPU: _normalized(lent.cpu, ratio), BATCH_MEMORY: Fraction(lent.memory, THOUSAND)}
        old = _old_zone(zone)
        for name, amount in new.items():
            if name in old and not _differs(float(old[name]), float(amount), strategy):
                new[name] = old[name]
            else:
                has_changed = True
        found[zone.name] = new
    return found if has_changed else None


def _old_zone(zone: Zone) -> dict[str, Fraction]:
    return {
        one.name: Fraction(parse_quantity(one.allocatable), 10**9)
        for one in zone.resources or ()
        if one.name in (BATCH_CPU, BATCH_MEMORY)
    }
