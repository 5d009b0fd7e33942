"""Kueue's Configuration, as operators already have it: what of it decides who may start, typed and checked.

The keys that steer Kueue's process (webhooks, metrics, leader election and the like) are read and left alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mooring.config.scheduler import ConfigObject, convert, suggestion
from mooring.errors import ConfigError
from mooring.model.api.meta import LabelSelector, QuantityText
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.model.values.quantity import QuantityError, parse_quantity

KIND = "Configuration"
BALANCED_PLACEMENT = "TASBalancedPlacement"
"""A feature gate of Kueue's, off unless it is set."""
GROUP = "config.kueue.x-k8s.io/"
VERSIONS = ("v1beta2", "v1beta1")

FINAL_SHARE, INITIAL_SHARE = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
STRATEGIES = ([FINAL_SHARE], [INITIAL_SHARE], [FINAL_SHARE, INITIAL_SHARE])

Anything = dict[str, Any] | None
"""A part that is read and left alone."""


class RequeuingStrategy(ConfigObject):
    timestamp: str = "Eviction"
    """From when a workload queues that was evicted because its pods did not get ready: Eviction or Creation."""
    backoff_limit_count: int | None = None
    backoff_base_seconds: int = 60
    backoff_max_seconds: int = 3600


class WaitForPodsReady(ConfigObject):
    enable: bool | None = None
    """In v1beta1 off by default, in v1beta2 on."""
    timeout: str | None = None
    recovery_timeout: str | None = None
    max_timeout_on_workload: str | None = None
    block_admission: bool | None = None
    requeuing_strategy: RequeuingStrategy | None = None


class FairSharing(ConfigObject):
    enable: bool | None = None
    """In v1beta1 off by default; in v1beta2 fair sharing is on where this part is there."""
    preemption_strategies: list[str] | None = None


class AdmissionFairSharing(ConfigObject):
    usage_half_life_time: str = "0s"
    usage_sampling_interval: str = "5m"
    resource_weights: dict[str, float] | None = None


class ResourceTransformation(ConfigObject):
    input: str
    strategy: str = "Retain"
    multiply_by: str = ""
    outputs: dict[str, QuantityText] | None = None


class DeviceClassMapping(ConfigObject):
    """Devices of these classes count as so many of a resource."""

    name: str = ""
    device_class_names: list[str] | None = None


class Resources(ConfigObject):
    exclude_resource_prefixes: list[str] | None = None
    transformations: list[ResourceTransformation] | None = None
    quota_check_strategy: str = "BlockUndeclared"
    device_class_mappings: list[DeviceClassMapping] | None = None


class QueueingConfig(ConfigObject):
    """The document as a whole."""

    api_version: str = GROUP + VERSIONS[0]
    kind: str = KIND
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: Resources | None = None
    feature_gates: dict[str, bool] | None = None
    namespace: str | None = None
    webhook: Anything = None
    leader_election: Anything = None
    metrics: Anything = None
    health: Anything = None
    pprof_bind_address: str | None = None
    controller: Anything = None
    tls: Anything = None
    internal_cert_management: Anything = None
    client_connection: Anything = None
    integrations: Anything = None
    queue_visibility: Anything = None
    visibility_server: Anything = None
    multi_kueue: Anything = None
    object_retention_policies: Anything = None


@dataclass(frozen=True, slots=True)
class PodsReady:
    """How long an admitted workload may take until all its pods are ready, and what follows if it takes longer."""

    timeout_seconds: float = 1800.0
    recovery_timeout_seconds: float | None = 1800.0
    """How long pods may be missing that were there before; None: for ever."""
    blocks_admission: bool = False
    """Whether nobody else is admitted in the meantime."""
    orders_by_eviction: bool = True
    """Whether a workload that took too long goes to the end of its line, rather than to its old place."""
    backoff_limit: int | None = None
    """After how many times it is deactivated; None: never."""
    backoff_base_seconds: float = 60.0
    backoff_max_seconds: float = 3600.0

    def backoff_seconds(self, count: int) -> float:
        """How long the workload stays out of the line after the count-th time, the first being 1."""
        return float(min(self.backoff_base_seconds * 2.0 ** min(count - 1, 64), self.backoff_max_seconds))


