"""A configuration file: one document or several, each known by its kind."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mooring.config import (
    capacity_policy,
    catalogue,
    colocation,
    descheduler,
    kai_shard,
    load_sources,
    low_node_load,
    queueing,
    rebalance_policy,
    tenant_policy,
    volcano_scheduler,
)
from mooring.config.capacity_policy import Capacity, CapacityPolicy, parse_capacity_policy
from mooring.config.catalogue import parse_whole_catalogue
from mooring.config.colocation import ColocationConfig, holds_colocation, parse_colocation
from mooring.config.descheduler import DeschedulerPolicy
from mooring.config.descheduler_v1alpha1 import parse_any_descheduler_policy
from mooring.config.kai_shard import KaiShard, parse_kai_shard
from mooring.config.load_sources import LoadSources, parse_load_sources
from mooring.config.low_node_load import LowNodeLoadArgs
from mooring.config.queueing import QueueingSettings, parse_queueing
from mooring.config.reading import load_documents as load_documents
from mooring.config.reading import read_settings_text as read_settings_text
from mooring.config.rebalance_policy import RebalancePolicy, Rebalancing, parse_rebalance_policy
from mooring.config.scheduler import SchedulerConfig, parse_config, suggestion
from mooring.config.tenant_policy import TenantPolicy, parse_tenant_policy
from mooring.config.volcano_scheduler import VolcanoScheduler, is_volcano_scheduler, parse_volcano_scheduler
from mooring.config.yunikorn import YuniKornConfig, is_yunikorn, parse_yunikorn
from mooring.errors import ConfigError
from mooring.model.api.yunikorn_queues import KIND as YUNIKORN
from mooring.model.capacity.provider import Catalogue
from mooring.model.colocation.strategy import CONFIG_NAME
from mooring.model.devices import sharing_config
from mooring.model.devices.sharing_config import BadConfig, SharingConfig, is_sharing_config, read_sharing_config

SCHEDULER_KIND = "KubeSchedulerConfiguration"
CONFIG_MAP = "ConfigMap"
FILES = (YUNIKORN, volcano_scheduler.NAME)
"""What configuration is called in the data of a ConfigMap, by itself in a file too."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was configured; what no document speaks of is as it is by default."""

    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    queueing: QueueingSettings = field(default_factory=QueueingSettings)
    tenants: TenantPolicy = field(default_factory=TenantPolicy)
    volcano: VolcanoScheduler | None = None
    yunikorn: YuniKornConfig | None = None
    kai: KaiShard | None = None
    gpu_sharing: Mapping[str, SharingConfig] = field(default_factory=dict)
    """The device plugin's configurations, by name; nothing is the name of one by itself."""
    colocation: ColocationConfig | None = None
    """How much of nodes is lent to batch and mid pods."""
    descheduler: DeschedulerPolicy | None = None
    rebalance: RebalancePolicy | None = None
    load_sources: LoadSources | None = None
    """Where a running scheduler reads load from; None: nowhere."""
    catalogue: Catalogue | None = None
    capacity_policy: CapacityPolicy | None = None

    @property
    def capacity(self) -> Capacity | None:
        """What nodes can be bought, and how; None if none are."""
        if self.catalogue is None:
            return None
        return Capacity(self.catalogue, self.capacity_policy or CapacityPolicy())

    @property
    def rebalancing(self) -> Rebalancing | None:
        """Which strategies move pods that run, and how; None if none do."""
        if self.descheduler is None:
            return None
        return Rebalancing(self.descheduler, self.rebalance or RebalancePolicy())

    @property
    def remarks(self) -> list[str]:
        """What was configured and changes nothing, in one line each."""
        given = (self.queueing, self.volcano, self.yunikorn, self.kai)
        lines = [line for found in given if found is not None for line in found.remarks()]
        return [*lines, *(colocation.remarks(self.colocation) if self.colocation is not None else ())]


