"""Queues from their manifests: what `Sharing` is given."""

from collections.abc import Iterable

from mooring.actions.volcano.demands import QueueSpec
from mooring.model.api.meta import Resources, timestamp_seconds
from mooring.model.api.volcano_queue import (
    DEFAULT_QUEUE,
    OPEN,
    ROOT,
    Queue,
    default_queue,
    hierarchy_of,
    queue_named_default,
)
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import CPU, MEMORY, in_columns, to_column_units


def compile_queues(queues: Iterable[Queue]) -> list[QueueSpec]:
    """Queues that passed validation, in column units. Resources that are accounted for nowhere are left out.

    Where there are queues, there is one named default: Volcano sees to that.
    """
    specs = [_compile(queue) for queue in queues]
    if specs and all(spec.name != DEFAULT_QUEUE for spec in specs):
        specs.append(_compile(queue_named_default()))
    return specs


def _compile(queue: Queue) -> QueueSpec:
    default_queue(queue)
    spec = queue.spec
    capability = column_amounts(spec.capability)
    for name in (CPU, MEMORY):
        # Of these Volcano takes 0 for "not set": a queue that may have no CPU could run nothing at all.
        if capability.get(name) == 0:
            del capability[name]
    return QueueSpec(
        name=queue.metadata.name,
        parent="" if spec.parent == ROOT else spec.parent,
        weight=float(spec.weight or 1),
        priority=spec.priority,
        created=timestamp_seconds(queue.metadata.creation_timestamp) or 0.0,
        capability=capability,
        deserved=column_amounts(spec.deserved),
        guarantee=column_amounts(queue.guaranteed),
        is_reclaimable=spec.reclaimable is not False,
        is_open=queue.status.state == OPEN,
        hierarchy=hierarchy_of(queue),
    )


def column_amounts(resources: Resources | None) -> dict[str, int]:
    """Quantities in column units, of resources that are accounted for."""
    return {
        name: to_column_units(name, parse_quantity(text))
        for name, text in (resources or {}).items()
        if in_columns(name)
    }
