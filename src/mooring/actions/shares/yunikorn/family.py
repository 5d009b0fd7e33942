"""YuniKorn's queues: which pods and gangs are theirs, and how they are shared."""

from collections.abc import Iterable
from operator import attrgetter

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.family import Family
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.yunikorn.division import GUARANTEED
from mooring.actions.shares.yunikorn.queues import compile_yunikorn_queues
from mooring.model.api.pods import Pod
from mooring.model.queued.yunikorn_placement import (
    UNPLACED,
    User,
    any_creates,
    application_of,
    creates_queue,
    queue_of,
    user_of,
    why_unplaced,
)
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord


class YuniKornFamily(Family):
    """The queues of YuniKorn's `queues.yaml`. Placement rules can create further ones for the pods that there are."""

    name = "YuniKornQueue"
    kind = "YuniKorn queue"
    objects = attrgetter("yunikorn")

    def queue_of_pod(self, cluster: Cluster, record: PodRecord) -> str:
        paths = (queue_of(queues, record.pod) for queues in cluster.related.yunikorn.values())
        return next((path for path in paths if path), "")

    def queues(self, cluster: Cluster) -> list[QueueSpec]:
        given = next(iter(cluster.related.yunikorn.values()))
        pods = (record.pod for record in cluster.pods.records.values())
        return compile_yunikorn_queues(given, self.created_queues(cluster, pods))

    def created_queues(self, cluster: Cluster, pods: Iterable[Pod]) -> set[str]:
        given = next(iter(cluster.related.yunikorn.values()))
        if not any_creates(given):
            return set()
        return {queue_of(given, pod) for pod in pods if creates_queue(given, pod)} - {"", UNPLACED}

    def application(self, pod: Pod) -> tuple[str, User]:
        return application_of(pod), user_of(pod)

    def why_refused(self, queue: str, pod: Pod) -> str:
        return why_unplaced(pod) if queue == UNPLACED else ""


def yunikorn_settings(volcano: ShareSettings) -> ShareSettings:
    return ShareSettings(division=GUARANTEED, minimum_runtime_seconds=volcano.minimum_runtime_seconds)
