"""What waits in the queue: pods, and gangs, whose members gather until enough of them are there to be tried as one."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from mooring.engine.asking import blame
from mooring.engine.profile import Profile
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.keys import GangKey, PodKey
from mooring.model.memory import moment
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.waiting import WaitingGang, WaitingPod, WaitingTable, Where


def lacking(record: GangRecord, waiting: Mapping[PodKey, Any], table: GangTable) -> str:
    """What a gang lacks to be whole once all its members that wait are placed; nothing if it lacks nothing."""
    if record.gang is None:
        return f"gang {record.key.partition('/')[2]} is not declared"
    if record.gang.of_gangs:
        problems = [lacking(inside, waiting, table) for inside in table.inside(record)]
        needed = record.gang.minimum
        if problems.count("") >= needed:
            return ""
        if len(problems) < needed:
            return f"gang {record.gang.name} waits for its parts: {len(problems)} of {needed} exist"
        return next(problem for problem in problems if problem)
    members = record.members
    present = [*record.bound(), *(members[key] for key in members.keys() & waiting.keys())]
    missing = record.lacks(present)
    if not missing:
        return ""
    needed = max(record.gang.minimum, sum(role.minimum for role in record.gang.roles))
    exist = len(present) + len(record.done)
    if exist < needed:
        return f"gang {record.gang.name} waits for its members: {exist} of {needed} exist"
    by_role = record.by_role(found.key for found in present)
    short = next(role for role in record.gang.roles if by_role[role.name] < role.minimum)
    has = by_role[short.name]
    return f"gang {record.gang.name} waits for its members: {has} of {short.minimum} {short.name} members exist"


def complete_parts(record: GangRecord, waiting: Mapping[PodKey, Any], table: GangTable) -> list[GangRecord]:
    """The gangs of pods inside a gang (itself if it is one) that run whole or can, with all that they are a part of."""
    if lacking(record, waiting, table):
        return []
    if record.gang is None or not record.gang.of_gangs:
        return [record]
    return [part for inside in table.inside(record) for part in complete_parts(inside, waiting, table)]


def parts_to_start(
    record: GangRecord, waiting: Mapping[PodKey, Any], table: GangTable, besides: Container[GangKey] = ()
) -> list[GangRecord]:
    """The gangs of pods without which a gang is not whole: those that have begun to run, then as many as it takes.

    A gang of gangs that is whole grows by one of these. Nothing if all that could run does. `besides` are the keys of
    gangs that are to be left out, where others would do.
    """
    if lacking(record, waiting, table):
        return []
    if record.gang is None or not record.gang.of_gangs:
        return [] if record.is_whole() else [record]
    inside = table.inside(record)
    whole = [part for part in inside if table.is_whole(part)]
    ready = [part for part in inside if part not in whole and not lacking(part, waiting, table)]
    begun = [part for part in ready if any(leaf.bound() for leaf in table.parts_of(part))]
    fresh = [part for part in ready if part not in begun and part.key not in besides]
    count = record.gang.minimum - len(whole) - len(begun)
    if len(fresh) < count:
        return []
    chosen = begun + fresh[: max(count, 0)] or fresh[:1]
    if not chosen:
        grown = (parts_to_start(part, waiting, table, besides) for part in whole)
        return next((found for found in grown if found), [])
    return [leaf for part in chosen for leaf in parts_to_start(part, waiting, table, besides)]


PLUGIN = "GangScheduling"
"""Who speaks when a gang has to wait: kube-scheduler's name for it."""


@dataclass(order=True, slots=True)
class Entry(WaitingPod):
    """A pod that waits, with what the queue asks of it; entries compare by the profile's order, then by arrival."""

    profile: Profile = field(compare=False)
    size = 1

    @property
    def turn_name(self) -> str:
        """What tells its turn from all others."""
        return self.record.key

    @property
    def nominated_node(self) -> str:
        """Where the world says that room is made for it: it is tried there first, and by itself."""
        return self.record.pod.status.nominated_node_name

    def has(self, key: PodKey) -> bool:
        """Whether it is this pod's turn."""
        return self.record.key == key


def sort_key(profile: Profile, pod: Pod, queued_at: float) -> Any:
    """A pod's place by the profile's order."""
    try:
        return profile.queue_sort.sort_key(pod, queued_at)
    except Exception as error:
        blame(profile.queue_sort, "sort_key", error)


