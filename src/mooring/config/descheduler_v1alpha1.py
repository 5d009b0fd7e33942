"""DeschedulerPolicy of descheduler/v1alpha1: strategies by name with parameters, as the descheduler read it until 2023.

Each strategy becomes a profile of its own, with what the policy says of all pods and what its own parameters say of
priorities and nodes: so did the descheduler itself translate it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mooring.config import descheduler as current
from mooring.config.descheduler import (
    BALANCE,
    DESCHEDULE,
    Args,
    DefaultEvictorArgs,
    DeschedulerPolicy,
    Names,
    PriorityThreshold,
    Profile,
    parse_descheduler_policy,
    refuse,
)
from mooring.config.scheduler import ConfigObject, convert, suggestion
from mooring.errors import ConfigError
from mooring.model.api.meta import LabelSelector

API_VERSION = "descheduler/v1alpha1"
SOFT_CONSTRAINTS = ["DoNotSchedule", "ScheduleAnyway"]


class Utilization(ConfigObject):
    use_deviation_thresholds: bool = False
    thresholds: dict[str, float] = {}
    target_thresholds: dict[str, float] = {}
    number_of_nodes: int = 0


class Restarts(ConfigObject):
    pod_restart_threshold: int = 0
    including_init_containers: bool = False


class Duplicates(ConfigObject):
    exclude_owner_kinds: list[str] = []


class LifeTime(ConfigObject):
    max_pod_life_time_seconds: int | None = None
    pod_status_phases: list[str] = []
    states: list[str] = []


class Failed(ConfigObject):
    exclude_owner_kinds: list[str] = []
    min_pod_lifetime_seconds: int | None = None
    reasons: list[str] = []
    including_init_containers: bool = False


class Parameters(ConfigObject):
    """What a strategy may be told; each reads what concerns it."""

    node_resource_utilization_thresholds: Utilization | None = None
    node_affinity_type: list[str] = []
    pods_having_too_many_restarts: Restarts | None = None
    pod_life_time: LifeTime | None = None
    remove_duplicates: Duplicates | None = None
    failed_pods: Failed | None = None
    include_soft_constraints: bool = False
    namespaces: Names | None = None
    threshold_priority: int | None = None
    threshold_priority_class_name: str = ""
    label_selector: LabelSelector | None = None
    node_fit: bool = False
    include_prefer_no_schedule: bool = False
    excluded_taints: list[str] = []


class Strategy(ConfigObject):
    enabled: bool = False
    weight: int = 0
    params: Parameters | None = None


class OldPolicy(ConfigObject):
    api_version: str = ""
    kind: str = ""
    strategies: dict[str, Strategy] = {}
    node_selector: str = ""
    evict_failed_bare_pods: bool = False
    evict_local_storage_pods: bool = False
    evict_system_critical_pods: bool = False
    evict_daemon_set_pods: bool = False
    ignore_pvc_pods: bool = False
    max_no_of_pods_to_evict_per_node: int | None = None
    max_no_of_pods_to_evict_per_namespace: int | None = None
    max_no_of_pods_to_evict_total: int | None = None


def parse_any_descheduler_policy(
    document: Any, source: str, more: Mapping[str, type[Args]] = MappingProxyType({})
) -> DeschedulerPolicy:
    """Give a DeschedulerPolicy of either version its type; say what is wrong with it if it has none."""
    if str(document.get("apiVersion", "")) != API_VERSION:
        return parse_descheduler_policy(document, source, more)
    old = convert(document, OldPolicy, source)
    known = {**DESCHEDULE, **BALANCE}
    for name in old.strategies:
        if name not in known:
            expected = f"a strategy of the descheduler{suggestion(name, known)}"
            raise ConfigError(source, f"strategies.{name}", expected=expected, found=f'"{name}"')
    refuse(current.selector_text_problems(old.node_selector, "nodeSelector"), source, "")
    # In the order of the version that followed, which is that of the names.
    enabled = sorted(name for name, strategy in old.strategies.items() if strategy.enabled)
    return DeschedulerPolicy(
        tuple(_profile(old, name, source) for name in enabled),
        old.node_selector,
        old.max_no_of_pods_to_evict_per_node,
        old.max_no_of_pods_to_evict_per_namespace,
        old.max_no_of_pods_to_evict_total,
    )


def _profile(old: OldPolicy, name: str, source: str) -> Profile:
    """A strategy with its own evictor."""
    given = old.strategies[name].params or Parameters()
    at = f"strategies.{name}.params"
    if given.threshold_priority is not None and given.threshold_priority_class_name:
        expected = "thresholdPriority or thresholdPriorityClassName"
        raise ConfigError(source, at, expected=expected, found="both")
    threshold = PriorityThreshold(given.threshold_priority_class_name, given.threshold_priority)
    evictor = DefaultEvictorArgs(
        node_selector=old.node_selector,
        node_fit=given.node_fit,
        priority_threshold=threshold if threshold != PriorityThreshold() else None,
        evict_local_storage_pods=old.evict_local_storage_pods,
        evict_daemon_set_pods=old.evict_daemon_set_pods,
        evict_system_critical_pods=old.evict_system_critical_pods,
        evict_failed_bare_pods=old.evict_failed_bare_pods,
        ignore_pvc_pods=old.ignore_pvc_pods,
    )
    refuse(evictor.problems(), source, at)
    args, field = _args(name, given)
    refuse(args.problems(), source, ".".join(filter(None, (at, field))))
    one = ((name, args),)
    profile_name = f"strategy-{name}-profile"
    return Profile(profile_name, evictor, one if name in DESCHEDULE else (), one if name in BALANCE else ())


def _args(name: str, given: Parameters) -> tuple[Args, str]:
    """The arguments of a strategy as they are said now, and the parameter that they come from."""
    pods: dict[str, Any] = {"namespaces": given.namespaces, "label_selector": given.label_selector}
    use = given.node_resource_utilization_thresholds or Utilization()
    match name:
        case "PodLifeTime":
            life = given.pod_life_time or LifeTime()
            states = [*life.states, *life.pod_status_phases]
            seconds = life.max_pod_life_time_seconds
            return current.PodLifeTimeArgs(max_pod_life_time_seconds=seconds, states=states, **pods), "podLifeTime"
        case "RemoveFailedPods":
            failed = given.failed_pods or Failed()
            return current.RemoveFailedPodsArgs(
                min_pod_lifetime_seconds=failed.min_pod_lifetime_seconds or 0,
                exclude_owner_kinds=failed.exclude_owner_kinds,
                reasons=failed.reasons,
                including_init_containers=failed.including_init_containers,
                **pods,
            ), "failedPods"
        case "RemovePodsHavingTooManyRestarts":
            restarts = given.pods_having_too_many_restarts or Restarts()
            return current.TooManyRestartsArgs(
                pod_restart_threshold=restarts.pod_restart_threshold,
                including_init_containers=restarts.including_init_containers,
                **pods,
            ), "podsHavingTooManyRestarts"
        case "RemovePodsViolatingInterPodAntiAffinity":
            return current.InterPodAntiAffinityArgs(**pods), ""
        case "RemovePodsViolatingNodeAffinity":
            return current.NodeAffinityArgs(node_affinity_type=given.node_affinity_type, **pods), ""
        case "RemovePodsViolatingNodeTaints":
            soft, excluded = given.include_prefer_no_schedule, given.excluded_taints
            return current.NodeTaintsArgs(include_prefer_no_schedule=soft, excluded_taints=excluded, **pods), ""
        case "RemoveDuplicates":
            kinds = (given.remove_duplicates or Duplicates()).exclude_owner_kinds
            return current.RemoveDuplicatesArgs(namespaces=given.namespaces, exclude_owner_kinds=kinds), ""
        case "LowNodeUtilization":
            return current.LowNodeUtilizationArgs(
                thresholds=use.thresholds,
                target_thresholds=use.target_thresholds,
                use_deviation_thresholds=use.use_deviation_thresholds,
                number_of_nodes=use.number_of_nodes,
                evictable_namespaces=given.namespaces,
            ), "nodeResourceUtilizationThresholds"
        case "HighNodeUtilization":
            return current.HighNodeUtilizationArgs(
                thresholds=use.thresholds, number_of_nodes=use.number_of_nodes, evictable_namespaces=given.namespaces
            ), "nodeResourceUtilizationThresholds"
    constraints = SOFT_CONSTRAINTS if given.include_soft_constraints else []
    return current.TopologySpreadArgs(constraints=constraints, **pods), ""
