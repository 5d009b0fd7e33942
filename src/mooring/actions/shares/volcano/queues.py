"""Queues from their manifests: what `Sharing` is given."""

from collections.abc import Iterable

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.resources import column_amounts
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
from mooring.model.values.quantity import parse_quantity, to_units
from mooring.model.values.requests import CPU, MEMORY, PODS


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
    capability = _with_pods(spec.capability)
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
        deserved=_with_pods(spec.deserved),
        guarantee=_with_pods(queue.guaranteed),
        is_reclaimable=spec.reclaimable is not False,
        is_open=queue.status.state == OPEN,
        hierarchy=hierarchy_of(queue),
    )


def _with_pods(resources: Resources | None) -> dict[str, int]:
    """The same with places for pods: they count in the shares of Volcano's queues, and limit no queue."""
    places = {PODS: to_units(parse_quantity(resources[PODS]))} if resources and PODS in resources else {}
    return column_amounts(resources) | places
