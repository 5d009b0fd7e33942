"""YuniKorn's queues from its queues.yaml: what `Sharing` is given. Queues are called by their paths."""

from collections.abc import Iterable, Mapping

from mooring.actions.shares.demands import ApplicationRules, QueueSpec, UserLimit
from mooring.actions.shares.resources import column_amounts
from mooring.model.api import volcano_queue
from mooring.model.api.yunikorn_queues import (
    DISABLED,
    FAIR,
    FENCE,
    PREEMPTION_DELAY,
    PREEMPTION_POLICY,
    PRIORITY_OFFSET,
    PRIORITY_POLICY,
    ROOT,
    SORT_POLICY,
    SORT_PRIORITY,
    Given,
    Limit,
    YuniKornQueue,
    YuniKornQueues,
)
from mooring.model.values.durations import parse_duration
from mooring.model.values.requests import CPU

VCORE = "vcore"
PREEMPTION_DELAY_SECONDS = 30.0
INHERITED = (SORT_POLICY, SORT_PRIORITY, PREEMPTION_DELAY)
"""Properties that a queue has from the one above it; of preemption policies it is only that it is disabled."""


def compile_yunikorn_queues(given: YuniKornQueues, created: Iterable[str] = ()) -> list[QueueSpec]:
    """Queues that passed validation, in column units, with those that placement rules create."""
    queues = dict(given.queues)
    leaves = sorted(set(created) - set(queues))
    for path in leaves:
        _create(queues, path)
    properties: dict[str, dict[str, str]] = {}
    specs = []
    parents = {path.rpartition(".")[0] for path in queues}
    for path, queue in sorted(queues.items(), key=lambda found: found[0].count(".")):
        above = path.rpartition(".")[0]
        properties[path] = _properties(queue, properties.get(above, {}))
        if not queue.is_leaf and path not in parents and path != ROOT:
            continue  # a place for queues that nobody has created yet
        specs.append(_compile(path, queue, properties[path], gives_back=given.preempts))
    return specs


def _create(queues: dict[str, YuniKornQueue], path: str) -> None:
    """A leaf that a rule asks for, like the template of the nearest queue above, and what is missing in between."""
    above, missing = path.rpartition(".")[0], []
    while above not in queues:
        missing.append(above)
        above = above.rpartition(".")[0]
    if queues[above].is_leaf:
        return
    for name in reversed(missing):
        queues[name] = YuniKornQueue(name=name.rpartition(".")[2], parent=True)
    template = None
    while above and template is None:
        template, above = queues[above].childtemplate, above.rpartition(".")[0]
    name = path.rpartition(".")[2]
    queues[path] = (
        YuniKornQueue(name=name)
        if template is None
        else YuniKornQueue(
            name=name,
            resources=template.resources,
            maxapplications=template.maxapplications,
            properties=template.properties,
        )
    )


def _properties(queue: YuniKornQueue, above: Mapping[str, str]) -> dict[str, str]:
    found = {name: above[name] for name in INHERITED if name in above}
    if above.get(PREEMPTION_POLICY) == DISABLED:
        found[PREEMPTION_POLICY] = DISABLED
    return found | {name: str(value).lower() for name, value in (queue.properties or {}).items()}


def _compile(path: str, queue: YuniKornQueue, properties: Mapping[str, str], *, gives_back: bool) -> QueueSpec:
    resources = queue.resources
    above = path.rpartition(".")[0]
    return QueueSpec(
        name=volcano_queue.ROOT if path == ROOT else path,
        parent="" if above == ROOT else above,
        capability=_amounts(resources.max if resources is not None else None),
        deserved=_amounts(resources.guaranteed if resources is not None else None),
        applications=ApplicationRules(
            most=queue.maxapplications,
            sorts_fairly=properties.get(SORT_POLICY) == FAIR,
            sorts_by_priority=properties.get(SORT_PRIORITY) != DISABLED,
            priority_offset=int(properties.get(PRIORITY_OFFSET, 0)),
            fences_priority=properties.get(PRIORITY_POLICY) == FENCE,
            limits=tuple(_limit(limit) for limit in queue.limits),
        ),
        is_reclaimable=gives_back and properties.get(PREEMPTION_POLICY) != DISABLED,
        is_fence=properties.get(PREEMPTION_POLICY) == FENCE,
        reclaim_delay_seconds=_delay(properties.get(PREEMPTION_DELAY, "")),
    )


def _delay(text: str) -> float:
    seconds = parse_duration(text) if text else None
    return PREEMPTION_DELAY_SECONDS if seconds is None else seconds


def _limit(limit: Limit) -> UserLimit:
    return UserLimit(tuple(limit.users), tuple(limit.groups), _amounts(limit.maxresources), limit.maxapplications)


def _amounts(given: Given | None) -> dict[str, int]:
    return column_amounts({CPU if name == VCORE else name: str(value) for name, value in (given or {}).items()})
