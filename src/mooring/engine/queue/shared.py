"""Queues by whose share a pod or gang has its turn. What such queues are, their families say: see `actions/shares`."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mooring.engine.queue.parked import Turn
from mooring.engine.queue.queue import Entry
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord
from mooring.state.related import RelatedObjects


class QueueFamily(Protocol):
    """Queues of one kind, as the framework sees them: which pods and gangs are theirs."""

    name: str
    """Named in refusals."""
    counts_best_effort_first: bool
    """Whether a gang starts with those of its members that request nothing, before all others."""

    def has_queues(self, cluster: Cluster) -> bool:
        """Whether the cluster has any such queue. Without one, no pod or gang is theirs."""

    def queue_of_gang(self, cluster: Cluster, root: GangRecord) -> str:
        """The name of a gang's queue; empty if it has none of these."""

    def queue_of_pod(self, cluster: Cluster, record: PodRecord) -> str:
        """The name of the queue of a pod that is in no gang; empty if it has none of these."""


class SharedQueue(NamedTuple):
    family: QueueFamily
    name: str


class SharedQueues:
    """The families that there are, in order: a pod that more than one would have is the first one's."""

    def __init__(self, families: Sequence[QueueFamily] = ()) -> None:
        self._families = families
        self._present: Sequence[QueueFamily] = ()
        self._seen: tuple[RelatedObjects, int] | None = None

    def _in(self, cluster: Cluster) -> Sequence[QueueFamily]:
        """The families that have queues in a cluster."""
        related = cluster.related
        if self._seen is None or self._seen[0] is not related or self._seen[1] != related.version:
            self._seen = (related, related.version)
            self._present = [family for family in self._families if family.has_queues(cluster)]
        return self._present

    def has(self, cluster: Cluster, family: QueueFamily) -> bool:
        """Whether a family has queues in a cluster."""
        return family in self._in(cluster)

    def of_turn(self, cluster: Cluster, turn: Turn) -> SharedQueue | None:
        """The queue by whose share a turn comes; None if it comes by priority, as all do without such queues."""
        if not self._in(cluster):
            return None
        if not isinstance(turn, Entry):
            return self.of_gang(cluster, turn.root)
        gang = cluster.gangs.of(turn.record.key)
        if gang is not None:
            return self.of_gang(cluster, cluster.gangs.root_of(gang))
        return self.of_pod(cluster, turn.record)

    def of_gang(self, cluster: Cluster, root: GangRecord) -> SharedQueue | None:
        """The queue of an outermost gang."""
        found = ((family, family.queue_of_gang(cluster, root)) for family in self._in(cluster))
        return next((SharedQueue(family, name) for family, name in found if name), None)

    def of_pod(self, cluster: Cluster, record: PodRecord) -> SharedQueue | None:
        """The queue of a pod that is in no gang."""
        found = ((family, family.queue_of_pod(cluster, record)) for family in self._in(cluster))
        return next((SharedQueue(family, name) for family, name in found if name), None)
