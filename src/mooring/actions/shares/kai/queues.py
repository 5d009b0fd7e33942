"""KAI's queues from their manifests: what `Sharing` is given."""

from collections.abc import Iterable

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.resources import UNLIMITED
from mooring.model.api.kai_queue import DEFAULT_PRIORITY, NO_LIMIT, KaiQueue, KaiResource, KaiResources
from mooring.model.api.meta import timestamp_seconds
from mooring.model.devices.cards import Sharing
from mooring.model.values.durations import parse_duration
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape

GPU = "nvidia.com/gpu"
PARTS = {GPU: 1000}
"""Of GPUs pods may have a part, so queues count them in thousandths."""
UNITS = {"gpu": (GPU, PARTS[GPU]), "cpu": (CPU, 1), "memory": (MEMORY, 10**6)}
"""What KAI shares, as resources, and in how many units of `Sharing` it counts them."""
SHARED = tuple(name for name, _ in UNITS.values())


def compile_kai_queues(queues: Iterable[KaiQueue]) -> list[QueueSpec]:
    """Queues that passed validation."""
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
        capability={name: round(of.limit * unit) for name, (of, unit) in given.items() if of.limit != NO_LIMIT},
        deserved={
            name: UNLIMITED if of.quota == NO_LIMIT else round(of.quota * unit) for name, (of, unit) in given.items()
        },
        weights={name: of.over_quota_weight for name, (of, _) in given.items()},
        minimum_runtime_seconds=parse_duration(spec.reclaim_min_runtime) if spec.reclaim_min_runtime else None,
        preempt_runtime_seconds=parse_duration(spec.preempt_min_runtime) if spec.preempt_min_runtime else None,
    )


def kai_amounts(cluster: Cluster, shape: Shape) -> dict[str, int]:
    """What a pod counts for in its queue: whole GPUs and parts of them in thousandths."""
    amounts = dict(shape.requests)
    gpus = amounts.pop(GPU, 0) * PARTS[GPU]
    asks = shape.card_request.asks.get(Sharing.COUNTED, ()) if shape.card_request is not None else ()
    for ask in asks:
        gpus += ask.count * (ask.milli or _part_of_memory(cluster, ask.memory))
    return {**amounts, GPU: gpus} if gpus else amounts


def _part_of_memory(cluster: Cluster, memory_mib: int) -> int:
    """Which part so much memory is of the smallest card that there is; a whole one if no card says how large it is."""
    cards = (card.memory for found in cluster.nodes.cards.of_row.values() for card in found.cards)
    smallest = min((memory for memory in cards if memory), default=0)
    return min(PARTS[GPU], -(-PARTS[GPU] * memory_mib // smallest)) if smallest else PARTS[GPU]
