"""What a family of queues says of itself: the engine of shares asks nothing else."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, ClassVar

from mooring.actions.shares.demands import QueueSpec
from mooring.model.api.pods import Pod
from mooring.model.queued.yunikorn_placement import NOBODY, User
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord


class Family:
    """Queues of one kind. Each family shares the whole cluster by its own rules (`ShareSettings`)."""

    name: str = ""
    """Named in refusals."""
    kind: str = ""
    """Named in reports."""
    counts_best_effort_first: bool = False
    takes_turns: bool = False
    """Whether the members of a gang are tried one by one in their order, not all that it needs at once."""
    expects_pods: bool = False
    """Whether a group without pods counts with what it says that it needs: its controller creates them later."""
    parts: ClassVar[Mapping[str, int]] = {}
    """Of which resources its queues count parts of one, and how many parts one has."""

    objects: "ClassVar[attrgetter[Mapping[str, Any]]]"
    """The objects among which the queues are, of all that the state keeps."""

    def has_queues(self, cluster: Cluster) -> bool:
        """Whether the cluster has any such queue."""
        objects = self.objects(cluster.related)
        return bool(objects) and any(map(self.is_own, objects.values()))

    def is_own(self, found: Any) -> bool:
        """Whether one of the objects is a queue of this family."""
        return True

    def queue_of_pod(self, cluster: Cluster, record: PodRecord) -> str:
        """The name of the queue of a pod that is in no gang; empty if it has none of these."""
        raise NotImplementedError

    def queue_of_gang(self, cluster: Cluster, root: GangRecord) -> str:
        """The name of a gang's queue; that of its first member, if nothing else is said."""
        first = next((record for part in cluster.gangs.parts_of(root) for record in part.members.values()), None)
        return "" if first is None else self.queue_of_pod(cluster, first)

    def queues(self, cluster: Cluster) -> list[QueueSpec]:
        """All queues; the cluster has some."""
        raise NotImplementedError

    def created_queues(self, cluster: Cluster, pods: Iterable[Pod]) -> set[str]:
        """The names of queues that there are for the sake of some pods, if queues are created for pods."""
        return set()

    def requests(self, cluster: Cluster, record: PodRecord) -> Mapping[str, int]:
        """What a pod counts for in its queue."""
        return record.shape.requests

    def is_best_effort(self, record: PodRecord) -> bool:
        """Whether a pod requests nothing that its queue counts, but a place."""
        return not any(record.shape.requests.values())

    def application(self, pod: Pod) -> tuple[str, User]:
        """What a pod is a part of, with other pods of its queue, and the user that submitted it; empty for none."""
        return "", NOBODY

    def why_refused(self, queue: str, pod: Pod) -> str:
        """Why a pod can be in no queue, where that is known better than that the queue does not exist."""
        return ""
