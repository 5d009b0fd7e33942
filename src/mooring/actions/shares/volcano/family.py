"""Volcano's queues: which pods and gangs are theirs, and how they are shared."""

from operator import attrgetter

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.family import Family
from mooring.actions.shares.volcano.queues import compile_queues
from mooring.model.api.volcano_queue import DEFAULT_QUEUE
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord

QUEUE_NAME = "scheduling.volcano.sh/queue-name"
OWN_GROUP = "PodGroup.scheduling.volcano.sh/"
OTHER_GROUP = "PodGroup."


class VolcanoFamily(Family):
    """`Queue` of `scheduling.volcano.sh`."""

    name = "VolcanoQueue"
    kind = "Volcano queue"
    objects = attrgetter("volcano_queues")
    counts_best_effort_first = True
    takes_turns = True
    expects_pods = True

    def queue_of_pod(self, cluster: Cluster, record: PodRecord) -> str:
        return (record.pod.metadata.annotations or {}).get(QUEUE_NAME, "")

    def queue_of_gang(self, cluster: Cluster, root: GangRecord) -> str:
        """The queue that a gang names; of Volcano's own groups the default one, if they name none."""
        name = root.gang.queue if root.gang is not None else ""
        if root.key.startswith(OWN_GROUP):
            return name or DEFAULT_QUEUE
        return "" if root.key.startswith(OTHER_GROUP) else name

    def queues(self, cluster: Cluster) -> list[QueueSpec]:
        return compile_queues(cluster.related.volcano_queues.values())
