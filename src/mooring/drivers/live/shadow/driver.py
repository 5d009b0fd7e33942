"""The driver of a shadow: a real cluster is followed, everything is decided, and nothing is sent.

What we decide is assumed until the watch shows what the present scheduler did; then that replaces it. A decision that
nothing confirms is taken back after a time. Pods are decided on one at a time, so that the scores of each are those of
its own moment.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable

from mooring.drivers.driver import Driver
from mooring.drivers.live.shadow.evictions import EvictionComparison
from mooring.drivers.live.shadow.pods import PodComparison
from mooring.drivers.live.shadow.workloads import AdmissionComparison
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.engine.action import Deadline, Fault
from mooring.engine.cycle import CATCH_UP, Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import (
    Admit,
    Bind,
    Decision,
    Defer,
    Enqueue,
    Evict,
    KeepOut,
    Launch,
    Notice,
    Partition,
    Resize,
    Suspend,
    Terminate,
    Wait,
)
from mooring.model.events import Event, Failed, PodLost, PodSeen, WorkloadLost, WorkloadSeen
from mooring.model.keys import PodKey, WorkloadKey
from mooring.observe.shadow_log import OtherDecision, ShadowLine

TIMEOUT_SECONDS = 60.0
"""How long a decision is assumed that nothing confirms."""
LONGEST_WAIT = 60.0
LOOK_SECONDS = 1.0
"""How often it is looked whether decisions are to be taken back."""
TURN_SECONDS = 0.05
"""So long pods are decided on before it is looked again what the present scheduler did."""
FRUITLESS_SECONDS = 0.01
"""How long to wait after a turn without a decision while pods are in the queue."""
ACTION_SECONDS = 0.2
"""How long an action that can go on in a later cycle may take in one."""
MOST_NOTED = 10_000
"""Of how many other decisions it is remembered that they were noted."""
NOT_DONE = "a shadow changes nothing"
_log = logging.getLogger(__name__)


class Shadow(Driver):
    """A scheduler that follows a cluster and carries out none of its decisions."""

    def __init__(
        self,
        scheduler: Scheduler,
        cache: ObjectCache,
        note: Callable[[ShadowLine], None],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(scheduler, clock())
        self._cache, self._note, self._timeout, self._clock = cache, note, timeout_seconds, clock
        self._wake = asyncio.Event()
        self._is_called = True
        self._is_stopping = False
        self._due_at = 0.0
        self.last_turn = 0.0
        """When the loop last came round, by the monotonic clock; 0 before it runs."""
        self._seen: list[Event] = []
        """What happened and the scheduler has yet to be told of."""
        self._cycle_began = self._cycle_seconds = 0.0
        self.pods = PodComparison(lambda: self.scheduler, self._tell_at_once, note)
        self.evictions = EvictionComparison(self._seen.append, note)
        self.workloads = AdmissionComparison(self._seen.append, note)
        self._others: dict[str, tuple[Decision, float]] = {}
        """Decisions of other kinds that are assumed, by kind and object."""
        self._noted: set[str] = set()
        self.on_cycle: Callable[[float, list[Decision]], None] = lambda seconds, decisions: None
        scheduler.on_step = self._step

    # The loop.

    def begin(self) -> None:
        """Take in the whole cluster: pods that are bound already are not compared."""
        events = self._cache.everything()
        for event in events:
            match event:
                case PodSeen(pod) if self._is_followed(pod) and not pod.spec.node_name:
                    self.pods.seen(pod, self.now)
                case WorkloadSeen(queued):
                    self.workloads.seen(queued.workload, self.now)
        self.scheduler.handle(*events)
        self.wake()

    def wake(self) -> None:
        self._is_called = True
        self._wake.set()

    def look(self) -> None:
        """A watch told something: look at it soon."""
        if self._cache.has_changes:
            self._wake.set()

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Follow and decide until it is stopped."""
        while not self._is_stopping:
            self.last_turn = time.monotonic()
            await self._wait()
            self._wake.clear()
            if self._is_stopping:
                break
            decided = self.turn()
            await asyncio.sleep(0 if decided or not len(self.scheduler.queue) else FRUITLESS_SECONDS)

    def turn(self) -> int:
        """Compare what happened with what was decided, then decide for a while; return the number of decisions."""
        self.now = self._clock()
        self._take_in()
        self._drop_unconfirmed()
        is_called, self._is_called = self._is_called, False
        if not (is_called or self.scheduler.has_news or len(self.scheduler.queue) or self.now >= self._due_at):
            return 0
        until, count = time.monotonic() + TURN_SECONDS, 0
        while True:
            self.now = self._clock()
            self.scheduler.new_deadline = _new_deadline
            decisions = self.run_cycle(1)
            self.on_cycle(self._cycle_seconds, decisions)
            count += len(decisions)
            if not decisions or not len(self.scheduler.queue) or time.monotonic() >= until:
                return count

    async def _wait(self) -> None:
        if len(self.scheduler.queue) or self._is_called:
            return
        now = self._clock()
        wake = self.scheduler.next_wake(now)
        self._due_at = math.inf if wake is None else wake
        pause = min(self._due_at - now, LOOK_SECONDS if self.unconfirmed else LONGEST_WAIT)
        if pause <= 0:
            return
        timer = asyncio.get_running_loop().call_later(pause, self._wake.set)
        await self._wake.wait()
        timer.cancel()

    @property
    def unconfirmed(self) -> int:
        """How many decisions are assumed that nothing has confirmed."""
        return sum(1 for _ in self.pods.unconfirmed()) + len(self.evictions) + len(self.workloads) + len(self._others)

    def _step(self, step: str) -> None:
        """Measure a cycle, from its first step to its last."""
        if step == CATCH_UP:
            self._cycle_began = time.perf_counter()
        elif not step:
            self._cycle_seconds = time.perf_counter() - self._cycle_began

    # What happens.

    def _take_in(self) -> None:
        for event in self._in_queue_order(self._cache.changes()):
            self._compare(event)
            self._seen.append(event)
        self._hand_in()

    def _in_queue_order(self, events: list[Event]) -> list[Event]:
        """Let pods that were bound be compared in the order in which they queued.

        Schedulers decide in that order, and send binds side by side: the order in which these arrive says little.
        """
        bound = [event for event in events if isinstance(event, PodSeen) and self.pods.is_bound_now(event.pod)]
        in_order = iter(sorted(bound, key=lambda event: self.pods.place_in_queue(event.pod)))
        moved = {id(event) for event in bound}
        return [next(in_order) if id(event) in moved else event for event in events]

    def _hand_in(self) -> None:
        self.scheduler.handle(*self._seen)
        self._seen.clear()

    def _tell_at_once(self, event: Event) -> None:
        """Let the scheduler know of an event, and of all that happened before it."""
        self._seen.append(event)
        self._hand_in()
        self.scheduler.catch_up(self.now)

    def _compare(self, event: Event) -> None:
        """Compare an event with what was decided, before the scheduler is told of it."""
        match event:
            case PodSeen(pod) if self._is_followed(pod):
                self.evictions.seen(pod, self.now)
                if pod.spec.node_name:
                    self._see_bound(pod)
                else:
                    self.pods.seen(pod, self.now)
            case PodLost(key):
                self.evictions.left(PodKey(key), self.now)
                self.pods.lost(PodKey(key))
            case WorkloadSeen(queued):
                self.workloads.seen(queued.workload, self.now)
            case WorkloadLost(key):
                self.workloads.lost(WorkloadKey(key))

    def _see_bound(self, pod: Pod) -> None:
        if self.pods.is_waiting(pod) or pod.key not in self.scheduler.cluster.pods.records:
            self._hand_in()
            self.scheduler.catch_up(self.now)  # a pod is judged by all that happened before it
        self.pods.seen(pod, self.now, self.evictions.node_for(pod.key))
        self.evictions.bound(pod.key, self.now)

    def _is_followed(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.scheduler.profiles

    def _drop_unconfirmed(self) -> None:
        self.pods.drop_unconfirmed(self.now, self._timeout)
        self.evictions.drop_unconfirmed(self.now, self._timeout)
        self.workloads.drop_unconfirmed(self.now, self._timeout)
        for name in [name for name, (_, at) in self._others.items() if self.now >= at + self._timeout]:
            self._seen.append(Failed(self._others.pop(name)[0], NOT_DONE))
        self._hand_in()

    # What is decided.

    def carry_out(self, decision: Decision) -> str:
        """Keep a decision to be compared with what happens; it is assumed until then."""
        now = self._clock()
        match decision:
            case Bind():
                self.pods.bind(decision, now, self._cycle_seconds)
            case Wait():
                self.pods.wait(decision)
            case Evict():
                self.evictions.evict(decision, now)
            case Admit():
                self.workloads.admit(decision, now)
            case Defer():
                self.workloads.defer(decision)
            case Suspend(workload):
                self._assume(decision, workload, decision.message, now)
            case Enqueue(gang):
                self._assume(decision, gang, "", now)
            case Partition():
                self._assume(decision, f"{decision.node}/{decision.gpu}", "", now)
            case Resize(about) | Launch(about) | Terminate(about):
                self._note_once(decision, about, "")
                return NOT_DONE
            case Notice() | KeepOut():
                pass
        return ""

    def _assume(self, decision: Decision, about: str, message: str, now: float) -> None:
        """Assume a decision for a time; what the watch shows of its object replaces it."""
        self._others[f"{type(decision).__name__} {about}"] = decision, now
        self._note_once(decision, about, message)

    def _note_once(self, decision: Decision, about: str, message: str) -> None:
        kind = type(decision).__name__
        name = f"{kind} {about}"
        if name not in self._noted and len(self._noted) < MOST_NOTED:
            self._noted.add(name)
            self._note(OtherDecision(time=self._clock(), decision=kind, about=about, message=message))

    def take_faults(self, faults: list[Fault]) -> None:
        for fault in faults:
            _log.error("in the turn of %s: %s: %s", fault.turn, fault.plugin, fault.message, exc_info=fault.error)


def _new_deadline() -> Deadline:
    end = time.monotonic() + ACTION_SECONDS
    return lambda: time.monotonic() >= end
