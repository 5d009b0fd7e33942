"""Which members of a gang are to be placed together, in which order, and as which units.

A unit is members that share a place, in groups that share one of their own inside it.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mooring.engine.profile import Profile
from mooring.engine.queue.entries import complete_parts, parts_to_start
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.model.keys import GangKey, PodKey
from mooring.model.topology.requests import TopologyRequest
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.pods import PodRecord
from mooring.state.remembered import Derived
from mooring.state.shapes import Shape

NO_RANK = 1 << 62


@dataclass(frozen=True, eq=False)
class Group:
    """Members of one shape and one role: whatever is found out for one of them holds for all."""

    part: GangRecord
    role: str
    profile: Profile
    shape: Shape
    entries: tuple[Entry, ...]
    """In order of rank."""

    @property
    def size(self) -> int:
        return len(self.entries)


def all_members(gang: GangEntry, table: GangTable) -> list[Entry]:
    """Every member that waits and can run in a whole gang, part by part, in order of rank."""
    parts = complete_parts(gang.root, gang.entries, table)
    return [entry for part in parts for entry in _waiting(gang, part)]


def needed_members(gang: GangEntry, table: GangTable, besides: Container[GangKey] = ()) -> list[Entry]:
    """The members without which the gang is not whole: the lowest ranks of each role, then the lowest of all.

    A gang that is whole grows by one member, a gang of gangs by one of these. `besides` are the keys of gangs inside it
    that are to be left out, where others would do.
    """
    parts = parts_to_start(gang.root, gang.entries, table, besides)
    needed = [entry for part in parts for entry in _needed_of(gang, part)]
    if needed or not table.is_whole(gang.root):
        return needed
    whole = (part for part in complete_parts(gang.root, gang.entries, table) if part.is_whole())
    return [entry for part in whole for entry in _waiting(gang, part)][:1]


def members_to_start(gang: GangEntry, table: GangTable, *, best_effort_first: bool = False) -> list[Entry]:
    """What has to fit for a gang to start; `best_effort_first`: members without requests before all others."""
    root = gang.root
    if not best_effort_first or root.gang is None or root.gang.of_gangs:
        return needed_members(gang, table)
    waiting = sorted(_waiting(gang, root), key=lambda entry: any(entry.record.shape.requests.values()))
    return completing_members(root, root.bound(), waiting) or waiting[:1]


def _waiting(gang: GangEntry, part: GangRecord) -> list[Entry]:
    """The members that wait in order of their ranks, those without one behind, as they came."""
    entries, ranks = gang.entries, part.ranks
    found = [entries[key] for key in part.members if key in entries]
    return sorted(found, key=lambda entry: (ranks.get(entry.record.key, NO_RANK), entry.arrival))


def _needed_of(gang: GangEntry, part: GangRecord) -> list[Entry]:
    return completing_members(part, part.bound(), _waiting(gang, part))


def completing_members(part: GangRecord, present: Sequence[PodRecord], waiting: Sequence[Entry]) -> list[Entry]:
    """Of members that wait those that make a gang whole beside those present: the first of each role, then of all."""
    declared = part.gang
    assert declared is not None, "a gang that is to start has been declared"
    missing = declared.minimum - len(present) - len(part.done)
    if not declared.roles:
        return list(waiting[: max(0, missing)])
    have = part.by_role(record.key for record in present)
    chosen = dict[PodKey, Entry]()
    for role in declared.roles:
        of_role = [entry for entry in waiting if part.roles[entry.record.key] == role.name]
        lacking = max(0, role.minimum - have[role.name])
        chosen.update((entry.record.key, entry) for entry in of_role[:lacking])
    for entry in waiting:
        if len(chosen) >= missing:
            break
        chosen.setdefault(entry.record.key, entry)
    return [entry for entry in waiting if entry.record.key in chosen]


def grouped(entries: list[Entry], table: GangTable) -> list[Group]:
    """Members by part, role, profile and shape, in the order of the first of each."""
    found: dict[tuple[GangKey, str, str, int], list[Entry]] = {}
    for entry in entries:
        part = table.of(entry.record.key)
        assert part is not None
        key = (part.key, part.roles[entry.record.key], entry.profile.name, entry.record.shape.id)
        found.setdefault(key, []).append(entry)
    groups = []
    for (part_key, role, _, _), members in found.items():
        first = members[0]
        groups.append(Group(table.records[part_key], role, first.profile, first.record.shape, tuple(members)))
    return groups


class KnownRefusals:
    """Why gangs did not fit, by what they have in common, as long as everything is as it was."""

    def __init__(self) -> None:
        self._messages: Derived[Any, str] = Derived()

    def get(self, cluster: Cluster, alike: Any) -> str:
        """Why such a gang does not fit; empty if nothing is known."""
        messages = self._messages.at(_moment(cluster))
        return "" if alike is None else messages.get(alike) or ""

    def note(self, cluster: Cluster, alike: Any, message: str) -> None:
        """Remember a refusal; all is as it was before the attempt, though the log of changes has moved on."""
        self._messages.renew(_moment(cluster))
        if alike is not None:
            self._messages.put(alike, message)


def _moment(cluster: Cluster) -> tuple[Any, ...]:
    return id(cluster), cluster.pod_changes.position, cluster.description


def likeness(cluster: Cluster, gang: GangEntry, groups: Sequence[Group]) -> Any:
    """What two gangs have in common of which either both fit or neither does; None if nothing follows from one."""
    declared = gang.root.gang
    if declared is None or declared.of_gangs or declared.after:
        return None  # where others of it, or those that it starts after, run is where it has to be
    if any(part.bound() for part in cluster.gangs.parts_of(gang.root)):
        return None
    topology_requests = (
        declared.topology_request,
        tuple((role.name, role.topology_request) for role in declared.roles),
        declared.role_groups,
    )
    return topology_requests, tuple((group.role, group.profile.name, group.shape.id, group.size) for group in groups)


ANYWHERE = TopologyRequest()


@dataclass(frozen=True, eq=False)
class Unit:
    """Members that want one place together: one group, or several units."""

    topology_request: TopologyRequest
    groups: tuple[Group, ...]
    parts: tuple["Unit", ...] = ()
    """Empty for a single group."""
    running: tuple[PodRecord, ...] = ()
    """Members that have their place already: the others have to come to them."""

    @property
    def size(self) -> int:
        return sum(group.size for group in self.groups)

    def topology_requests(self) -> list[TopologyRequest]:
        """All that is asked for, from outside to inside."""
        return [
            self.topology_request,
            *(topology_request for part in self.parts for topology_request in part.topology_requests()),
        ]


def unit_of(root: GangRecord, groups: Sequence[Group], table: GangTable) -> Unit:
    """A whole gang, or one inside it, as one unit; of those inside it that have any of these groups."""
    assert root.gang is not None
    if not root.gang.of_gangs:
        return _beside_relatives(root, _unit_of_gang(root, groups), table)
    parts: list[Unit] = []
    for inside in table.inside(root):
        leaves = list(table.parts_of(inside))
        own = [group for group in groups if group.part in leaves]
        if own:
            parts.append(unit_of(inside, own, table))
    running = [member for part in table.parts_of(root) for member in part.bound()]
    return _around(root.gang.topology_request or ANYWHERE, groups, parts, running)


def _beside_relatives(root: GangRecord, unit: Unit, table: GangTable) -> Unit:
    """A gang and those that start after it share the place that the first one asks for, whoever of them runs."""
    assert root.gang is not None
    first = table.records.get(root.gang.after) if root.gang.after else root
    followers = table.followers.get(first.key, ()) if first is not None else ()
    common = first.gang.topology_request if first is not None and first.gang is not None else None
    if first is None or common is None or not followers:
        return unit
    together = _unsliced(common)
    relatives = [first, *(table.records[key] for key in followers)]
    running = [member for record in relatives for member in record.bound()]
    if unit.topology_request == together:
        return replace(unit, running=tuple(running))
    return _around(together, unit.groups, [unit], running)


def _unit_of_gang(part: GangRecord, groups: Sequence[Group]) -> Unit:
    gang = part.gang
    assert gang is not None
    topology_request = gang.topology_request or ANYWHERE
    bound = part.bound()
    # Slices are of ranks, and ranks are counted within a role: each group has its own.
    sliced = _slices_of(topology_request)
    topology_request_of = {role.name: role.topology_request for role in gang.roles if role.topology_request is not None}
    units: list[Unit] = []
    for role in dict.fromkeys(group.role for group in groups):
        own = [group for group in groups if group.role == role]
        running = [record for record in bound if part.roles[record.key] == role]
        if role in topology_request_of and len(own) == 1:
            units.append(_beside_slices(Unit(topology_request_of[role], tuple(own), running=tuple(running))))
        elif role in topology_request_of:
            leaves = [Unit(_slices_of(topology_request_of[role]), (group,), running=tuple(running)) for group in own]
            units.append(_around(_unsliced(topology_request_of[role]), own, list(map(_beside_slices, leaves)), running))
        else:
            units += [Unit(sliced, (group,), running=tuple(running)) for group in own]
    for role_group in gang.role_groups:
        inside = [unit for unit in units if unit.groups[0].role in role_group.roles]
        if inside:
            running = [record for record in bound if part.roles[record.key] in role_group.roles]
            together = [group for unit in inside for group in unit.groups]
            units = [unit for unit in units if unit not in inside]
            units.append(_around(role_group.topology_request, together, inside, running))
    if len(units) == 1 and units[0].topology_request is sliced:
        return _beside_slices(Unit(topology_request, units[0].groups, running=tuple(bound)))
    return _around(topology_request, groups, [_beside_slices(unit) for unit in units], bound)


def _around(
    topology_request: TopologyRequest, groups: Sequence[Group], parts: Sequence[Unit], running: Sequence[PodRecord]
) -> Unit:
    """Units in a common place; a single one that asks for nothing itself, or in no such place, needs nothing around."""
    if len(parts) == 1:
        if parts[0].topology_request == ANYWHERE and not parts[0].parts:
            return _beside_slices(Unit(topology_request, tuple(groups), running=tuple(running)))
        if not topology_request.levels:
            return parts[0]
    return Unit(topology_request, tuple(groups), tuple(parts), tuple(running))


# Slices of which some members run.


def _beside_slices(unit: Unit) -> Unit:
    """Let members whose slice has begun to run join it where it is; the others start slices of their own."""
    topology_request = unit.topology_request
    if not topology_request.has_slices or not unit.running or len(unit.groups) > 1:
        return unit
    group = unit.groups[0]
    slice_of = _slices(group, topology_request.slice_size)
    begun: dict[int | None, list[PodRecord]] = {}
    for record in unit.running:
        begun.setdefault(slice_of(record.key), []).append(record)
    begun.pop(None, None)
    joining: dict[int | None, list[Entry]] = {}
    for entry in group.entries:
        number = slice_of(entry.record.key)
        joining.setdefault(number if number in begun else None, []).append(entry)
    fresh = joining.pop(None, [])
    in_slice = TopologyRequest(required=topology_request.slice_level, topology=topology_request.topology)
    parts = [
        Unit(in_slice, (replace(group, entries=tuple(entries)),), running=tuple(begun[number]))
        for number, entries in joining.items()
    ]
    if fresh:
        parts.append(Unit(_slices_of(topology_request), (replace(group, entries=tuple(fresh)),)))
    return Unit(_unsliced(topology_request), tuple(part.groups[0] for part in parts), tuple(parts), unit.running)


def _slices_of(topology_request: TopologyRequest) -> TopologyRequest:
    return TopologyRequest(
        slice_size=topology_request.slice_size,
        slice_level=topology_request.slice_level,
        topology=topology_request.topology,
    )


def _unsliced(topology_request: TopologyRequest) -> TopologyRequest:
    return replace(topology_request, slice_size=0, slice_level=None)


def _slices(group: Group, size: int) -> Callable[[PodKey], int | None]:
    """Which slice a member is in by its rank, counted from the lowest of its role; None for one without a rank."""
    ranks, roles = group.part.ranks, group.part.roles
    lowest = min((rank for key, rank in ranks.items() if roles[key] == group.role), default=0)
    return lambda key: (ranks[key] - lowest) // size if key in ranks else None
