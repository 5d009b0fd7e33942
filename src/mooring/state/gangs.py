"""Gangs and their members: who belongs to whom, and how many of them run.

Kept as pods come and go, so that nobody has to look through all pods to see whether a gang is whole.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mooring.model.gangs.gang import Gang, Membership
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.state.pods import UNBOUND, PodRecord


@dataclass(slots=True, eq=False)
class GangRecord:
    """A gang and the pods that name it; `gang` is None while nobody has declared it."""

    key: GangKey
    gang: Gang | None = None
    members: dict[PodKey, PodRecord] = field(default_factory=dict)
    """By pod key, in the order in which they came."""
    roles: dict[PodKey, str] = field(default_factory=dict)
    """pod key -> its role"""
    ranks: dict[PodKey, int] = field(default_factory=dict)
    """pod key -> its place among its role's pods, where something says so"""
    assigned: set[PodKey] = field(default_factory=set)
    """Members whose place in the topology was assigned with their quota: they go there, and have no other choice."""
    done: dict[PodKey, str] = field(default_factory=dict)
    """pod key -> its role, of members that have succeeded: the gang needs neither them any more, nor others for them"""
    _is_whole: bool | None = None
    """What is known until a member comes to a node or goes from it."""

    def copy(self) -> "GangRecord":
        """A record of its own, with the same members."""
        copied = GangRecord(self.key, self.gang)
        copied.take_members_of(self)
        return copied

    def take_members_of(self, other: "GangRecord") -> None:
        self.members, self.roles, self.ranks = dict(other.members), dict(other.roles), dict(other.ranks)
        self.assigned, self.done = set(other.assigned), dict(other.done)
        self.changed()

    def bound(self) -> list[PodRecord]:
        """The members that run and stay: neither being evicted by us, nor terminating for somebody else's sake."""
        return [
            record
            for record in self.members.values()
            if record.row != UNBOUND
            and record.leaving is None
            and not record.nominated
            and not record.shape.terminating
        ]

    def count_leaving(self) -> int:
        """How many members are being evicted by us."""
        return sum(record.leaving is not None for record in self.members.values())

    def waiting(self) -> list[PodRecord]:
        return [record for record in self.members.values() if record.row == UNBOUND and not record.node_name]

    def is_whole(self, present: Iterable[PodRecord] | None = None) -> bool:
        """Whether the members that run (or those given) are enough, in all and of each role."""
        if present is not None:
            return self.gang is not None and not self.lacks(present)
        if self._is_whole is None:
            self._is_whole = self.gang is not None and not self.lacks(self.bound())
        return self._is_whole

    def changed(self) -> None:
        """Members came or went, or the gang asks for another number of them."""
        self._is_whole = None

    def has_started(self) -> bool:
        """Whether the world has seen a member run: it was whole then."""
        return bool(self.done) or any(
            record.row != UNBOUND and not record.assumed and not record.nominated for record in self.members.values()
        )

    def lacks(self, present: Iterable[PodRecord]) -> int:
        """How many members are missing besides those present and those done, the minimums of roles included."""
        assert self.gang is not None
        if self.gang.once_satisfied and self.has_started():
            return 0
        keys = [record.key for record in present]
        missing = self.gang.minimum - len(keys) - len(self.done)
        if not self.gang.roles:
            return max(missing, 0)
        by_role = self.by_role(keys)
        missing_roles = sum(max(0, role.minimum - by_role[role.name]) for role in self.gang.roles)
        return max(missing_roles, missing, 0)

    def by_role(self, keys: Iterable[PodKey]) -> Counter[str]:
        """How many members each role has, of these and those done."""
        found = Counter(self.roles[key] for key in keys)
        if self.done:
            found.update(self.done.values())
        return found

    def surplus(self, present: list[PodRecord] | None = None) -> list[PodRecord]:
        """The members that may go one by one, last come first, with the gang still whole after each of them.

        `present` are those that run and stay, as they came; all that run if they are not given.
        """
        gang = self.gang
        bound = self.bound() if present is None else present
        if gang is None or not gang.evicted_whole:
            return bound[::-1]
        if gang.restarts_whole:
            return []  # the loss of any one costs all of them
        spare = len(bound) + len(self.done) - gang.minimum
        by_role = self.by_role(record.key for record in bound)
        minimum_of = {role.name: role.minimum for role in gang.roles}
        found: list[PodRecord] = []
        for record in reversed(bound):
            role = self.roles[record.key]
            if len(found) < spare and by_role[role] > minimum_of.get(role, 0):
                by_role[role] -= 1
                found.append(record)
        return found