@dataclass(slots=True, eq=False)
class GangEntry(WaitingGang):
    """A gang that waits, with what the queue asks of it."""

    profile: Profile
    entries: dict[PodKey, Entry] = field(default_factory=dict)

    @property
    def turn_name(self) -> str:
        """What tells its turn from all others."""
        return self.root.key

    @property
    def name(self) -> str:
        return self.root.gang.name if self.root.gang is not None else self.root.key.partition("/")[2]

    @property
    def size(self) -> int:
        return len(self.entries)

    def has(self, key: PodKey) -> bool:
        """Whether a pod is one of those whose turn it is."""
        return key in self.entries

    @property
    def priority(self) -> int:
        gang = self.root.gang
        if gang is not None and gang.priority is not None:
            return gang.priority
        return max((entry.record.priority for entry in self.entries.values()), default=0)

    @property
    def may_preempt(self) -> bool:
        gang = self.root.gang
        policy = gang.preemption_policy if gang is not None else None
        policies = {policy} if policy else {entry.record.pod.spec.preemption_policy for entry in self.entries.values()}
        return "Never" not in policies

    @property
    def queued_at(self) -> float:
        gang = self.root.gang
        if gang is not None and gang.created is not None:
            return gang.created
        return min((entry.queued_at for entry in self.entries.values()), default=0.0)

    def sort_key(self) -> Any:
        """Its place by the profile's order, as if it were one pod."""
        pod = next(iter(self.entries.values())).record.pod
        alike = replace(pod, spec=replace(pod.spec, priority=self.priority))
        return sort_key(self.profile, alike, self.queued_at)


def what_is_missing(gang: GangEntry, table: GangTable) -> str:
    """Why a gang cannot be tried at all; nothing if enough of it is there."""
    if gang.root.gang is None:
        return f"gang {gang.name} is not declared"
    if gang.root.gang.parent and gang.root.gang.parent not in table.records:
        return f"gang {gang.root.gang.parent.partition('/')[2]} is not declared"
    if not table.may_start(gang.root):
        before = table.records.get(gang.root.gang.after)
        name = before.gang.name if before is not None and before.gang is not None else gang.root.gang.after
        return f"gang {gang.name} waits for gang {name} to run first"
    problem = lacking(gang.root, gang.entries, table)
    if problem or parts_to_start(gang.root, gang.entries, table):
        return problem
    # Whole as it is: is there anybody for it to grow by?
    spare = complete_parts(gang.root, gang.entries, table)
    if any(key in gang.entries for part in spare for key in part.members):
        return ""
    parts = [part for part in table.parts_of(gang.root) if any(key in gang.entries for key in part.members)]
    return next((found for part in parts if (found := lacking(part, gang.entries, table))), "nobody waits")


