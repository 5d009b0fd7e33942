"""From usage to a recommendation: percentile, margin, confidence and minimum, each cut to whole amounts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.model.rightsizing.amounts import CPU, MEMORY
from mooring.state.usage.containers import ContainerUsage
from mooring.state.usage.histograms import Floats, Rows

LARGEST = 1e14
"""No amount is larger."""

Amounts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """Defaults are those of the Vertical Pod Autoscaler's recommender."""

    target_percentile: float = 0.9
    lower_percentile: float = 0.5
    upper_percentile: float = 0.95
    margin: float = 0.15
    confidence_seconds: float = 86400.0
    pod_min_cpu_millis: float = 25.0
    pod_min_memory_mebibytes: float = 250.0


@dataclass(frozen=True, slots=True)
class Estimates:
    """By resource, for each aggregate that was asked about: CPU in millicores, memory in bytes."""

    target: Mapping[str, Amounts]
    lower_bound: Mapping[str, Amounts]
    upper_bound: Mapping[str, Amounts]


def estimate(
    usage: ContainerUsage, aggregates: Rows, containers_in_pod: NDArray[np.int64], settings: EstimateSettings
) -> Estimates:
    """Estimate what containers need; the minimum of a pod is divided among the containers that are right-sized."""
    fractions = 1.0 / containers_in_pod
    least_cpu = _cut(_cut(np.float64(settings.pod_min_cpu_millis * 0.001 * 1000.0)) * fractions)
    least_memory = _cut(_cut(np.float64(settings.pod_min_memory_mebibytes * 1024 * 1024)) * fractions)
    confidence = _confidence(usage, aggregates, settings.confidence_seconds)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        widened = 1.0 + 1.0 / confidence
        narrowed = 1.0 + 0.001 / confidence
        narrowed = 1.0 / (narrowed * narrowed)

    def amounts(percentile: float, factor: Floats | None) -> dict[str, Amounts]:
        cpu = _cut(usage.cpu.percentiles(aggregates, percentile) * 1000.0)
        memory = _cut(usage.memory.percentiles(aggregates, percentile))
        cpu, memory = cpu + _cut(cpu * settings.margin), memory + _cut(memory * settings.margin)
        if factor is not None:
            with np.errstate(invalid="ignore", over="ignore"):
                cpu, memory = _cut(cpu * factor), _cut(memory * factor)
        return {CPU: np.maximum(cpu, least_cpu), MEMORY: np.maximum(memory, least_memory)}

    return Estimates(
        amounts(settings.target_percentile, None),
        amounts(settings.lower_percentile, narrowed),
        amounts(settings.upper_percentile, widened),
    )


def _confidence(usage: ContainerUsage, aggregates: Rows, seconds: float) -> Floats:
    """How much history there is: the days that it spans, or the days that its samples would fill, one a minute."""
    counts = usage.sample_counts[aggregates]
    span = np.where(counts > 0, usage.last_samples[aggregates], 0.0)
    span -= np.where(counts > 0, usage.first_samples[aggregates], 0.0)
    confidence: Floats = np.minimum(span / seconds, counts / (seconds / 60.0))
    return confidence


def _cut(amounts: NDArray[np.floating] | np.floating) -> Amounts:
    """Whole amounts, none below zero; what is no number at all (nothing times infinity) is nothing."""
    whole: Amounts = np.nan_to_num(np.clip(amounts, 0.0, LARGEST), nan=0.0).astype(np.int64)
    return whole