_PARSERS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    SCHEDULER_KIND: ("scheduler", parse_config),
    queueing.KIND: ("queueing", parse_queueing),
    tenant_policy.KIND: ("tenants", parse_tenant_policy),
    volcano_scheduler.NAME: ("volcano", parse_volcano_scheduler),
    YUNIKORN: ("yunikorn", parse_yunikorn),
    kai_shard.KIND: ("kai", parse_kai_shard),
    descheduler.KIND: (
        "descheduler",
        partial(parse_any_descheduler_policy, more={low_node_load.NAME: LowNodeLoadArgs}),
    ),
    rebalance_policy.KIND: ("rebalance", parse_rebalance_policy),
    load_sources.KIND: ("load_sources", parse_load_sources),
    catalogue.KIND: ("catalogue", parse_whole_catalogue),
    capacity_policy.KIND: ("capacity_policy", parse_capacity_policy),
    CONFIG_NAME: ("colocation", parse_colocation),
}


_KINDS = f"{', '.join(list(_PARSERS)[:-1])} or {list(_PARSERS)[-1]}"
CONFIGURATION_KINDS = frozenset({*_PARSERS, sharing_config.KIND})


def load_settings(path: Path) -> Settings:
    """Read a configuration file; YAML, of which JSON is a part."""
    return parse_settings(load_documents(path), str(path))


def parse_settings(documents: list[Any], source: str) -> Settings:
    """Give parsed documents their types; each kind may come once, by itself or inside a ConfigMap."""
    numbered = [(number, document) for number, document in enumerate(documents, 1) if document is not None]
    if not numbered:
        raise ConfigError(source, "", expected=f"a {SCHEDULER_KIND}", found="nothing")
    parts: dict[str, Any] = {}
    first: dict[str, str] = {}
    for number, document in numbered:
        place = source if len(numbered) == 1 else f"{source}: document {number}"
        for where, found in _unwrapped(document, place):
            kind = _kind_of(found)
            if kind == sharing_config.KIND:
                name = where.rpartition("data[")[2].rstrip("]") if "data[" in where else ""
                parts.setdefault("gpu_sharing", {})[name] = _parse_sharing(found, where)
                continue
            if kind not in _PARSERS:
                expected = f"{_KINDS}{suggestion(kind, _PARSERS)}"
                raise ConfigError(where, "kind", expected=expected, found=f'"{kind}"')
            if kind in first:
                raise ConfigError(where, "kind", expected="each kind once", found=f"{kind} again, after {first[kind]}")
            first[kind] = where.removeprefix(f"{source}: ")
            name, parse = _PARSERS[kind]
            parts[name] = parse(found, where)
    if "rebalance" in parts and "descheduler" not in parts:
        expected = f"a {descheduler.KIND} beside the {rebalance_policy.KIND}: it says which strategies run"
        raise ConfigError(source, "", expected=expected, found="none")
    return Settings(**parts)


def _unwrapped(document: Any, where: str) -> Iterator[tuple[str, Any]]:
    """A document and where it stands, or those that a ConfigMap holds as text, as clusters keep them."""
    if not isinstance(document, dict):
        raise ConfigError(where, "", expected=f"a {SCHEDULER_KIND}", found=type(document).__name__)
    is_data = "kind" not in document and any(isinstance(document.get(name), str) for name in FILES)
    if document.get("kind") != CONFIG_MAP and not is_data:
        yield where, document
        return
    data = document if is_data else document.get("data")
    if holds_colocation(data):
        yield where, {"kind": CONFIG_NAME, "data": data}
        return
    inside = [
        (f"{where}: data[{key}]", found)
        for key, text in (data.items() if isinstance(data, dict) else ())
        if isinstance(text, str)
        for found in read_settings_text(text, f"{where}: data[{key}]")
        if _kind_of(found) in CONFIGURATION_KINDS
    ]
    if not inside:
        raise ConfigError(where, "data", expected=f"{_KINDS} inside of the {CONFIG_MAP}", found="none of them")
    yield from inside


def _parse_sharing(document: Any, where: str) -> SharingConfig:
    try:
        return read_sharing_config(document)
    except BadConfig as bad:
        raise ConfigError(where, bad.field, expected=bad.expected, found=bad.found) from bad


def _kind_of(document: Any) -> str:
    if isinstance(document, dict) and is_sharing_config(document):
        return sharing_config.KIND
    if is_volcano_scheduler(document):
        return volcano_scheduler.NAME
    if is_yunikorn(document):
        return YUNIKORN
    return str(document.get("kind", "")) if isinstance(document, dict) else ""
