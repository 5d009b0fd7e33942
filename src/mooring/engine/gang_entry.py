"""A gang in the queue: its members wait as one, and are tried as one."""

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from mooring.engine.entry import Entry
from mooring.engine.profile import Profile
from mooring.state.gangs import GangRecord, GangTable

PLUGIN = "GangScheduling"
"""Who speaks when a gang has to wait: kube-scheduler's name for it."""


@dataclass(slots=True, eq=False)
class GangEntry:
    """A gang, with those of its members that wait, gated ones aside."""

    root: GangRecord
    arrival: int
    profile: Profile
    entries: dict[str, Entry] = field(default_factory=dict)
    """By pod key, in the order in which they came."""
    key: Any = None
    attempts: int = 0
    tried_at: float = 0.0
    first_tried: float = 0.0
    """When it was first tried in vain."""
    where: str = "gathering"
    """gathering, active, backoff, parked, or taken: by whoever tries it now."""

    @property
    def name(self) -> str:
        return self.root.gang.name if self.root.gang is not None else self.root.key.partition("/")[2]

    @property
    def size(self) -> int:
        return len(self.entries)

    def has(self, key: str) -> bool:
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
        return self.profile.queue_sort.sort_key(alike, self.queued_at)


def what_is_missing(gang: GangEntry, table: GangTable) -> str:
    """Why a gang cannot be tried at all; nothing if enough of it is there."""
    if gang.root.gang is None:
        return f"gang {gang.name} is not declared"
    before = table.records.get(gang.root.gang.after) if gang.root.gang.after else None
    if gang.root.gang.after and (before is None or not before.is_whole()):
        name = before.gang.name if before is not None and before.gang is not None else gang.root.gang.after
        return f"gang {gang.name} waits for gang {name} to run first"
    parts = list(table.parts_of(gang.root))
    lacking = [problem for part in parts if (problem := _lacking(gang, part))]
    needed = gang.root.gang.minimum if gang.root.gang.of_gangs else len(parts)
    there = len(parts) - len(lacking)
    if there >= needed:
        return ""
    if gang.root.gang.of_gangs and len(parts) < needed:
        return f"gang {gang.name} waits for its parts: {len(parts)} of {needed} exist"
    return lacking[0]


def _lacking(gang: GangEntry, part: GangRecord) -> str:
    if part.gang is None:
        return f"gang {part.key.partition('/')[2]} is not declared"
    present = [*part.bound(), *(entry.record for key, entry in gang.entries.items() if key in part.members)]
    missing = part.lacks(present)
    if not missing:
        return ""
    needed = max(part.gang.minimum, sum(role.minimum for role in part.gang.roles))
    return f"gang {part.gang.name} waits for its members: {len(present)} of {needed} exist"