class FewGangs(set[GangKey]):
    """Gangs, as long as they are few; then it is only known that they are many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self.are_many = False

    def add(self, key: GangKey) -> None:
        if not self.are_many:
            super().add(key)
            if len(self) > self._most:
                super().clear()
                self.are_many = True

    def clear(self) -> None:
        super().clear()
        self.are_many = False


class GangTable:
    """All gangs; only the cluster writes to it."""

    def __init__(self) -> None:
        self.records: dict[GangKey, GangRecord] = {}
        self.of_pod: dict[PodKey, GangKey] = {}
        """pod key -> gang key"""
        self.children: dict[GangKey, list[GangKey]] = {}
        """The gangs inside a gang, by its key."""
        self._parent_of: dict[GangKey, GangKey] = {}
        self.followers: dict[GangKey, list[GangKey]] = {}
        """The gangs that wait for a gang to run first, by its key."""
        self.touched = set[GangKey]()
        """The gangs of which a member came to a node or went from it, or that changed, until somebody has looked."""
        self._watchers = list[set[GangKey]]()
        self.version = 0
        """Rises when a gang is declared, changes or is withdrawn, and when a member is being evicted."""

    def __bool__(self) -> bool:
        return bool(self.records)

    def watch(self) -> set[GangKey]:
        """A set that collects from now on the gangs that are touched, whoever else looks; empty it at will."""
        changed = set[GangKey]()
        self._watchers.append(changed)
        return changed

    def watch_few(self, most: int) -> FewGangs:
        """The same for somebody who may not look for a long time."""
        changed = FewGangs(most)
        self._watchers.append(changed)
        return changed

    def unwatch(self, changed: set[GangKey]) -> None:
        """Nobody looks into a set any more that `watch` gave."""
        self._watchers = [watcher for watcher in self._watchers if watcher is not changed]

    def forget_watchers(self) -> None:
        """Nobody looks any more into any set that `watch` gave."""
        self._watchers = []

    def put(self, gang: Gang) -> None:
        record = self._record(gang.key)
        old = record.gang
        if old == gang:
            return
        record.gang = gang
        if old is None or old.after != gang.after:
            self._unlink(self.followers, gang.key, old.after if old is not None else NO_GANG)
            if gang.after:
                self.followers.setdefault(gang.after, []).append(gang.key)
        # Said again about the same parent, a gang keeps its place among the others there.
        if self._parent_of.get(gang.key, NO_GANG) != gang.parent:
            self._leave_parent(gang.key)
            if gang.parent and not self._is_above(gang.key, gang.parent):  # else they would go in a circle
                self._parent_of[gang.key] = gang.parent
                self.children.setdefault(gang.parent, []).append(gang.key)
        self._touch(record)
        self.version += 1

    def remove(self, key: GangKey) -> None:
        record = self.records.get(key)
        if record is None or record.gang is None:
            return
        gang, record.gang = record.gang, None
        self._leave_parent(key)
        self._unlink(self.followers, key, gang.after)
        self._touch(record)
        self.version += 1
        self._forget_if_empty(key)

    def join(self, record: PodRecord, membership: Membership) -> None:
        gang = self._record(membership.gang)
        if gang.done.pop(record.key, None) is not None:
            self._touch(gang)  # another pod of that name has come, and is needed
        gang.members[record.key] = record
        gang.roles[record.key] = membership.role
        if membership.rank is not None:
            gang.ranks[record.key] = membership.rank
        self.of_pod[record.key] = membership.gang

    def see_anew(self, record: PodRecord, found: Membership | None) -> None:
        """A pod that is known was seen again: it may name another gang than before, or another rank."""
        gang = self.of(record.key)
        if gang is not None:
            if self.membership_of(record.key) == found:
                self._touch(gang)
                return
            self.leave(record.key)
        if found is not None:
            self.join(record, found)
            self.touch(record.key)

    def membership_of(self, key: PodKey) -> Membership | None:
        """The gang of a pod, its role and its rank in it."""
        gang = self.of(key)
        return None if gang is None else Membership(gang.key, gang.roles[key], gang.ranks.get(key))

    def members_of(self, gangs: Iterable[GangKey | None]) -> Mapping[GangKey, GangRecord | None]:
        """Copies of some gangs with their members; None for a gang that is not known."""
        known = {key: self.records.get(key) for key in gangs if key is not None}
        return {key: None if record is None else record.copy() for key, record in known.items()}

    def put_back(self, gangs: Mapping[GangKey, GangRecord | None]) -> None:
        """Let gangs have the members that they had when `members_of` copied them."""
        now = [record for key in gangs if (record := self.records.get(key)) is not None]
        for pod in [pod for record in now for pod in record.members]:
            self.of_pod.pop(pod, None)
        for key, copied in gangs.items():
            record = self._record(key)
            record.take_members_of(copied or GangRecord(key))
            self.of_pod.update(dict.fromkeys(record.members, key))
            self._touch(record)
            self._forget_if_empty(key)

    def leave(self, key: PodKey) -> None:
        gang_key = self.of_pod.pop(key, None)
        if gang_key is None:
            return
        gang = self.records[gang_key]
        self._touch(gang)
        del gang.members[key]
        del gang.roles[key]
        gang.ranks.pop(key, None)
        gang.assigned.discard(key)
        self._forget_if_empty(gang_key)

    def note_done(self, pod_key: PodKey, membership: Membership) -> None:
        """A member has succeeded. That counts also when its object is gone, until there is another of its name."""
        gang = self._record(membership.gang)
        gang.done[pod_key] = membership.role
        self._touch(gang)
        self.version += 1

    def touch(self, pod_key: PodKey) -> None:
        """A member came to a node or went from it."""
        key = self.of_pod.get(pod_key)
        if key is not None:
            self._touch(self.records[key])

    def touch_all(self, pod_keys: Iterable[PodKey]) -> None:
        """The same of many members."""
        for key in set(map(self.of_pod.get, pod_keys)):
            if key is not None:
                self._touch(self.records[key])

    def count_anew(self, pod_key: PodKey) -> None:
        """A member is being evicted, holds room without running, or does so no longer: who may go is another matter."""
        record = self.of(pod_key)
        if record is not None:
            self._touch(record)
            self.version += 1

    def take_touched(self) -> set[GangKey]:
        """The gangs to which something happened since this was last asked, by key."""
        touched, self.touched = self.touched, set()
        return touched

    def assign(self, pod_key: PodKey) -> None:
        """A member that waits was assigned its place in the topology."""
        record = self.of(pod_key)
        if record is not None:
            record.assigned.add(pod_key)
            self._touch(record)
            self.version += 1

    def of(self, pod_key: PodKey) -> GangRecord | None:
        """The gang of a pod, if it names one."""
        key = self.of_pod.get(pod_key)
        return None if key is None else self.records[key]

    def root_of(self, record: GangRecord) -> GangRecord:
        """The outermost gang that a gang is a part of, itself if it stands alone."""
        return self.lineage(record)[-1] if record.key in self._parent_of else record

    def lineage(self, record: GangRecord) -> list[GangRecord]:
        """A gang, the one that it is a part of, and so on, as far as they are declared."""
        found = [record]
        while (parent := self.records.get(self._parent_of.get(found[-1].key, NO_GANG))) is not None and parent.gang:
            found.append(parent)
        return found

    def _is_above(self, key: GangKey, of: GangKey) -> bool:
        while of and of != key:
            of = self._parent_of.get(of, NO_GANG)
        return of == key

    def inside(self, record: GangRecord) -> list[GangRecord]:
        """The gangs right inside a gang, in the order in which they were declared."""
        return [self.records[key] for key in self.children.get(record.key, ())] if self.children else []

    def parts_of(self, root: GangRecord) -> Iterator[GangRecord]:
        """The gangs of pods inside a gang, in the order in which they were declared; itself if it has pods."""
        if root.members:
            yield root
        for part in self.inside(root):
            yield from self.parts_of(part)

    def is_whole(self, record: GangRecord) -> bool:
        """Whether enough of a gang runs; of a gang of gangs, whether enough of those do."""
        if record.gang is None or not record.gang.of_gangs:
            return record.is_whole()
        return sum(self.is_whole(part) for part in self.inside(record)) >= record.gang.minimum

    def may_start(self, root: GangRecord) -> bool:
        """Whether the gang runs that has to run before this one, if there is such a gang."""
        if root.gang is None or not root.gang.after:
            return root.gang is not None
        before = self.records.get(root.gang.after)
        return before is not None and self.is_whole(before)

    def can_spare(self, record: GangRecord) -> bool:
        """Whether a gang is whole, and all that it is a part of, and nobody in it has to be anywhere."""
        if not record.is_whole():
            return False
        return all(
            found.gang is not None and not found.gang.has_topology_request and (found is record or self.is_whole(found))
            for found in self.lineage(record)
        )

    def _touch(self, record: GangRecord) -> None:
        self.touched.add(record.key)
        for watcher in self._watchers:
            watcher.add(record.key)
        record.changed()

    def _record(self, key: GangKey) -> GangRecord:
        record = self.records.get(key)
        if record is None:
            record = self.records[key] = GangRecord(key)
        return record

    def _forget_if_empty(self, key: GangKey) -> None:
        record = self.records.get(key)
        if record is not None and record.gang is None and not record.members:
            del self.records[key]

    def _leave_parent(self, key: GangKey) -> None:
        parent = self.records.get(self._parent_of.get(key, NO_GANG))
        if parent is not None:
            self._touch(parent)  # it may be short of a part now
        self._unlink(self.children, key, self._parent_of.pop(key, NO_GANG))

    @staticmethod
    def _unlink(lists: dict[GangKey, list[GangKey]], member: GangKey, key: GangKey) -> None:
        if member in lists.get(key, ()):
            lists[key].remove(member)
            if not lists[key]:
                del lists[key]
