"""Whose turn comes by the share of its queue: gangs and pods of queues as Volcano, KAI or ElasticQuotas have them."""

from enum import Enum
from typing import NamedTuple

from mooring.engine.queue.parked import Turn
from mooring.engine.queue.queue import Entry
from mooring.model.api.volcano_queue import DEFAULT_QUEUE
from mooring.model.gangs.dialects.kai_pods import DEFAULT_QUEUE as KAI_DEFAULT_QUEUE
from mooring.model.gangs.dialects.kai_pods import QUEUE as KAI_QUEUE_NAME
from mooring.model.gangs.dialects.kai_pods import is_kai_pod
from mooring.model.queued.yunikorn_placement import queue_of
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord

QUEUE_NAME = "scheduling.volcano.sh/queue-name"
VOLCANO = "PodGroup.scheduling.volcano.sh/"
KAI = "PodGroup.scheduling.run.ai/"


class Family(Enum):
    """Whose queues they are; each family shares the whole cluster by its own rules. The values speak in refusals."""

    VOLCANO = "VolcanoQueue"
    KAI = "KaiQueue"
    ELASTIC_QUOTA = "CapacityScheduling"
    KOORDINATOR = "ElasticQuota"
    YUNIKORN = "YuniKornQueue"


class SharedQueue(NamedTuple):
    family: Family
    name: str


def has_shared_queues(cluster: Cluster) -> bool:
    """Whether anybody's turn may come by the share of a queue."""
    related = cluster.related
    return bool(related.volcano_queues or related.kai_queues or related.elastic_quotas or related.yunikorn)


def share_queue(cluster: Cluster, turn: Turn) -> SharedQueue | None:
    """The queue by whose share a turn comes; None if it comes by priority, as everybody's does without such queues."""
    if not has_shared_queues(cluster):
        return None
    if not isinstance(turn, Entry):
        return gang_queue(cluster, turn.root)
    gang = cluster.gangs.of(turn.record.key)
    if gang is not None:
        return gang_queue(cluster, cluster.gangs.root_of(gang))
    return pod_queue(cluster, turn.record)


def gang_queue(cluster: Cluster, root: GangRecord) -> SharedQueue | None:
    """A gang's queue: the one that it names, or for Volcano's own groups the default one, if there are any queues."""
    related = cluster.related
    name = root.gang.queue if root.gang is not None else ""
    if root.key.startswith(KAI):
        if name and related.kai_queues:
            return SharedQueue(Family.KAI, name)
    elif related.volcano_queues and (name or root.key.startswith(VOLCANO)):
        return SharedQueue(Family.VOLCANO, name or DEFAULT_QUEUE)
    if related.elastic_quotas or related.yunikorn:
        first = next((record for part in cluster.gangs.parts_of(root) for record in part.members.values()), None)
        return None if first is None else _yunikorn(cluster, first) or _quota(cluster, first)
    return None


def pod_queue(cluster: Cluster, record: PodRecord) -> SharedQueue | None:
    """The queue of a pod that is in no gang."""
    related = cluster.related
    name = (record.pod.metadata.annotations or {}).get(QUEUE_NAME, "") if related.volcano_queues else ""
    if name:
        return SharedQueue(Family.VOLCANO, name)
    labels = record.pod.metadata.labels
    if related.kai_queues and is_kai_pod(record.pod.spec, labels):
        return SharedQueue(Family.KAI, (labels or {}).get(KAI_QUEUE_NAME, KAI_DEFAULT_QUEUE))
    return _yunikorn(cluster, record) or _quota(cluster, record)


def _yunikorn(cluster: Cluster, record: PodRecord) -> SharedQueue | None:
    for queues in cluster.related.yunikorn.values():
        path = queue_of(queues, record.pod)
        if path:
            return SharedQueue(Family.YUNIKORN, path)
    return None


def _quota(cluster: Cluster, record: PodRecord) -> SharedQueue | None:
    quota = cluster.related.quota_of(record.pod)
    if quota is None:
        return None
    return SharedQueue(Family.KOORDINATOR if quota.is_koordinator else Family.ELASTIC_QUOTA, quota.key)
