"""Whose turn comes by the share of its queue: gangs and pods that name one of Volcano's."""

from mooring.engine.queue.parked import Turn
from mooring.engine.queue.queue import Entry
from mooring.model.api.volcano_queue import DEFAULT_QUEUE
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord

QUEUE_NAME = "scheduling.volcano.sh/queue-name"
VOLCANO = "PodGroup.scheduling.volcano.sh/"


def share_queue(cluster: Cluster, turn: Turn) -> str:
    """The queue by whose share a turn comes; empty if it comes by priority, as everybody's does without such queues."""
    queues = cluster.related.volcano_queues
    if not queues:
        return ""
    if not isinstance(turn, Entry):
        return gang_queue(cluster, turn.root)
    gang = cluster.gangs.of(turn.record.key)
    if gang is not None:
        return gang_queue(cluster, cluster.gangs.root_of(gang))
    return (turn.record.pod.metadata.annotations or {}).get(QUEUE_NAME, "")


def gang_queue(cluster: Cluster, root: GangRecord) -> str:
    """A gang's queue: the one that it names, or for Volcano's own groups the default one, if there are any queues."""
    if root.gang is not None and root.gang.queue:
        return root.gang.queue
    return DEFAULT_QUEUE if root.key.startswith(VOLCANO) and cluster.related.volcano_queues else ""
