"""What a pod needs of a whole GPU that it has, by what was measured of it: a MIG instance, a share by MPS, or nothing.

Compute counts by the 95th percentile of utilization, memory by its peak, each with 15 % more, as for CPU and memory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.model.devices.mig import PREFIX, Geometry, geometry_of

MARGIN = 1.15
PERCENTILE = 0.95
IDLE_UTILIZATION, IDLE_MEMORY = 1.0, 2.0
"""In percent: below both for all of the time, a GPU is idle."""
LARGEST_SHARE = 0.5
"""A pod that needs more than this of a GPU keeps it, unless an instance fits it."""
KEEP, IDLE, MIG, SHARE = "keep", "idle", "MIG", "MPS"


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU at one moment, and the pod that has it."""

    at: float
    namespace: str
    pod: str
    card: str
    model: str
    utilization: float
    """Percent."""
    used: float
    """MiB of memory."""
    total: float


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """What is recommended instead of one whole GPU."""

    change: str
    resource: str
    saving: float
    """The part of a GPU that is left to others."""
    why: str


def needed_of(samples: Sequence[GpuSample]) -> GpuNeed:
    """What one GPU's samples, all of one pod, say of what the pod needs."""
    compute = _percentile([one.utilization for one in samples])
    peak, total = max(one.used for one in samples), max(one.total for one in samples)
    memory = 100 * peak / total if total else 0.0
    why = f"p95 of utilization {compute:.0f}%, peak of memory {memory:.0f}% of {total / 1024:.0f} GiB"
    if max(one.utilization for one in samples) < IDLE_UTILIZATION and memory < IDLE_MEMORY:
        return GpuNeed(IDLE, "none", 1.0, why)
    needs_compute, needs_memory = min(1.0, MARGIN * compute / 100), min(1.0, MARGIN * memory / 100)
    geometry = geometry_of(samples[0].model, int(total))
    if geometry is not None and (profile := _instance(geometry, needs_compute, needs_memory)):
        part = geometry.by_name[profile].slices / geometry.slices
        return GpuNeed(MIG, f"{PREFIX}{profile}: 1", 1.0 - part, why)
    share = math.ceil(round(10 * max(needs_compute, needs_memory), 6)) / 10
    if geometry is None and share <= LARGEST_SHARE:
        share = max(share, 0.1)
        return GpuNeed(SHARE, f"{share:.0%} of a GPU", 1.0 - share, why)
    return GpuNeed(KEEP, "nvidia.com/gpu: 1", 0.0, why)


def _instance(geometry: Geometry, compute: float, memory: float) -> str:
    """The smallest instance that has so much of both; nothing where only the whole GPU has."""
    sevenths = max(profile.compute for profile in geometry.profiles)
    fitting = [
        profile
        for profile in geometry.profiles
        if profile.slices < geometry.slices
        and profile.compute / sevenths >= compute
        and profile.slices / geometry.slices >= memory
    ]
    best = min(fitting, key=lambda profile: (profile.slices, profile.compute, profile.name), default=None)
    return best.name if best is not None else ""


def _percentile(values: Sequence[float]) -> float:
    """The least value that is not exceeded so often."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(PERCENTILE * len(ordered)) - 1)]
