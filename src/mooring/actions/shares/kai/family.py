"""KAI's queues: which pods and gangs are theirs, and how they are shared."""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.family import Family
from mooring.actions.shares.kai.queues import PARTS, compile_kai_queues, kai_amounts
from mooring.actions.shares.kai.tree_shares import KAI
from mooring.actions.shares.settings import ShareSettings
from mooring.config.kai_shard import KaiShard
from mooring.model.api.kai_labels import QUEUE, is_kai_pod
from mooring.model.gangs.dialects.kai_pods import DEFAULT_QUEUE
from mooring.model.values.durations import parse_duration
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord

OWN_GROUP = "PodGroup.scheduling.run.ai/"


class KaiFamily(Family):
    """`Queue` of `scheduling.run.ai`."""

    name = "KaiQueue"
    kind = "KAI queue"
    objects = attrgetter("kai_queues")
    parts = PARTS

    def queue_of_pod(self, cluster: Cluster, record: PodRecord) -> str:
        labels = record.pod.metadata.labels
        return (labels or {}).get(QUEUE, DEFAULT_QUEUE) if is_kai_pod(record.pod.spec, labels) else ""

    def queue_of_gang(self, cluster: Cluster, root: GangRecord) -> str:
        is_own = root.gang is not None and root.key.startswith(OWN_GROUP)
        return root.gang.queue if root.gang is not None and is_own else ""

    def queues(self, cluster: Cluster) -> list[QueueSpec]:
        return compile_kai_queues(cluster.related.kai_queues.values())

    def requests(self, cluster: Cluster, record: PodRecord) -> Mapping[str, int]:
        return kai_amounts(cluster, record.shape)

    def is_best_effort(self, record: PodRecord) -> bool:
        return record.shape.card_request is None and super().is_best_effort(record)


def kai_settings(volcano: ShareSettings, shard: KaiShard | None) -> ShareSettings:
    """As a shard says, if there is one; else as for all queues."""
    settings = ShareSettings(
        division=KAI,
        half_life_seconds=volcano.half_life_seconds,
        minimum_runtime_seconds=volcano.minimum_runtime_seconds,
        preempts=True,
    )
    if shard is None:
        return settings
    runtimes = shard.spec.min_runtime
    return replace(
        settings,
        k_value=shard.spec.k_value,
        half_life_seconds=shard.half_life_seconds or settings.half_life_seconds,
        minimum_runtime_seconds=parse_duration(runtimes.reclaim_min_runtime) or settings.minimum_runtime_seconds,
        preempt_runtime_seconds=parse_duration(runtimes.preempt_min_runtime) or 0.0,
    )
