"""Place pods and gangs onto free capacity: pods of one shape that stand together in the queue at once, gangs whole.

Who finds no node has room made for it at once, before anybody behind it is placed: so nobody starts in a place that is
to be taken from it a moment later, and those behind see what is promised to those ahead, as with kube-scheduler.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mooring.actions.batches import DEFAULT_BATCHING, Outcome
from mooring.actions.gangs.placing import GangOutcome, GangPlacer, bind_all
from mooring.actions.gangs.reservation import Reservation
from mooring.actions.place.section import PlacingSection
from mooring.actions.preempt.action import Preemption
from mooring.config.batching import BatchingArgs, batch_limit
from mooring.engine.action import Action, Cycle
from mooring.engine.binding import decisions_to_bind
from mooring.engine.evaluate import evaluate
from mooring.engine.permits import hold_room
from mooring.engine.plugin import Change
from mooring.engine.queue.hints import queueing_hint
from mooring.engine.queue.queue import Entry, GangEntry, Parked, Queue, Turn
from mooring.model.decisions import Decision, Wait
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.waiting import Where


class Place(Action):
    """The action; `preemption` makes room for those that are refused, `on_batch` is told of each batch."""

    def __init__(
        self,
        gangs: GangPlacer,
        reservation: Reservation,
        preemption: Preemption,
        batching: Mapping[str, BatchingArgs] | None = None,
        *,
        clock: Callable[[], float] | None = None,
        on_batch: Callable[[int, float], None] | None = None,
    ) -> None:
        self.gangs = gangs
        self.batches = gangs.batches
        self.reservation = reservation
        self._preemption = preemption
        self._batching = batching or {}
        self._clock = clock or (lambda: 0.0)
        self._on_batch = on_batch or (lambda pods, seconds: None)

    def is_idle(self, cycle: Cycle) -> bool:
        return cycle.queue.is_quiet and not cycle.cluster.waiting.room_kept_for

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster, queue = cycle.cluster, cycle.queue
        aside = [gang for gang in queue.gangs if gang.where in (Where.PARKED, Where.BACKOFF)]
        self.reservation.begin(cycle)
        brought_forward = {gang.turn_name for gang in aside if gang.where == Where.ACTIVE}
        try:
            return self._take_turns(cycle, brought_forward)
        finally:
            self.reservation.end(cluster)

    def report(self, cycle: Cycle) -> PlacingSection:
        return PlacingSection(self.gangs, self.reservation)

    def _take_turns(self, cycle: Cycle, brought_forward: set[str]) -> list[Decision]:
        """Take so many turns; those of gangs that were brought forward to hold their room come on top.

        They come in every cycle, and would use up the turns of those behind them for ever.
        """
        queue = cycle.queue
        decisions: list[Decision] = []
        tried: dict[str, Turn] = {}
        told: dict[str, Wait] = {}
        one_by_one = set[int]()
        """The shapes in whose batches something raised: each of their pods has a turn of its own."""
        left = cycle.at_most
        while left > 0 and (turn := queue.peek()) is not None:
            started = self._clock()
            # 1. A gang is placed whole, or waits without holding anything.
            if isinstance(turn, GangEntry):
                tried[turn.turn_name] = turn
                _take_back(told, turn)
                placed, made = self._place_gang(cycle)
                decisions += _unsaid(made, told)
                left -= max(0 if turn.turn_name in brought_forward else 1, placed)
                brought_forward.discard(turn.turn_name)
                self._on_batch(placed or turn.size, self._clock() - started)
                continue
            # 2. Of pods, take the next ones of one shape.
            shape = turn.record.shape
            batch = queue.pop_batch(1 if shape.id in one_by_one else self._batch_size(queue, turn, left))
            if told:
                _take_back(told, *batch)
            # 3. Those whose shape was refused a moment ago, with nothing since that could help, wait with the others.
            parked = queue.parked_with(batch[0])
            if parked is not None and not self.reservation.is_open_to(batch[0], cycle.now):
                tried |= {entry.turn_name: entry for entry in batch}
                queue.park(batch, parked.helped_by, parked.moved_by, parked.hint)
                decisions += _unsaid(self._room_for(cycle, batch), told)
                continue
            # 4. Find nodes, as many as there are; assume them.
            outcome = self._place_batch(cycle, batch)
            if outcome is None:
                one_by_one.add(shape.id)
                left -= len(batch) == 1
                continue
            if outcome.placed:
                decisions += decisions_to_bind(cycle.cluster, [entry.record for entry in outcome.placed])
                queue.note(Change.POD_BOUND, shape)
                self.reservation.note_bound(cycle.cluster, outcome.placed, cycle.now)
                left -= len(outcome.placed)
            # 5. The rest has room made for it, or waits for something that could help, or for its turn.
            if len(outcome.placed) < len(batch):
                tried |= {entry.turn_name: entry for entry in batch}
                decisions += _unsaid(self._see_to_the_rest(cycle, outcome), told)
                # Pods that wait cost one try a shape, however many they are: else those that come back after every
                # event would use up the turn of those that have not been tried at all.
                left -= len(outcome.rejected) + min(1, len(outcome.refused))
            self._on_batch(len(batch) - len(outcome.untried), self._clock() - started)
        return decisions + self._waits(cycle, tried, told)

    def _see_to_the_rest(self, cycle: Cycle, outcome: Outcome) -> list[Decision]:
        """Deal with those of a batch that got no place."""
        decisions: list[Decision] = []
        for entry, verdict in outcome.rejected:
            if verdict.hold_seconds is None:
                cycle.queue.park_alone(entry, verdict)
        if outcome.hold is not None:
            decisions += hold_room(cycle, outcome.hold)
        if outcome.refused:
            decisions += self._room_for(cycle, outcome.refused)
        cycle.queue.put_back(outcome.untried)
        return decisions

    def _batch_size(self, queue: Queue, head: Entry, left: int) -> int:
        if self.reservation.held is not None or queue.waits_for(head.record.shape):
            return 1  # the first pod bound may help one that waits, and that comes before the second
        args = self._batching.get(head.profile.name, DEFAULT_BATCHING)
        return min(left, batch_limit(args, head.record.pod.spec.priority_class_name, len(queue)))

    def _place_batch(self, cycle: Cycle, batch: list[Entry]) -> Outcome | None:
        """Place pods, and park those that no node takes; None if something raised.

        It is not known in whose turn something raised if there were several: each is to be tried by itself then.
        """
        outcome: Outcome | None = None
        with cycle.attempt(*(batch if len(batch) == 1 else ())) as attempt:
            found = self._find_nodes(cycle.cluster, batch, cycle.now)
            if found.refused:
                # Until something happens that a filter with something to say listens to.
                profile, shape = batch[0].profile, batch[0].record.shape
                answers = self.batches.answers(cycle.cluster, profile, shape)
                hint = queueing_hint(profile, cycle.cluster, shape)
                cycle.queue.park(found.refused, answers.helped_by(), answers.is_moved_by, hint)
            attempt.keep()
            outcome = found
        if attempt.error is not None and len(batch) > 1:
            cycle.queue.put_back(batch)
        return outcome

    def _find_nodes(self, cluster: Cluster, batch: list[Entry], now: float) -> Outcome:
        """Assume nodes for pods, or for one while room is held for a gang: it may see that room, or is told for whom
        it is."""
        row = cluster.nodes.row_of.get(batch[0].nominated_node)
        if row is not None and (nominated := self.batches.place_on(cluster, batch[0], row)) is not None:
            return nominated
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

    def _place_gang(self, cycle: Cycle) -> tuple[int, list[Decision]]:
        """Bind all members that the gang needs, or none; say how many."""
        cluster, queue = cycle.cluster, cycle.queue
        gang = queue.pop_gang()
        self.reservation.let_go_of(gang, cluster)
        outcome = GangOutcome()
        held: list[Decision] = []
        with cycle.attempt(gang) as attempt:
            outcome = self.gangs.place(cluster, gang)
            if outcome.hold is not None:
                held = hold_room(cycle, outcome.hold, gang.root.key)
            elif not outcome.placed:
                message = self.reservation.message_for(cluster, gang) or outcome.message
                queue.park_gang(gang, message, outcome.helped_by, outcome.moved_by)
            attempt.keep()
        if attempt.error is not None:
            return 0, []
        if outcome.hold is not None:
            return 0, held
        if not outcome.placed:
            made = self._room_for(cycle, [gang])
            if queue.nothing_happened_for(gang):
                with cycle.attempt(gang) as attempt:
                    self.reservation.hold(cluster, gang, cycle.now)
                    attempt.keep()
            return 0, made
        self.reservation.note_bound(cluster, outcome.placed, cycle.now)
        made = bind_all(cluster, queue, gang, outcome.placed)
        return len(made), made

    def _room_for(self, cycle: Cycle, refused: Sequence[Turn]) -> list[Decision]:
        """Let those that were refused evict others, as far as they may; what is held for a gang is no obstacle."""
        make_room = partial(self._preemption.at_once, cycle, refused)
        return make_room() if self.reservation.held is None else self.reservation.lifted(cycle.cluster, make_room)

    def _waits(self, cycle: Cycle, tried: Mapping[str, Turn], told: dict[str, Wait]) -> list[Decision]:
        """Say of each pod that waits why, as things stand when all decisions are taken, in queue order.

        Who was told already, because others were or could not be evicted for it, is told that.
        """
        reasons: dict[tuple[str, int], tuple[str, tuple[str, ...]]] = {}
        waits: list[Decision] = []
        waiting = [(turn, parked) for turn in tried.values() if (parked := cycle.queue.parked_as(turn)) is not None]
        for turn, parked in sorted(waiting, key=lambda found: (found[0].key, found[0].arrival)):
            if parked.is_fault:
                continue
            pods = _pods(turn)
            untold = [pod for pod in pods if pod not in told]
            if untold:
                with cycle.attempt(turn):
                    for pod in untold:
                        told[pod] = Wait(pod, *self._reason(cycle.cluster, turn, parked, reasons))
            waits += [told.pop(pod) for pod in pods if pod in told]
        return [*waits, *told.values()]  # the others hold room, until their victims are gone

    def _reason(
        self,
        cluster: Cluster,
        turn: Turn,
        parked: Parked,
        reasons: dict[tuple[str, int], tuple[str, tuple[str, ...]]],
    ) -> tuple[str, tuple[str, ...]]:
        """Why somebody was refused, and by which plugins; `reasons` are those of whole shapes."""
        if parked.verdict is not None:
            return "; ".join(parked.verdict.reasons), (parked.verdict.plugin,)
        assert isinstance(turn, Entry), "a gang waits with a verdict"
        alike = (turn.profile.name, turn.record.shape.id)
        if alike not in reasons:
            evaluation = evaluate(turn.profile, cluster, turn.record.shape)
            reasons[alike] = evaluation.message(), evaluation.refusing_plugins()
        return reasons[alike]


def _pods(turn: Turn) -> list[PodKey]:
    return [turn.record.key] if isinstance(turn, Entry) else list(turn.entries)


def _take_back(told: dict[str, Wait], *turns: Turn) -> None:
    """Whoever is tried again may be told something else."""
    for turn in turns:
        for pod in _pods(turn):
            told.pop(pod, None)


def _unsaid(made: list[Decision], told: dict[str, Wait]) -> list[Decision]:
    """What is decided; what is only said of pods that wait goes to `told`, where a later word may replace it."""
    told |= {decision.pod: decision for decision in made if isinstance(decision, Wait)}
    return [decision for decision in made if not isinstance(decision, Wait)]
