"""The driver for a Kubernetes API: what watches show goes in, what is decided goes out, failures come back.

One loop, one thread. A cycle takes what has arrived, decides on a slice of the queue, and hands the decisions on as
requests; while these are in flight, the next cycle runs. `pacing.py` says how large a slice, and how soon.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mooring.config.extenders import Extender
from mooring.drivers.driver import Driver
from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.discovery import Served
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.nodes.node_claims import NodeClaimProvider
from mooring.drivers.live.nodes.provider import NodeProvider
from mooring.drivers.live.object_events import ObjectEvents
from mooring.drivers.live.pacing import Pacing
from mooring.drivers.live.pod_groups.phases import GroupPhases
from mooring.drivers.live.pod_groups.status import PodGroupStatus
from mooring.drivers.live.pods.binder import Answer, Outcome
from mooring.drivers.live.pods.event_recorder import EventRecorder
from mooring.drivers.live.pods.executor import PodExecutor
from mooring.drivers.live.pods.extenders import ExtenderClient
from mooring.drivers.live.pods.refusals import Refusals, RefusingNodes, refused_key
from mooring.drivers.live.pods.volumes import reserved_claims
from mooring.drivers.live.sharing.node_use import NodeUse
from mooring.drivers.live.sizing_notes import SizingNotes
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.workloads.admitting import WorkloadView, may_start
from mooring.drivers.live.workloads.executor import WorkloadExecutor, is_to_resume
from mooring.drivers.live.workloads.templates import pod_changes
from mooring.engine.action import Deadline, Fault
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
    Launch,
    Notice,
    Partition,
    Resize,
    Suspend,
    Terminate,
    Wait,
)
from mooring.model.events import Event, Failed, NodeSeen, PodLost, WorkloadLost, WorkloadSeen
from mooring.model.keys import PodKey, WorkloadKey
from mooring.state.cluster import Cluster

LONGEST_WAIT = 60.0
NOT_CARRIED_OUT = "it was decided before this scheduler admitted"
LATE_AT_ONCE = 5
"""So often in a row a pod may come too late and be tried again at once: among many others, that happens."""
LOOK_AGAIN_SECONDS = 1.0
"""When it is tried again to change pods that could not be changed."""
SETTLE_SECONDS = 30.0
"""How long a new configuration waits until what the old one decided is done and seen; it takes over what is not."""
_log = logging.getLogger(__name__)


ACTION_SECONDS = 0.2
"""How long an action that can go on in a later cycle may hold up the pods that wait: five cycles a second are left."""


class Live(Driver):
    """A scheduler on a cluster that is followed by watches."""

    def __init__(self, scheduler: Scheduler, cache: ObjectCache, client: Client, dispatcher: Dispatcher) -> None:
        super().__init__(scheduler, time.time())
        self._cache, self._dispatcher = cache, dispatcher
        self._wake = asyncio.Event()
        self._is_called = True
        """Whether a turn is asked for, whatever the watches tell."""
        self._due_at = 0.0
        """When time alone gives a cycle something to do, as of the last look."""
        self.last_turn = 0.0
        """When the loop last came round, by the monotonic clock; 0 before it runs."""
        self._is_stopping = self._is_paused = False
        self.pacing = Pacing()
        self.extenders: ExtenderClient | None = None
        self._to_ask: dict[str, list[Evict]] = {}
        """What extenders are to be asked about first, by preemptor."""
        self._asking: set[asyncio.Task[None]] = set()
        self._left: dict[str, Evict] = {}
        """Evictions that were left to the scheduler that admits, by pod: the core counts these pods as leaving."""
        self._not_suspended: dict[str, Suspend] = {}
        """Workloads that the scheduler which admits was to suspend: the core counts them as told."""
        self._refusals = Refusals()
        self._refusing = RefusingNodes()
        self._amended_of: Cluster | None = None
        self._amended: set[PodKey] = set()
        """The pods that changed in this cluster since the last cycle, once anything queues."""
        self.recorder = EventRecorder(client, dispatcher)
        self._view = WorkloadView()
        self._workloads = WorkloadExecutor(
            client,
            dispatcher,
            scheduler.cluster.tenants,
            failed=self._fail,
            tell=self._tell,
            find_pod=cache.pod,
            find_job=cache.find,
            refusals=self._refusals,
            not_amended=self._amend_again,
        )
        self._pod_executor = PodExecutor(
            client,
            dispatcher,
            self.recorder,
            failed=self._fail,
            bound=self._bound,
            find=self.find,
            admitted=self._workloads.settled,
            profiles=lambda: self.scheduler.profiles,
        )
        self.use_nodes(NodeUse())
        self._pod_groups = PodGroupStatus(client, dispatcher)
        self.provider: NodeProvider = NodeClaimProvider(
            client, dispatcher, lambda: self.scheduler.cluster.related.node_claims, failed=self._fail
        )
        self._phases = GroupPhases(client, dispatcher, cache.volcano_group, failed=self._fail)
        self._sizing_notes = SizingNotes(ObjectEvents(client, dispatcher))
        dispatcher.expects_binds = self._expects_binds
        self.on_cycle: Callable[[dict[str, float], list[Decision]], None] = lambda steps, decisions: None
        self.on_bound: Callable[[Bind, Pod, Answer], None] = lambda decision, pod, answer: None
        self.on_fault: Callable[[str], None] = lambda plugin: None
        self.loads: Callable[[], list[Event]] = list
        """All that sources of load last reported, for a scheduler that begins."""

    @property
    def served(self) -> Served:
        return self._workloads.served

    @served.setter
    def served(self, served: Served) -> None:
        """The kinds that the cluster has."""
        self._workloads.served = self._pod_groups.served = self._phases.served = self._pod_executor.served = served

    # The loop.

    def begin(self) -> None:
        """Take in the whole cluster, and finish what whoever scheduled it before has left half done."""
        self._see(self._cache.everything())
        self.scheduler.handle(*self.loads())
        self._resume()
        self.wake()

    async def admit(self, is_sure: Callable[[], bool]) -> None:
        """From now on, give quota in the whole cluster; who did so before has ended, and what it wrote is read first.

        `is_sure` says at any time whether it is still for us."""
        listed = await self._workloads.listed()
        self._take_in()
        for workload, raw in listed:
            if self._view.is_older(workload):
                self._cache.put(self._workloads.resource, raw)
                self._workloads.versions.wrote(workload.key, int(workload.metadata.resource_version))
        self._take_in()
        self._workloads.may_admit = is_sure
        self._see(self._view.take_over())
        self._resume()
        self._evict_what_was_left()
        self._suspend_what_was_left()
        self._workloads.finish(workload for workload, _ in listed)
        self.wake()

    def _evict_what_was_left(self) -> None:
        """The scheduler that admitted before may have ended between stopping a workload and evicting its pods; pods of
        workloads that were not stopped are told again, if they are to go."""
        left, self._left = self._left, {}
        cluster = self.scheduler.cluster
        for decision in left.values():
            record = cluster.pods.records.get(PodKey(decision.pod))
            key = cluster.tenants.workload_of.get(PodKey(decision.pod))
            is_stopped = key is not None and not may_start(cluster.tenants.workloads[key].workload)
            if is_stopped and record is not None and record.node_name:
                self._evict(decision)
            else:
                self.scheduler.handle(Failed(decision, NOT_CARRIED_OUT))

    def _suspend_what_was_left(self) -> None:
        """What was decided before it was for us to admit was not carried out, unless another scheduler has done it."""
        left, self._not_suspended = self._not_suspended, {}
        workloads = self.scheduler.cluster.tenants.workloads
        for key, decision in left.items():
            queued = workloads.get(WorkloadKey(key))
            if queued is not None and may_start(queued.workload):
                self.scheduler.handle(Failed(decision, NOT_CARRIED_OUT))

    def _resume(self) -> None:
        """Let those go on who were admitted, and not let go, by whoever admitted before."""
        if not self._view.is_admitting:
            return
        self.scheduler.catch_up(time.time())
        for queued in self.scheduler.cluster.tenants.workloads.values():
            if is_to_resume(queued, self._cache.find(*queued.owner_key)):
                self._workloads.resume(queued)

    def wake(self) -> None:
        """Decide soon."""
        self._is_called = True
        self._wake.set()

    def look(self) -> None:
        """A watch told something: look at it soon, unless it changes nothing, such as a node's heartbeat."""
        if self._cache.has_changes or self._node_use.follows_watches:
            self._wake.set()

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Decide for as long as nobody stops it."""
        while not self._is_stopping:
            self.last_turn = time.monotonic()
            await self._wait()
            if self._is_stopping:
                break
            self._wake.clear()
            if self._is_paused:
                continue
            started = time.perf_counter()
            self._take_in()
            if not self._has_to_decide():
                continue
            took = self._turn(started)
            dispatcher = self._dispatcher
            await asyncio.sleep(self.pacing.pause(took, dispatcher.latency, dispatcher.in_flight))

    def _has_to_decide(self) -> bool:
        """Whether a cycle could have anything to do."""
        is_called, self._is_called = self._is_called, False
        return is_called or self.scheduler.has_news or len(self.scheduler.queue) > 0 or time.time() >= self._due_at

    def _turn(self, started: float) -> float:
        """Decide once on what was taken in; the seconds that both took."""
        taken_in = time.perf_counter()
        self.now = time.time()
        room = self._room()
        # Without room, the loop is woken again when the binds that wait are on their way.
        self.scheduler.new_deadline = _new_deadline
        decisions = self.run_cycle(room) if room > 0 else []
        self.pacing.note_cycle(time.perf_counter() - taken_in, len(decisions))
        if not self._view.is_admitting:
            decisions = [found for found in decisions if not self._is_anothers(found)]
        self._ask_about_evictions()
        self._amend_pods()
        if self.scheduler.cluster.related.autoscalers:
            self._sizing_notes.tell(self.scheduler)
        decided = time.perf_counter()
        self.on_cycle({"take-in": taken_in - started, "decide": decided - taken_in}, decisions)
        return decided - started

    def _room(self) -> int:
        """How many pods may be decided on: not more than can be bound soon, and nothing on a picture that is old."""
        return self._node_use.room(self.pacing.slice) - self._dispatcher.backlog(Lane.BIND)

    def _expects_binds(self) -> bool:
        """Whether pods are about to be bound: some wait for their turn."""
        return bool(len(self.scheduler.queue))

    def _take_in(self) -> None:
        self._see(self._cache.changes())

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
        events = self._node_use.take_in(events)
        if self._refusing:
            as_seen = self._refusing.as_seen
            events = [NodeSeen(as_seen(each.node)) if isinstance(each, NodeSeen) else each for each in events]
        if self.extenders is not None:
            events = [kept for event in events if (kept := self.extenders.take(event)) is not None]
        self.scheduler.handle(*events)
        for event in queued:
            if isinstance(event, WorkloadSeen):
                self._workloads.condition_writer.arrived(event.workload)

    async def _wait(self) -> None:
        if (
            len(self.scheduler.queue)
            and not self._dispatcher.backlog(Lane.BIND)
            and not self._is_paused
            and self._room() > 0
        ):
            return
        wake = self.scheduler.next_wake(time.time())
        self._due_at = math.inf if wake is None else wake
        pause = min(self._due_at - time.time(), LONGEST_WAIT)
        if pause <= 0:
            return
        timer = asyncio.get_running_loop().call_later(pause, self.wake)
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
            elif isinstance(decision, Suspend):
                self._not_suspended[decision.workload] = decision
            return ""
        match decision:
            case Bind():
                self._node_use.hold(decision, cluster.pods.records[PodKey(decision.pod)].pod)
            case Evict():
                preemptor = self.find(decision.preemptor)
                if self.extenders is not None and preemptor is not None and self.extenders.preempts(preemptor):
                    self._to_ask.setdefault(decision.preemptor, []).append(decision)
                else:
                    self._evict(decision)
            case Wait(key):
                waiting = self.find(key)
                if waiting is not None:
                    self._pod_executor.say(decision, waiting, in_status=not self._is_incomplete(key))
                    self._free_devices(decision, waiting)
                    self._pod_groups.waiting(waiting, decision.message)
            case Admit() | Defer() | Suspend() | Notice():
                self._workloads.carry_out(decision)
            case Enqueue() | KeepOut():
                self._phases.carry_out(decision)
            case Partition():
                self._pod_executor.cut(decision)
            case Launch():
                if not self._view.is_admitting:
                    return "nodes are launched by the scheduler that admits"
                return self.provider.launch(decision)
            case Terminate():
                return self.provider.terminate(decision)
            case Resize(key):
                running = self.find(key)
                if running is None:
                    return "the pod is gone"
                self._pod_executor.resize(decision, running)
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
        self._pod_executor.bind(decision, pod, reserved_claims(pod, cluster.related), workload)

    def _evict(self, decision: Evict) -> None:
        cluster = self.scheduler.cluster
        pod = self.find(decision.pod)
        if pod is not None:
            workload = cluster.tenants.workload_of.get(PodKey(decision.pod), "")
            self._pod_executor.evict(decision, pod, self.find(decision.preemptor), workload)

    def _amend_pods(self) -> None:
        """Write to the pods of admitted workloads what the scheduler has assumed of them since the last cycle."""
        cluster = self.scheduler.cluster
        if not self._view.is_admitting or not cluster.tenants.workload_of:
            return
        if self._amended_of is not cluster:
            self._amended_of, self._amended = cluster, cluster.pods.watch()
            self._amended.update(cluster.tenants.workload_of)
        changes: dict[WorkloadKey, dict[str, tuple[Pod, dict[str, Any]]]] = {}
        for key in self._amended:
            workload, record, world = cluster.tenants.workload_of.get(key), self.find(key), self._cache.pod(key)
            if workload is None or record is None or world is None or world.spec.node_name:
                continue
            if world.metadata.uid == record.metadata.uid and (change := pod_changes(world, record)):
                changes.setdefault(workload, {})[key] = world, change
        self._amended.clear()
        for workload, pods in changes.items():
            self._workloads.amend_pods(workload, pods)

    def _amend_again(self, pods: Iterable[str]) -> None:
        """These pods could not be changed: look at them again, later if that goes on."""
        now, found = time.monotonic(), list(map(PodKey, pods))
        penalty = max((self._refusals.note(f"changes of {key}", now) for key in found), default=0.0)

        def look() -> None:
            self._amended.update(found)
            self.wake()

        asyncio.get_running_loop().call_later(max(penalty, LOOK_AGAIN_SECONDS), look)

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

    def _free_devices(self, decision: Wait, pod: Pod) -> None:
        """Free one claim of a pod whose devices keep it from every node, if they are no other pod's: a scheduler may
        have allocated it and died before it bound the pod. kube-scheduler does so after its filters."""
        if "DynamicResources" not in decision.plugins or decision.nominated_node or pod.spec.node_name:
            return
        cluster = self.scheduler.cluster
        for key, _ in cluster.claims.claims_of(pod):
            claim = cluster.related.resource_claims.get(key)
            if claim is None or claim.status.allocation is None:
                continue
            if all(found.uid == pod.metadata.uid for found in claim.status.reserved_for or ()):
                self._pod_executor.deallocate(pod, key)
                return

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
            self._refusals.forget(refused_key(decision, pod.metadata.uid))
            self._refusing.bound(decision.node)
            self._pod_groups.bound(pod)
        else:
            _log.warning("pod %s was not bound to %s: %s", decision.pod, decision.node, answer.message)
        if answer.outcome is Outcome.REFUSED:
            self._leave_out(decision.node, self._refusing.refused(decision.node, pod.metadata.uid, time.monotonic()))
        self.pacing.note_bind(answer.outcome is Outcome.CONFLICT)
        self.on_bound(decision, pod, answer)

    def _leave_out(self, name: str, seconds: float) -> None:
        """Let the scheduler see a node that refuses every bind as cordoned, for a while."""
        if seconds <= 0:
            return
        _log.warning("node %s refuses binds and is left out for %g s", name, seconds)
        self._show_node(name)
        asyncio.get_running_loop().call_later(seconds, self._try_node_again, name)

    def _try_node_again(self, name: str) -> None:
        self._refusing.try_again(name)
        self._show_node(name)

    def _show_node(self, name: str) -> None:
        node = self._cache.node(name)
        if node is not None:
            self._tell(NodeSeen(self._refusing.as_seen(node)))

    def ask_extenders(self, extenders: Sequence[Extender]) -> None:
        """Ask these about pods before anything is decided on them."""
        self.extenders = ExtenderClient(extenders, self._nodes, self._is_ours) if extenders else None
        self._pod_executor.extenders = self.extenders
        if self.extenders is not None:
            self.extenders.tell = self._tell

    def _nodes(self) -> list[Node]:
        nodes = self.scheduler.cluster.nodes
        return [nodes.node(row) for row in nodes.row_of.values()]

    def _is_ours(self, pod: Pod) -> bool:
        """Whether a pod waits for us, and not at a gate."""
        return pod.spec.scheduler_name in self.scheduler.profiles and not pod.spec.scheduling_gates

    # Nodes that other schedulers use as well.

    def use_nodes(self, use: NodeUse) -> None:
        """Bind pods as this says: it is the only one that knows of other schedulers on the same nodes."""
        self._node_use = self._pod_executor.node_use = use
        use.bind, use.conflict, use.tell = self._bind, self._came_late, self._tell

    def _came_late(self, decision: Bind, pod: Pod) -> None:
        answer = Answer(Outcome.CONFLICT, "another scheduler has claimed room on its node")
        self.pacing.note_bind(True)
        self.on_bound(decision, pod, answer)
        self._fail(decision, answer.message, at_once=LATE_AT_ONCE)

    def _fail(self, decision: Decision, message: str, at_once: int = 1) -> None:
        """The world refused a decision: the scheduler is told, and when to try again if this happens repeatedly."""
        key = _subject(decision)
        pod = self.find(key) if isinstance(decision, Bind | Evict | Wait) else None
        if isinstance(decision, Bind) and pod is not None:
            self._node_use.withdraw(decision, pod)
        about = refused_key(decision, pod.metadata.uid if pod is not None else key)
        penalty = self._refusals.note(about, time.monotonic(), at_once)
        self._tell(Failed(decision, message, penalty))

    def _tell(self, event: Event) -> None:
        self.scheduler.handle(event)
        self.wake()

    def measured(self, events: list[Event]) -> None:
        """Sources of load reported something."""
        self.scheduler.handle(*events)
        self.wake()

    def node_called(self, name: str) -> str:
        """The name of a node that a source calls by its name, with or without a port."""
        return name if name in self.scheduler.cluster.nodes.row_of else _host_of(name)


def _host_of(address: str) -> str:
    """An address such as gpu-7:9400 without its port."""
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdecimal() else address


def _new_deadline() -> Deadline:
    end = time.monotonic() + ACTION_SECONDS
    return lambda: time.monotonic() >= end


def _subject(decision: Decision) -> str:
    """The key of the pod, workload, gang or node that a decision is about."""
    match decision:
        case Bind() | Evict() | Wait() | Resize():
            return decision.pod
        case Admit() | Defer() | Suspend() | Notice():
            return decision.workload
        case Enqueue() | KeepOut():
            return decision.gang
        case Partition():
            return f"{decision.node}/{decision.gpu}"
        case Launch() | Terminate():
            return decision.node
