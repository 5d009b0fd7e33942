"""What a gang waits for: how many members fit where, which level of the topology is too small, who is ahead of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mooring.actions.gangs.explain_groups import GroupRoom, group_room
from mooring.actions.gangs.members import all_members, grouped, unit_of
from mooring.actions.gangs.placing import GangPlacer
from mooring.engine.queue.entries import what_is_missing
from mooring.engine.queue.queue import GangEntry, Queue
from mooring.model.topology.requests import TopologyRequest
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord, GangTable

MOST_NAMES = 3
"""How many parts or roles are named that ask for the same."""


@dataclass(frozen=True)
class Ahead:
    """A gang that is before it in the queue."""

    name: str
    members: int
    message: str
    has_reservation: bool


@dataclass
class GangExplanation:
    """A gang that waits, or that waits for its members."""

    name: str
    minimum: int
    members: int
    running: int
    message: str
    wants: str
    """What it asks of the topology, in words."""
    groups: list[GroupRoom] = field(default_factory=list)
    ahead: list[Ahead] = field(default_factory=list)


def explain_gang(cluster: Cluster, queue: Queue, gang: GangEntry, placer: GangPlacer) -> GangExplanation:
    """Say what a gang waits for, as things stand."""
    declared = gang.root.gang
    parts = list(cluster.gangs.parts_of(gang.root))
    explanation = GangExplanation(
        name=gang.name,
        minimum=declared.minimum if declared is not None else 0,
        members=sum(len(part.members) for part in parts),
        running=sum(len(part.bound()) for part in parts),
        message=what_is_missing(gang, cluster.gangs),
        wants=_wants(gang, parts, cluster.gangs),
        ahead=_ahead(cluster, queue, gang),
    )
    if declared is None or explanation.message:
        return explanation
    explanation.message = placer.place_message(cluster, gang)
    needed = {entry.record.key for entry in placer.members_to_start(cluster, gang)}
    groups = grouped(all_members(gang, cluster.gangs), cluster.gangs)
    whole = unit_of(gang.root, groups, cluster.gangs)
    explanation.groups = [group_room(cluster, placer.located, whole, group, needed) for group in groups]
    return explanation


def _wants(gang: GangEntry, parts: Sequence[GangRecord], table: GangTable) -> str:
    """What a gang asks for as a whole, then what its parts and roles do."""
    declared = gang.root.gang
    if declared is None:
        return ""
    words = [_in_words(declared.topology_request)]
    before = table.records.get(declared.after)
    if before is not None and before.gang is not None and _in_words(before.gang.topology_request):
        words.append(f"{_in_words(before.gang.topology_request)} with gang {before.gang.name}")
    inside = [found.gang for found in parts if found is not gang.root and found.gang is not None]
    asking = [(found.name, found.topology_request) for found in inside]
    for found in (declared, *inside):
        asking += [(" with ".join(group.roles), group.topology_request) for group in found.role_groups]
        asking += [(role.name, role.topology_request) for role in found.roles]
    names: dict[str, list[str]] = {}
    for name, topology_request in asking:
        names.setdefault(_in_words(topology_request), []).append(name)
    names.pop("", None)
    words += [f"{_listed(found)} {topology_request}" for topology_request, found in names.items()]
    return ", ".join(filter(None, words))


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = len(names) - MOST_NAMES
    return f"{', '.join(names[:MOST_NAMES])}{f' and {more} more' if more > 0 else ''} each"


def _in_words(topology_request: TopologyRequest | None) -> str:
    if topology_request is None:
        return ""
    return ("all " if topology_request.required else "") + ", ".join(topology_request.words)


def _ahead(cluster: Cluster, queue: Queue, gang: GangEntry) -> list[Ahead]:
    """The gangs before it, in order."""
    messages = {
        parked.gang.root.key: "; ".join(parked.verdict.reasons)
        for parked in queue.parked()
        if parked.gang is not None and parked.verdict is not None
    }
    waiting = [found for found in queue.gangs if found is not gang and found.key is not None]
    if gang.key is not None:
        waiting = [found for found in waiting if (found.key, found.arrival) < (gang.key, gang.arrival)]
    forecast = cluster.forecasts.of_gang
    holder = None if forecast is None else forecast.gang
    return [
        Ahead(found.name, found.size, messages.get(found.root.key, ""), found.root.key == holder)
        for found in sorted(waiting, key=lambda found: (found.key, found.arrival))
    ]
