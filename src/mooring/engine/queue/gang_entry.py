"""A gang in the queue: its members wait as one, and are tried as one."""

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from mooring.engine.profile import Profile
from mooring.engine.queue.entry import Entry, Where, sort_key
from mooring.engine.queue.gang_parts import complete_parts, lacking, parts_to_start
from mooring.model.keys import PodKey
from mooring.state.gangs import GangRecord, GangTable

PLUGIN = "GangScheduling"
"""Who speaks when a gang has to wait: kube-scheduler's name for it."""


@dataclass(slots=True, eq=False)
class GangEntry:
    """A gang, with those of its members that wait, gated ones aside."""

    root: GangRecord
    arrival: int
    profile: Profile
    entries: dict[PodKey, Entry] = field(default_factory=dict)
    """By pod key, in the order in which they came."""
    key: Any = None
    attempts: int = 0
    tried_at: float = 0.0
    faults: int = 0
    """How often something raised in its turn."""
    first_tried: float | None = None
    """When it was first tried in vain, since it last started."""
    where: Where = Where.GATHERING

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
