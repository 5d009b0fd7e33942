"""How the queues of other families are shared, by the same engine and their own rules."""

from dataclasses import replace

from mooring.actions.volcano.settings import Division, ShareSettings
from mooring.config.kai_shard import KaiShard
from mooring.engine.queue.shared import Family
from mooring.model.values.durations import parse_duration

DIVISIONS = {
    Family.KAI: Division.KAI,
    Family.ELASTIC_QUOTA: Division.CAPACITY,
    Family.KOORDINATOR: Division.RUNTIME,
    Family.YUNIKORN: Division.GUARANTEED,
}
OTHER_FAMILIES = tuple(DIVISIONS)


def family_settings(family: Family, volcano: ShareSettings, shard: KaiShard | None = None) -> ShareSettings:
    """The settings of a family: its division, and what all have in common."""
    settings = ShareSettings(
        division=DIVISIONS[family],
        half_life_seconds=volcano.half_life_seconds if family is Family.KAI else None,
        minimum_runtime_seconds=volcano.minimum_runtime_seconds,
        preempts=family is not Family.YUNIKORN,
        # Koordinator's scheduler runs kube-scheduler's own preemption after that of its quotas.
        preempts_like_others=family is Family.KOORDINATOR,
    )
    return settings if shard is None or family is not Family.KAI else _as_in_shard(settings, shard)


def _as_in_shard(settings: ShareSettings, shard: KaiShard) -> ShareSettings:
    runtimes = shard.spec.min_runtime
    return replace(
        settings,
        k_value=shard.spec.k_value,
        half_life_seconds=shard.half_life_seconds or settings.half_life_seconds,
        minimum_runtime_seconds=parse_duration(runtimes.reclaim_min_runtime) or settings.minimum_runtime_seconds,
        preempt_runtime_seconds=parse_duration(runtimes.preempt_min_runtime) or 0.0,
    )
