"""Arguments of Koordinator's LoadAwareScheduling, and what nodes may say instead."""

from collections.abc import Iterator, Mapping

import msgspec

from mooring.model.api.meta import KubeObject
from mooring.model.colocation.estimates import ESTIMATED
from mooring.model.load.reports import PERCENTILES
from mooring.model.values.durations import parse_duration
from mooring.model.values.requests import CPU, MEMORY

Percents = Mapping[str, int]
Problem = tuple[str, str, str]
"""(field, expected, found)"""


class Aggregated(KubeObject, forbid_unknown_fields=True):
    usage_thresholds: dict[str, int] = {}
    usage_aggregation_type: str = ""
    usage_aggregated_duration: str = ""
    score_aggregation_type: str = ""
    score_aggregated_duration: str = ""

    def validate(self) -> Iterator[Problem]:
        yield from _check_percents("aggregated.usageThresholds", self.usage_thresholds)
        for name, found in (
            ("usageAggregationType", self.usage_aggregation_type),
            ("scoreAggregationType", self.score_aggregation_type),
        ):
            if found and found not in PERCENTILES:
                yield f"aggregated.{name}", f"one of {', '.join(PERCENTILES)}", f'"{found}"'
        for name, found in (
            ("usageAggregatedDuration", self.usage_aggregated_duration),
            ("scoreAggregatedDuration", self.score_aggregated_duration),
        ):
            if found and parse_duration(found) is None:
                yield f"aggregated.{name}", "a duration such as 5m", f'"{found}"'


class LoadAwareSchedulingArgs(KubeObject, forbid_unknown_fields=True):
    api_version: str = ""
    kind: str = ""
    filter_expired_node_metrics: bool = True
    """Whether the filter looks at the age of reports; where it does not, old ones are as good as new ones."""
    enable_schedule_when_node_metrics_expired: bool = False
    """Whether nodes whose report is too old are let pass; otherwise they are refused."""
    node_metric_expiration_seconds: int = 180
    resource_weights: dict[str, int] = {}
    """cpu 1 and memory 1 if neither this nor dominantResourceWeight is given."""
    dominant_resource_weight: int = 0
    """The weight of the resource of which least is left."""
    usage_thresholds: dict[str, int] = {}
    """Percent of what a node has, by resource; cpu 65 and memory 95 if none is given, 0 for no threshold."""
    prod_usage_thresholds: dict[str, int] = {}
    """For prod pods, and what prod pods use."""
    prod_usage_include_sys: bool = False
    score_according_prod_usage: bool = False
    estimator: str = ""
    estimated_scaling_factors: dict[str, int] = {}
    """Percent of what a pod asks for that it is expected to use; cpu 85 and memory 70 if not given."""
    estimated_seconds_after_pod_scheduled: int = 0
    estimated_seconds_after_initialized: int = 0
    """For so long the estimate of a pod counts, where it is more than what was measured."""
    allow_customize_estimation: bool = False
    """Whether an annotation of a pod may change its scaling factors."""
    aggregated: Aggregated = msgspec.field(default_factory=Aggregated)

    def __post_init__(self) -> None:
        if not self.resource_weights and not self.dominant_resource_weight:
            self.resource_weights = {CPU: 1, MEMORY: 1}
        self.usage_thresholds = self.usage_thresholds or {CPU: 65, MEMORY: 95}
        self.estimated_scaling_factors = {CPU: 85, MEMORY: 70} | self.estimated_scaling_factors

    def validate(self) -> Iterator[Problem]:
        for name, seconds in (
            ("nodeMetricExpirationSeconds", self.node_metric_expiration_seconds),
            ("estimatedSecondsAfterPodScheduled", self.estimated_seconds_after_pod_scheduled),
            ("estimatedSecondsAfterInitialized", self.estimated_seconds_after_initialized),
        ):
            if seconds < 0:
                yield name, "seconds, 0 or more", str(seconds)
        if self.estimator not in ("", "defaultEstimator"):
            yield "estimator", "defaultEstimator, the only one", f'"{self.estimator}"'
        yield from _check_percents("usageThresholds", self.usage_thresholds)
        yield from _check_percents("prodUsageThresholds", self.prod_usage_thresholds)
        for field, numbers in (
            ("resourceWeights", self.resource_weights),
            ("estimatedScalingFactors", self.estimated_scaling_factors),
        ):
            for name, number in numbers.items():
                if name not in ESTIMATED:
                    yield f"{field}.{name}", f"one of {', '.join(ESTIMATED)}", f'"{name}"'
                if number <= 0:
                    yield f"{field}.{name}", "a whole number of 1 or more", str(number)
        if self.dominant_resource_weight < 0:
            yield "dominantResourceWeight", "a whole number of 0 or more", str(self.dominant_resource_weight)
        yield from self.aggregated.validate()


def _check_percents(field: str, thresholds: Percents) -> Iterator[Problem]:
    for name, percent in thresholds.items():
        if name not in ESTIMATED:
            yield f"{field}.{name}", f"one of {', '.join(ESTIMATED)}", f'"{name}"'
        if not 0 <= percent <= 100:
            yield f"{field}.{name}", "a percentage from 0 to 100", str(percent)


class CustomAggregated(KubeObject):
    usage_thresholds: dict[str, int] = {}
    usage_aggregation_type: str = ""
    usage_aggregated_duration: str = ""


class CustomThresholds(KubeObject):
    """What an annotation of a node says instead of the arguments."""

    usage_thresholds: dict[str, int] = {}
    prod_usage_thresholds: dict[str, int] = {}
    aggregated_usage: CustomAggregated | None = None
