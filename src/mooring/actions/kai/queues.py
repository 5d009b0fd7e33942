"""KAI's queues from their manifests: what `Sharing` is given."""

from collections.abc import Iterable

from mooring.actions.volcano.demands import QueueSpec
from mooring.actions.volcano.resources import UNLIMITED
from mooring.model.api.kai_queue import DEFAULT_PRIORITY, NO_LIMIT, KaiQueue, KaiResource, KaiResources
from mooring.model.api.meta import timestamp_seconds
from mooring.model.values.durations import parse_duration
from mooring.model.values.requests import CPU, MEMORY

GPU = "nvidia.com/gpu"
UNITS = {"gpu": (GPU, 1), "cpu": (CPU, 1), "memory": (MEMORY, 10**6)}
"""What KAI shares, as resources, and in how many column units it counts them."""
SHARED = tuple(name for name, _ in UNITS.values())


def compile_kai_queues(queues: Iterable[KaiQueue]) -> list[QueueSpec]:
    """Queues that passed validation, in column units."""
    return [_compile(queue) for queue in queues]


def _compile(queue: KaiQueue) -> QueueSpec:
    spec = queue.spec
    resources = spec.resources or KaiResources()
    given: dict[str, tuple[KaiResource, int]] = {
        name: (getattr(resources, field), unit) for field, (name, unit) in UNITS.items()
    }
    priority = DEFAULT_PRIORITY if spec.priority is None else spec.priority
    return QueueSpec(
        name=queue.metadata.name,
        parent=spec.parent_queue,
        priority=priority,
        created=timestamp_seconds(queue.metadata.creation_timestamp) or 0.0,
        capability={name: int(of.limit * unit) for name, (of, unit) in given.items() if of.limit != NO_LIMIT},
        deserved={
            name: UNLIMITED if of.quota == NO_LIMIT else int(of.quota * unit) for name, (of, unit) in given.items()
        },
        weights={name: of.over_quota_weight for name, (of, _) in given.items()},
        minimum_runtime_seconds=parse_duration(spec.reclaim_min_runtime) if spec.reclaim_min_runtime else None,
        preempt_runtime_seconds=parse_duration(spec.preempt_min_runtime) if spec.preempt_min_runtime else None,
    )
