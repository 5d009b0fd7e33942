"""The kind `Queue` of `scheduling.run.ai`: what a team may have of GPUs, CPU and memory in KAI, in a tree of queues."""

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta

API_VERSION = "scheduling.run.ai/v2"
KIND = "Queue.scheduling.run.ai"
"""What it is called among all kinds: others have queues, too."""
NO_LIMIT = -1.0
DEFAULT_PRIORITY = 100


class KaiResource(KubeObject):
    """Of one resource; what is not said is 0, also for the limit, and -1 is no limit."""

    quota: float = 0.0
    over_quota_weight: float = 0.0
    limit: float = 0.0


class KaiResources(KubeObject):
    gpu: KaiResource = msgspec.field(default_factory=KaiResource)
    """In GPUs."""
    cpu: KaiResource = msgspec.field(default_factory=KaiResource)
    """In thousandths of a CPU."""
    memory: KaiResource = msgspec.field(default_factory=KaiResource)
    """In megabytes, of a million bytes."""


class KaiQueueSpec(KubeObject):
    display_name: str = ""
    parent_queue: str = ""
    resources: KaiResources | None = None
    priority: int | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class KaiQueue(KubeObject):
    api_version: str = API_VERSION
    kind: str = KIND
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: KaiQueueSpec = msgspec.field(default_factory=KaiQueueSpec)
