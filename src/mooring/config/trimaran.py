"""Arguments of the load-aware plugins of scheduler-plugins (Trimaran), as their configuration has them."""

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.model.api.meta import KubeObject, Resources
from mooring.model.values.quantity import QuantityError, parse_quantity
from mooring.model.values.requests import CPU

Problem = tuple[str, str, str]
"""(field, expected, found)"""


class TrimaranArgs(KubeObject, forbid_unknown_fields=True):
    """What all of them take."""

    api_version: str = ""
    kind: str = ""
    metric_provider: dict[str, Any] = {}
    watcher_address: str = ""
    """Where the original gets its figures from: left to the sources of load that there are here."""
    metrics_expiration_seconds: int = 0
    """Figures of this age count as none; 0: they stay good, as in the original."""

    def validate(self) -> Iterator[Problem]:
        if self.metrics_expiration_seconds < 0:
            yield "metricsExpirationSeconds", "seconds, 0 or more", str(self.metrics_expiration_seconds)


class TargetLoadPackingArgs(TrimaranArgs, forbid_unknown_fields=True):
    target_utilization: int = 40
    """Percent of a node's CPU."""
    default_requests: Resources = msgspec.field(default_factory=lambda: {CPU: "1000m"})
    """What a container is taken to use that has neither limit nor request."""
    default_requests_multiplier: str = "1.5"
    """A container without a limit is taken to use so many times its request."""

    def validate(self) -> Iterator[Problem]:
        yield from super().validate()
        if not 0 < self.target_utilization <= 100:
            yield "targetUtilization", "a percentage from 1 to 100", str(self.target_utilization)
        for name, text in self.default_requests.items():
            try:
                parse_quantity(text)
            except QuantityError:
                yield f"defaultRequests.{name}", "a quantity such as 500m", f'"{text}"'
        if not _is_number(self.default_requests_multiplier):
            yield "defaultRequestsMultiplier", "a number of 0 or more as text", f'"{self.default_requests_multiplier}"'


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False


class LoadVariationRiskBalancingArgs(TrimaranArgs, forbid_unknown_fields=True):
    safe_variance_margin: float = 1.0
    """The deviation counts so many times."""
    safe_variance_sensitivity: float = 1.0
    """The deviation counts by this root: above 1 small ones weigh more, below 1 less."""

    def validate(self) -> Iterator[Problem]:
        yield from super().validate()
        if self.safe_variance_margin < 0:
            yield "safeVarianceMargin", "a number of 0 or more", f"{self.safe_variance_margin:g}"
        if self.safe_variance_sensitivity < 0:
            yield "safeVarianceSensitivity", "a number of 0 or more", f"{self.safe_variance_sensitivity:g}"


class LowRiskOverCommitmentArgs(TrimaranArgs, forbid_unknown_fields=True):
    smoothing_window_size: int = 5
    """The deviation counts as one over so many windows."""
    risk_limit_weights: dict[str, float] = msgspec.field(default_factory=dict)
    """By resource, how much the risk by limits counts against that by load: 0 to 1, 0.5 if not given."""

    def validate(self) -> Iterator[Problem]:
        yield from super().validate()
        if self.smoothing_window_size <= 0:
            yield "smoothingWindowSize", "a whole number of 1 or more", str(self.smoothing_window_size)
        for name, weight in self.risk_limit_weights.items():
            if not 0 <= weight <= 1:
                yield f"riskLimitWeights.{name}", "a number from 0 to 1", f"{weight:g}"


class PowerModel(KubeObject, forbid_unknown_fields=True):
    k0: float = 0.0
    k1: float = 0.0
    k2: float = 0.0


class PeaksArgs(TrimaranArgs, forbid_unknown_fields=True):
    node_power_model: dict[str, PowerModel] = msgspec.field(default_factory=dict)
    upstream_node_power_model: dict[str, PowerModel] = msgspec.field(default_factory=dict, name="NodePowerModel")
    """The same, as scheduler-plugins spells it."""
