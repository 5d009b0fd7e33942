"""Those that were tried in vain, and what could help them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mooring.engine.entry import Entry
from mooring.engine.gang_entry import GangEntry
from mooring.engine.plugin import Change
from mooring.engine.profile import Profile
from mooring.engine.verdict import Verdict
from mooring.state.shapes import Shape

Turn: TypeAlias = Entry | GangEntry
"""Who has a turn of its own: a pod, or a gang."""


@dataclass(slots=True)
class Parked:
    """Pods of one shape that no node would take, or the members of a gang that does not fit."""

    profile: Profile
    helped_by: Change
    moved_by: Callable[[Shape], bool] = lambda shape: True
    by_pod: dict[str, Entry] = field(default_factory=dict)
    verdict: Verdict | None = None
    """Set if it was not the nodes that refused them."""
    gang: GangEntry | None = None
    since: float = 0.0
    """When the first of them was set aside."""
    is_capped: bool = False
    """It is their queue's share that refused them: evicting others from nodes would not help."""

    @property
    def entries(self) -> list[Entry]:
        return list(self.by_pod.values())

    def is_helped_by(self, change: Change, shape: Shape | None) -> bool:
        if not self.helped_by & change:
            return False
        return change is not Change.POD_BOUND or shape is None or self.moved_by(shape)

    def turns(self) -> Sequence[Turn]:
        return self.entries if self.gang is None else [self.gang]
