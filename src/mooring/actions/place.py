"""Place pods and gangs onto free capacity: pods of one shape that stand together in the queue at once, gangs whole."""

from collections.abc import Callable, Mapping

from mooring.actions.batches import DEFAULT_BATCHING, Batches, Outcome
from mooring.actions.gangs.placing import GangPlacer, bind_all
from mooring.actions.gangs.reservation import Reservation
from mooring.config.batching import BatchingArgs, batch_limit
from mooring.config.gangs import GangSchedulingArgs
from mooring.engine.evaluate import evaluate
from mooring.engine.gang_entry import PLUGIN as GANGS
from mooring.engine.kept import MOST_BYTES
from mooring.engine.plugin import Change
from mooring.engine.queue import Entry, GangEntry, Queue
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
        decisions: list[Decision] = []
        tried = list[Entry]()
        left = at_most
        self.reservation.begin(cluster, queue, now)
        while left > 0 and (turn := queue.peek()) is not None:
            started = self._clock()
            # 1. A gang is placed whole, or waits without holding anything.
            if isinstance(turn, GangEntry):
                made = self._place_gang(cluster, queue, now)
                decisions += made
                left -= max(1, len(made))
                self._on_batch(len(made), self._clock() - started)
                continue
            # 2. Of pods, take the next ones of one shape.
            batch = queue.pop_batch(self._batch_size(queue, turn, left))
            # 3. Those whose shape was refused a moment ago, with nothing since that could help, wait with the others.
            parked = queue.parked_with(batch[0])
            if parked is not None and not self.reservation.is_open_to(batch[0], now):
                queue.park(batch, parked.helped_by, parked.moved_by)
                tried += batch
                continue
            # 4. Find nodes, as many as there are; assume them.
            outcome = self._place_batch(cluster, batch, now)
            decisions += [Bind(entry.record.key, entry.record.node_name) for entry in outcome.placed]
            if outcome.placed:
                queue.note(Change.POD_BOUND, batch[0].record.shape)
            # 5. The rest waits for something that could help, or for its turn.
            if outcome.refused:
                self._park(cluster, queue, outcome.refused)
                tried += outcome.refused
            for entry, verdict in outcome.rejected:
                queue.park_alone(entry, verdict)
                tried.append(entry)
            queue.put_back(outcome.untried)
            # Pods that wait cost one try a shape, however many they are: else those that come back after every event
            # would use up the turn of those that have not been tried at all.
            left -= len(outcome.placed) + len(outcome.rejected) + min(1, len(outcome.refused))
            self._on_batch(len(batch) - len(outcome.untried), self._clock() - started)
        waits = self._waits(cluster, queue, tried)
        self.reservation.end(cluster)
        return decisions + waits

    def _batch_size(self, queue: Queue, head: Entry, left: int) -> int:
        if self.reservation.held is not None or queue.waits_for(head.record.shape):
            return 1  # the first pod bound may help one that waits, and that comes before the second
        args = self._batching.get(head.profile.name, DEFAULT_BATCHING)
        return min(left, batch_limit(args, head.record.pod.spec.priority_class_name, len(queue)))

    def _place_batch(self, cluster: Cluster, batch: list[Entry], now: float) -> Outcome:
        """Place pods, or one while room is held for a gang: it may see that room, or is told for whom it is."""
        if self.reservation.held is None:
            return self.batches.place(cluster, batch)
        with self.reservation.lifted_for(cluster, batch[0], now):
            outcome = self.batches.place(cluster, batch)
        verdict = self.reservation.verdict_on(cluster, outcome.refused)
        return outcome if verdict is None else Outcome([], [], [], [(batch[0], verdict)])

    def _place_gang(self, cluster: Cluster, queue: Queue, now: float) -> list[Decision]:
        """Bind all members that the gang needs, or none and say why it waits."""
        gang = queue.pop_gang()
        outcome = self.gangs.place(cluster, gang)
        if not outcome.placed:
            queue.park_gang(gang, outcome.message, outcome.helped_by, outcome.moved_by)
            self.reservation.hold(cluster, gang, now)
            return [Wait(key, outcome.message, (GANGS,)) for key in gang.entries]
        return bind_all(queue, gang, outcome.placed)

    def _park(self, cluster: Cluster, queue: Queue, entries: list[Entry]) -> None:
        """Set pods aside that no node takes, until something happens that a filter with something to say listens to."""
        answers = self.batches.answers(cluster, entries[0].profile, entries[0].record.shape)
        queue.park(entries, answers.helped_by(), answers.is_moved_by)

    def _waits(self, cluster: Cluster, queue: Queue, tried: list[Entry]) -> list[Decision]:
        """Say of each pod that waits why, as things stand when all decisions are taken, in queue order."""
        reasons: dict[tuple[str, int], tuple[str, tuple[str, ...]]] = {}
        verdicts = {
            parked.entries[0].record.key: parked.verdict
            for parked in queue.parked()
            if parked.verdict and parked.entries
        }
        waits: list[Decision] = []
        for entry in sorted({entry.record.key: entry for entry in tried if queue.is_parked(entry)}.values()):
            verdict = verdicts.get(entry.record.key)
            if verdict is not None:
                waits.append(Wait(entry.record.key, "; ".join(verdict.reasons), (verdict.plugin,)))
                continue
            key = (entry.profile.name, entry.record.shape.id)
            if key not in reasons:
                evaluation = evaluate(entry.profile, cluster, entry.record.shape)
                reasons[key] = evaluation.message(), evaluation.refusing_plugins()
            waits.append(Wait(entry.record.key, *reasons[key]))
        return waits
