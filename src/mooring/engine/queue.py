"""The pods that wait, in order: those to try now, those that nothing has happened for, those behind a gate.

Pods that were tried in vain are parked by shape, with the plugins that refused them; they come back when something
happens that could help (a queueing hint), all pods of a shape together, because they get the same answer.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mooring.engine.plugin import Change
from mooring.engine.profile import Profile
from mooring.engine.verdict import Rejection, Verdict
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape

_POD_BOUND = Change.POD_BOUND.value  # plain integers where every pod asks


@dataclass(order=True, slots=True)
class Entry:
    """A pod in the queue; entries compare by the profile's order, then by arrival."""

    key: Any
    arrival: int
    record: PodRecord = field(compare=False)
    profile: Profile = field(compare=False)


@dataclass(slots=True)
class Parked:
    """Pods of one shape that no node would take."""

    profile: Profile
    helped_by: Change
    moved_by: Callable[[Shape], bool] = lambda shape: True
    entries: list[Entry] = field(default_factory=list)
    verdict: Verdict | None = None
    """Set if it was not the nodes that refused them."""

    def is_helped_by(self, change: Change, shape: Shape | None) -> bool:
        if not self.helped_by & change:
            return False
        return change is not Change.POD_BOUND or shape is None or self.moved_by(shape)


class Queue:
    """Active, parked and gated pods."""

    def __init__(self) -> None:
        self._active: list[tuple[Any, int, Entry]] = []
        self._parked: dict[tuple[str | int, ...], Parked] = {}
        self._gated: dict[str, tuple[Entry, Verdict]] = {}
        self._removed = set[int]()
        """The arrivals of entries that are still among the active ones and are to be passed over."""
        self._could_help = Change(0)
        """What any parked pod waits for."""
        self._where: dict[str, str] = {}
        self._arrival_of: dict[str, int] = {}
        """Of each active pod: its entry, because a pod may be removed and added again."""
        self._arrivals = 0

    def __len__(self) -> int:
        """How many pods are to be tried now."""
        return len(self._active) - len(self._removed)

    def add(self, record: PodRecord, profile: Profile, now: float) -> None:
        """Let a pod wait for its turn, or behind the gate that holds it."""
        self._arrivals += 1
        key = profile.queue_sort.sort_key(record.pod, now)
        entry = Entry(key, self._arrivals, record, profile)
        for plugin in profile.pre_enqueue:
            rejection = plugin.pre_enqueue(record.pod)
            if rejection is not None:
                self._gated[record.key] = (entry, Verdict(plugin.name, rejection))
                self._where[record.key] = "gated"
                return
        self._activate(entry)

    def _activate(self, entry: Entry) -> None:
        self._where[entry.record.key] = "active"
        self._arrival_of[entry.record.key] = entry.arrival
        heapq.heappush(self._active, (entry.key, entry.arrival, entry))

    def remove(self, key: str) -> None:
        """Forget a pod that is gone or bound."""
        where = self._where.pop(key, "")
        if where == "active":
            self._removed.add(self._arrival_of.pop(key))
        elif where == "gated":
            self._gated.pop(key, None)
        elif where == "parked":
            for parked in self._parked.values():
                parked.entries = [entry for entry in parked.entries if entry.record.key != key]

    def pop_batch(self, most: int) -> list[Entry]:
        """The next pod, and those right behind it with its shape and profile, `most` in all."""
        batch: list[Entry] = []
        active = self._active
        while len(batch) < most and (entry := self.peek()) is not None:
            if batch and (entry.record.shape is not batch[0].record.shape or entry.profile is not batch[0].profile):
                break
            heapq.heappop(active)
            self._where.pop(entry.record.key, None)
            self._arrival_of.pop(entry.record.key, None)
            batch.append(entry)
        return batch

    def peek(self) -> Entry | None:
        """The next pod, left in its place."""
        active = self._active
        while active and active[0][1] in self._removed:
            self._removed.discard(heapq.heappop(active)[1])
        return active[0][2] if active else None

    def count_ahead_of(self, key: str) -> int:
        """How many of the pods to be tried now come before this one; all of them if it is not among them."""
        ahead = sorted(entry for _, _, entry in self._active if entry.arrival not in self._removed)
        return next((index for index, entry in enumerate(ahead) if entry.record.key == key), len(ahead))

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Return pods that were taken and not tried to their places."""
        for entry in entries:
            self._activate(entry)

    def park(
        self, entries: Sequence[Entry], helped_by: Change, moved_by: Callable[[Shape], bool] = lambda shape: True
    ) -> None:
        """Set pods of one shape aside until something happens that could help them.

        `moved_by` says of which pods it matters to them that they were bound.
        """
        first = entries[0]
        key = (first.profile.name, first.record.shape.id)
        self._park(key, entries, Parked(first.profile, helped_by, moved_by))

    def park_alone(self, entry: Entry, verdict: Verdict) -> None:
        """Set one pod aside that a node would take and a plugin refused: others of its shape may fare better."""
        key = (entry.profile.name, entry.record.shape.id, entry.record.key)
        self._park(key, [entry], Parked(entry.profile, Change.ANY, verdict=verdict))

    def _park(self, key: tuple[str | int, ...], entries: Sequence[Entry], new: Parked) -> None:
        parked = self._parked.setdefault(key, new)
        parked.helped_by |= new.helped_by
        parked.verdict = new.verdict
        self._could_help |= new.helped_by
        parked.entries.extend(entries)
        for entry in entries:
            self._where[entry.record.key] = "parked"

    def parked_with(self, entry: Entry) -> Parked | None:
        """The pods of the same shape that were tried in vain, if nothing has happened since."""
        return self._parked.get((entry.profile.name, entry.record.shape.id))

    def note(self, change: Change, shape: Shape | None = None) -> None:
        """Something happened, to a pod of some shape if one is given: whoever it could help is to be tried again."""
        if not self._could_help.value & change.value:
            return
        helped = [key for key, parked in self._parked.items() if parked.is_helped_by(change, shape)]
        for key in helped:
            for entry in self._parked.pop(key).entries:
                self._activate(entry)
        if helped:
            self._could_help = Change(0)
            for parked in self._parked.values():
                self._could_help |= parked.helped_by

    def waits_for(self, shape: Shape) -> bool:
        """Whether some pod that was tried in vain may fit as soon as a pod of this shape is bound."""
        if not self._could_help.value & _POD_BOUND:
            return False
        return any(parked.is_helped_by(Change.POD_BOUND, shape) for parked in self._parked.values())

    def is_parked(self, entry: Entry) -> bool:
        return self._where.get(entry.record.key) == "parked"

    def parked(self) -> Iterator[Parked]:
        return iter(self._parked.values())

    def gated(self) -> Iterator[tuple[Entry, Rejection]]:
        for entry, verdict in self._gated.values():
            yield entry, verdict.rejection
