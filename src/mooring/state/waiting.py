"""Which pods and gangs wait: since when, how often they were tried in vain, where they wait, and what could help them.

The engine's queue keeps its heaps and indexes for these records, and can make them anew from here at any moment. What
the engine alone reads (profiles, verdicts, hints) has a type of the engine's there: see `mooring.engine.queue`.

None of this is on the undo log. A turn that was taken counts, whatever becomes of what was tried in it; after an action
that raised, the engine compares who waits here with the pods that have no node.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, Flag
from typing import Any, NamedTuple, TypeAlias

from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.state.gangs import GangRecord
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape


class Where(Enum):
    """Where a pod or a gang waits in the queue."""

    ACTIVE = "active"
    """To be tried now."""
    BACKOFF = "backoff"
    """To be tried when its backoff is over, or nothing else is there to be tried."""
    SHARED = "shared"
    """To be tried by the shares of queues."""
    PARKED = "parked"
    """Tried in vain: until something happens that could help."""
    GATED = "gated"
    """Behind a gate."""
    GANG = "gang"
    """With its gang; of a gang itself: GATHERING as long as it is not complete."""
    GATHERING = "gathering"
    TAKEN = "taken"
    """By the action that tries it now."""


@dataclass(order=True, slots=True)
class WaitingPod:
    """A pod in the queue; these compare by the profile's order, then by arrival."""

    key: Any
    arrival: int
    record: PodRecord = field(compare=False)
    profile: Any = field(compare=False)
    """The engine's profile of the scheduler that the pod names."""
    queued_at: float = field(default=0.0, compare=False)
    attempts: int = field(default=0, compare=False)
    """How often it was tried in vain."""
    tried_at: float = field(default=0.0, compare=False)
    """When that was last so."""
    faults: int = field(default=0, compare=False)
    """How often something raised in its turn."""

    def note_tried(self, now: float) -> None:
        """Count that it was tried in vain."""
        self.attempts += 1
        self.tried_at = now

    def note_fault(self) -> None:
        """Count that something raised in its turn."""
        self.faults += 1


@dataclass(slots=True, eq=False)
class WaitingGang:
    """A gang, with those of its members that wait, gated ones aside."""

    root: GangRecord
    arrival: int
    profile: Any
    entries: dict[PodKey, Any] = field(default_factory=dict)
    """By pod key, in the order in which they came."""
    key: Any = None
    attempts: int = 0
    tried_at: float = 0.0
    faults: int = 0
    """How often something raised in its turn."""
    first_tried: float | None = None
    """When it was first tried in vain, since it last started."""
    where: Where = Where.GATHERING

    def note_tried(self, now: float) -> None:
        """Count that it was tried in vain."""
        self.attempts += 1
        self.tried_at = now

    def note_fault(self) -> None:
        """Count that something raised in its turn."""
        self.faults += 1

    def move_to(self, where: Where) -> None:
        """Let it wait elsewhere."""
        self.where = where

    def wait_since(self, first_tried: float | None) -> None:
        """Let it have been tried in vain since then."""
        self.first_tried = first_tried

    def place_by(self, key: Any) -> None:
        """Let it have its place among the others by this key."""
        self.key = key

    def stand_for(self, root: GangRecord) -> None:
        """Let it be this gang's: it may have been declared anew."""
        self.root = root

    def disband(self) -> list[Any]:
        """Give up the members that wait; return them."""
        entries, self.entries = self.entries, {}
        return list(entries.values())


@dataclass(slots=True)
class WaitingGroup:
    """Pods of one shape that no node would take, or the members of a gang that does not fit."""

    profile: Any
    helped_by: Flag
    """The kinds of changes that could help."""
    moved_by: Callable[[Shape], bool] = lambda shape: True
    """Whether a pod of some shape could help by being bound."""
    by_pod: dict[PodKey, Any] = field(default_factory=dict)
    verdict: Any = None
    """Set if it was not the nodes that refused them."""
    gang: Any = None
    since: float = 0.0
    """When the first of them was set aside."""
    is_capped: bool = False
    """It is their queue's share that refused them, or a permit: evicting others from nodes would not help."""
    gave_back: bool = False
    """They held room and were not permitted in time: that others have a turn brings them back no sooner."""
    again_at: float = math.inf
    """When they are to be tried again though nothing has happened."""
    is_fault: bool = False
    """Something raised in their turn."""
    hint: Callable[[Any], bool] | None = None
    """What those that refused them say about single objects that change; None if they look at none."""
    preempts: bool = True
    """Whether they may evict others by priority; those of shared queues have ways of their own."""
    preempt_at: dict[int, float] = field(default_factory=dict)
    """By arrival: when those that had a turn to evict others may have another; inf: not before something happens."""

    def preempt_again(self, at: dict[int, float]) -> None:
        """Let those with these arrivals have their next turns to evict others then."""
        self.preempt_at = at

    def wait_for_more(self, helped_by: Flag, verdict: Any, hint: Callable[[Any], bool] | None) -> None:
        """Let others of the same shape wait here, too: for the same, and for what helps them."""
        self.helped_by |= helped_by
        self.verdict = verdict
        self.hint = hint


class KeptOut(NamedTuple):
    """How often a plugin raised that was to let a pod in, and when it is to be tried again."""

    times: int
    again_at: float
    refusal: str = ""
    """Why the world did not bind the pod, if that is the reason: nothing brings it back before its time."""


GroupKey: TypeAlias = tuple[str | int, ...]
"""What tells groups of pods that wait together apart: their profile and shape, or their gang."""


class WaitingTable:
    """All that waits; only the engine's queue writes to it."""

    def __init__(self) -> None:
        self.pods: dict[PodKey, Any] = {}
        """Every pod that waits, whether by itself, with its gang or behind a gate."""
        self.where: dict[PodKey, Where] = {}
        self.gangs: dict[GangKey, Any] = {}
        """Gangs with members that wait, by the outermost gang's key."""
        self.groups: dict[GroupKey, Any] = {}
        """Those that were tried in vain, with what could help them."""
        self.gates: dict[PodKey, Any] = {}
        """Why pods are behind a gate."""
        self.kept_out: dict[PodKey, KeptOut] = {}
        """Those of them that a plugin kept from the queue by raising, or that the world refused to bind."""
        self.nominated: dict[PodKey, Any] = {}
        """Those that hold room which is being made for them: they do not wait for a turn."""
        self.arrivals = 0
        """How many have come so far."""
        self.room_kept_for: GangKey = NO_GANG
        """The gang because of which others were refused room that they might have had."""
        self.changed_gangs: dict[GangKey, Any] = {}
        """Gangs to which something happened since it was last found out whether enough of each is there."""
        self.recalled: dict[GangKey, float] = {}
        """Since when gangs have been tried in vain that have not come yet, by what was known before a restart."""

    def new_arrival(self) -> int:
        """The number of one that comes now."""
        self.arrivals += 1
        return self.arrivals

    def recall(self, tried_since: dict[GangKey, float]) -> None:
        """Let gangs that are still to come have been tried in vain since then."""
        self.recalled = tried_since

    def take_changed_gangs(self) -> list[Any]:
        """The gangs to which something happened since this was last asked; those that are being tried now stay."""
        changed = [gang for gang in self.changed_gangs.values() if gang.where is not Where.TAKEN]
        self.changed_gangs = {key: gang for key, gang in self.changed_gangs.items() if gang.where is Where.TAKEN}
        return changed

    def keep_room_for(self, gang: GangKey) -> None:
        """Note that others were refused room because of a gang; none: that they may have it."""
        self.room_kept_for = gang
