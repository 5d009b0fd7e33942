"""Our decisions on pods, kept until the watch shows what the present scheduler did with the same pods.

A decision is compared by the scores of the moment at which it was taken: they are kept with it, as far as memory
allows. A pod that is bound before we decided is judged in hindsight, on the state just before its binding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.drivers.live.shadow.judging import Judgement, best_row, evaluate_without, is_among_the_best, judge
from mooring.engine.cycle import Scheduler
from mooring.engine.evaluate import Evaluation
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Wait
from mooring.model.events import Event, Failed, PodSeen
from mooring.model.keys import PodKey
from mooring.observe.shadow_log import ComparedPod, Outcome

MOST_CELLS = 16_000_000
"""Scores that are kept for decisions without an answer: 128 MB. Older decisions lose theirs beyond that."""
MOST_RELEASED = 256
"""So many unconfirmed decisions at most are left out to judge a pod by confirmed ones alone."""
MIRROR = "kubernetes.io/config.mirror"
"""The annotation of pods that a kubelet runs by itself: no scheduler ever decided on them."""
UNCONFIRMED = "the present scheduler has not bound it"


@dataclass(slots=True)
class Decided:
    """A node that we chose for a pod."""

    decision: Bind
    at: float
    deciding_seconds: float
    row: int
    evaluation: Evaluation | None
    """What all nodes said to the pod at that moment; None once memory was short."""
    is_dropped: bool = False
    """Nothing confirmed it in time: the state does not assume it any more."""

    @property
    def cells(self) -> int:
        return 0 if self.evaluation is None else len(self.evaluation.rows) * (4 + len(self.evaluation.scores))


@dataclass(slots=True)
class Waiting:
    """A pod that had no node when it was last seen."""

    uid: str
    since: float
    """When the watch first showed it."""
    number: int = 0
    """Rises with the order in which the watch showed pods."""
    decided: Decided | None = None
    wait: Wait | None = None
    """Why we found no node for it, unless we have found one since."""


class KeptScores:
    """Bounds the memory for the scores of decisions without an answer: the oldest lose theirs first."""

    def __init__(self, most_cells: int = MOST_CELLS) -> None:
        self._most_cells, self._cells = most_cells, 0
        self._decided: dict[PodKey, Decided] = {}

    def keep(self, key: PodKey, decided: Decided) -> None:
        self.release(key)
        self._decided[key] = decided
        self._cells += decided.cells
        while self._cells > self._most_cells:
            oldest = next(iter(self._decided))
            decided = self._decided[oldest]
            self.release(oldest)
            decided.evaluation = None

    def release(self, key: PodKey) -> None:
        """Stop counting a decision that was compared, replaced or lost."""
        decided = self._decided.pop(key, None)
        if decided is not None:
            self._cells -= decided.cells


class PodComparison:
    """The pods that wait, with what we decided on each."""

    def __init__(
        self, scheduler: Callable[[], Scheduler], tell: Callable[[Event], None], note: Callable[[ComparedPod], None]
    ) -> None:
        """`tell` hands an event to the scheduler at once."""
        self._scheduler, self._tell, self._note = scheduler, tell, note
        self._waiting: dict[PodKey, Waiting] = {}
        self._scores = KeptScores()
        self._count = 0

    def unconfirmed(self) -> Iterator[PodKey]:
        """The pods that the state assumes on the nodes that we chose."""
        return (key for key, each in self._waiting.items() if each.decided is not None and not each.decided.is_dropped)

    # What we decide.

    def bind(self, decision: Bind, now: float, deciding_seconds: float) -> None:
        """Keep a decision, with what all nodes said to the pod when it was taken."""
        key, scheduler = PodKey(decision.pod), self._scheduler()
        record = scheduler.cluster.pods.records[key]
        waiting = self._waiting.get(key)
        if waiting is None or waiting.uid != record.pod.metadata.uid:
            waiting = self._start_waiting(key, record.pod.metadata.uid, now)
        evaluation = evaluate_without(scheduler, record)
        waiting.wait = None
        waiting.decided = Decided(decision, now, deciding_seconds, record.row, evaluation)
        self._scores.keep(key, waiting.decided)

    def wait(self, decision: Wait) -> None:
        waiting = self._waiting.get(PodKey(decision.pod))
        if waiting is not None and (waiting.decided is None or waiting.decided.is_dropped):
            waiting.wait = decision

    def drop_unconfirmed(self, now: float, timeout_seconds: float) -> None:
        """Take back decisions that nothing has confirmed in time, so that the state does not drift from the cluster."""
        for key, waiting in self._waiting.items():
            decided = waiting.decided
            if decided is None or decided.is_dropped or now < decided.at + timeout_seconds:
                continue
            decided.is_dropped = True
            self._tell(Failed(decided.decision, UNCONFIRMED, timeout_seconds))
            self._note(
                ComparedPod(
                    time=now,
                    pod=key,
                    uid=waiting.uid,
                    outcome=Outcome.UNCONFIRMED,
                    node=decided.decision.node,
                    message=UNCONFIRMED,
                    deciding_seconds=decided.deciding_seconds,
                    ours_seconds=decided.at - waiting.since,
                )
            )

    # What happens.

    def is_waiting(self, pod: Pod) -> bool:
        """Whether a pod had no node when it was last seen."""
        waiting = self._waiting.get(pod.key)
        return waiting is not None and waiting.uid == pod.metadata.uid

    def is_bound_now(self, pod: Pod) -> bool:
        """Whether a pod has a node, and had none when it was last seen."""
        return bool(pod.spec.node_name) and self.is_waiting(pod)

    def place_in_queue(self, pod: Pod) -> tuple[int, int]:
        """Where a pod that waits stands among those that wait: by priority, then by arrival."""
        return -(pod.spec.priority or 0), self._waiting[pod.key].number

    def _start_waiting(self, key: PodKey, uid: str, now: float) -> Waiting:
        self._count += 1
        waiting = self._waiting[key] = Waiting(uid, now, self._count)
        return waiting

    def seen(self, pod: Pod, now: float, preemption_node: str = "") -> None:
        """Take note of a pod of ours before the scheduler is told of it; compare it if it has just been bound.

        `preemption_node` is where we were about to make room for it by evicting others.
        """
        key, uid = pod.key, pod.metadata.uid
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.uid != uid:
            self.lost(key)
            waiting = None
        if not pod.spec.node_name:
            if waiting is None and not pod.is_terminal:
                self._start_waiting(key, uid, now)
            return
        known = self._scheduler().cluster.pods.records.get(key)
        if waiting is None:
            if known is not None and known.pod.metadata.uid == uid:
                return  # it has been bound before, and was compared then
            if pod.is_terminal or MIRROR in (pod.metadata.annotations or {}):
                return
            waiting = Waiting(uid, now)
            self._tell(PodSeen(replace(pod, spec=replace(pod.spec, node_name=""))))
        self.lost(key)
        self._note(self._compare(pod, waiting, now, preemption_node))

    def lost(self, key: PodKey) -> None:
        self._waiting.pop(key, None)
        self._scores.release(key)

    def _compare(self, pod: Pod, waiting: Waiting, now: float, preemption_node: str) -> ComparedPod:
        node, decided = pod.spec.node_name, waiting.decided
        line = ComparedPod(
            time=now,
            pod=pod.key,
            uid=waiting.uid,
            outcome=Outcome.BEFORE_US,
            bound=node,
            theirs_seconds=now - waiting.since,
        )
        if decided is not None:
            line.node, line.deciding_seconds = decided.decision.node, decided.deciding_seconds
            line.ours_seconds = decided.at - waiting.since
            self._describe(line, self._judge(decided, node))
            if line.outcome is Outcome.OTHER:
                hindsight = self._hindsight(pod.key)
                line.is_drift = hindsight is not None and is_among_the_best(hindsight, self._row(node))
            return line
        if preemption_node:
            line.outcome, line.node = Outcome.PREEMPTION, preemption_node
        elif waiting.wait is not None:
            line.outcome, line.message = Outcome.UNSCHEDULABLE, waiting.wait.message
        hindsight = self._hindsight(pod.key)
        if hindsight is None:
            return line
        best = best_row(hindsight)
        judgement = judge(hindsight, best, self._row(node))
        outcome = line.outcome
        self._describe(line, judgement)
        line.outcome, line.hindsight = outcome, judgement.outcome.value
        if best is not None and not line.node:
            line.node = self._scheduler().cluster.nodes.name(best)
        return line

    def _judge(self, decided: Decided, node: str) -> Judgement:
        if decided.decision.node == node:
            return Judgement(Outcome.SAME, 0)
        if decided.evaluation is None:
            return Judgement(Outcome.OTHER)
        return judge(decided.evaluation, decided.row, self._row(node))

    def _describe(self, line: ComparedPod, judgement: Judgement) -> None:
        line.outcome, line.difference = judgement.outcome, judgement.difference
        line.plugins, line.refused_by = judgement.plugins, judgement.refused_by

    def _hindsight(self, key: PodKey) -> Evaluation | None:
        """What all nodes say to a pod, by what is confirmed."""
        scheduler = self._scheduler()
        record = scheduler.cluster.pods.records.get(key)
        if record is None or record.pod.spec.scheduler_name not in scheduler.profiles:
            return None
        others = [other for other in self.unconfirmed() if other != key and self._is_assumed(other)]
        return evaluate_without(scheduler, record, *(others if len(others) <= MOST_RELEASED else ()))

    def _is_assumed(self, key: PodKey) -> bool:
        record = self._scheduler().cluster.pods.records.get(key)
        return record is not None and record.assumed and not record.nominated

    def _row(self, node: str) -> int | None:
        return self._scheduler().cluster.nodes.row_of.get(node)
