"""Who waits, in order: those to try now, those who stay behind for a while, those that nothing has happened for, those
behind a gate.

Pods that were tried in vain are parked by shape, with the plugins that refused them; they come back when something
happens that could help (a queueing hint), all pods of a shape together, because they get the same answer. The pods of a
gang wait as one.
"""

from collections.abc import Callable, Iterator, Sequence

from mooring.engine.backoff import UNSCHEDULABLE_SECONDS, Backoff
from mooring.engine.entry import Entry
from mooring.engine.gang_entry import PLUGIN, GangEntry
from mooring.engine.gang_room import GangRoom
from mooring.engine.parked import Key, Parked, ParkingLot, Turn, shape_key
from mooring.engine.plugin import Change
from mooring.engine.profile import Profile
from mooring.engine.turns import Turns
from mooring.engine.verdict import Rejection, Verdict
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape

__all__ = ["Entry", "GangEntry", "Parked", "Queue", "Turn"]

_BY_ITSELF = ("active", "backoff", "parked", "shared")


class Queue:
    """Active, backing off, parked and gated pods and gangs."""

    def __init__(
        self,
        gangs: GangTable | None = None,
        backoff: Backoff | None = None,
        is_shared: Callable[[Turn], bool] = lambda turn: False,
    ) -> None:
        self.gangs = GangRoom(GangTable() if gangs is None else gangs)
        self._backoff = backoff or Backoff()
        self._turns = Turns()
        self._parked = ParkingLot()
        self._gated: dict[str, tuple[Entry, Verdict]] = {}
        self._where: dict[str, str] = {}
        self._entry_of: dict[str, Entry] = {}
        """Every pod that waits, whether by itself, with its gang or behind a gate."""
        self._arrivals = 0
        self._now = 0.0
        self._is_shared = is_shared
        self.shared: dict[int, Turn] = {}
        """By arrival: those whose turn comes by the shares of their queues, not by this one's order."""

    def __len__(self) -> int:
        """How many pods and gangs are to be tried now."""
        self._settle_gangs()
        return len(self._turns) + len(self.shared)

    # Coming and going.

    def advance(self, now: float) -> None:
        """Time has passed: who has stayed behind, or waited for nothing, long enough is to be tried."""
        self._now = now
        for turn in self._turns.come_forward(lambda expiry: self._backoff.is_over(expiry, now)):
            self._mark(turn, "active")
        self._bring_back(self._parked.where(lambda parked: now - parked.since > UNSCHEDULABLE_SECONDS))

    def add(self, record: PodRecord, profile: Profile, now: float) -> None:
        """Let a pod wait for its turn, with its gang, or behind the gate that holds it."""
        entry = Entry(profile.queue_sort.sort_key(record.pod, now), self._new_arrival(), record, profile, now)
        self._entry_of[record.key] = entry
        for plugin in profile.pre_enqueue:
            rejection = plugin.pre_enqueue(record.pod)
            if rejection is not None:
                self._gated[record.key] = (entry, Verdict(plugin.name, rejection))
                self._where[record.key] = "gated"
                return
        self._enter(entry)

    def update(self, record: PodRecord, profile: Profile, now: float) -> None:
        """A pod that waits was seen anew: it keeps its place if nothing changed that decides on it."""
        entry = self._entry_of.get(record.key)
        if entry is None:
            self.add(record, profile, now)
            return
        key = profile.queue_sort.sort_key(record.pod, entry.queued_at)
        where = self._where.get(record.key)
        is_same = entry.record is record and entry.profile is profile and entry.key == key
        if not is_same or where == "gated" or not self.gangs.is_in_place(entry):
            self.remove(record.key)
            self.add(record, profile, entry.queued_at)

    def _enter(self, entry: Entry) -> None:
        if self.gangs.join(entry):
            self._mark(entry, "gang")
        else:
            self._activate(entry)

    def remove(self, key: str) -> None:
        """Forget a pod that is gone or bound."""
        where, entry = self._where.pop(key, ""), self._entry_of.pop(key, None)
        if where in ("active", "backoff"):
            self._turns.give_up(key)
        elif where == "shared" and entry is not None:
            self.shared.pop(entry.arrival, None)
        elif where == "gated":
            self._gated.pop(key, None)
        elif where == "gang":
            self.gangs.leave(key)
        elif where == "parked":
            self._parked.remove(key)

    def _new_arrival(self) -> int:
        self._arrivals += 1
        return self._arrivals

    def _activate(self, turn: Turn) -> None:
        if self._is_shared(turn):
            self._mark(turn, "shared")
            self.shared[turn.arrival] = turn
            return
        self._mark(turn, "active")
        self._turns.add(turn)

    def _mark(self, turn: Turn, where: str) -> None:
        if isinstance(turn, GangEntry):
            turn.where = where
        else:
            self._where[turn.record.key] = where
            self._entry_of[turn.record.key] = turn

    # Taking turns.

    def peek(self) -> Turn | None:
        """Whose turn it is, left in its place; those who stay behind come when nobody else is there."""
        self._settle_gangs()
        return self._turns.peek()

    def pop_batch(self, most: int) -> list[Entry]:
        """The next pod, and those right behind it with its shape and profile, `most` in all; none before a gang."""
        head = self.peek()
        if not isinstance(head, Entry):
            return []
        shape, profile, node = head.record.shape, head.profile, head.nominated_node
        most = 1 if node else most

        def is_alike(turn: Turn) -> bool:
            if not isinstance(turn, Entry) or turn.record.shape is not shape or turn.profile is not profile:
                return False
            return turn.nominated_node == node

        batch: list[Entry] = []
        while len(batch) < most and isinstance(entry := self._turns.pop_if(is_alike), Entry):
            self._where.pop(entry.record.key, None)
            self._entry_of.pop(entry.record.key, None)
            batch.append(entry)
        return batch

    def pop_gang(self) -> GangEntry:
        """The gang whose turn it is."""
        gang = self.peek()
        assert isinstance(gang, GangEntry)
        self._turns.pop()
        gang.where = "taken"
        return gang

    def count_ahead_of(self, key: str) -> int:
        """How many of the turns to be taken now come before this pod's; all of them if it has none."""
        ahead = self._turns.active()
        mine = (i for i, turn in enumerate(ahead) if turn.has(key))
        return next(mine, len(ahead))

    def put_back(self, turns: Sequence[Turn]) -> None:
        """Return those who were taken and not tried to their places."""
        for turn in turns:
            self._activate(turn)

    # Waiting for something to happen.

    def park(
        self, entries: Sequence[Entry], helped_by: Change, moved_by: Callable[[Shape], bool] = lambda shape: True
    ) -> None:
        """Set pods of one shape aside until something happens that could help them.

        `moved_by` says of which pods it matters to them that they were bound.
        """
        first = entries[0]
        self._park(shape_key(first), entries, Parked(first.profile, helped_by, moved_by, since=self._now))

    def park_alone(self, entry: Entry, verdict: Verdict, *, is_capped: bool = False) -> None:
        """Set one pod aside that a node would take and a plugin refused: others of its shape may fare better."""
        new = Parked(entry.profile, Change.ANY, verdict=verdict, since=self._now, is_capped=is_capped)
        self._park((*shape_key(entry), entry.record.key), [entry], new)

    def park_gang(
        self,
        gang: GangEntry,
        message: str,
        helped_by: Change = Change.ANY,
        moved_by: Callable[[Shape], bool] = lambda shape: True,
        *,
        is_capped: bool = False,
    ) -> None:
        """Set a gang aside that does not fit as a whole."""
        if gang.first_tried is None:
            gang.first_tried = self._now
        gang.attempts += 1
        gang.tried_at = self._now
        gang.where = "parked"
        verdict = Verdict(PLUGIN, Rejection((message,)))
        entries = dict(gang.entries)
        self._parked.add_gang(Parked(gang.profile, helped_by, moved_by, entries, verdict, gang, self._now, is_capped))

    def _park(self, key: Key, entries: Sequence[Entry], new: Parked) -> None:
        self._parked.add(key, new, entries)
        for entry in entries:
            entry.attempts += 1
            entry.tried_at = self._now
            self._mark(entry, "parked")

    def parked_with(self, entry: Entry) -> Parked | None:
        """The pods of the same shape that were tried in vain, if nothing has happened since."""
        return self._parked.of_shape(entry)

    def note(self, change: Change, shape: Shape | None = None) -> None:
        """Something happened, to a pod of some shape if one is given: whoever it could help is to be tried again."""
        self._bring_back(self._parked.helped_by(change, shape))

    def _bring_back(self, keys: Sequence[Key]) -> None:
        for turn in self._parked.take(keys):
            expiry = self._expiry(turn)
            if self._backoff.is_over(expiry, self._now) or self._is_shared(turn):
                self._activate(turn)
            else:
                self._mark(turn, "backoff")
                self._turns.add_behind(turn, expiry)

    def _expiry(self, turn: Turn) -> float:
        return self._backoff.expiry(turn.tried_at, turn.attempts, turn.size)

    def take_shared(self) -> list[Turn]:
        """Everybody whose turn comes by shares, those tried in vain included: with any change all shares are others."""
        self._settle_gangs()
        if self.shared:
            self._bring_back(self._parked.where(lambda parked: any(map(self._is_shared, parked.turns()))))
        taken, self.shared = list(self.shared.values()), {}
        for turn in taken:
            self._mark(turn, "taken")
        return taken

    def waits_for(self, shape: Shape) -> bool:
        """Whether some pod that was tried in vain may be the next as soon as a pod of this shape is bound."""
        helped = self._parked.helped_by_binding(shape)
        return any(self._backoff.is_over(self._expiry(turn), self._now) for turn in helped)

    def parked_as(self, turn: Turn) -> Parked | None:
        """How somebody was set aside who was tried in vain; None for whoever was not."""
        return self._parked.of(turn)

    def parked(self) -> Iterator[Parked]:
        return iter(self._parked)

    def gated(self) -> Iterator[tuple[Entry, Rejection]]:
        """The pods that may not be tried, each with the reason."""
        for entry, verdict in self._gated.values():
            yield entry, verdict.rejection
        self._settle_gangs()
        yield from self.gangs.gathering()

    # Gangs.

    def gang_changed(self, key: str) -> None:
        """A gang was declared, changed or withdrawn: its members may belong together in another way."""
        for gang in self.gangs.affected_by(key):
            self._requeue(gang)
            again = self.gangs.get(gang.root.key)
            if again is not None:
                again.first_tried = gang.first_tried  # it has waited as long as before
        record = self.gangs.table.records.get(key)
        if record is not None:
            self.gather(record)
        self.gangs.ran(key)

    def gather(self, gang: GangRecord) -> None:
        """Let members that wait by themselves wait with their gang again, as far as it needs them."""
        for part in self.gangs.table.parts_of(gang):
            for key in part.members:
                entry = self._entry_of.get(key)
                if entry is not None and self._where[key] in _BY_ITSELF and not self.gangs.is_in_place(entry):
                    self.remove(key)
                    self._enter(entry)

    def gang_shrank(self, root: GangRecord) -> None:
        """Members of a gang are being evicted: it may need others again, or fit elsewhere now, or lack too many."""
        self.gather(root)
        self._bring_back(self._parked.where(lambda parked: parked.gang is not None and parked.gang.root is root))
        self.review(root)

    def review(self, root: GangRecord) -> None:
        """Members of a gang came to nodes or went from them: whether it lacks something may be another matter now."""
        self._settle_gangs()
        gang = self.gangs.get(root.key)
        if gang is None or gang.where == "taken":
            return
        is_gathering = gang.where == "gathering"
        if self.gangs.is_complete(gang) == is_gathering:
            self.gangs.look_again([gang])

    def nothing_happened_for(self, gang: GangEntry) -> bool:
        """Whether a gang was tried in vain, with nothing since that could help it."""
        self._settle_gangs()
        return gang.where == "parked"

    def take(self, gang: GangEntry) -> bool:
        """Take a gang out of its turn; False if it cannot be tried at all."""
        self._settle_gangs()
        if gang.where not in ("active", "backoff", "parked", "shared"):
            return False
        self._set_aside(gang)
        gang.where = "taken"
        return True

    def bring_forward(self, gang: GangEntry) -> bool:
        """Let a gang have its turn as if it had not been tried; False if it lacks something, or shares decide on it."""
        if self._is_shared(gang) or not self.take(gang):
            return False
        self._activate(gang)
        return True

    def gang_started(self, gang: GangEntry) -> None:
        """A gang runs; those of its members that it does not need wait by themselves."""
        self._requeue(gang)
        self.gangs.ran(gang.root.key)

    def _requeue(self, gang: GangEntry) -> None:
        self._set_aside(gang)
        for entry in self.gangs.disband(gang):
            self._enter(entry)

    def _settle_gangs(self) -> None:
        """Let gangs take their places as soon as enough of them is there, and no longer than that."""
        for gang, is_complete in self.gangs.settle():
            self._set_aside(gang)
            if is_complete:
                gang.key = gang.sort_key()
                self._activate(gang)

    def _set_aside(self, gang: GangEntry) -> None:
        if gang.where in ("active", "backoff"):
            self._turns.give_up(gang.turn_name)
        elif gang.where == "shared":
            self.shared.pop(gang.arrival, None)
        elif gang.where == "parked":
            self._parked.remove_gang(gang)
        gang.where = "gathering"