@dataclass(frozen=True, slots=True)
class UsageHistory:
    """How past usage of LocalQueues counts: Kueue's admissionFairSharing."""

    half_life_seconds: float
    sampling_seconds: float
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TransformedResource:
    """One resource counted as others: an entry of resources.transformations."""

    outputs: Mapping[str, int]
    """How much of each, in nano-units, for every unit of the input."""
    keeps_input: bool = True
    multiply_by: str = ""
    """Another resource of the pod, whose amount multiplies the input's; if the pod has none of it, nothing does."""


@dataclass(frozen=True, slots=True)
class QueueingSettings:
    """What was configured, with all defaults filled in. Without a document, Kueue's own defaults."""

    fair_sharing: bool = False
    preemption_strategies: tuple[str, ...] = (FINAL_SHARE, INITIAL_SHARE)
    pods_ready: PodsReady | None = PodsReady()
    usage_history: UsageHistory | None = None
    excluded_prefixes: tuple[str, ...] = ()
    transformations: Mapping[str, TransformedResource] = field(default_factory=dict)
    ignores_undeclared: bool = False
    device_classes: Mapping[str, str] = field(default_factory=dict)
    """By device class, the resource that its devices count as."""
    balances_placement: bool = False
    """Whether pods that prefer a level of a topology are spread evenly over few domains: TASBalancedPlacement."""
    unused: tuple[str, ...] = ()
    """What was asked for of jobs and workloads, and is not done."""

    def remarks(self) -> list[str]:
        """What was read and changes nothing, in one line."""
        return [f"{GROUP[:-1]} {KIND}: not used here: {', '.join(self.unused)}"] if self.unused else []