class GangRoom:
    """Gangs with members that wait. Whether one is complete is found out when the queue next asks, not pod by pod."""

    def __init__(self, table: GangTable, waiting: WaitingTable) -> None:
        self.table = table
        self._waiting = waiting
        self._gangs: dict[GangKey, GangEntry] = waiting.gangs
        self._gang_of: dict[PodKey, GangEntry] = {key: gang for gang in self for key in gang.entries}
        """By pod key."""

    def __iter__(self) -> Iterator[GangEntry]:
        return iter(self._gangs.values())

    @property
    def has_changed(self) -> bool:
        """Whether something happened to a gang since they were last settled."""
        return bool(self._waiting.changed_gangs)

    def get(self, root: GangKey) -> GangEntry | None:
        return self._gangs.get(root)

    def join(self, entry: Entry) -> bool:
        """Let a pod wait with its gang; one that its gang does not need waits by itself, unless it has to be near."""
        root = self._root_for(entry)
        if root is None:
            return False
        gang = self._gangs.get(root.key)
        if gang is None:
            gang = self._gangs[root.key] = GangEntry(root, entry.arrival, entry.profile)
            gang.wait_since(self._recalled_since(root.key, entry))
        gang.stand_for(root)
        gang.entries[entry.record.key] = entry
        self._gang_of[entry.record.key] = gang
        self._waiting.changed_gangs[root.key] = gang
        return True

    def _recalled_since(self, root: GangKey, entry: Entry) -> float | None:
        """Since when a gang waits that waited before a restart; another of its name has not waited before it came."""
        since = self._waiting.recalled.pop(root, None)
        created = timestamp_seconds(entry.record.pod.metadata.creation_timestamp)
        return since if since is None or created is None else max(since, created)

    def waiting_since(self) -> dict[str, datetime]:
        """Since when gangs have been tried in vain."""
        records = self.table.records
        recalled = {
            key: since
            for key, since in self._waiting.recalled.items()
            if key in records and not any(part.has_started() for part in self.table.parts_of(records[key]))
        }
        self._waiting.recall(recalled)
        tried = {gang.root.key: gang.first_tried for gang in self if gang.first_tried is not None}
        return {key: moment(since) for key, since in sorted({**recalled, **tried}.items())}

    def recall(self, waiting_since: Mapping[str, datetime]) -> None:
        """Let gangs that are still to come have waited since then."""
        self._waiting.recall({GangKey(key): since.timestamp() for key, since in waiting_since.items()})

    def is_in_place(self, entry: Entry) -> bool:
        """Whether a pod waits with the gang that it would join now, or by itself as it would."""
        root = self._root_for(entry)
        return self._gang_of.get(entry.record.key) is (None if root is None else self._gangs.get(root.key, root))

    def _root_for(self, entry: Entry) -> GangRecord | None:
        """The outermost gang that a pod is to wait with; None if it waits by itself."""
        record = self.table.of(entry.record.key) if self.table else None
        if record is None:
            return None
        root = self.table.root_of(record)
        return None if root.key not in self._gangs and self.table.can_spare(record) else root

    def leave(self, key: PodKey) -> None:
        gang = self._gang_of.pop(key, None)
        if gang is not None:
            gang.entries.pop(key, None)
            self._waiting.changed_gangs[gang.root.key] = gang

    def disband(self, gang: GangEntry) -> list[Entry]:
        """Give up a gang's entry; its members are to be queued anew, by themselves or with what has become of it."""
        entries: list[Entry] = gang.disband()
        self._gangs.pop(gang.root.key, None)
        self._waiting.changed_gangs.pop(gang.root.key, None)
        for entry in entries:
            self._gang_of.pop(entry.record.key, None)
        return entries

    def affected_by(self, key: GangKey) -> list[GangEntry]:
        """The entries that have to do with a gang: as itself, or as a part of it."""
        record = self.table.records.get(key)
        found: dict[GangKey, GangEntry | None] = {key: self._gangs.get(key)}
        if record is not None:
            root = self.table.root_of(record).key
            found[root] = self._gangs.get(root)
            # Where its members wait now tells what it was a part of before.
            waiting = (self._gang_of.get(pod) for part in self.table.parts_of(record) for pod in part.members)
            found.update((gang.root.key, gang) for gang in waiting if gang is not None)
        return [gang for gang in found.values() if gang is not None]

    def look_again(self, gangs: Iterable[GangEntry]) -> None:
        self._waiting.changed_gangs.update((gang.root.key, gang) for gang in gangs)

    def look_again_after(self, key: GangKey) -> None:
        """A gang runs now, or does no longer: those that have to start after it may be tried, or no longer."""
        waiting = (self._gangs.get(follower) for follower in self.table.followers.get(key, ()))
        self.look_again(gang for gang in waiting if gang is not None)

    def settle(self) -> list[tuple[GangEntry, bool]]:
        """The gangs to which something happened since the last time, and whether enough of each is there."""
        if not self._waiting.changed_gangs:
            return []
        changed: list[GangEntry] = self._waiting.take_changed_gangs()
        for gang in changed:
            if not gang.entries:
                self._gangs.pop(gang.root.key, None)
        return [(gang, self.is_complete(gang)) for gang in changed]

    def is_complete(self, gang: GangEntry) -> bool:
        """Whether a gang can be tried."""
        return bool(gang.entries) and not what_is_missing(gang, self.table)

    def gathering(self) -> Iterator[tuple[Entry, Rejection]]:
        """The pods whose gang lacks something, each with what that is."""
        for gang in self:
            if gang.where == Where.GATHERING:
                rejection = Rejection((what_is_missing(gang, self.table),))
                yield from ((entry, rejection) for entry in gang.entries.values())
