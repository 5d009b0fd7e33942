"""KubeSchedulerConfiguration, as operators already have it: read from a file, typed, checked."""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from mooring.config.extenders import Extender
from mooring.errors import ConfigError
from mooring.model.values.durations import parse_duration

API_GROUP = "kubescheduler.config.k8s.io/"
T = TypeVar("T")

VERSIONS = ("v1", "v1beta3", "v1beta2", "v1beta1")
DEFAULT_SCHEDULER = "default-scheduler"


class ConfigObject(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of configuration types: a key that nobody reads is a mistake, and is said to be one."""


class PluginRef(ConfigObject):
    name: str
    weight: int = 0


class PluginSet(ConfigObject):
    enabled: list[PluginRef] | None = None
    disabled: list[PluginRef] | None = None


class Plugins(ConfigObject):
    """Which plugins run where; fields are the framework's extension points."""

    multi_point: PluginSet | None = None
    pre_enqueue: PluginSet | None = None
    queue_sort: PluginSet | None = None
    pre_filter: PluginSet | None = None
    filter: PluginSet | None = None
    post_filter: PluginSet | None = None
    pre_score: PluginSet | None = None
    score: PluginSet | None = None
    reserve: PluginSet | None = None
    permit: PluginSet | None = None
    pre_bind: PluginSet | None = None
    bind: PluginSet | None = None
    post_bind: PluginSet | None = None
    placement_generate: PluginSet | None = None
    placement_score: PluginSet | None = None
    pod_group_post_filter: PluginSet | None = None


class PluginConfig(ConfigObject):
    name: str
    args: dict[str, Any] | None = None


class ProfileConfig(ConfigObject):
    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins | None = None
    plugin_config: list[PluginConfig] | None = None


class LeaderElection(ConfigObject):
    """How several replicas agree on the one that schedules: by a Lease; with kube-scheduler's defaults."""

    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = ""
    """Empty: kube-scheduler's in its place, else our own schedulerName."""
    resource_namespace: str = "kube-system"

    def validate(self) -> Iterator[tuple[str, str, str]]:
        """What is wrong: the field, what was expected, and what was found."""
        durations: dict[str, float] = {}
        for field in ("leaseDuration", "renewDeadline", "retryPeriod"):
            text = getattr(self, re.sub(r"([A-Z])", r"_\1", field).lower())
            found = parse_duration(text)
            if found is None or found <= 0:
                yield field, "a duration such as 15s", f'"{text}"'
            durations[field] = found or 0.0
        if not durations["leaseDuration"] > durations["renewDeadline"] > 1.2 * durations["retryPeriod"]:
            found_text = " > ".join(f"{seconds:g}s" for seconds in durations.values())
            yield "leaseDuration", "more than renewDeadline, and that more than 1.2 times retryPeriod", found_text
        if self.resource_lock != "leases":
            yield "resourceLock", '"leases"', f'"{self.resource_lock}"'


class SchedulerConfig(ConfigObject):
    """The file as a whole; what steers the process and not its decisions is read and left alone."""

    api_version: str = API_GROUP + "v1"
    kind: str = "KubeSchedulerConfiguration"
    parallelism: int = 16
    leader_election: LeaderElection | None = None
    client_connection: dict[str, Any] | None = None
    health_probe_address: str | None = msgspec.field(default=None, name="healthzBindAddress")
    metrics_address: str | None = msgspec.field(default=None, name="metricsBindAddress")
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: list[ProfileConfig] | None = None
    extenders: list[Extender] | None = None
    """Only a driver of a real cluster asks them."""
    delay_cache_until_active: bool = False


def parse_config(document: Any, source: str) -> SchedulerConfig:
    """Give a parsed document its type; say what is wrong with it if it has none."""
    if not isinstance(document, dict):
        raise ConfigError(source, "", expected="a KubeSchedulerConfiguration", found=type(document).__name__)
    kind, version = document.get("kind", ""), str(document.get("apiVersion", ""))
    if kind != "KubeSchedulerConfiguration":
        raise ConfigError(source, "kind", expected="KubeSchedulerConfiguration", found=f'"{kind}"')
    if version not in [API_GROUP + v for v in VERSIONS]:
        raise ConfigError(source, "apiVersion", expected=f"{API_GROUP}v1", found=f'"{version}"')
    config = convert(document, SchedulerConfig, source)
    _check(config, source)
    return config


def _check(config: SchedulerConfig, source: str) -> None:
    if config.leader_election is not None:
        for name, expected, found in config.leader_election.validate():
            raise ConfigError(source, f"leaderElection.{name}", expected=expected, found=found)
    for index, extender in enumerate(config.extenders or ()):
        for name, expected, found in extender.validate():
            raise ConfigError(source, f"extenders[{index}].{name}", expected=expected, found=found)
    for field, value in (
        ("percentageOfNodesToScore", config.percentage_of_nodes_to_score),
        *(
            (f"profiles[{i}].percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
            for i, profile in enumerate(config.profiles or ())
        ),
    ):
        if value is not None and not 0 <= value <= 100:
            raise ConfigError(source, field, expected="a whole number from 0 to 100", found=str(value))
    if config.pod_initial_backoff_seconds <= 0:
        found = str(config.pod_initial_backoff_seconds)
        raise ConfigError(source, "podInitialBackoffSeconds", expected="more than 0", found=found)
    if config.pod_max_backoff_seconds < config.pod_initial_backoff_seconds:
        expected = f"at least podInitialBackoffSeconds ({config.pod_initial_backoff_seconds})"
        raise ConfigError(source, "podMaxBackoffSeconds", expected=expected, found=str(config.pod_max_backoff_seconds))
    _check_names(config, source)


def _check_names(config: SchedulerConfig, source: str) -> None:
    seen = set[str]()
    profiles = config.profiles or []
    for index, profile in enumerate(profiles):
        name = profile.scheduler_name
        if not name:
            if len(profiles) > 1:
                field = f"profiles[{index}].schedulerName"
                raise ConfigError(source, field, expected="a name, because there are several profiles", found='""')
            name = DEFAULT_SCHEDULER
        if name in seen:
            field = f"profiles[{index}].schedulerName"
            raise ConfigError(source, field, expected="each name once", found=f'"{name}" again')
        seen.add(name)


_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$\.?(?P<at>[^`]*)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`(?: - at `\$\.?(?P<at>[^`]*)`)?")
_AT = re.compile(r" - at `\$\.?(?P<at>[^`]*)`$")


def convert(document: Any, to: type[T], source: str, prefix: str = "") -> T:
    """Convert plain data to a type; a mismatch becomes a ConfigError with the field's path."""
    try:
        return msgspec.convert(document, to)
    except msgspec.ValidationError as error:
        text = str(error)
        unknown = _UNKNOWN.match(text)
        if unknown:
            at = _join(prefix, unknown["at"] or "", unknown["key"])
            known = _keys_at(to, unknown["at"] or "")
            expected = f"a known key{suggestion(unknown['key'], known)}"
            raise ConfigError(source, at, expected=expected, found=f'"{unknown["key"]}"') from error
        missing = _MISSING.match(text)
        if missing:
            at = _join(prefix, missing["at"] or "", missing["key"])
            raise ConfigError(source, at, expected="a value", found="none") from error
        where = _AT.search(text)
        message = _AT.sub("", text)
        expected, _, found = message.partition(", got ")
        field = _join(prefix, where["at"] if where else "")
        expected = expected.removeprefix("Expected ").replace("`", "")
        raise ConfigError(source, field, expected=expected, found=found.replace("`", "") or "otherwise") from error


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _keys_at(to: Any, path: str) -> list[str]:
    """The keys that a type knows at the end of a path such as `profiles[0].plugins`."""
    for step in [part.partition("[")[0] for part in path.split(".") if part]:
        if not isinstance(to, type) or not issubclass(to, msgspec.Struct):
            return []
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(to)}
        to = _innermost(fields.get(step))
    if isinstance(to, type) and issubclass(to, msgspec.Struct):
        return [field.encode_name for field in msgspec.structs.fields(to)]
    return []


def _innermost(annotation: Any) -> Any:
    for argument in getattr(annotation, "__args__", ()):
        found = _innermost(argument)
        if isinstance(found, type) and issubclass(found, msgspec.Struct):
            return found
    return annotation


def suggestion(word: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` if something known is near, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
