"""How much of a node is lent to batch and mid pods: Koordinator's ColocationStrategy, from the ConfigMap
slo-controller-config, annotations and labels of the node.
"""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.model.api.meta import KubeObject, LabelSelector
from mooring.model.api.nodes import Node
from mooring.model.values.selectors import compile_label_selector

CONFIG_NAME = "slo-controller-config"
"""Of Koordinator's ConfigMap."""
STRATEGY_KEY, NORMALIZATION_KEY, AMPLIFICATION_KEY = (
    "colocation-config",
    "cpu-normalization-config",
    "resource-amplification-config",
)
CONFIG_KEYS = (STRATEGY_KEY, NORMALIZATION_KEY, AMPLIFICATION_KEY)
"""What is read of its data; the rest is for the agents on nodes."""
STRATEGY_ANNOTATION = "node.koordinator.sh/colocation-strategy"
RATIO_LABELS = {
    "node.koordinator.sh/cpu-reclaim-ratio": "cpu_reclaim_threshold_percent",
    "node.koordinator.sh/memory-reclaim-ratio": "memory_reclaim_threshold_percent",
    "node.koordinator.sh/mid-static-cpu-reserved-ratio": "mid_static_cpu_reserved_percent",
    "node.koordinator.sh/mid-static-memory-reserved-ratio": "mid_static_memory_reserved_percent",
}
USAGE, REQUEST, MAX_USAGE_REQUEST = "usage", "request", "maxUsageRequest"
STATIC = "static"


class ColocationStrategy(KubeObject):
    """The settings of one node; percentages are of its capacity."""

    enable: bool = False
    cpu_reclaim_threshold_percent: int = msgspec.field(default=60, name="cpuReclaimThresholdPercent")
    memory_reclaim_threshold_percent: int = 65
    cpu_calculate_policy: str = msgspec.field(default=USAGE, name="cpuCalculatePolicy")
    memory_calculate_policy: str = USAGE
    batch_cpu_threshold_percent: int | None = msgspec.field(default=None, name="batchCPUThresholdPercent")
    batch_memory_threshold_percent: int | None = None
    mid_cpu_threshold_percent: int = msgspec.field(default=100, name="midCPUThresholdPercent")
    mid_memory_threshold_percent: int = 100
    mid_unallocated_percent: int = 0
    mid_reclaim_mode: str = ""
    mid_static_cpu_reserved_percent: int = msgspec.field(default=0, name="midStaticCPUReservedPercent")
    mid_static_memory_reserved_percent: int = 0
    degrade_time_minutes: int = 15
    update_time_threshold_seconds: int = 300
    resource_diff_threshold: float = 0.1

    @property
    def is_valid(self) -> bool:
        mid = (self.mid_cpu_threshold_percent, self.mid_memory_threshold_percent, self.mid_unallocated_percent)
        others = (
            self.cpu_reclaim_threshold_percent,
            self.memory_reclaim_threshold_percent,
            self.batch_cpu_threshold_percent or 0,
            self.batch_memory_threshold_percent or 0,
            self.mid_static_cpu_reserved_percent,
            self.mid_static_memory_reserved_percent,
        )
        positive = (self.degrade_time_minutes, self.update_time_threshold_seconds, self.resource_diff_threshold)
        return min((*mid, *others)) >= 0 and max(mid) <= 100 and min(positive) > 0


Settings = Mapping[str, Any]
"""Fields of a strategy as written; what it lacks is not changed."""


class _NodeConfig(KubeObject):
    node_selector: LabelSelector | None = None


def cluster_strategy(config: Settings) -> ColocationStrategy | None:
    """The strategy of a `colocation-config`; None if it is not valid."""
    return _valid(ColocationStrategy(), config)


def node_strategy(config: Settings, node: Node) -> ColocationStrategy | None:
    """The strategy of one node; None if that of the cluster is not valid."""
    found = cluster_strategy(config)
    if found is None:
        return None
    labels = node.metadata.labels or {}
    is_on = found.enable
    for one in config.get("nodeConfigs") or ():
        selector = msgspec.convert(one, _NodeConfig).node_selector
        if compile_label_selector(selector).matches(labels):
            found = _valid(found, one) or found
            break
    annotated = (node.metadata.annotations or {}).get(STRATEGY_ANNOTATION)
    if annotated is not None:
        found = _merged(found, _decoded(annotated)) or found
    percents = {field: _percent(labels[label]) for label, field in RATIO_LABELS.items() if label in labels}
    known = {field: percent for field, percent in percents.items() if percent is not None}
    # A node alone cannot switch on what the cluster has off.
    return msgspec.structs.replace(found, enable=found.enable and is_on, **known)


def _valid(base: ColocationStrategy, settings: Settings) -> ColocationStrategy | None:
    merged = _merged(base, settings)
    return merged if merged is not None and merged.is_valid else None


def _merged(base: ColocationStrategy, settings: Any) -> ColocationStrategy | None:
    """A strategy with settings over it; None if they cannot be read."""
    if not isinstance(settings, Mapping):
        return None
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        return msgspec.convert({**msgspec.to_builtins(base), **given}, ColocationStrategy)
    except msgspec.ValidationError:
        return None


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _percent(text: str) -> int | None:
    """Percent of a ratio such as `0.7`; None for what is negative or no number."""
    try:
        ratio = float(text)
    except ValueError:
        return None
    return int(ratio * 100) if ratio >= 0 and math.isfinite(ratio) else None