def parse_queueing(document: Any, source: str) -> QueueingSettings:
    """Give a document of the kind Configuration its meaning; say what is wrong with it if it has none."""
    version = str(document.get("apiVersion", ""))
    if version not in [GROUP + known for known in VERSIONS]:
        raise ConfigError(source, "apiVersion", expected=" or ".join(GROUP + v for v in VERSIONS), found=f'"{version}"')
    config = convert(document, QueueingConfig, source)
    reader = _Reader(source, is_old=version.endswith("v1beta1"))
    resources = config.resources or Resources()
    strategy = resources.quota_check_strategy
    reader.choice("resources.quotaCheckStrategy", strategy, ("BlockUndeclared", "IgnoreUndeclared"))
    return QueueingSettings(
        fair_sharing=reader.is_fair(config.fair_sharing),
        preemption_strategies=reader.strategies(config.fair_sharing),
        pods_ready=reader.pods_ready(config.wait_for_pods_ready, config.feature_gates or {}),
        usage_history=reader.usage_history(config.admission_fair_sharing),
        excluded_prefixes=tuple(resources.exclude_resource_prefixes or ()),
        transformations=reader.transformations(resources.transformations or []),
        device_classes=reader.device_classes(resources.device_class_mappings or []),
        ignores_undeclared=strategy == "IgnoreUndeclared",
        balances_placement=bool((config.feature_gates or {}).get(BALANCED_PLACEMENT)),
        unused=("manageJobsWithoutQueueName",) if config.manage_jobs_without_queue_name else (),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the parts, with one error for the first thing that is wrong."""

    source: str
    is_old: bool

    def _refuse(self, path: str, *, expected: str, found: str) -> ConfigError:
        return ConfigError(self.source, path, expected=expected, found=found)

    def choice(self, path: str, value: str, allowed: tuple[str, ...]) -> None:
        if value not in allowed:
            expected = f"one of {', '.join(allowed)}{suggestion(value, allowed)}"
            raise self._refuse(path, expected=expected, found=f'"{value}"')

    def _at_least(self, path: str, value: float | None, least: float) -> None:
        if value is not None and value < least:
            raise self._refuse(path, expected=f"a number of at least {least:g}", found=f"{value:g}")

    def _seconds(self, path: str, text: str) -> float:
        seconds = parse_duration(text)
        if seconds is None:
            raise self._refuse(path, expected=EXPECTED_DURATION, found=f'"{text}"')
        return seconds

    def _switch(self, value: bool | None) -> bool:
        """The older version has a key to switch a part on; in the newer one, being there is enough."""
        return not self.is_old if value is None else value

    def is_fair(self, found: FairSharing | None) -> bool:
        return found is not None and self._switch(found.enable)

    def strategies(self, found: FairSharing | None) -> tuple[str, ...]:
        given = found.preemption_strategies if found is not None else None
        if not given:
            return FINAL_SHARE, INITIAL_SHARE
        if given not in STRATEGIES:
            expected = " or ".join(f"[{', '.join(allowed)}]" for allowed in STRATEGIES)
            found_text = f"[{', '.join(given)}]"
            raise self._refuse("fairSharing.preemptionStrategies", expected=expected, found=found_text)
        return tuple(given)

    def pods_ready(self, found: WaitForPodsReady | None, gates: Mapping[str, bool]) -> PodsReady | None:
        found = found or WaitForPodsReady()
        is_on = self._switch(found.enable)
        path = "waitForPodsReady"
        timeout = self._seconds(f"{path}.timeout", found.timeout) if found.timeout is not None else 0.0
        timeout = timeout or (300.0 if self.is_old else 1800.0)
        recovery = timeout
        if found.recovery_timeout is not None:
            recovery = self._seconds(f"{path}.recoveryTimeout", found.recovery_timeout)
        if found.max_timeout_on_workload is not None:
            self._seconds(f"{path}.maxTimeoutOnWorkload", found.max_timeout_on_workload)
        strategy = found.requeuing_strategy or RequeuingStrategy()
        path = f"{path}.requeuingStrategy"
        self.choice(f"{path}.timestamp", strategy.timestamp, ("Eviction", "Creation"))
        self._at_least(f"{path}.backoffLimitCount", strategy.backoff_limit_count, 0)
        self._at_least(f"{path}.backoffBaseSeconds", strategy.backoff_base_seconds, 0)
        self._at_least(f"{path}.backoffMaxSeconds", strategy.backoff_max_seconds, 0)
        if not is_on or gates.get("DisableWaitForPodsReady"):
            return None
        return PodsReady(
            timeout_seconds=timeout,
            recovery_timeout_seconds=recovery or None,
            blocks_admission=bool(found.block_admission),
            orders_by_eviction=strategy.timestamp == "Eviction",
            backoff_limit=strategy.backoff_limit_count,
            backoff_base_seconds=float(strategy.backoff_base_seconds),
            backoff_max_seconds=float(strategy.backoff_max_seconds),
        )

    def usage_history(self, found: AdmissionFairSharing | None) -> UsageHistory | None:
        if found is None:
            return None
        path = "admissionFairSharing"
        sampling = self._seconds(f"{path}.usageSamplingInterval", found.usage_sampling_interval)
        if sampling <= 0:
            expected = "a duration of more than 0"
            raise self._refuse(
                f"{path}.usageSamplingInterval", expected=expected, found=f'"{found.usage_sampling_interval}"'
            )
        weights = found.resource_weights or {}
        for name, weight in weights.items():
            self._at_least(f"{path}.resourceWeights.{name}", weight, 0)
        return UsageHistory(self._seconds(f"{path}.usageHalfLifeTime", found.usage_half_life_time), sampling, weights)

    def device_classes(self, given: list[DeviceClassMapping]) -> dict[str, str]:
        """By device class, the resource that its devices count as."""
        made: dict[str, str] = {}
        for index, found in enumerate(given):
            path = f"resources.deviceClassMappings[{index}]"
            if not found.name:
                raise self._refuse(f"{path}.name", expected="the name of a resource", found='""')
            if not found.device_class_names:
                raise self._refuse(f"{path}.deviceClassNames", expected="names of device classes", found="none")
            for name in found.device_class_names:
                if name in made:
                    raise self._refuse(f"{path}.deviceClassNames", expected="each class once", found=f'"{name}" again')
                made[name] = found.name
        return made

    def transformations(self, given: list[ResourceTransformation]) -> dict[str, TransformedResource]:
        made: dict[str, TransformedResource] = {}
        for index, found in enumerate(given):
            path = f"resources.transformations[{index}]"
            self.choice(f"{path}.strategy", found.strategy, ("Retain", "Replace"))
            if not found.input:
                raise self._refuse(f"{path}.input", expected="the name of a resource", found='""')
            if found.input in made:
                raise self._refuse(f"{path}.input", expected="each resource once", found=f'"{found.input}" again')
            outputs = {}
            for name, text in (found.outputs or {}).items():
                try:
                    outputs[name] = int(parse_quantity(text))
                except QuantityError as error:
                    raise self._refuse(
                        f"{path}.outputs.{name}", expected="a quantity such as 2, 500m or 5Gi", found=f'"{text}"'
                    ) from error
            made[found.input] = TransformedResource(outputs, found.strategy == "Retain", found.multiply_by)
        return made
