"""A gang as units inside units: members that share a place, in groups that share one of their own inside it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mooring.actions.gangs.members import Group
from mooring.engine.queue.queue import Entry
from mooring.model.keys import PodKey
from mooring.model.topology.requests import TopologyRequest
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.pods import PodRecord

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
