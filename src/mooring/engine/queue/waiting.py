"""Those to try now, those who stay behind for a while, and those that were tried in vain: how one becomes the other.

Pods that were tried in vain are parked by shape, with the plugins that refused them; they come back when something
happens that could help (a queueing hint), all pods of a shape together, because they get the same answer.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mooring.engine.plugin import Change, Changed
from mooring.engine.queue.backoff import UNSCHEDULABLE_SECONDS, Backoff
from mooring.engine.queue.entries import PLUGIN, Entry, GangEntry
from mooring.engine.queue.hints import Hint
from mooring.engine.queue.parked import Key, Parked, ParkingLot, Turn, shape_key
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.keys import PodKey
from mooring.state.shapes import Shape
from mooring.state.waiting import WaitingTable, Where


class QueueHeaps:
    """Two heaps: by the profile's order, and by the end of the backoff; each then by arrival."""

    def __init__(self) -> None:
        self._active: list[tuple[Any, int, int, Turn]] = []
        self._behind: list[tuple[float, Any, int, int, Turn]] = []
        self._ticket_of: dict[str, int] = {}
        """By the name of the turn: the one ticket that is good."""
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._ticket_of)

    def add(self, turn: Turn) -> None:
        heapq.heappush(self._active, (turn.key, turn.arrival, self._new_ticket(turn), turn))

    def add_behind(self, turn: Turn, expiry: float) -> None:
        """Let somebody wait until its backoff is over, or nobody else is there."""
        heapq.heappush(self._behind, (expiry, turn.key, turn.arrival, self._new_ticket(turn), turn))

    def give_up(self, turn_name: str) -> None:
        self._ticket_of.pop(turn_name, None)

    def come_forward(self, is_over: Callable[[float], bool]) -> Iterator[Turn]:
        """Let those whose backoff is over be tried like the others; tell who they are."""
        while self._behind and is_over(self._behind[0][0]):
            _, key, arrival, ticket, turn = heapq.heappop(self._behind)
            if self._is_good(ticket, turn):
                heapq.heappush(self._active, (key, arrival, ticket, turn))
                yield turn

    def peek(self) -> Turn | None:
        """Whose turn it is; those who stay behind come when nobody else is there."""
        heap = self._heap()
        return heap[0][-1] if heap else None

    def pop(self) -> Turn:
        turn: Turn = heapq.heappop(self._heap())[-1]
        del self._ticket_of[turn.turn_name]
        return turn

    def pop_alike(self, most: int) -> list[Entry]:
        """The next pod and those behind it that are of one kind with it, so many at most; none before a gang.

        Who is to be tried on a certain node first comes alone.
        """
        heap = self._heap()
        head = heap[0][-1] if heap else None
        if not isinstance(head, Entry):
            return []
        shape, profile, node = head.record.shape, head.profile, head.nominated_node
        most = 1 if node else most
        ticket_of, pop = self._ticket_of, heapq.heappop
        found: list[Entry] = []
        while heap and len(found) < most:
            first = heap[0]
            turn: Turn = first[-1]
            name = turn.turn_name
            if ticket_of.get(name) == first[-2]:
                if not isinstance(turn, Entry) or turn.record.shape is not shape or turn.profile is not profile:
                    break
                if turn.nominated_node != node:
                    break
                found.append(turn)
                del ticket_of[name]
            pop(heap)
            if not heap:
                heap = self._heap()
        return found

    def active(self) -> list[Turn]:
        """Those to be tried before anybody who stays behind, in order."""
        return [turn for *_, ticket, turn in sorted(self._active) if self._is_good(ticket, turn)]

    def _heap(self) -> list[Any]:
        """The heap whose first turn is the next; empty if nobody is there."""
        heaps: tuple[list[Any], list[Any]] = (self._active, self._behind)
        for heap in heaps:
            while heap:
                first = heap[0]
                if self._ticket_of.get(first[-1].turn_name) == first[-2]:
                    return heap
                heapq.heappop(heap)
        return heaps[1]

    def _is_good(self, ticket: int, turn: Turn) -> bool:
        return self._ticket_of.get(turn.turn_name) == ticket

    def _new_ticket(self, turn: Turn) -> int:
        self._tickets += 1
        self._ticket_of[turn.turn_name] = self._tickets
        return self._tickets


