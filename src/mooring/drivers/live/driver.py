"""The driver for a Kubernetes API: what watches show goes in, what is decided goes out, failures come back.

One loop, one thread. A cycle takes what has arrived, decides on a slice of the queue, and hands the decisions on as
requests; while these are in flight, the next cycle runs. `pacing.py` says how large a slice, and how soon.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence

from mooring.config.extenders import Extender
from mooring.drivers.driver import Driver, failure_of
from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.discovery import Served
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.pacing import Pacing
from mooring.drivers.live.pod_groups.phases import GroupPhases
from mooring.drivers.live.pod_groups.status import PodGroupStatus
from mooring.drivers.live.pods.binder import Answer, Outcome
from mooring.drivers.live.pods.carrier import Carrier
from mooring.drivers.live.pods.event_recorder import EventRecorder
from mooring.drivers.live.pods.extenders import ExtenderClient
from mooring.drivers.live.pods.refusals import Refusals
from mooring.drivers.live.pods.volumes import reserved_claims
from mooring.drivers.live.sharing.node_claims import Claim
from mooring.drivers.live.sharing.sharing import Sharing
from mooring.drivers.live.watching.mirror import Mirror
from mooring.drivers.live.workloads.admitting import WorkloadView, may_start
from mooring.drivers.live.workloads.carrier import WorkloadCarrier, is_to_resume
from mooring.engine.action import Fault
from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import (
    Admit,
    Bind,
    Decision,
    Defer,
    Enqueue,
    Evict,
    KeepOut,
    Notice,
    Partition,
    Suspend,
    Wait,
)
from mooring.model.events import Event, PodLost, WorkloadLost, WorkloadSeen
from mooring.model.keys import PodKey, WorkloadKey

LONGEST_WAIT = 60.0
LATE_AT_ONCE = 5
"""So often in a row a pod may come too late and be tried again at once: among many others, that happens."""
SETTLE_SECONDS = 30.0
"""How long a new configuration waits until what the old one decided is done and seen; it takes over what is not."""
_log = logging.getLogger(__name__)


class Live(Driver):
    """A scheduler on a cluster that is followed by watches."""

    def __init__(self, scheduler: Scheduler, mirror: Mirror, client: Client, dispatcher: Dispatcher) -> None:
        super().__init__(scheduler, time.time())
        self._mirror, self._dispatcher = mirror, dispatcher
        self._wake = asyncio.Event()
        self._is_stopping = self._is_paused = False
        self.pacing = Pacing()
        self._sharing: Sharing | None = None
        self.extenders: ExtenderClient | None = None
        self._to_ask: dict[str, list[Evict]] = {}
        """What extenders are to be asked about first, by preemptor."""
        self._asking: set[asyncio.Task[None]] = set()
        self._left: dict[str, Evict] = {}
        """Evictions that were left to whoever admits, by pod: the core counts these pods as leaving."""
        self._refusals = Refusals()
        self.recorder = EventRecorder(client, dispatcher)
        self._view = WorkloadView()
        self._workloads = WorkloadCarrier(
            client,
            dispatcher,
            scheduler.cluster.tenants,
            failed=self._fail,
            tell=self._tell,
            find_pod=mirror.pod,
            find_job=mirror.find,
        )
        self._carrier = Carrier(
            client,
            dispatcher,
            self.recorder,
            failed=self._fail,
            bound=self._bound,
            find=self.find,
            admitted=self._workloads.settled,
            profiles=lambda: self.scheduler.profiles,
        )
        self._pod_groups = PodGroupStatus(client, dispatcher)
        self._phases = GroupPhases(client, dispatcher, mirror.volcano_group)
        dispatcher.expects_binds = self._expects_binds
        self.on_cycle: Callable[[dict[str, float], list[Decision]], None] = lambda steps, decisions: None
        self.on_bound: Callable[[Bind, Pod, Answer], None] = lambda decision, pod, answer: None
        self.on_fault: Callable[[str], None] = lambda plugin: None

    @property
    def served(self) -> Served:
        return self._workloads.served

    @served.setter
    def served(self, served: Served) -> None:
        """The kinds that the cluster has."""
        self._workloads.served = self._pod_groups.served = self._phases.served = self._carrier.served = served

    # The loop.

    def begin(self) -> None:
        """Take in the whole cluster, and finish what whoever scheduled it before has left half done."""
        self._see(self._mirror.everything())
        self._resume()
        self.wake()

    async def admit(self, is_sure: Callable[[], bool]) -> None:
        """From now on, give quota in the whole cluster; who did so before has ended, and what it wrote is read first.

        `is_sure` says at any time whether it is still for us."""
        listed = await self._workloads.listed()
        self._take_in()
        for workload, raw in listed:
            if self._view.is_older(workload):
                self._mirror.put(self._workloads.resource, raw)
                self._workloads.versions.wrote(workload.key, int(workload.metadata.resource_version))
        self._take_in()
        self._workloads.may_admit = is_sure
        self._see(self._view.take_over())
        self._resume()
        self._evict_what_was_left()
        self._workloads.finish(workload for workload, _ in listed)
        self.wake()

    def _evict_what_was_left(self) -> None:
        """Who admitted before may have ended between stopping a workload and evicting its pods."""
        left, self._left = self._left, {}
        cluster = self.scheduler.cluster
        for decision in left.values():
            record = cluster.pods.records.get(PodKey(decision.pod))
            key = cluster.tenants.workload_of.get(PodKey(decision.pod))
            is_stopped = key is not None and not may_start(cluster.tenants.workloads[key].workload)
            if is_stopped and record is not None and record.node_name:
                self._evict(decision)

    def _resume(self) -> None:
        """Let those go on who were admitted, and not let go, by whoever admitted before."""
        if not self._view.is_admitting:
            return
        self.scheduler.catch_up(time.time())
        for queued in self.scheduler.cluster.tenants.workloads.values():
            pods = (self._mirror.pod(key) for keys in queued.pods.values() for key in keys)
            if is_to_resume(queued, self._mirror.find(*queued.owner_key), pods):
                self._workloads.resume(queued)

    def wake(self) -> None:
        """Something happened: look at it soon."""
        self._wake.set()

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Decide for as long as nobody stops it."""
        while not self._is_stopping:
            await self._wait()
            if self._is_stopping:
                break
            self._wake.clear()
            if self._is_paused:
                continue
            took = self._turn()
            await asyncio.sleep(self.pacing.pause(took, self._dispatcher.latency))

    def _turn(self) -> float:
        """Take in what happened, and decide once; the seconds that this took."""
        started = time.perf_counter()
        self._take_in()
        taken_in = time.perf_counter()
        self.now = time.time()
        room = self._room()
        # Without room, the loop is woken again when the binds that wait are on their way.
        decisions = self.run_cycle(room) if room > 0 else []
        self.pacing.note_cycle(time.perf_counter() - taken_in, len(decisions))
        if not self._view.is_admitting:
            decisions = [found for found in decisions if not self._is_anothers(found)]
        self._ask_about_evictions()
        decided = time.perf_counter()
        self.on_cycle({"take-in": taken_in - started, "decide": decided - taken_in}, decisions)
        return decided - started

    def _room(self) -> int:
        """How many pods may be decided on: not more than can be bound soon, and nothing on a picture that is old."""
        most, held = self.pacing.slice, 0
        if self._sharing is not None:
            held = len(self._sharing) if self._sharing.is_current else most
        return most - self._dispatcher.backlog(Lane.BIND) - held

    def _expects_binds(self) -> bool:
        """Whether pods are about to be bound, by us or others: some wait for their claims, or for their turn."""
        return (self._sharing is not None and self._sharing.expects_binds) or bool(len(self.scheduler.queue))

    def _take_in(self) -> None:
        self._see(self._mirror.changes())

    def _see(self, events: Iterable[Event]) -> None:
        """Tell the scheduler what happened: pods that another scheduler is about to bind are on their nodes already,
        pods that extenders have a say in come when they have answered, Workloads are not older than what we wrote, and
        of those that another one admits only that."""
        events = [self._view.of(self._workloads.versions.current(event)) for event in events]
        queued = [event for event in events if isinstance(event, WorkloadSeen | WorkloadLost)]
        if not self._view.is_admitting:
            queued = []
        for event in queued:
            if isinstance(event, WorkloadLost):
                self._workloads.lost(WorkloadKey(event.key))
        if self._left:
            for gone in [event.key for event in events if isinstance(event, PodLost)]:
                self._left.pop(gone, None)
        if self._sharing is not None:
            events = self._sharing.take_in(events)
        if self.extenders is not None:
            events = [kept for event in events if (kept := self.extenders.take(event)) is not None]
        self.scheduler.handle(*events)
        for event in queued:
            if isinstance(event, WorkloadSeen):
                self._workloads.words.arrived(event.workload)

    async def _wait(self) -> None:
        if (
            len(self.scheduler.queue)
            and not self._dispatcher.backlog(Lane.BIND)
            and not self._is_paused
            and self._room() > 0
        ):
            return
        wake = self.scheduler.next_wake(time.time())
        pause = min((math.inf if wake is None else wake) - time.time(), LONGEST_WAIT)
        if pause <= 0:
            return
        timer = asyncio.get_running_loop().call_later(pause, self._wake.set)
        await self._wake.wait()
        timer.cancel()

    async def replace(self, make: Callable[[], Scheduler], extenders: Sequence[Extender] = ()) -> None:
        """Go on with another scheduler, and with these extenders: what this one has decided is done and seen before, or
        known to the other, and nobody who waits is forgotten."""
        self._is_paused = True
        try:
            deadline = time.monotonic() + SETTLE_SECONDS
            await self._dispatcher.drain(SETTLE_SECONDS)
            while (underway := self._underway()) and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            remembered = self.scheduler.remembered()
            self.scheduler = make()
            self.scheduler.recall(remembered)
            self.scheduler.take_over(underway)  # volumes or devices may take minutes
            self._workloads.tenants = self.scheduler.cluster.tenants
            if self.extenders is not None:
                await self.extenders.close()
            self.ask_extenders(extenders)
            self.begin()
        finally:
            self._is_paused = False
            self.wake()

    def _underway(self) -> list[tuple[PodKey, str, str]]:
        """What was decided and is not known to have happened, as of now."""
        self._take_in()
        self.scheduler.catch_up(time.time())
        return self.scheduler.underway()

    # Decisions.

    def carry_out(self, decision: Decision) -> str:
        """Hand it on; what becomes of it is told to the scheduler when it is known."""
        cluster = self.scheduler.cluster
        if not self._view.is_admitting and self._is_anothers(decision):
            if isinstance(decision, Evict):
                self._left[decision.pod] = decision
            return ""
        match decision:
            case Bind() if self._sharing is not None:
                self._sharing.hold(decision, cluster.pods.records[PodKey(decision.pod)].pod)
            case Bind():
                self._bind(decision)
            case Evict():
                preemptor = self.find(decision.preemptor)
                if self.extenders is not None and preemptor is not None and self.extenders.preempts(preemptor):
                    self._to_ask.setdefault(decision.preemptor, []).append(decision)
                else:
                    self._evict(decision)
            case Wait(key):
                waiting = self.find(key)
                if waiting is not None:
                    self._carrier.say(decision, waiting, in_status=not self._is_incomplete(key))
                    self._pod_groups.waiting(waiting, decision.message)
            case Admit() | Defer() | Suspend() | Notice():
                self._workloads.carry_out(decision)
            case Enqueue() | KeepOut():
                self._phases.carry_out(decision)
            case Partition():
                self._carrier.cut(decision)
        return ""

    def _is_anothers(self, decision: Decision) -> bool:
        """Whether a decision is for whoever admits, if that is not us: what is said and done for the sake of quota."""
        match decision:
            case Admit() | Defer() | Suspend() | Notice():
                return True
            case Wait():
                return bool(decision.reason)
            case Evict():  # of a workload that is stopped: for nobody's sake, or another workload's
                is_queued = PodKey(decision.pod) in self.scheduler.cluster.tenants.workload_of
                return is_queued and self.find(decision.preemptor) is None
        return False

    def _bind(self, decision: Bind) -> None:
        cluster = self.scheduler.cluster
        pod = cluster.pods.records[PodKey(decision.pod)].pod
        workload = cluster.tenants.workload_of.get(PodKey(decision.pod), "")
        self._carrier.bind(decision, pod, reserved_claims(pod, cluster.related), workload)

    def _evict(self, decision: Evict) -> None:
        cluster = self.scheduler.cluster
        pod = self.find(decision.pod)
        if pod is not None:
            workload = cluster.tenants.workload_of.get(PodKey(decision.pod), "")
            self._carrier.evict(decision, pod, self.find(decision.preemptor), workload)

    def _ask_about_evictions(self) -> None:
        """Evict for pods that extenders have a say in when they have agreed."""
        asked, self._to_ask = self._to_ask, {}
        for preemptor, evictions in asked.items():
            task = asyncio.ensure_future(self._evict_if_agreed(preemptor, evictions))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _evict_if_agreed(self, preemptor: str, evictions: list[Evict]) -> None:
        victims: dict[str, list[Pod]] = {}
        for pod in filter(None, (self.find(each.pod) for each in evictions)):
            victims.setdefault(pod.spec.node_name, []).append(pod)
        waiting = self.find(preemptor)
        agreed = waiting is not None and self.extenders is not None and await self.extenders.may_evict(waiting, victims)
        for each in evictions:
            if agreed:
                self._evict(each)
            else:
                self._fail(each, "an extender did not agree")

    def _is_incomplete(self, key: str) -> bool:
        """Whether a pod names claims that are not there yet: kube-scheduler keeps such pods from its queue, and whoever
        is about to make the claims writes them into the status of a pod that nobody else has written to."""
        record = self.scheduler.cluster.pods.records.get(PodKey(key))
        return record is not None and any(asked.missing for asked in record.shape.claims or ())

    def take_faults(self, faults: list[Fault]) -> None:
        for fault in faults:
            self.on_fault(fault.plugin)
            _log.error("in the turn of %s: %s: %s", fault.turn, fault.plugin, fault.message, exc_info=fault.error)

    def find(self, key: str) -> Pod | None:
        """A pod as the scheduler sees it."""
        record = self.scheduler.cluster.pods.records.get(PodKey(key))
        return None if record is None else record.pod

    # What became of them.

    def _bound(self, decision: Bind, pod: Pod, answer: Answer) -> None:
        if answer.outcome is Outcome.BOUND:
            self._refusals.forget(pod.metadata.uid)
            self._pod_groups.bound(pod)
        else:
            _log.warning("pod %s was not bound to %s: %s", decision.pod, decision.node, answer.message)
        self.pacing.note_bind(answer.outcome is Outcome.CONFLICT)
        self.on_bound(decision, pod, answer)

    def ask_extenders(self, extenders: Sequence[Extender]) -> None:
        """Ask these about pods before anything is decided on them."""
        self.extenders = ExtenderClient(extenders, self._nodes, self._is_ours) if extenders else None
        self._carrier.extenders = self.extenders
        if self.extenders is not None:
            self.extenders.tell = self._tell

    def _nodes(self) -> list[Node]:
        nodes = self.scheduler.cluster.nodes
        return [nodes.node(row) for row in nodes.row_of.values()]

    def _is_ours(self, pod: Pod) -> bool:
        """Whether a pod waits for us, and not at a gate."""
        return pod.spec.scheduler_name in self.scheduler.profiles and not pod.spec.scheduling_gates

    # Nodes that other schedulers use as well.

    def share_nodes(self, sharing: Sharing) -> None:
        """Claim what is to be bound before it is."""
        self._sharing = sharing
        sharing.bind, sharing.conflict, sharing.tell = self._bind, self._came_late, self._tell
        sharing.claims.on_vanished = self.wake
        self._carrier.sharing = sharing

    def bound_at(self, claim: Claim) -> int | None:
        """At which version a pod that somebody claimed was seen on a node; 0 if on none, None if there is none."""
        pod = self._mirror.pod(claim.pod)
        if pod is None or pod.metadata.uid != claim.uid:
            return None
        return int(pod.metadata.resource_version) if pod.spec.node_name else 0

    def _came_late(self, decision: Bind, pod: Pod) -> None:
        answer = Answer(Outcome.CONFLICT, "another scheduler has claimed room on its node")
        self.pacing.note_bind(True)
        self.on_bound(decision, pod, answer)
        self._fail(decision, answer.message, at_once=LATE_AT_ONCE)

    def _fail(self, decision: Decision, message: str, at_once: int = 1) -> None:
        """The world refused a decision: the scheduler is told, after a while if this happens again and again."""
        failure = failure_of(decision, message)
        if failure is None or isinstance(decision, Enqueue | KeepOut | Partition):
            return
        key = decision.workload if isinstance(decision, Admit | Defer | Suspend | Notice) else decision.pod
        pod = self.find(key)
        if self._sharing is not None and isinstance(decision, Bind) and pod is not None:
            self._sharing.withdraw(decision, pod)
        penalty = self._refusals.note(pod.metadata.uid if pod is not None else key, time.monotonic(), at_once)
        if isinstance(decision, Suspend):  # who goes on to use its quota holds it: that must be known at once
            self._workloads.could_not_stop(decision.workload, penalty)
            self._tell(failure)
        elif penalty:
            asyncio.get_running_loop().call_later(penalty, self._tell, failure)
        else:
            self._tell(failure)

    def _tell(self, event: Event) -> None:
        self.scheduler.handle(event)
        self.wake()
