"""Those that were tried in vain, and what could help them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mooring.engine.plugin import Change, Changed
from mooring.engine.profile import Profile
from mooring.engine.queue.entries import Entry, GangEntry
from mooring.engine.queue.hints import Hint
from mooring.engine.verdict import Verdict
from mooring.model.keys import PodKey
from mooring.state.shapes import Shape
from mooring.state.waiting import GroupKey, WaitingGroup

Turn: TypeAlias = Entry | GangEntry
"""Who has a turn of its own: a pod, or a gang."""


@dataclass(slots=True)
class Parked(WaitingGroup):
    """Those that wait together until something happens that could help them, with what the queue asks of them."""

    profile: Profile
    helped_by: Change
    by_pod: dict[PodKey, Entry] = field(default_factory=dict)
    verdict: Verdict | None = None
    gang: GangEntry | None = None
    hint: Hint | None = None

    @property
    def entries(self) -> list[Entry]:
        return list(self.by_pod.values())

    def is_helped_by(self, change: Change, shape: Shape | None, changed: Changed | None = None) -> bool:
        if not self.helped_by & change:
            return False
        if changed is not None and self.hint is not None and not self.hint(changed):
            return False
        return change is not Change.POD_BOUND or shape is None or self.moved_by(shape)

    def turns(self) -> Sequence[Turn]:
        return self.entries if self.gang is None else [self.gang]


Key: TypeAlias = GroupKey
_POD_BOUND = Change.POD_BOUND._value_


class ParkingLot:
    """Everybody who was tried in vain: pods by profile and shape, some by themselves, and gangs."""

    def __init__(self, groups: dict[Key, Parked]) -> None:
        """`groups` are the records of the state."""
        self._groups = groups
        alone = [parked for parked in groups.values() if parked.gang is None]
        self._group_of: dict[PodKey, Parked] = {pod: parked for parked in alone for pod in parked.by_pod}
        """By pod, for those that are not there with their gang."""
        self._could_help = 0
        """What anybody here waits for: a Change as a plain integer, since every pod that is bound asks."""
        self._count_changes()

    def __iter__(self) -> Iterator[Parked]:
        return iter(self._groups.values())

    @property
    def is_empty(self) -> bool:
        return not self._groups

    def add(self, key: Key, new: Parked, entries: Sequence[Entry]) -> None:
        """Set pods aside, with those that are there under the same key."""
        parked = self._groups.setdefault(key, new)
        parked.wait_for_more(new.helped_by, new.verdict, new.hint)
        self._could_help |= new.helped_by._value_
        for entry in entries:
            parked.by_pod[entry.record.key] = entry
            self._group_of[entry.record.key] = parked

    def add_gang(self, parked: Parked) -> None:
        assert parked.gang is not None
        self._could_help |= parked.helped_by._value_
        self._groups[_gang_key(parked.gang)] = parked

    def remove(self, pod: PodKey) -> None:
        """Forget a pod; the others of its shape stay."""
        parked = self._group_of.pop(pod, None)
        if parked is not None:
            del parked.by_pod[pod]

    def remove_gang(self, gang: GangEntry) -> None:
        self._groups.pop(_gang_key(gang), None)

    def of(self, turn: Turn) -> Parked | None:
        """How somebody was set aside; None for whoever was not."""
        if isinstance(turn, Entry):
            return self._group_of.get(turn.record.key)
        return self._groups.get(_gang_key(turn))

    def of_shape(self, entry: Entry) -> Parked | None:
        """The pods of the same profile and shape."""
        return self._groups.get(shape_key(entry))

    def helped_by(self, change: Change, shape: Shape | None, changed: Changed | None = None) -> list[Key]:
        """Who could be helped by something that happened, to a pod of some shape or to an object if one is given."""
        if not self._could_help & change._value_:
            return []
        return [key for key, parked in self._groups.items() if parked.is_helped_by(change, shape, changed)]

    @property
    def waits_for_binding(self) -> bool:
        """Whether anybody at all could be helped by a pod that is bound."""
        return bool(self._could_help & _POD_BOUND)

    def helped_by_binding(self, shape: Shape) -> Iterator[Turn]:
        """Who could be helped by a pod of a shape once that is bound."""
        for key in self.helped_by(Change.POD_BOUND, shape):
            yield from self._groups[key].turns()

    def where(self, holds: Callable[[Parked], bool]) -> list[Key]:
        return [key for key, parked in self._groups.items() if holds(parked)]

    def take(self, keys: Sequence[Key]) -> list[Turn]:
        """Let some go."""
        found: list[Turn] = []
        for key in keys:
            found += self._groups.pop(key).turns()
        for turn in found:
            if isinstance(turn, Entry):
                self._group_of.pop(turn.record.key, None)
        if keys:
            self._count_changes()
        return found

    def _count_changes(self) -> None:
        self._could_help = 0
        for parked in self._groups.values():
            self._could_help |= parked.helped_by._value_


def shape_key(entry: Entry) -> Key:
    return entry.profile.name, entry.record.shape.id


def _gang_key(gang: GangEntry) -> Key:
    return "gang", gang.root.key
