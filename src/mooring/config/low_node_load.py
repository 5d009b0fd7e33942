"""LowNodeLoadArgs of Koordinator's descheduler."""

from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.config.descheduler import Args, Names
from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError
from mooring.model.api.meta import LabelSelector


class AnomalyCondition(ConfigObject):
    """How often a node is found overloaded, or not, before that counts."""

    timeout: str | None = None
    consecutive_abnormalities: int = 5
    consecutive_normalities: int = 3


class PodSelector(ConfigObject):
    name: str = ""
    selector: LabelSelector | None = None


class Pool(Args):
    """Nodes with thresholds of their own; what is not given is taken from the top level."""

    name: str = ""
    node_selector: LabelSelector | None = None
    use_deviation_thresholds: bool = False
    low_thresholds: dict[str, float] | None = None
    high_thresholds: dict[str, float] | None = None
    prod_low_thresholds: dict[str, float] | None = None
    prod_high_thresholds: dict[str, float] | None = None
    resource_weights: dict[str, int] | None = None
    anomaly_condition: AnomalyCondition | None = None


class LowNodeLoadArgs(Pool):
    api_version: str = ""
    kind: str = ""
    paused: bool = False
    dry_run: bool = False
    number_of_nodes: int = 0
    evictable_namespaces: Names | None = None
    pod_selectors: list[PodSelector] = []
    node_fit: bool = True
    node_metric_expiration_seconds: int = 180
    detector_cache_timeout: str | None = None
    node_pools: list[Pool] = []

    def problems(self) -> Iterable[tuple[str, str, object]]:
        for pool in self.pools:
            for name in ("low_thresholds", "high_thresholds", "prod_low_thresholds", "prod_high_thresholds"):
                field = "".join(part.title() if index else part for index, part in enumerate(name.split("_")))
                for resource, percent in (getattr(pool, name) or {}).items():
                    if not 0 <= percent <= 100:
                        yield f"{field}.{resource}", "a percentage from 0 to 100", f"{percent:g}"

    @property
    def pools(self) -> list[Pool]:
        """The unnamed pool of the top level, then the others, each with all that it has."""
        top = Pool(**{name: getattr(self, name) for name in Pool.__struct_fields__})
        return [top, *(_filled(pool, top) for pool in self.node_pools)]


def _filled(pool: Pool, top: Pool) -> Pool:
    inherited = (
        "low_thresholds",
        "high_thresholds",
        "prod_low_thresholds",
        "prod_high_thresholds",
        "resource_weights",
        "anomaly_condition",
    )
    missing = {name: getattr(top, name) for name in inherited if getattr(pool, name) is None}
    return msgspec.structs.replace(pool, **missing)


NAME = "LowNodeLoad"


def parse_low_node_load(document: Any, source: str) -> LowNodeLoadArgs:
    """Give LowNodeLoadArgs their type; say what is wrong with them if they have none."""
    args = convert(document, LowNodeLoadArgs, source)
    for field, expected, found in args.problems():
        raise ConfigError(source, field, expected=expected, found=str(found))
    return args
