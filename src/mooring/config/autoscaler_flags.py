"""The Cluster Autoscaler's flags as people have them: a list of arguments, or the manifest that has them.

What changes decisions becomes settings; what is known and has no counterpart here is said in one line. The priority
expander's ConfigMap is read here, too.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mooring.config.autoscaler import EXPANDERS, AutoscalerSettings
from mooring.config.reading import read_settings_text
from mooring.config.scheduler import suggestion
from mooring.errors import ConfigError
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.model.values.requests import CPU, MEMORY
from mooring.model.values.selectors import parse_int64

NAME = "cluster-autoscaler"
PRIORITY_CONFIG_MAP = "cluster-autoscaler-priority-expander"
GIB = 1 << 30

Parser = Callable[[str], Any]
"""Raises ValueError with what was expected."""


@dataclass(frozen=True, slots=True)
class AutoscalerFlags:
    """What the flags say."""

    settings: AutoscalerSettings = field(default_factory=AutoscalerSettings)
    group_sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The smallest and the largest size of node groups, by name (`--nodes`)."""
    remarks: tuple[str, ...] = ()
    """What they say that changes nothing here, in one line each."""


Priorities = Mapping[int, tuple[re.Pattern[str], ...]]


def parse_autoscaler_flags(
    arguments: Sequence[str], source: str, priorities: Priorities | None = None
) -> AutoscalerFlags:
    """Read flags such as `--expander=priority`; refuse what is unknown or wrong in one line.

    `priorities` are those of the priority expander (`parse_priorities`); without them it keeps every option.
    """
    scale_up: dict[str, Any] = {}
    scale_down: dict[str, Any] = {}
    sizes: dict[str, tuple[int, int]] = {}
    unused: list[str] = []
    for name, text in _flags(arguments, source):
        if name in _OTHER_FLAGS:
            unused.append(f"--{name}")
        elif name in _TOTALS:
            _read_total(name, text, scale_up, scale_down, source)
        elif name == "nodes":
            least, most, group = _checked(name, text, _group_size, source)
            sizes[group] = least, most
        elif name == "balancing-ignore-label":
            known = scale_up.get("balancing_ignore_labels", frozenset())
            scale_up["balancing_ignore_labels"] = known | {text}
        elif name in _SCALE_UP:
            attribute, parser = _SCALE_UP[name]
            scale_up[attribute] = _checked(name, text, parser, source)
        elif name in _SCALE_DOWN:
            attribute, parser = _SCALE_DOWN[name]
            scale_down[attribute] = _checked(name, text, parser, source)
        else:
            expected = f"a flag of {NAME}{suggestion(name, _known())}"
            raise ConfigError(source, "", expected=expected, found=f"--{name}")
    default = AutoscalerSettings()
    settings = replace(
        default,
        scale_up=replace(default.scale_up, **scale_up),
        scale_down=replace(default.scale_down, **scale_down),
        priorities=priorities or {},
    )
    remarks = (f"{source}: not used here: {', '.join(dict.fromkeys(unused))}",) if unused else ()
    return AutoscalerFlags(settings, sizes, remarks)


def autoscaler_arguments(document: Mapping[str, Any], source: str) -> list[str]:
    """The flags that a Deployment, another workload or a Pod gives to the Cluster Autoscaler."""
    spec = document.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or spec
    for container in pod.get("containers") or ():
        command = [*(container.get("command") or ()), *(container.get("args") or ())]
        told = (container.get("name"), container.get("image"), *command)
        if any(NAME in str(part) for part in told):
            # A shell may be given the whole command as one argument.
            words = [word for part in command for word in _words(str(part))]
            begin = next((index for index, word in enumerate(words) if word.startswith("-") and len(word) > 2), None)
            return [] if begin is None else words[begin:]
    found = f"{document.get('kind') or 'a document'} without one"
    raise ConfigError(source, "spec.template.spec.containers", expected=f"a container that runs {NAME}", found=found)


