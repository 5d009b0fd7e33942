"""Gangs and their members: who belongs to whom, and how many of them run.

Kept as pods come and go, so that nobody has to look through all pods to see whether a gang is whole.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mooring.model.gangs import Gang, Membership
from mooring.state.pods import UNBOUND, PodRecord


@dataclass(slots=True)
class GangRecord:
    """A gang and the pods that name it; `gang` is None while nobody has declared it."""

    key: str
    gang: Gang | None = None
    members: dict[str, PodRecord] = field(default_factory=dict)
    """By pod key, in the order in which they came."""
    roles: dict[str, str] = field(default_factory=dict)
    """pod key -> its role"""
    leaving: set[str] = field(default_factory=set)
    """Members that run and are being evicted: the gang can no longer count on them."""
    nominated: set[str] = field(default_factory=set)
    """Members that hold room which is being made for them: they do not run yet."""

    def bound(self) -> list[PodRecord]:
        """The members that run and stay."""
        absent = self.leaving | self.nominated
        return [record for key, record in self.members.items() if record.row != UNBOUND and key not in absent]

    def waiting(self) -> list[PodRecord]:
        return [record for record in self.members.values() if record.row == UNBOUND and not record.node_name]

    def is_whole(self, present: Iterable[PodRecord] | None = None) -> bool:
        """Whether the members that run (or those given) are enough, in all and of each role."""
        return self.gang is not None and not self.lacks(self.bound() if present is None else present)

    def lacks(self, present: Iterable[PodRecord]) -> int:
        """How many members are missing besides those present, the minimums of roles included."""
        assert self.gang is not None
        keys = [record.key for record in present]
        by_role = Counter(self.roles[key] for key in keys)
        missing_roles = sum(max(0, role.minimum - by_role[role.name]) for role in self.gang.roles)
        return max(missing_roles, self.gang.minimum - len(keys), 0)

    def surplus(self, present: list[PodRecord] | None = None) -> list[PodRecord]:
        """The members that may go one by one, last come first, with the gang still whole after each of them.

        `present` are those that run and stay, as they came; all that run if they are not given.
        """
        gang = self.gang
        bound = self.bound() if present is None else present
        if gang is None or not gang.evicted_whole:
            return bound[::-1]
        spare = len(bound) - gang.minimum
        by_role = Counter(self.roles[record.key] for record in bound)
        minimum_of = {role.name: role.minimum for role in gang.roles}
        found: list[PodRecord] = []
        for record in reversed(bound):
            role = self.roles[record.key]
            if len(found) < spare and by_role[role] > minimum_of.get(role, 0):
                by_role[role] -= 1
                found.append(record)
        return found


class GangTable:
    """All gangs; only the cluster writes to it."""

    def __init__(self) -> None:
        self.records: dict[str, GangRecord] = {}
        self.of_pod: dict[str, str] = {}
        """pod key -> gang key"""
        self.children: dict[str, list[str]] = {}
        """The gangs inside a gang, by its key."""
        self.touched = set[str]()
        """The gangs of which a member came to a node or went from it, or that changed, until somebody has looked."""
        self.version = 0
        """Rises when a gang is declared, changes or is withdrawn, and when a member is being evicted."""

    def __bool__(self) -> bool:
        return bool(self.records)

    def put(self, gang: Gang) -> None:
        record = self._record(gang.key)
        if record.gang is not None:
            self._part(record.gang)
        record.gang = gang
        if gang.parent:
            self.children.setdefault(gang.parent, []).append(gang.key)
        self.touched.add(gang.key)
        self.version += 1

    def remove(self, key: str) -> None:
        record = self.records.get(key)
        if record is None or record.gang is None:
            return
        self._part(record.gang)
        record.gang = None
        self.version += 1
        if not record.members:
            del self.records[key]

    def join(self, record: PodRecord, membership: Membership) -> None:
        gang = self._record(membership.gang)
        gang.members[record.key] = record
        gang.roles[record.key] = membership.role
        self.of_pod[record.key] = membership.gang

    def leave(self, key: str) -> None:
        gang_key = self.of_pod.pop(key, None)
        if gang_key is None:
            return
        self.touched.add(gang_key)
        gang = self.records[gang_key]
        del gang.members[key]
        del gang.roles[key]
        gang.leaving.discard(key)
        gang.nominated.discard(key)
        if not gang.members and gang.gang is None:
            del self.records[gang_key]

    def touch(self, pod_key: str) -> None:
        """A member came to a node or went from it."""
        key = self.of_pod.get(pod_key)
        if key is not None:
            self.touched.add(key)

    def expel(self, pod_key: str) -> None:
        """A member is being evicted."""
        record = self.of(pod_key)
        if record is not None:
            record.leaving.add(pod_key)
            self.touched.add(record.key)
            self.version += 1

    def nominate(self, pod_key: str, *, holds_room: bool) -> None:
        """A member holds room that is being made for it, or does so no longer."""
        record = self.of(pod_key)
        if record is not None:
            (record.nominated.add if holds_room else record.nominated.discard)(pod_key)
            self.touched.add(record.key)
            self.version += 1

    def of(self, pod_key: str) -> GangRecord | None:
        """The gang of a pod, if it names one."""
        key = self.of_pod.get(pod_key)
        return None if key is None else self.records[key]

    def root_of(self, record: GangRecord) -> GangRecord:
        """The outermost gang that a gang is a part of, itself if it stands alone."""
        seen = {record.key}
        while record.gang is not None and record.gang.parent and record.gang.parent not in seen:
            parent = self.records.get(record.gang.parent)
            if parent is None:
                break
            seen.add(parent.key)
            record = parent
        return record

    def parts_of(self, root: GangRecord) -> Iterator[GangRecord]:
        """The gangs of pods inside a gang, in the order in which they were declared; itself if it has pods."""
        if root.members:
            yield root
        for key in self.children.get(root.key, ()):
            if key in self.records:
                yield from self.parts_of(self.records[key])

    def _record(self, key: str) -> GangRecord:
        return self.records.setdefault(key, GangRecord(key))

    def _part(self, gang: Gang) -> None:
        if gang.parent in self.children:
            self.children[gang.parent].remove(gang.key)
            if not self.children[gang.parent]:
                del self.children[gang.parent]
