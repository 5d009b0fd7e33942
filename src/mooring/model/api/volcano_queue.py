"""The kind `Queue` of `scheduling.volcano.sh`: a tenant's share of the cluster, and its place in a tree of shares.

`default_queue` fills in what Volcano's webhook would. It changes the object in place and may be done twice without
harm.
"""

from typing import NamedTuple

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources

GROUP = "scheduling.volcano.sh"
API_VERSION = f"{GROUP}/v1beta1"

ROOT = "root"
"""The queue above all others. It needs no manifest."""
DEFAULT_QUEUE = "default"
"""The queue of whoever names none. Volcano makes it when it starts."""
HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"

OPEN, CLOSED, CLOSING, UNKNOWN = "Open", "Closed", "Closing", "Unknown"


class Guarantee(KubeObject):
    resource: Resources | None = None


class NodeGroupTerms(KubeObject):
    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinity(KubeObject):
    node_group_affinity: NodeGroupTerms | None = None
    node_group_anti_affinity: NodeGroupTerms | None = None


class QueueSpec(KubeObject):
    weight: int | None = None
    capability: Resources | None = None
    """The most that the queue may ever hold; a resource that is not named has no limit of its own."""
    reclaimable: bool | None = None
    guarantee: Guarantee | None = None
    """What is kept for the queue even while it does not use it."""
    deserved: Resources | None = None
    """What the queue can get back from others that hold more than they deserve."""
    parent: str = ""
    priority: int = 0
    type: str = ""
    affinity: QueueAffinity | None = None
    dequeue_strategy: str = ""


class QueueStatus(KubeObject):
    state: str = ""
    allocated: Resources | None = None


class Queue(KubeObject):
    api_version: str = API_VERSION
    kind: str = "Queue"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: QueueSpec = msgspec.field(default_factory=QueueSpec)
    status: QueueStatus = msgspec.field(default_factory=QueueStatus)

    def annotation(self, key: str) -> str:
        return (self.metadata.annotations or {}).get(key, "")

    @property
    def is_root(self) -> bool:
        return self.metadata.name == ROOT

    @property
    def guaranteed(self) -> Resources:
        return (self.spec.guarantee.resource if self.spec.guarantee else None) or {}


class HierarchyStep(NamedTuple):
    """One level on the way from the root to a queue, and its weight among its siblings."""

    name: str
    weight: float


def queue_named_default() -> Queue:
    """The queue `default` where nobody wrote one, as Volcano makes it."""
    queue = Queue(metadata=ObjectMeta(name=DEFAULT_QUEUE))
    default_queue(queue)
    return queue


def default_queue(queue: Queue) -> None:
    """Fill in the webhook's defaults: weight 1, reclaimable, below the root, and hierarchies that start at the root."""
    spec = queue.spec
    spec.weight = spec.weight or 1
    if spec.reclaimable is None:
        spec.reclaimable = True
    if not spec.parent and not queue.is_root:
        spec.parent = ROOT
    queue.status.state = queue.status.state or OPEN
    path, weights = queue.annotation(HIERARCHY), queue.annotation(HIERARCHY_WEIGHTS)
    if path and weights and path.split("/")[0] != ROOT:
        assert queue.metadata.annotations is not None
        queue.metadata.annotations |= {HIERARCHY: f"{ROOT}/{path}", HIERARCHY_WEIGHTS: f"1/{weights}"}


def hierarchy_of(queue: Queue) -> tuple[HierarchyStep, ...]:
    """The queue's way from below the root as its annotations give it, empty if they do not.

    The queue must have passed validation. As in Volcano, weights below 1 count as 1.

    >>> annotations = {HIERARCHY: "root/science/dev", HIERARCHY_WEIGHTS: "1/3/0.5"}
    >>> [tuple(step) for step in hierarchy_of(Queue(metadata=ObjectMeta(name="dev", annotations=annotations)))]
    [('science', 3.0), ('dev', 1.0)]
    """
    path, weights = queue.annotation(HIERARCHY), queue.annotation(HIERARCHY_WEIGHTS)
    if not path:
        return ()
    steps = zip(path.split("/"), weights.split("/"), strict=True)
    found = tuple(HierarchyStep(name, max(1.0, float(weight))) for name, weight in steps)
    return found[1:] if found[0].name == ROOT else found
