"""A configuration file: one document or several, each known by its kind."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mooring.config import queueing, tenant_policy
from mooring.config.queueing import QueueingSettings, parse_queueing
from mooring.config.scheduler import SchedulerConfig, parse_config, suggestion
from mooring.config.tenant_policy import TenantPolicy, parse_tenant_policy
from mooring.errors import ConfigError

SCHEDULER_KIND = "KubeSchedulerConfiguration"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was configured; what no document speaks of is as it is by default."""

    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    queueing: QueueingSettings = field(default_factory=QueueingSettings)
    tenants: TenantPolicy = field(default_factory=TenantPolicy)


_PARSERS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    SCHEDULER_KIND: ("scheduler", parse_config),
    queueing.KIND: ("queueing", parse_queueing),
    tenant_policy.KIND: ("tenants", parse_tenant_policy),
}


def load_settings(path: Path) -> Settings:
    """Read a configuration file; YAML, of which JSON is a part."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        raise ConfigError(str(path), "", expected="a readable file", found=str(found)) from error
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise ConfigError(str(path), "", expected="YAML", found=" ".join(str(error).split())) from error
    return parse_settings(documents, str(path))


def parse_settings(documents: list[Any], source: str) -> Settings:
    """Give parsed documents their types; each kind may come once."""
    numbered = [(number, document) for number, document in enumerate(documents, 1) if document is not None]
    if not numbered:
        raise ConfigError(source, "", expected=f"a {SCHEDULER_KIND}", found="nothing")
    parts: dict[str, Any] = {}
    first: dict[str, int] = {}
    for number, document in numbered:
        where = source if len(numbered) == 1 else f"{source}: document {number}"
        if not isinstance(document, dict):
            raise ConfigError(where, "", expected=f"a {SCHEDULER_KIND}", found=type(document).__name__)
        kind = str(document.get("kind", ""))
        if kind not in _PARSERS:
            expected = f"{', '.join(list(_PARSERS)[:-1])} or {list(_PARSERS)[-1]}{suggestion(kind, _PARSERS)}"
            raise ConfigError(where, "kind", expected=expected, found=f'"{kind}"')
        if kind in first:
            found = f"{kind} again, after document {first[kind]}"
            raise ConfigError(where, "kind", expected="each kind once", found=found)
        first[kind] = number
        name, parse = _PARSERS[kind]
        parts[name] = parse(document, where)
    return Settings(**parts)
