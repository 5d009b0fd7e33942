"""Who waits, in order: pods come and go, wait behind a gate or for their gang, and have their turns.

The pods of a gang wait as one. What becomes of those who were tried in vain is in `waiting.py`.
"""

import math
from collections.abc import Callable, Iterator

from mooring.engine.asking import blame
from mooring.engine.plugin import Change, Changed
from mooring.engine.profile import Profile
from mooring.engine.queue.backoff import Backoff
from mooring.engine.queue.entries import Entry, GangEntry, GangRoom, sort_key
from mooring.engine.queue.parked import Parked, Turn
from mooring.engine.queue.waiting import MOST_FAULTS, Waiting
from mooring.engine.verdict import Rejection, Verdict
from mooring.errors import PluginError
from mooring.model.keys import GangKey, PodKey
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape
from mooring.state.waiting import KeptOut, WaitingTable, Where

__all__ = ["Entry", "GangEntry", "Parked", "Queue", "Turn"]

_BY_ITSELF = (Where.ACTIVE, Where.BACKOFF, Where.PARKED, Where.SHARED)


class Queue(Waiting):
    """Active, backing off, parked and gated pods and gangs."""

    def __init__(
        self,
        gangs: GangTable | None = None,
        backoff: Backoff | None = None,
        is_shared: Callable[[Turn], bool] = lambda turn: False,
        table: WaitingTable | None = None,
    ) -> None:
        """`table` are the records of the state: who waits by these has its place here."""
        table = WaitingTable() if table is None else table
        super().__init__(table, backoff, is_shared)
        self.gangs = GangRoom(GangTable() if gangs is None else gangs, table)
        self._gates: dict[PodKey, Verdict] = table.gates
        self._kept_out = table.kept_out
        self.failed: list[tuple[PodKey, PluginError]] = []
        """Whom a plugin kept out by raising, and what was raised, until `take_failed`."""
        self.nominated: dict[PodKey, Entry] = table.nominated

    def __len__(self) -> int:
        """How many pods and gangs are to be tried now."""
        self._settle_gangs()
        return len(self._turns) + len(self.shared)

    @property
    def is_quiet(self) -> bool:
        """Whether certainly no pod and no gang is to be tried now; gangs to which something happened may be."""
        return not len(self._turns) and not self.shared and not self.gangs.has_changed

    def __contains__(self, pod: object) -> bool:
        """Whether a pod waits here: for its turn, its gang, a gate, or the room that is being made for it."""
        return pod in self._entry_of or pod in self.nominated

    def places(self) -> Iterator[Where]:
        """Where each pod waits; those that hold room which is being made for them are not in the queue."""
        return iter(self._where.values())

    # Coming and going.

    def add(self, record: PodRecord, profile: Profile, now: float) -> None:
        """Let a pod wait for its turn, with its gang, or behind the gate that holds it."""
        entry = self.make_entry(record, profile, now)
        self._entry_of[record.key] = entry
        for plugin in profile.pre_enqueue:
            try:
                rejection = plugin.pre_enqueue(record.pod)
            except Exception as error:
                blame(plugin, "pre_enqueue", error)
            if rejection is not None:
                self._hold(entry, Verdict(plugin.name, rejection))
                return
        self._enter(entry)

    def _hold(self, entry: Entry, verdict: Verdict) -> None:
        self._gates[entry.record.key] = verdict
        self._where[entry.record.key] = Where.GATED

    def let_in(self, record: PodRecord, profile: Profile, now: float) -> None:
        """Let a pod wait, or go on waiting. Who is kept out by a plugin that raises, be it of the queue's order or a
        gate, stays behind a gate: until its backoff is over; for good if that goes on."""
        kept = self._kept_out.pop(record.key, None) if self._kept_out else None
        if kept is not None and kept.refusal and now < kept.again_at:
            self._keep_out(record, profile, now, Verdict("", Rejection((kept.refusal,))), kept)
            return
        try:
            self.update(record, profile, now)
        except PluginError as error:
            times = 1 if kept is None else kept.times + 1
            again_at = math.inf if times >= MOST_FAULTS else self.backoff.end(now, times)
            verdict = Verdict(error.plugin, Rejection((f"error: {error}",)))
            self._keep_out(record, profile, now, verdict, KeptOut(times, again_at))
            self.failed.append((record.key, error))

    def _keep_out(self, record: PodRecord, profile: Profile, now: float, verdict: Verdict, kept: KeptOut) -> None:
        """Let a pod wait behind a gate, in no order."""
        known = self._entry_of.get(record.key)
        entry = Entry((), self._new_arrival(), record, profile, now if known is None else known.queued_at)
        self.remove(record.key)
        self._hold(entry, verdict)
        self._entry_of[record.key] = entry
        self._kept_out[record.key] = kept

    def hold_back(self, key: PodKey, until: float, why: str) -> None:
        """A pod that is about to be let in stays behind a gate until then: the world has just refused to bind it."""
        self._kept_out[key] = KeptOut(0, until, why or "its binding was refused")

    def is_held_back(self, key: PodKey) -> bool:
        """Whether a pod is to be tried again when some time has passed, such as after a refused bind."""
        kept = self._kept_out.get(key)
        return kept is not None and kept.again_at < math.inf

    def kept_out(self, now: float) -> list[PodKey]:
        """Those whom a plugin kept out by raising, and who are to be let in now."""
        return [key for key, kept in self._kept_out.items() if kept.again_at <= now]

    def take_failed(self) -> list[tuple[PodKey, PluginError]]:
        """Whom a plugin has kept out by raising since this was last asked."""
        failed, self.failed = self.failed, []
        return failed

    def note(self, change: Change, shape: Shape | None = None, changed: Changed | None = None) -> None:
        super().note(change, shape, changed)
        if self._kept_out and change & (Change.NODE | Change.RELATED):
            for key, kept in self._kept_out.items():
                if kept.again_at == math.inf:
                    self._kept_out[key] = KeptOut(kept.times, -math.inf)

    def next_wake(self, now: float) -> float | None:
        times = [super().next_wake(now), *(kept.again_at for kept in self._kept_out.values())]
        return min((time for time in times if time is not None and now < time < math.inf), default=None)

    def make_entry(self, record: PodRecord, profile: Profile, now: float) -> Entry:
        return Entry(sort_key(profile, record.pod, now), self._new_arrival(), record, profile, now)

    def update(self, record: PodRecord, profile: Profile, now: float) -> None:
        """A pod that waits was seen anew: it keeps its place if nothing changed that decides on it."""
        entry = self._entry_of.get(record.key)
        if entry is None:
            self.add(record, profile, now)
            return
        key = sort_key(profile, record.pod, entry.queued_at)
        where = self._where.get(record.key)
        is_same = entry.record is record and entry.profile is profile and entry.key == key
        if not is_same or where == Where.GATED or not self.gangs.is_in_place(entry):
            self.remove(record.key)
            self.add(record, profile, entry.queued_at)

    def _enter(self, entry: Entry) -> None:
        if self.gangs.join(entry):
            self._mark(entry, Where.GANG)
        else:
            self._activate(entry)

    def remove(self, key: PodKey) -> None:
        """Forget a pod that is gone or bound."""
        if self._kept_out:
            self._kept_out.pop(key, None)
        where, entry = self._where.pop(key, None), self._entry_of.pop(key, None)
        if where is None:
            return
        if where is Where.GANG:
            self.gangs.leave(key)
        elif where is Where.ACTIVE or where is Where.BACKOFF:
            self._turns.give_up(key)
        elif where is Where.SHARED and entry is not None:
            self.shared.pop(entry.arrival, None)
        elif where is Where.GATED:
            self._gates.pop(key, None)
        elif where is Where.PARKED:
            self._parked.remove(key)

    def set_aside(self, entry: Entry) -> None:
        """Room is being made for a pod: it waits for that, and for no turn."""
        self.remove(entry.record.key)
        self.nominated[entry.record.key] = entry

    def _new_arrival(self) -> int:
        return self._table.new_arrival()

    # Taking turns.

    def peek(self) -> Turn | None:
        """Whose turn it is, left in its place; those who stay behind come when nobody else is there."""
        self._settle_gangs()
        return self._turns.peek()

    def pop_batch(self, most: int) -> list[Entry]:
        """The next pod, and those right behind it with its shape and profile, `most` in all; none before a gang."""
        self._settle_gangs()
        batch = self._turns.pop_alike(most)
        for entry in batch:
            key = entry.record.key
            self._where.pop(key, None)
            self._entry_of.pop(key, None)
        return batch

    def pop_gang(self) -> GangEntry:
        """The gang whose turn it is."""
        gang = self.peek()
        assert isinstance(gang, GangEntry)
        self._turns.pop()
        gang.move_to(Where.TAKEN)
        return gang

    def count_ahead_of(self, key: PodKey) -> int:
        """How many of the turns to be taken now come before this pod's; all of them if it has none."""
        ahead = self._turns.active()
        mine = (i for i, turn in enumerate(ahead) if turn.has(key))
        return next(mine, len(ahead))

    def take_shared(self, is_mine: Callable[[Turn], bool]) -> list[Turn]:
        """Those of whom `is_mine` says that they take turns by one kind of shares.

        If there is anybody, also those tried in vain: with any change all shares are others. Who gave room back, not
        having been permitted in time, lets these go first.
        """
        self._settle_gangs()
        if any(map(is_mine, self.shared.values())):
            self._bring_back(
                self._parked.where(
                    lambda parked: not (parked.is_fault or parked.gave_back) and any(map(is_mine, parked.turns()))
                )
            )
        taken = [turn for turn in self.shared.values() if is_mine(turn)]
        for turn in taken:
            del self.shared[turn.arrival]
            self._mark(turn, Where.TAKEN)
        return taken

    def gated(self) -> Iterator[tuple[Entry, Rejection]]:
        """The pods that may not be tried, each with the reason."""
        for key, verdict in self._gates.items():
            yield self._entry_of[key], verdict.rejection
        self._settle_gangs()
        yield from self.gangs.gathering()

    # Gangs.

    def gang_changed(self, key: GangKey) -> None:
        """A gang was declared, changed or withdrawn: its members may belong together in another way."""
        for gang in self.gangs.affected_by(key):
            self._requeue(gang)
            again = self.gangs.get(gang.root.key)
            if again is not None:
                again.wait_since(gang.first_tried)  # it has waited as long as before
        record = self.gangs.table.records.get(key)
        if record is not None:
            self.gather(record)
        self.gangs.look_again_after(key)

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
        if gang is None or gang.where == Where.TAKEN:
            return
        is_gathering = gang.where == Where.GATHERING
        if self.gangs.is_complete(gang) == is_gathering:
            self.gangs.look_again([gang])

    def nothing_happened_for(self, gang: GangEntry) -> bool:
        """Whether a gang was tried in vain, with nothing since that could help it."""
        self._settle_gangs()
        return gang.where == Where.PARKED

    def take(self, gang: GangEntry) -> bool:
        """Take a gang out of its turn; False if it cannot be tried at all."""
        self._settle_gangs()
        if gang.where not in (Where.ACTIVE, Where.BACKOFF, Where.PARKED, Where.SHARED):
            return False
        self._set_aside(gang)
        gang.move_to(Where.TAKEN)
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
        self.gangs.look_again_after(gang.root.key)

    def _requeue(self, gang: GangEntry) -> None:
        self._set_aside(gang)
        for entry in self.gangs.disband(gang):
            self._enter(entry)

    def _settle_gangs(self) -> None:
        """Let gangs take their places as soon as enough of them is there, and no longer than that."""
        for gang, is_complete in self.gangs.settle():
            self._set_aside(gang)
            if is_complete:
                gang.place_by(gang.sort_key())
                self._activate(gang)

    def put_back_taken(self) -> None:
        """Let those be tried again who were taken and never came back: something raised while they had their turn."""
        taken = [self._entry_of[key] for key, where in self._where.items() if where == Where.TAKEN]
        self.put_back([*taken, *(gang for gang in self.gangs if gang.where == Where.TAKEN)])

    def _take_out(self, turn: Turn) -> None:
        if isinstance(turn, GangEntry):
            self._set_aside(turn)
        else:
            self.remove(turn.record.key)

    def _set_aside(self, gang: GangEntry) -> None:
        if gang.where in (Where.ACTIVE, Where.BACKOFF):
            self._turns.give_up(gang.turn_name)
        elif gang.where == Where.SHARED:
            self.shared.pop(gang.arrival, None)
        elif gang.where == Where.PARKED:
            self._parked.remove_gang(gang)
        gang.move_to(Where.GATHERING)
