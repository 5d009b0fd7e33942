"""KAI's SchedulingShard: how much past use counts, and minimum runtimes where queues say none."""

from typing import Any

import msgspec

from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration

KIND = "SchedulingShard"
API_VERSION = "kai.scheduler/v1"
SPREAD = "spread"
NOT_USED = ("args", "placementStrategy", "partitionLabelValue", "queueDepthPerAction", "plugins", "actions")


class MinRuntime(ConfigObject):
    preempt_min_runtime: str = "0s"
    reclaim_min_runtime: str = "0s"


class UsageParams(msgspec.Struct, kw_only=True, rename="camel"):
    half_life_period: str = ""


class UsageDB(msgspec.Struct, kw_only=True, rename="camel"):
    """Where KAI keeps past use; here it is remembered, so that only how fast it fades matters."""

    usage_params: UsageParams = msgspec.field(default_factory=UsageParams)


class ShardSpec(ConfigObject):
    k_value: float = 1.0
    min_runtime: MinRuntime = msgspec.field(default_factory=MinRuntime)
    usage_db_config: UsageDB | None = msgspec.field(default=None, name="usageDBConfig")
    args: Any = None
    placement_strategy: Any = None
    partition_label_value: Any = None
    queue_depth_per_action: Any = None
    plugins: Any = None
    actions: Any = None


class KaiShard(ConfigObject):
    """What was read, and what of it changes nothing."""

    spec: ShardSpec
    unused: list[str] = []

    @property
    def half_life_seconds(self) -> float | None:
        usage = self.spec.usage_db_config
        return parse_duration(usage.usage_params.half_life_period) or None if usage is not None else None

    @property
    def consolidates(self) -> bool:
        """Whether jobs are moved closer together to make room for others: not where pods are to be spread."""
        strategy = self.spec.placement_strategy
        return not isinstance(strategy, dict) or SPREAD not in (strategy.get("gpu"), strategy.get("cpu"))

    def remarks(self) -> list[str]:
        return [f"{KIND}: not used here: {', '.join(self.unused)}"] if self.unused else []


def parse_kai_shard(document: Any, source: str) -> KaiShard:
    """Give a SchedulingShard its type; say what is wrong with it if it has none."""
    version = str(document.get("apiVersion", ""))
    if version != API_VERSION:
        raise ConfigError(source, "apiVersion", expected=API_VERSION, found=f'"{version}"')
    given = document.get("spec") or {}
    spec = convert(given, ShardSpec, source, "spec")
    if not 0 <= spec.k_value < 1e9:
        raise ConfigError(source, "spec.kValue", expected="a number of at least 0", found=f"{spec.k_value:g}")
    half_life = "" if spec.usage_db_config is None else spec.usage_db_config.usage_params.half_life_period
    for field, text in (
        ("minRuntime.preemptMinRuntime", spec.min_runtime.preempt_min_runtime),
        ("minRuntime.reclaimMinRuntime", spec.min_runtime.reclaim_min_runtime),
        ("usageDBConfig.usageParams.halfLifePeriod", half_life or "0s"),
    ):
        if parse_duration(text) is None:
            raise ConfigError(source, f"spec.{field}", expected=EXPECTED_DURATION, found=f'"{text}"')
    unused = [name for name in NOT_USED if name in given]
    if spec.usage_db_config is not None and not half_life:
        unused.append("usageDBConfig without halfLifePeriod")
    return KaiShard(spec=spec, unused=unused)
