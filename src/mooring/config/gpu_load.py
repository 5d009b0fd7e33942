"""Arguments of GpuLoad: from which load on a node's GPUs take no more pods, and how the load of others is weighed."""

from collections.abc import Iterator

import msgspec

from mooring.model.api.meta import KubeObject

Problem = tuple[str, str, str]
"""(field, expected, found)"""

PASS, REFUSE, KEEP = "Pass", "Refuse", "Keep"


class GpuLoadThresholds(KubeObject, forbid_unknown_fields=True):
    """A node above one of these takes no pod that asks for GPUs; 0 for no threshold."""

    utilization: int = 90
    """Percent, the mean of its GPUs."""
    memory: int = 90
    """Percent, the mean of its GPUs."""
    temperature: int = 85
    """Degrees Celsius, the hottest of its GPUs."""


class GpuLoadWeights(KubeObject, forbid_unknown_fields=True):
    utilization: int = 1
    memory: int = 1
    temperature: int = 0


class GpuLoadArgs(KubeObject, forbid_unknown_fields=True):
    thresholds: GpuLoadThresholds = msgspec.field(default_factory=GpuLoadThresholds)
    weights: GpuLoadWeights = msgspec.field(default_factory=GpuLoadWeights)
    cool_celsius: int = 30
    hot_celsius: int = 90
    """From the one to the other, temperature counts as 0 to 100 percent of load."""
    estimated_utilization: int = 80
    """Percent of each GPU that a pod asks for which it counts as using until it is measured."""
    expiration_seconds: int = 180
    when_expired: str = PASS
    """What becomes of a node whose report is so old: Pass (it counts as unknown, scored 0), Refuse, or Keep (the old
    figures count)."""

    def validate(self) -> Iterator[Problem]:
        for name in ("utilization", "memory"):
            if not 0 <= (percent := getattr(self.thresholds, name)) <= 100:
                yield f"thresholds.{name}", "a percentage from 0 to 100", str(percent)
        if self.thresholds.temperature < 0:
            yield "thresholds.temperature", "degrees Celsius, 0 or more", str(self.thresholds.temperature)
        weights = {name: getattr(self.weights, name) for name in self.weights.__struct_fields__}
        for name, weight in weights.items():
            if weight < 0:
                yield f"weights.{name}", "a whole number of 0 or more", str(weight)
        if not any(weights.values()):
            yield "weights", "at least one above 0", "none"
        if self.cool_celsius >= self.hot_celsius:
            yield "hotCelsius", f"more than coolCelsius ({self.cool_celsius})", str(self.hot_celsius)
        if not 0 <= self.estimated_utilization <= 100:
            yield "estimatedUtilization", "a percentage from 0 to 100", str(self.estimated_utilization)
        if self.expiration_seconds <= 0:
            yield "expirationSeconds", "seconds, 1 or more", str(self.expiration_seconds)
        if self.when_expired not in (PASS, REFUSE, KEEP):
            yield "whenExpired", f"one of {PASS}, {REFUSE}, {KEEP}", f'"{self.when_expired}"'