def parse_priorities(document: Mapping[str, Any], source: str) -> Priorities:
    """Read the priority expander's ConfigMap: regular expressions for names of node groups, by priority."""
    text = (document.get("data") or {}).get("priorities")
    at = "data.priorities"
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(source, at, expected="priorities with lists of regular expressions", found="none")
    given = next(iter(read_settings_text(text, f"{source}: {at}")), None)
    if not isinstance(given, dict):
        raise ConfigError(source, at, expected="priorities with lists of regular expressions", found=_kind(given))
    found: dict[int, tuple[re.Pattern[str], ...]] = {}
    for key, expressions in given.items():
        priority = parse_int64(str(key))
        if priority is None:
            raise ConfigError(source, at, expected="whole numbers as priorities", found=f'"{key}"')
        if not isinstance(expressions, list) or not all(isinstance(each, str) for each in expressions):
            raise ConfigError(source, f"{at}.{priority}", expected="a list of texts", found=_kind(expressions))
        found[priority] = tuple(_compiled(each, f"{at}.{priority}", source) for each in expressions)
    return found


def _compiled(text: str, at: str, source: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(source, at, expected="a regular expression", found=f'"{text}" ({error})') from error


def _kind(found: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", type(None): "none"}
    return names.get(type(found), str(found))


def _words(part: str) -> list[str]:
    return shlex.split(part) if " " in part and NAME in part else [part]


def _flags(arguments: Sequence[str], source: str) -> Iterator[tuple[str, str]]:
    """Names and values; a value may be the next argument, as Go's flags allow."""
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-"):
            raise ConfigError(source, "", expected="flags such as --expander=least-waste", found=f'"{argument}"')
        name, has_value, text = argument.lstrip("-").partition("=")
        if not has_value:
            is_switch = name in _SWITCHES
            if is_switch or not rest or rest[0].startswith("--"):
                if not is_switch and name not in _OTHER_FLAGS and name in _known():
                    raise ConfigError(source, f"--{name}", expected="a value", found="none")
                text = "true"
            else:
                text = rest.pop(0)
        yield name, text


def _checked(name: str, text: str, parser: Parser, source: str) -> Any:
    try:
        return parser(text)
    except ValueError as error:
        raise ConfigError(source, f"--{name}", expected=str(error), found=f'"{text}"') from error


# What flags may say.


def _switch(text: str) -> bool:
    if text.lower() in ("true", "t", "1"):
        return True
    if text.lower() in ("false", "f", "0"):
        return False
    raise ValueError("true or false")


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        raise ValueError("a whole number")
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise ValueError("a whole number of at least 0")
    return int(text)


def _share(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text, re.ASCII):
        raise ValueError("a number of at least 0, such as 0.5")
    return float(text)


def _seconds(text: str) -> float:
    seconds = parse_duration(text)
    if seconds is None:
        raise ValueError(EXPECTED_DURATION)
    return seconds


def _expanders(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in EXPANDERS:
            raise ValueError(f"some of {', '.join(EXPANDERS)}{suggestion(name, EXPANDERS)}")
    if len(set(names)) != len(names):
        raise ValueError("each expander once")
    return names


def _range(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    if not colon:
        raise ValueError("a smallest and a largest number, such as 0:320")
    found = _count(least), _count(most)
    if found[0] > found[1]:
        raise ValueError("a smallest number that is not above the largest")
    return found


def _group_size(text: str) -> tuple[int, int, str]:
    parts = text.split(":", 2)
    if len(parts) != 3 or not parts[2]:
        raise ValueError("sizes and a name, such as 1:10:workers")
    least, most = _range(":".join(parts[:2]))
    return least, most, parts[2]


def _gpu_range(text: str) -> tuple[str, tuple[int, int]]:
    kind, _, sizes = text.partition(":")
    if not kind or not sizes:
        raise ValueError("a type with a smallest and a largest number, such as nvidia-a100:0:64")
    return kind, _range(sizes)


def _read_total(name: str, text: str, scale_up: dict[str, Any], scale_down: dict[str, Any], source: str) -> None:
    """A flag that limits a total of the cluster, from below and from above."""
    unit = 1
    if name == "gpu-total":
        resource, (least, most) = _checked(name, text, _gpu_range, source)
    else:
        resource, unit = _TOTALS[name]
        least, most = _checked(name, text, _range, source)
    for totals, limit in (
        (scale_down.setdefault("min_totals", {}), least),
        (scale_up.setdefault("max_totals", {}), most),
    ):
        totals[resource] = limit * unit


_TOTALS: Mapping[str, tuple[str, int]] = {"cores-total": (CPU, 1), "memory-total": (MEMORY, GIB), "gpu-total": ("", 1)}

_SCALE_UP: Mapping[str, tuple[str, Parser]] = {
    "expander": ("expanders", _expanders),
    "balance-similar-node-groups": ("balance_similar_node_groups", _switch),
    "max-nodes-total": ("max_nodes_total", _count),
    "max-nodes-per-scaleup": ("max_nodes_per_scale_up", _count),
    "fastpath-binpacking-enabled": ("fastpath_binpacking", _switch),
    "force-ds": ("force_daemon_sets", _switch),
    "expendable-pods-priority-cutoff": ("expendable_pods_priority_cutoff", _whole),
    "memory-difference-ratio": ("max_capacity_memory_difference_ratio", _share),
    "max-allocatable-difference-ratio": ("max_allocatable_difference_ratio", _share),
    "max-free-difference-ratio": ("max_free_difference_ratio", _share),
}
_SCALE_DOWN: Mapping[str, tuple[str, Parser]] = {
    "scale-down-enabled": ("enabled", _switch),
    "scale-down-utilization-threshold": ("utilization_threshold", _share),
    "scale-down-gpu-utilization-threshold": ("gpu_utilization_threshold", _share),
    "scale-down-unneeded-time": ("unneeded_seconds", _seconds),
    "scale-down-unready-time": ("unready_seconds", _seconds),
    "scale-down-unready-enabled": ("unready_enabled", _switch),
    "ignore-daemonsets-utilization": ("ignore_daemon_sets_utilization", _switch),
    "ignore-mirror-pods-utilization": ("ignore_mirror_pods_utilization", _switch),
    "max-scale-down-parallelism": ("max_parallelism", _count),
    "max-drain-parallelism": ("max_drain_parallelism", _count),
    "unremovable-node-recheck-timeout": ("unremovable_recheck_seconds", _seconds),
    "skip-nodes-with-system-pods": ("skip_nodes_with_system_pods", _switch),
    "skip-nodes-with-local-storage": ("skip_nodes_with_local_storage", _switch),
    "skip-nodes-with-custom-controller-pods": ("skip_nodes_with_custom_controller_pods", _switch),
    "min-replica-count": ("min_replica_count", _count),
    "blocking-system-pod-distruption-timeout": ("blocking_system_pod_disruption_seconds", _seconds),
}
_SWITCHES = frozenset(
    name for table in (_SCALE_UP, _SCALE_DOWN) for name, (_, parser) in table.items() if parser is _switch
)

_OTHER_FLAGS = frozenset(
    (
        *("add-dir-header", "address", "allowed-scheduler-names", "alsologtostderr", "async-node-groups"),
        *("aws-use-static-instance-list", "balancing-label", "bulk-mig-instances-listing-enabled"),
        *("bypassed-scheduler-names", "capacity-buffer-controller-enabled", "capacity-buffer-pod-dry-run-enabled"),
        *("capacity-buffer-pod-injection-enabled", "capacity-quotas-enabled", "check-capacity-batch-processing"),
        *("check-capacity-processor-instance", "check-capacity-provisioning-request-batch-timebox"),
        *("check-capacity-provisioning-request-max-batch-size", "cloud-config", "cloud-provider", "cluster-name"),
        *("cluster-snapshot-parallelism", "clusterapi-cloud-config-authoritative", "cordon-node-before-terminating"),
        *("daemonset-eviction-for-empty-nodes", "daemonset-eviction-for-occupied-nodes"),
        *("debugging-snapshot-enabled", "drain-priority-config", "dynamic-node-delete-delay-after-taint-enabled"),
        *("emit-per-nodegroup-metrics", "enable-csi-node-aware-scheduling", "enable-dynamic-resource-allocation"),
        *("enable-graceful-degradation", "enable-proactive-scaleup", "enable-provisioning-requests"),
        *("enforce-node-group-min-size", "estimator", "feature-gates", "force-delete-failed-nodes"),
        *("force-delete-unregistered-nodes", "frequent-loops-enabled", "gce-concurrent-refreshes"),
        *("gce-expander-ephemeral-storage-support", "gce-mig-instances-min-refresh-wait-time", "grpc-expander-cert"),
        *("grpc-expander-url", "ignore-taint", "initial-node-group-backoff-duration", "kube-api-content-type"),
        *("kube-client-burst", "kube-client-qps", "kubeconfig", "kubernetes", "leader-elect"),
        *("leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-resource-lock"),
        *("leader-elect-resource-name", "leader-elect-resource-namespace", "leader-elect-retry-period"),
        *("log-backtrace-at", "log-dir", "log-file", "log-file-max-size", "logging-format", "logtostderr"),
        *("max-autoprovisioned-node-group-count", "max-binpacking-time", "max-bulk-soft-taint-count"),
        *("max-bulk-soft-taint-time", "max-empty-bulk-delete", "max-failing-time", "max-graceful-termination-sec"),
        *("max-inactivity", "max-node-group-backoff-duration", "max-node-provision-time"),
        *("max-node-skip-eval-time-tracker-enabled", "max-node-startup-time", "max-nodegroup-binpacking-duration"),
        *("max-pod-eviction-time", "max-startup-time", "max-total-unready-percentage", "namespace"),
        *("new-pod-scale-up-delay", "node-autoprovisioning-enabled", "node-delete-delay-after-taint"),
        *("node-deletion-batcher-interval", "node-deletion-candidate-ttl", "node-deletion-delay-timeout"),
        *("node-group-auto-discovery", "node-group-backoff-reset-timeout", "node-info-cache-expire-time"),
        *("node-removal-latency-tracking-enabled", "ok-total-unready-count", "one-output", "parallel-drain"),
        *("parallel-scale-up", "pending-pods-batching-timeout", "pod-injection-limit", "predicate-parallelism"),
        *("profiling", "provisioning-request-initial-backoff-time", "provisioning-request-max-backoff-cache-size"),
        *("provisioning-request-max-backoff-time", "record-duplicated-events", "regional", "salvo-scale-up"),
        *("salvo-scale-up-budget", "scale-down-candidates-pool-min-count", "scale-down-candidates-pool-ratio"),
        *("scale-down-delay-after-add", "scale-down-delay-after-delete", "scale-down-delay-after-failure"),
        *("scale-down-delay-type-local", "scale-down-non-empty-candidates-count", "scale-down-simulation-timeout"),
        *("scale-from-unschedulable", "scale-up-from-zero", "scaleup-simulation-for-skipped-node-groups-enabled"),
        *("scan-interval", "scheduler-config-file", "scheduler-verbosity", "skip-headers", "skip-log-headers"),
        *("startup-taint", "startup-taint-prefix", "status-config-map-name", "status-taint", "stderrthreshold"),
        *("user-agent", "v", "vmodule", "write-status-configmap"),
    )
)
"""Flags that say how the program runs, how it talks to a cloud, or how long it waits after what it did itself."""


USED_FLAGS = frozenset((*_SCALE_UP, *_SCALE_DOWN, *_TOTALS, "nodes", "balancing-ignore-label"))
"""Flags that change decisions."""


def _known() -> Iterable[str]:
    return (*sorted(USED_FLAGS), *sorted(_OTHER_FLAGS))