MOST_FAULTS = 5
"""So often something may raise in somebody's turn before it is parked for good."""


class Waiting:
    """Active, backing off and parked turns, of pods and of gangs."""

    def __init__(
        self,
        table: WaitingTable,
        backoff: Backoff | None = None,
        is_shared: Callable[[Turn], bool] = lambda turn: False,
    ) -> None:
        self.backoff = backoff or Backoff()
        self._table = table
        self._turns = QueueHeaps()
        self._parked = ParkingLot(table.groups)
        self._where = table.where
        self._entry_of: dict[PodKey, Entry] = table.pods
        self.now = 0.0
        """The time of the cycle."""
        self._is_shared = is_shared
        self.shared: dict[int, Turn] = {}
        """By arrival: those whose turn comes by the shares of their queues, not by this one's order."""
        for entry in self._entry_of.values():
            self._take_place(entry, self._where[entry.record.key])
        for gang in table.gangs.values():
            self._take_place(gang, gang.where)

    def _take_place(self, turn: Turn, where: Where) -> None:
        """Let one that the state shows waiting have its place in the heaps."""
        if where is Where.ACTIVE:
            self._turns.add(turn)
        elif where is Where.BACKOFF:
            self._turns.add_behind(turn, self._expiry(turn))
        elif where is Where.SHARED:
            self.shared[turn.arrival] = turn

    def advance(self, now: float) -> None:
        """Time has passed: who has stayed behind, or waited for nothing, long enough is to be tried."""
        self.now = now
        for turn in self._turns.come_forward(lambda expiry: self.backoff.is_over(expiry, now)):
            self._mark(turn, Where.ACTIVE)
        self._bring_back(
            self._parked.where(lambda parked: now - parked.since > UNSCHEDULABLE_SECONDS or now >= parked.again_at)
        )

    def _activate(self, turn: Turn) -> None:
        if self._is_shared(turn):
            self._mark(turn, Where.SHARED)
            self.shared[turn.arrival] = turn
            return
        self._mark(turn, Where.ACTIVE)
        self._turns.add(turn)

    def _mark(self, turn: Turn, where: Where) -> None:
        if isinstance(turn, GangEntry):
            turn.move_to(where)
        else:
            key = turn.record.key
            self._where[key] = where
            self._entry_of[key] = turn

    def put_back(self, turns: Sequence[Turn]) -> None:
        """Return those who were taken and not tried to their places."""
        for turn in turns:
            self._activate(turn)

    # Waiting for something to happen.

    def park(
        self,
        entries: Sequence[Entry],
        helped_by: Change,
        moved_by: Callable[[Shape], bool] = lambda shape: True,
        hint: Hint | None = None,
    ) -> None:
        """Set pods of one shape aside until something happens that could help them.

        `moved_by` says of which pods it matters to them that they were bound, `hint` which objects that change.
        """
        first = entries[0]
        self._park(shape_key(first), entries, Parked(first.profile, helped_by, moved_by, since=self.now, hint=hint))

    def park_alone(
        self,
        entry: Entry,
        verdict: Verdict,
        *,
        is_capped: bool = False,
        gave_back: bool = False,
        preempts: bool = True,
    ) -> None:
        """Set one pod aside that a node would take and a plugin refused: others of its shape may fare better."""
        new = Parked(
            entry.profile,
            Change.ANY,
            verdict=verdict,
            since=self.now,
            is_capped=is_capped,
            gave_back=gave_back,
            preempts=preempts,
        )
        self._park((*shape_key(entry), entry.record.key), [entry], new)

    def park_gang(
        self,
        gang: GangEntry,
        message: str,
        helped_by: Change = Change.ANY,
        moved_by: Callable[[Shape], bool] = lambda shape: True,
        *,
        is_capped: bool = False,
        gave_back: bool = False,
        preempts: bool = True,
    ) -> None:
        """Set a gang aside that does not fit as a whole."""
        if gang.first_tried is None:
            gang.wait_since(self.now)
        gang.note_tried(self.now)
        gang.move_to(Where.PARKED)
        verdict = Verdict(PLUGIN, Rejection((message,)))
        new = Parked(
            gang.profile,
            helped_by,
            moved_by,
            dict(gang.entries),
            verdict,
            gang,
            self.now,
            is_capped=is_capped,
            gave_back=gave_back,
            preempts=preempts,
        )
        self._parked.add_gang(new)

    def park_failed(self, turn: Turn, verdict: Verdict) -> None:
        """Set somebody aside in whose turn something raised: until its backoff is over; for good if that goes on.

        Who is parked for good comes back when a node or an object changes, or it is itself seen anew.
        """
        self._take_out(turn)
        turn.note_fault()
        is_over = turn.faults >= MOST_FAULTS
        helped_by = Change.NODE | Change.RELATED if is_over else Change(0)
        again_at = math.inf if is_over else self.backoff.end(self.now, turn.faults)
        gang = turn if isinstance(turn, GangEntry) else None
        new = Parked(
            turn.profile,
            helped_by,
            by_pod={} if gang is None else dict(gang.entries),
            verdict=verdict,
            gang=gang,
            since=self.now,
            is_capped=True,
            again_at=again_at,
            is_fault=True,
        )
        if isinstance(turn, GangEntry):
            turn.move_to(Where.PARKED)
            turn.note_tried(self.now)
            self._parked.add_gang(new)
        else:
            self._park((*shape_key(turn), turn.record.key), [turn], new)

    def _take_out(self, turn: Turn) -> None:
        """Take somebody out from wherever it waits."""
        raise NotImplementedError

    def next_wake(self, now: float) -> float | None:
        """When somebody is to be tried again though nothing has happened; None if there is nobody."""
        times = [time for parked in self._parked for time in (parked.again_at, parked.since + UNSCHEDULABLE_SECONDS)]
        times += [time for parked in self._parked for time in parked.preempt_at.values()]
        return min((time for time in times if now < time < math.inf), default=None)

    def _park(self, key: Key, entries: Sequence[Entry], new: Parked) -> None:
        self._parked.add(key, new, entries)
        for entry in entries:
            entry.note_tried(self.now)
            self._mark(entry, Where.PARKED)

    def parked_with(self, entry: Entry) -> Parked | None:
        """The pods of the same shape that were tried in vain, if nothing has happened since."""
        return self._parked.of_shape(entry)

    @property
    def has_parked(self) -> bool:
        """Whether any pod or gang was tried in vain, and could be helped by something that happens."""
        return not self._parked.is_empty

    def note(self, change: Change, shape: Shape | None = None, changed: Changed | None = None) -> None:
        """Something happened, to a pod of some shape or to an object if one is given: whoever it could help is to be
        tried again."""
        helped = self._parked.helped_by(change, shape, changed)
        if helped:
            self._bring_back(helped)

    def _bring_back(self, keys: Sequence[Key]) -> None:
        for turn in self._parked.take(keys):
            expiry = self._expiry(turn)
            if self.backoff.is_over(expiry, self.now) or self._is_shared(turn):
                self._activate(turn)
            else:
                self._mark(turn, Where.BACKOFF)
                self._turns.add_behind(turn, expiry)

    def _expiry(self, turn: Turn) -> float:
        is_gang = isinstance(turn, GangEntry)
        return self.backoff.expiry(turn.tried_at, turn.attempts, turn.size, is_gang=is_gang)

    def waits_for(self, shape: Shape) -> bool:
        """Whether some pod that was tried in vain may be the next as soon as a pod of this shape is bound."""
        if not self._parked.waits_for_binding:
            return False
        # Of thousands that wait most were tried in one cycle, as often as one another.
        known: set[tuple[float, int, int, type[Turn]]] = set()
        for turn in self._parked.helped_by_binding(shape):
            tried = (turn.tried_at, turn.attempts, turn.size, type(turn))
            if tried not in known:
                if self.backoff.is_over(self._expiry(turn), self.now):
                    return True
                known.add(tried)
        return False

    def parked_as(self, turn: Turn) -> Parked | None:
        """How somebody was set aside who was tried in vain; None for whoever was not."""
        return self._parked.of(turn)

    def parked(self) -> Iterator[Parked]:
        return iter(self._parked)
