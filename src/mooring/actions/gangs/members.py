"""Which members of a gang are to be placed together, and in which order."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from mooring.engine.profile import Profile
from mooring.engine.queue.gang_parts import complete_parts, parts_to_start
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.model.keys import GangKey, PodKey
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord, GangTable
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


def _waiting(gang: GangEntry, part: GangRecord) -> list[Entry]:
    """The members that wait in order of their ranks, those without one behind, as they came."""
    entries, ranks = gang.entries, part.ranks
    found = [entries[key] for key in part.members if key in entries]
    return sorted(found, key=lambda entry: (ranks.get(entry.record.key, NO_RANK), entry.arrival))


def _needed_of(gang: GangEntry, part: GangRecord) -> list[Entry]:
    declared = part.gang
    assert declared is not None, "a gang that is to start has been declared"
    waiting = _waiting(gang, part)
    bound = part.bound()
    missing = declared.minimum - len(bound) - len(part.done)
    if not declared.roles:
        return waiting[: max(0, missing)]
    have = part.by_role(record.key for record in bound)
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
        self._moment: tuple[Any, ...] = ()
        self._messages: dict[Any, str] = {}

    def get(self, cluster: Cluster, alike: Any) -> str:
        """Why such a gang does not fit; empty if nothing is known."""
        if self._moment != _moment(cluster):
            self._moment, self._messages = _moment(cluster), {}
        return "" if alike is None else self._messages.get(alike, "")

    def note(self, cluster: Cluster, alike: Any, message: str) -> None:
        """Remember a refusal; all is as it was before the attempt, though the log of changes has moved on."""
        self._moment = _moment(cluster)
        if alike is not None:
            self._messages[alike] = message


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
