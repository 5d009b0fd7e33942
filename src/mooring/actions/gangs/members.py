"""Which members of a gang are to be placed together, and in which order."""

from collections import Counter
from dataclasses import dataclass

from mooring.engine.profile import Profile
from mooring.engine.queue import Entry, GangEntry
from mooring.model.gangs import Gang
from mooring.model.membership import membership
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.shapes import Shape


@dataclass(frozen=True)
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


def ranked(entries: list[Entry]) -> list[Entry]:
    """Members in order of their ranks, those without one behind, as they came."""

    def place(entry: Entry) -> tuple[int, int]:
        found = membership(entry.record.pod)
        rank = None if found is None else found.rank
        return (1 << 62, entry.arrival) if rank is None else (rank, entry.arrival)

    return sorted(entries, key=place)


def all_members(gang: GangEntry, table: GangTable) -> list[Entry]:
    """Every member that waits, part by part, in order of rank."""
    return [entry for part in table.parts_of(gang.root) for entry in _waiting(gang, part)]


def needed_members(gang: GangEntry, table: GangTable) -> list[Entry]:
    """The members without which the gang is not whole: the lowest ranks of each role, then the lowest of all.

    A gang that is whole grows by one.
    """
    root = gang.root.gang
    assert root is not None
    parts = list(table.parts_of(gang.root))
    if root.of_gangs:
        parts = _needed_parts(gang, parts, root.minimum)
    needed = [entry for part in parts for entry in _needed_of(gang, part)]
    return needed or all_members(gang, table)[:1]


def _waiting(gang: GangEntry, part: GangRecord) -> list[Entry]:
    return ranked([entry for key, entry in gang.entries.items() if key in part.members])


def _needed_parts(gang: GangEntry, parts: list[GangRecord], minimum: int) -> list[GangRecord]:
    """As many parts as must run, those that run or can be completed first."""
    running = [part for part in parts if part.is_whole()]
    ready = [
        part
        for part in parts
        if part not in running
        and part.gang is not None
        and not part.lacks([*part.bound(), *(entry.record for entry in _waiting(gang, part))])
    ]
    return ready[: max(0, minimum - len(running))]


def _needed_of(gang: GangEntry, part: GangRecord) -> list[Entry]:
    declared = part.gang
    if declared is None:
        return []
    waiting = _waiting(gang, part)
    bound = part.bound()
    have = Counter(part.roles[record.key] for record in bound)
    chosen = dict[str, Entry]()
    for role in declared.roles:
        of_role = [entry for entry in waiting if part.roles[entry.record.key] == role.name]
        lacking = max(0, role.minimum - have[role.name])
        chosen.update((entry.record.key, entry) for entry in of_role[:lacking])
    for entry in waiting:
        if len(bound) + len(chosen) >= declared.minimum:
            break
        chosen.setdefault(entry.record.key, entry)
    return [entry for entry in waiting if entry.record.key in chosen]


def grouped(entries: list[Entry], table: GangTable) -> list[Group]:
    """Members by part, role, profile and shape, in the order of the first of each."""
    found: dict[tuple[str, str, str, int], list[Entry]] = {}
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


def has_wish(gang: Gang) -> bool:
    """Whether anything in a gang asks for a place in the topology."""
    return gang.wish is not None or bool(gang.role_groups) or any(role.wish is not None for role in gang.roles)
