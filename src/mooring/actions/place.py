"""Place pods and gangs onto free capacity: pods of one shape that stand together in the queue at once, gangs whole."""

from collections.abc import Callable, Mapping

from mooring.actions.batches import DEFAULT_BATCHING, Batches, Outcome
from mooring.actions.gangs.placing import GangPlacer, bind_all
from mooring.actions.gangs.reservation import Reservation
from mooring.config.batching import BatchingArgs, batch_limit
from mooring.config.gangs import GangSchedulingArgs
from mooring.engine.evaluate import evaluate
from mooring.engine.kept import MOST_BYTES
from mooring.engine.plugin import Change
from mooring.engine.queue import Entry, GangEntry, Queue, Turn
from mooring.model.decisions import Bind, Decision, Wait
from mooring.state.cluster import Cluster


class Place:
    """The action."""

    def __init__(
        self,
        batching: Mapping[str, BatchingArgs] | None = None,
        *,
        cached: bool = True,
        clock: Callable[[], float] | None = None,
        on_batch: Callable[[int, float], None] | None = None,
        most_bytes_kept: int = MOST_BYTES,
        reserve_after_seconds: float = GangSchedulingArgs().reserve_after_seconds,
    ) -> None:
        self._batching = batching or {}
        self._clock = clock or (lambda: 0.0)
        self._on_batch = on_batch or (lambda pods, seconds: None)
        self.batches = Batches(self._batching, cached=cached, clock=self._clock, most_bytes_kept=most_bytes_kept)
        self.gangs = GangPlacer(self.batches)
        self.reservation = Reservation(self.gangs, reserve_after_seconds)

    def run(self, cluster: Cluster, queue: Queue, now: float, at_most: int) -> list[Decision]:
        self.reservation.begin(cluster, queue, now)
        try:
            return self._take_turns(cluster, queue, now, at_most)
        finally:
            self.reservation.end(cluster)

    def _take_turns(self, cluster: Cluster, queue: Queue, now: float, at_most: int) -> list[Decision]:
        decisions: list[Decision] = []
        tried: dict[str, Turn] = {}
        left = at_most
        while left > 0 and (turn := queue.peek()) is not None:
            started = self._clock()
            # 1. A gang is placed whole, or waits without holding anything.
            if isinstance(turn, GangEntry):
                tried[turn.turn_name] = turn
                made = self._place_gang(cluster, queue, now)
                decisions += made
                left -= max(1, len(made))
                self._on_batch(len(made) or turn.size, self._clock() - started)
                continue
            # 2. Of pods, take the next ones of one shape.
            batch = queue.pop_batch(self._batch_size(queue, turn, left))
            tried |= {entry.turn_name: entry for entry in batch}
            # 3. Those whose shape was refused a moment ago, with nothing since that could help, wait with the others.
            parked = queue.parked_with(batch[0])
            if parked is not None and not self.reservation.is_open_to(batch[0], now):
                queue.park(batch, parked.helped_by, parked.moved_by)
                continue
            # 4. Find nodes, as many as there are; assume them.
            outcome = self._place_batch(cluster, batch, now)
            decisions += [Bind(entry.record.key, entry.record.node_name) for entry in outcome.placed]
            if outcome.placed:
                queue.note(Change.POD_BOUND, batch[0].record.shape)
                self.reservation.note_bound(outcome.placed, now)
            # 5. The rest waits for something that could help, or for its turn.
            if outcome.refused:
                self._park(cluster, queue, outcome.refused)
            for entry, verdict in outcome.rejected:
                queue.park_alone(entry, verdict)
            queue.put_back(outcome.untried)
            # Pods that wait cost one try a shape, however many they are: else those that come back after every event
            # would use up the turn of those that have not been tried at all.
            left -= len(outcome.placed) + len(outcome.rejected) + min(1, len(outcome.refused))
            self._on_batch(len(batch) - len(outcome.untried), self._clock() - started)
        return decisions + self._waits(cluster, queue, tried)

    def _batch_size(self, queue: Queue, head: Entry, left: int) -> int:
        if self.reservation.held is not None or queue.waits_for(head.record.shape):
            return 1  # the first pod bound may help one that waits, and that comes before the second
        args = self._batching.get(head.profile.name, DEFAULT_BATCHING)
        return min(left, batch_limit(args, head.record.pod.spec.priority_class_name, len(queue)))

    def _place_batch(self, cluster: Cluster, batch: list[Entry], now: float) -> Outcome:
        """Place pods, or one while room is held for a gang: it may see that room, or is told for whom it is."""
        if self.reservation.held is None:
            return self.batches.place(cluster, batch)
        first = batch[0]
        is_open = self.reservation.is_open_to(first, now)
        if self.reservation.is_kept_out(first) and not is_open:
            outcome = Outcome([], batch, [])
        else:
            outcome = self.batches.place(cluster, batch)  # beside what is held, as long as that is possible
        if not outcome.refused:
            return outcome
        if is_open:
            return self.reservation.lifted(cluster, lambda: self.batches.place(cluster, batch))
        verdict = self.reservation.verdict_on(cluster, first)
        return outcome if verdict is None else Outcome([], [], [], [(first, verdict)])

    def _place_gang(self, cluster: Cluster, queue: Queue, now: float) -> list[Decision]:
        """Bind all members that the gang needs, or none."""
        gang = queue.pop_gang()
        self.reservation.let_go_of(gang, cluster)
        outcome = self.gangs.place(cluster, gang)
        if not outcome.placed:
            queue.park_gang(gang, outcome.message, outcome.helped_by, outcome.moved_by)
            self.reservation.hold(cluster, gang, now)
            return []
        self.reservation.note_bound(outcome.placed, now)
        return bind_all(queue, gang, outcome.placed)

    def _park(self, cluster: Cluster, queue: Queue, entries: list[Entry]) -> None:
        """Set pods aside that no node takes, until something happens that a filter with something to say listens to."""
        answers = self.batches.answers(cluster, entries[0].profile, entries[0].record.shape)
        queue.park(entries, answers.helped_by(), answers.is_moved_by)

    def _waits(self, cluster: Cluster, queue: Queue, tried: Mapping[str, Turn]) -> list[Decision]:
        """Say of each pod that waits why, as things stand when all decisions are taken, in queue order."""
        reasons: dict[tuple[str, int], tuple[str, tuple[str, ...]]] = {}
        waits: list[Decision] = []
        for turn in sorted(tried.values(), key=lambda turn: (turn.key, turn.arrival)):
            parked = queue.parked_as(turn)
            if parked is None:
                continue
            if parked.verdict is not None:
                why = "; ".join(parked.verdict.reasons), (parked.verdict.plugin,)
                waits += [Wait(pod, *why) for pod in ([turn.record.key] if isinstance(turn, Entry) else turn.entries)]
                continue
            assert isinstance(turn, Entry), "a gang waits with a verdict"
            alike = (turn.profile.name, turn.record.shape.id)
            if alike not in reasons:
                evaluation = evaluate(turn.profile, cluster, turn.record.shape)
                reasons[alike] = evaluation.message(), evaluation.refusing_plugins()
            waits.append(Wait(turn.record.key, *reasons[alike]))
        return waits
