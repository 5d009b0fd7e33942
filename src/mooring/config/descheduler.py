"""DeschedulerPolicy: which pods are evicted, and which are protected; checked as the descheduler checks it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from mooring.config.scheduler import ConfigObject, convert, suggestion
from mooring.errors import ConfigError
from mooring.model.api.meta import LabelSelector
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.model.values.selector_text import SelectorError, parse_label_selector

KIND = "DeschedulerPolicy"
API_VERSION = "descheduler/v1alpha2"
SYSTEM_CRITICAL = 2_000_000_000
"""Priorities from here on are those of the system."""

DEFAULT_PROTECTIONS = ("PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods")
EXTRA_PROTECTIONS = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
PROMETHEUS, KUBERNETES_METRICS = "Prometheus", "KubernetesMetrics"
ONLY_THRESHOLDING_RESOURCES = "OnlyThresholdingResources"
LIFETIME_STATES = (
    *("Running", "Pending", "Succeeded", "Failed", "Unknown"),
    *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
    *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError"),
    *("ErrImagePull", "CreateContainerError", "InvalidImageName"),
    *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError"),
)
RESTART_STATES = ("Running", "CrashLoopBackOff")
CONSTRAINTS = ("DoNotSchedule", "ScheduleAnyway")

T = TypeVar("T")


class Names(ConfigObject):
    """Names that are meant, or that are not."""

    include: list[str] = []
    exclude: list[str] = []

    def has(self, name: str) -> bool:
        return (not self.include or name in self.include) and name not in self.exclude


class Args(ConfigObject):
    """The arguments of one plugin."""

    def problems(self) -> "Iterable[tuple[str, str, object]]":
        """What is wrong with them: field, what is expected, what was found."""
        return ()


class PodArgs(Args):
    """Arguments of plugins that look at some of the pods."""

    namespaces: Names | None = None
    label_selector: LabelSelector | None = None

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from _one_of_both(self.namespaces, "namespaces")
        yield from _selector_problems(self.label_selector, "labelSelector")


class PriorityThreshold(ConfigObject):
    name: str = ""
    value: int | None = None


class StorageClassName(ConfigObject):
    name: str = ""


class PodsWithPvc(ConfigObject):
    protected_storage_classes: list[StorageClassName] = []


class ProtectionsConfig(ConfigObject, rename=None):
    PodsWithPVC: PodsWithPvc | None = None


class PodProtections(ConfigObject):
    extra_enabled: list[str] = []
    default_disabled: list[str] = []
    config: ProtectionsConfig | None = None


class DefaultEvictorArgs(Args):
    """Which pods may be evicted at all."""

    node_selector: str = ""
    label_selector: LabelSelector | None = None
    namespace_label_selector: LabelSelector | None = None
    priority_threshold: PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: int = 0
    min_pod_age: str | None = None
    no_eviction_policy: str = ""
    pod_protections: PodProtections = msgspec.field(default_factory=PodProtections)
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(default=False, name="ignorePodsWithoutPDB")
    evict_failed_bare_pods: bool = False

    def problems(self) -> Iterable[tuple[str, str, object]]:
        threshold = self.priority_threshold
        if threshold is not None and threshold.name and threshold.value is not None:
            yield "priorityThreshold", "a name or a value", "both"
        if threshold is not None and (threshold.value or 0) > SYSTEM_CRITICAL:
            yield "priorityThreshold.value", f"at most {SYSTEM_CRITICAL}", threshold.value
        if self.no_eviction_policy not in ("", "Preferred", "Mandatory"):
            yield "noEvictionPolicy", "Preferred or Mandatory", self.no_eviction_policy
        if self.min_replicas < 0:
            yield "minReplicas", "a number of at least 0", self.min_replicas
        if self.min_pod_age is not None and parse_duration(self.min_pod_age) is None:
            yield "minPodAge", EXPECTED_DURATION, self.min_pod_age
        yield from selector_text_problems(self.node_selector, "nodeSelector")
        yield from _selector_problems(self.label_selector, "labelSelector")
        yield from _selector_problems(self.namespace_label_selector, "namespaceLabelSelector")
        yield from self._protection_problems()

    def _protection_problems(self) -> Iterable[tuple[str, str, object]]:
        given = self.pod_protections
        if not given.extra_enabled and not given.default_disabled:
            return
        older = (
            self.evict_local_storage_pods,
            self.evict_daemon_set_pods,
            self.evict_system_critical_pods,
            self.ignore_pvc_pods,
            self.ignore_pods_without_pdb,
            self.evict_failed_bare_pods,
        )
        if any(older):
            yield "podProtections", "no older flags such as evictLocalStoragePods beside it", "both"
        lists = (("extraEnabled", given.extra_enabled, EXTRA_PROTECTIONS),)
        for name, protections, known in (*lists, ("defaultDisabled", given.default_disabled, DEFAULT_PROTECTIONS)):
            for protection in protections:
                if protection not in known:
                    yield f"podProtections.{name}", f"one of {', '.join(known)}", protection
            if len(set(protections)) != len(protections):
                yield f"podProtections.{name}", "each protection once", "one of them twice"
        if "PodsWithPVC" in given.extra_enabled and any(not one.name for one in self.protected_storage_classes):
            yield "podProtections.config.PodsWithPVC.protectedStorageClasses", "a name for each", "none"

    @property
    def protected_storage_classes(self) -> list[StorageClassName]:
        config = self.pod_protections.config
        return config.PodsWithPVC.protected_storage_classes if config is not None and config.PodsWithPVC else []

    @property
    def protections(self) -> frozenset[str]:
        """The protections that hold; without lists of them the older flags say which."""
        given = self.pod_protections
        if given.extra_enabled or given.default_disabled:
            return frozenset(DEFAULT_PROTECTIONS) - set(given.default_disabled) | set(given.extra_enabled)
        flags = {
            "PodsWithLocalStorage": not self.evict_local_storage_pods,
            "DaemonSetPods": not self.evict_daemon_set_pods,
            "SystemCriticalPods": not self.evict_system_critical_pods,
            "FailedBarePods": not self.evict_failed_bare_pods,
            "PodsWithPVC": self.ignore_pvc_pods,
            "PodsWithoutPDB": self.ignore_pods_without_pdb,
        }
        return frozenset(name for name, holds in flags.items() if holds)


class ConditionFilter(ConfigObject):
    type: str = ""
    status: str = ""
    reason: str = ""
    min_time_since_last_transition_seconds: int | None = None


class PodLifeTimeArgs(PodArgs):
    max_pod_life_time_seconds: int | None = None
    states: list[str] = []
    conditions: list[ConditionFilter] = []
    exit_codes: list[int] = []
    owner_kinds: Names | None = None
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from PodArgs.problems(self)
        yield from _one_of_both(self.owner_kinds, "ownerKinds")
        if (self.max_pod_life_time_seconds or 0) < 0:
            yield "maxPodLifeTimeSeconds", "a number of at least 0", self.max_pod_life_time_seconds
        yield from _known(self.states, LIFETIME_STATES, "states")
        for index, one in enumerate(self.conditions):
            if one == ConditionFilter():
                expected = "one of type, status, reason or minTimeSinceLastTransitionSeconds"
                yield f"conditions[{index}]", expected, "none"
        if self.max_pod_life_time_seconds is None and not (self.states or self.conditions or self.exit_codes):
            yield "", "one of maxPodLifeTimeSeconds, states, conditions or exitCodes", "none"


class RemoveFailedPodsArgs(PodArgs):
    min_pod_lifetime_seconds: int = 3600
    exclude_owner_kinds: list[str] = []
    reasons: list[str] = []
    exit_codes: list[int] = []
    including_init_containers: bool = False

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from PodArgs.problems(self)
        if self.min_pod_lifetime_seconds < 0:
            yield "minPodLifetimeSeconds", "a number of at least 0", self.min_pod_lifetime_seconds


class TooManyRestartsArgs(PodArgs):
    pod_restart_threshold: int = 0
    including_init_containers: bool = False
    states: list[str] = []

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from PodArgs.problems(self)
        if self.pod_restart_threshold < 1:
            yield "podRestartThreshold", "a number of at least 1", self.pod_restart_threshold
        yield from _known(self.states, RESTART_STATES, "states")


class InterPodAntiAffinityArgs(PodArgs):
    pass


class NodeAffinityArgs(PodArgs):
    node_affinity_type: list[str] = []

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from PodArgs.problems(self)
        if not self.node_affinity_type:
            yield "nodeAffinityType", "at least one kind of node affinity", "none"


class NodeTaintsArgs(PodArgs):
    include_prefer_no_schedule: bool = False
    excluded_taints: list[str] = []
    included_taints: list[str] | None = None

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from PodArgs.problems(self)
        if self.excluded_taints and self.included_taints:
            yield "includedTaints", "no excludedTaints beside it", "both"


class RemoveDuplicatesArgs(Args):
    namespaces: Names | None = None
    exclude_owner_kinds: list[str] = []

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from _one_of_both(self.namespaces, "namespaces")


class TopologySpreadArgs(PodArgs):
    constraints: list[str] = []
    topology_balance_node_fit: bool | None = None

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from PodArgs.problems(self)
        yield from _known(self.constraints, CONSTRAINTS, "constraints")


class PrometheusQuery(ConfigObject):
    query: str = ""


class MetricsUtilization(ConfigObject):
    metrics_server: bool = False
    source: str = ""
    prometheus: PrometheusQuery | None = None


class EvictionLimits(ConfigObject):
    node: int | None = None


class UtilizationArgs(Args):
    thresholds: dict[str, float] = {}
    number_of_nodes: int = 0
    evictable_namespaces: Names | None = None

    def problems(self) -> Iterable[tuple[str, str, object]]:
        if self.evictable_namespaces is not None and self.evictable_namespaces.include:
            yield "evictableNamespaces.include", "exclude only", "include"
        yield from _threshold_problems(self.thresholds, "thresholds")


class LowNodeUtilizationArgs(UtilizationArgs):
    use_deviation_thresholds: bool = False
    target_thresholds: dict[str, float] = {}
    metrics_utilization: MetricsUtilization | None = None
    eviction_limits: EvictionLimits | None = None

    @property
    def is_measured(self) -> bool:
        """Whether nodes are judged by what was measured on them, not by requests."""
        found = self.metrics_utilization
        return found is not None and (found.metrics_server or found.source in (KUBERNETES_METRICS, PROMETHEUS))

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from UtilizationArgs.problems(self)
        yield from _threshold_problems(self.target_thresholds, "targetThresholds")
        if self.thresholds.keys() != self.target_thresholds.keys():
            yield "targetThresholds", "the resources of thresholds", ", ".join(self.target_thresholds) or "none"
        elif not self.use_deviation_thresholds:
            for name, percent in self.thresholds.items():
                if percent > self.target_thresholds[name]:
                    yield f"thresholds.{name}", f"at most targetThresholds.{name}", percent
        metrics = self.metrics_utilization
        if metrics is None:
            return
        if metrics.source == KUBERNETES_METRICS and metrics.metrics_server:
            yield "metricsUtilization", "source or metricsServer", "both"
        if metrics.source == KUBERNETES_METRICS and metrics.prometheus is not None:
            yield "metricsUtilization.prometheus", f"nothing, as the source is {KUBERNETES_METRICS}", "a query"
        if metrics.source == PROMETHEUS and (metrics.prometheus is None or not metrics.prometheus.query):
            yield "metricsUtilization.prometheus.query", "a query", "none"


class HighNodeUtilizationArgs(UtilizationArgs):
    eviction_modes: list[str] = []

    def problems(self) -> Iterable[tuple[str, str, object]]:
        yield from UtilizationArgs.problems(self)
        yield from _known(self.eviction_modes, (ONLY_THRESHOLDING_RESOURCES,), "evictionModes")


DEFAULT_EVICTOR = "DefaultEvictor"
DESCHEDULE: dict[str, type[Args]] = {
    "PodLifeTime": PodLifeTimeArgs,
    "RemoveFailedPods": RemoveFailedPodsArgs,
    "RemovePodsHavingTooManyRestarts": TooManyRestartsArgs,
    "RemovePodsViolatingInterPodAntiAffinity": InterPodAntiAffinityArgs,
    "RemovePodsViolatingNodeAffinity": NodeAffinityArgs,
    "RemovePodsViolatingNodeTaints": NodeTaintsArgs,
}
BALANCE: dict[str, type[Args]] = {
    "RemoveDuplicates": RemoveDuplicatesArgs,
    "LowNodeUtilization": LowNodeUtilizationArgs,
    "HighNodeUtilization": HighNodeUtilizationArgs,
    "RemovePodsViolatingTopologySpreadConstraint": TopologySpreadArgs,
}
_ARGS: dict[str, type[Args]] = {DEFAULT_EVICTOR: DefaultEvictorArgs, **DESCHEDULE, **BALANCE}


class PluginSet(ConfigObject):
    enabled: list[str] = []
    disabled: list[str] = []


class Plugins(ConfigObject):
    presort: PluginSet = msgspec.field(default_factory=PluginSet)
    sort: PluginSet = msgspec.field(default_factory=PluginSet)
    deschedule: PluginSet = msgspec.field(default_factory=PluginSet)
    balance: PluginSet = msgspec.field(default_factory=PluginSet)
    filter: PluginSet = msgspec.field(default_factory=PluginSet)
    preevictionfilter: PluginSet = msgspec.field(default_factory=PluginSet)


class PluginConfig(ConfigObject):
    name: str = ""
    args: dict[str, Any] | None = None


class RawProfile(ConfigObject):
    name: str = ""
    plugin_config: list[PluginConfig] = []
    plugins: Plugins = msgspec.field(default_factory=Plugins)


class RawPolicy(ConfigObject):
    api_version: str = ""
    kind: str = ""
    profiles: list[RawProfile] = []
    node_selector: str = ""
    max_no_of_pods_to_evict_per_node: int | None = None
    max_no_of_pods_to_evict_per_namespace: int | None = None
    max_no_of_pods_to_evict_total: int | None = None
    eviction_failure_event_notification: bool | None = None
    grace_period_seconds: int | None = None
    metrics_collector: dict[str, Any] | None = None
    metrics_providers: list[dict[str, Any]] | None = None


class Profile(msgspec.Struct, frozen=True):
    """Strategies that run one after the other, and what protects pods from them."""

    name: str
    evictor: DefaultEvictorArgs
    deschedule: tuple[tuple[str, Args], ...]
    balance: tuple[tuple[str, Args], ...]


class DeschedulerPolicy(msgspec.Struct, frozen=True):
    """What a DeschedulerPolicy says, checked."""

    profiles: tuple[Profile, ...]
    node_selector: str
    most_per_node: int | None
    most_per_namespace: int | None
    most_in_all: int | None


def parse_descheduler_policy(
    document: Any, source: str, more: Mapping[str, type[Args]] = MappingProxyType({})
) -> DeschedulerPolicy:
    """Give a DeschedulerPolicy its type; say what is wrong with it if it has none.

    `more` are balance plugins that are not the descheduler's own.
    """
    version = str(document.get("apiVersion", ""))
    if version != API_VERSION:
        raise ConfigError(source, "apiVersion", expected=API_VERSION, found=f'"{version}"')
    raw = convert(document, RawPolicy, source)
    refuse(selector_text_problems(raw.node_selector, "nodeSelector"), source, "")
    profiles = tuple(
        _profile(profile, source, f"profiles[{index}]", more) for index, profile in enumerate(raw.profiles)
    )
    return DeschedulerPolicy(
        profiles,
        raw.node_selector,
        raw.max_no_of_pods_to_evict_per_node,
        raw.max_no_of_pods_to_evict_per_namespace,
        raw.max_no_of_pods_to_evict_total,
    )


def _profile(raw: RawProfile, source: str, at: str, more: Mapping[str, type[Args]]) -> Profile:
    args: dict[str, Args] = {}
    plugins = {**_ARGS, **more}
    for index, config in enumerate(raw.plugin_config):
        where = f"{at}.pluginConfig[{index}]"
        known = plugins.get(config.name)
        if known is None:
            expected = f"a plugin of the descheduler{suggestion(config.name, plugins)}"
            raise ConfigError(source, f"{where}.name", expected=expected, found=f'"{config.name}"')
        args[config.name] = convert(config.args or {}, known, source, f"{where}.args")
        refuse(args[config.name].problems(), source, f"{where}.args")
    evictor = args.get(DEFAULT_EVICTOR, DefaultEvictorArgs())
    assert isinstance(evictor, DefaultEvictorArgs)
    return Profile(
        raw.name,
        evictor,
        _enabled(raw.plugins.deschedule, DESCHEDULE, args, source, f"{at}.plugins.deschedule"),
        _enabled(raw.plugins.balance, {**BALANCE, **more}, args, source, f"{at}.plugins.balance"),
    )


def _enabled(
    plugins: PluginSet, known: dict[str, type[Args]], args: dict[str, Args], source: str, at: str
) -> tuple[tuple[str, Args], ...]:
    for index, name in enumerate(plugins.enabled):
        where = f"{at}.enabled[{index}]"
        if name not in known:
            expected = f"one of {', '.join(known)}{suggestion(name, known)}"
            raise ConfigError(source, where, expected=expected, found=f'"{name}"')
        if name not in args:
            raise ConfigError(
                source, where, expected="an entry of pluginConfig for each plugin", found=f'none for "{name}"'
            )
    return tuple((name, args[name]) for name in plugins.enabled)


def refuse(problems: Iterable[tuple[str, str, object]], source: str, at: str) -> None:
    for field, expected, found in problems:
        where = ".".join(filter(None, (at, field)))
        raise ConfigError(source, where, expected=expected, found=str(found) if found != "" else '""')


def _one_of_both(names: Names | None, field: str) -> Iterable[tuple[str, str, object]]:
    if names is not None and names.include and names.exclude:
        yield field, "include or exclude", "both"


def _known(values: Iterable[str], known: tuple[str, ...], field: str) -> Iterable[tuple[str, str, object]]:
    for value in values:
        if value not in known:
            yield field, f"one of {', '.join(known)}", value


def _threshold_problems(thresholds: dict[str, float], field: str) -> Iterable[tuple[str, str, object]]:
    if not thresholds:
        yield field, "a percentage for at least one resource", "none"
    for name, percent in thresholds.items():
        if not 0 <= percent <= 100:
            yield f"{field}.{name}", "a percentage from 0 to 100", f"{percent:g}"


def _selector_problems(selector: LabelSelector | None, field: str) -> Iterable[tuple[str, str, object]]:
    for index, one in enumerate((selector.match_expressions if selector is not None else None) or ()):
        where = f"{field}.matchExpressions[{index}]"
        if one.operator not in OPERATORS:
            yield f"{where}.operator", f"one of {', '.join(OPERATORS)}", one.operator
        elif bool(one.values) != (one.operator in ("In", "NotIn")):
            yield f"{where}.values", "values for In and NotIn, and for no other operator", one.operator


def selector_text_problems(text: str, field: str) -> Iterable[tuple[str, str, object]]:
    try:
        parse_label_selector(text)
    except SelectorError:
        yield field, "a label selector such as disk=ssd,zone in (a,b)", f'"{text}"'
