"""The driver for manifests: it carries decisions out at once, and lets time pass when it is told to."""

import math
from collections import Counter

from msgspec.structs import replace

from mooring.drivers.driver import Driver
from mooring.drivers.offline.differences import differences
from mooring.drivers.rounds import Rounds
from mooring.drivers.world.ends import KnownEnds
from mooring.drivers.world.pods import (
    RESIZE_DEFERRED,
    is_for_its_node,
    made_anew,
    on_node,
    over,
    resize_pending,
    started,
    with_what_was_written,
)
from mooring.drivers.world.sizes import as_recommended
from mooring.drivers.world.taints import TaintEvictions
from mooring.engine.action import Fault
from mooring.engine.cycle import Scheduler
from mooring.errors import InputError
from mooring.model.api.meta import timestamp_text
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.decisions import Admit, Bind, Decision, Evict, Launch, Resize, Suspend, Terminate
from mooring.model.events import NodeLost, NodeSeen, ObjectSeen, PodLost, PodSeen
from mooring.model.jobs.expansion import controller_of
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import Manifests
from mooring.model.pod_patch import PodPatch
from mooring.model.validation.pod_updates import RESIZABLE, RESIZED_PARTS, forbidden_change, updated_spec
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import pod_requests
from mooring.observe.progress import Progress
from mooring.report.placements import DEFERRED, DONE, INFEASIBLE, EndedPod, LostPod, ResizedPod
from mooring.state.pods import PodRecord

SLICE = 1024
"""Pods a cycle: a bar that moves a few times a second. Where nobody preempts, decisions are the same for any size."""
LEADS_TO_MORE = Evict | Suspend | Launch | Terminate | Resize
"""Decisions after which something else may be decided at once."""
MOST_MOMENTS = 10_000
"""At how many moments something may fall due while time passes, before the rest is left to the end."""


class Offline(Driver):
    """Time stands still unless it is told to pass. Evicted pods are gone at once; those that somebody sees to are made
    anew, as other pods of the same name."""

    def __init__(self, scheduler: Scheduler, now: float, manifests: Manifests) -> None:
        """The scheduler has these manifests."""
        super().__init__(scheduler, now)
        self.given = {pod.key: pod for pod in manifests.pods}
        """The pods as the manifests have them, by key."""
        self.placed: dict[str, str] = {}
        """pod key -> node: what was decided here and still stands."""
        self.lost: list[LostPod] = []
        """The pods that lost their nodes since the last step of a story."""
        self.ended: list[EndedPod] = []
        """The pods that ended by themselves since then."""
        self.resized: list[ResizedPod] = []
        """The pods that were given other amounts of CPU or memory since then."""
        self._deferred: dict[PodKey, None] = {}
        """The pods whose kubelets have no room for their new amounts yet."""
        self._returning: list[Pod] = []
        """Those that are made anew as soon as it has been seen that the ones before them are gone."""
        self._over: set[str] = set()
        """Those that ended by themselves: whatever their manifests say later, they do not run again."""
        self._suspended: set[str] = set()
        self._made_anew: Counter[str] = Counter()
        self._just_placed: list[Bind] = []
        self._rounds = Rounds()
        self._ends, self._taints = KnownEnds(), TaintEvictions()
        self._tainted_since: dict[tuple[PodKey, str, str], float] = {}
        self._nodes = {node.metadata.name for node in manifests.nodes}
        for node in manifests.nodes:
            self._taints.watch(node)
        for pod in manifests.pods:
            self._ends.watch(pod, now)
        self._evict_by_taints()

    # Deciding.

    def decide(self, progress: Progress, at_most: int | None = None) -> list[Decision]:
        """Run cycles until nothing is left to try, or for so many pods."""
        scheduler = self.scheduler
        total = len(scheduler.queue) if at_most is None else at_most
        progress.phase("placing pods", total)
        decisions: list[Decision] = []
        done = 0
        is_due = True
        while (len(scheduler.queue) or is_due) and (at_most is None or done < at_most):
            size = SLICE if at_most is None else min(SLICE, at_most - done)
            made, is_due = self.step(size)
            decisions += made
            done += size
            progress.reached(total - len(scheduler.queue) if at_most is None else done)
        return decisions

    def step(self, at_most: int) -> tuple[list[Decision], bool]:
        """Run one cycle; tell whether a next one is due for what it changed in the world.

        Cycles that decide the same again and again end in an error that names the pods."""
        decisions = self.run_cycle(at_most)
        self._evict_by_device_taints()
        returning, self._returning = self._returning, []
        self.scheduler.handle(*map(PodSeen, returning))
        self._rounds.note(self.now, decisions, len(self.scheduler.queue), [pod.key for pod in returning])
        if at_most >= SLICE:  # fewer may be too few for a gang
            self._rounds.check()
        is_left = bool(self._returning) or bool(returning) or (bool(self._deferred) and self._try_deferred())
        return decisions, is_left or any(isinstance(found, LEADS_TO_MORE) for found in decisions)

    def carry_out(self, decision: Decision) -> str:
        """Do it at once. What cannot be done to what is here fails.

        Pods that ran before are gone when they are preempted. Those that got their place only here, those of a workload
        that is suspended, those that move, and those with a controller that are evicted for no other pod wait again, as
        their controllers would see to.
        """
        match decision:
            case Bind(pod, node):
                self.placed[pod] = node
                self._just_placed.append(decision)
                self._ends.start(self.given[PodKey(pod)], self.now)
            case Evict(pod, successor=successor):
                is_seen_to = self.placed.pop(pod, None) is not None or bool(successor) or self._is_suspended(pod)
                is_seen_to = is_seen_to or (decision.via == "eviction" and self._has_controller(pod))
                self._ends.forget(pod)
                self.scheduler.handle(PodLost(pod))
                if is_seen_to:
                    made = self._make_anew(self.given[PodKey(pod)])
                    if decision.via == "eviction":
                        made.metadata.creation_timestamp = timestamp_text(self.now)
                    self.scheduler.handle(PodSeen(made))
            case Suspend(workload):
                self._suspended.add(workload)
            case Admit(workload):
                self._suspended.discard(workload)
            case Launch():
                return self._launch(decision)
            case Terminate(node):
                return self._terminate(node)
            case Resize():
                return self._resize(decision)
        return ""

    def _launch(self, decision: Launch) -> str:
        """A node of the kind on offer appears, with its devices."""
        if decision.node in self._nodes:
            return f"there is a node {decision.node} already"
        node = decision.offer.node_named(decision.node)
        self._nodes.add(decision.node)
        self._taints.watch(node)
        self.scheduler.handle(NodeSeen(node), *map(ObjectSeen, decision.offer.slices_named(decision.node)))
        return ""

    def _terminate(self, node: str) -> str:
        """A node goes, and what is left on it goes with it."""
        if node not in self._nodes:
            return f"there is no node {node}"
        self._nodes.discard(node)
        self._taints.forget(node)
        self.scheduler.handle(NodeLost(node))
        self._lose_pods_on(node)
        return ""

    def _resize(self, decision: Resize) -> str:
        """A kubelet gives a pod other amounts, unless its node could never hold that much."""
        record = self.scheduler.cluster.pods.records.get(PodKey(decision.pod))
        if record is None or not record.node_name:
            return f"pod {decision.pod} does not run"
        pod = PodPatch(resources=decision.resources).apply(record.pod)
        pod = replace(pod, spec=replace(pod.spec, node_name=record.node_name))
        outcome = self._resize_outcome(pod, record)
        self.resized.append(ResizedPod(pod, record.node_name, outcome))
        if outcome == INFEASIBLE:
            return f"node {record.node_name} could never hold that much"
        self.scheduler.handle(PodSeen(self._as_resized(pod, outcome)))
        return ""

    def _has_controller(self, pod: str) -> bool:
        return controller_of(self.given[PodKey(pod)].metadata) is not None

    def _as_resized(self, pod: Pod, outcome: str) -> Pod:
        """A pod whose amounts have changed, with what its kubelet says of that."""
        self._deferred.pop(pod.key, None)
        if outcome == DEFERRED:
            self._deferred[pod.key] = None
        return replace(pod, status=resize_pending(pod.status, RESIZE_DEFERRED if outcome == DEFERRED else ""))

    def _try_deferred(self) -> bool:
        """Let kubelets try deferred resizes again; return whether there was room for any."""
        records, was_done = self.scheduler.cluster.pods.records, False
        for key in list(self._deferred):
            record = records.get(key)
            if record is None or not record.node_name:
                del self._deferred[key]
                continue
            outcome = self._resize_outcome(record.pod, record)
            if outcome != DEFERRED:
                was_done = True
                self.resized.append(ResizedPod(record.pod, record.node_name, outcome))
                self.scheduler.handle(PodSeen(self._as_resized(record.pod, outcome)))
        return was_done

    def _is_suspended(self, pod: str) -> bool:
        return self.scheduler.cluster.tenants.workload_of.get(PodKey(pod)) in self._suspended

    def _make_anew(self, pod: Pod) -> Pod:
        self._made_anew[pod.key] += 1
        return as_recommended(made_anew(pod, self._made_anew[pod.key]), self.scheduler.cluster.related)

    # Time.

    def pass_time(self, seconds: float, progress: Progress) -> list[Decision]:
        """Let time pass: what falls due happens at its time, and what is to be decided then is decided then."""
        self.lost, self.ended, self.resized = [], [], []
        until = self.now + seconds
        decisions: list[Decision] = []
        self._start_placed()
        for _ in range(MOST_MOMENTS):
            due = self._next_due()
            if due > until:
                break
            self.now = due
            self._let_end()
            self._evict_by_taints()
            decisions += self.decide(progress)
            self._start_placed()
        self.now = until
        return decisions

    def _next_due(self) -> float:
        """The next moment at which something happens by itself, or the scheduler wants to be asked."""
        deadlines = [time for time, _ in (*self._taint_deadlines().values(), *self._device_deadlines().values())]
        leaving = min(deadlines, default=math.inf)
        return min(max(self._ends.next, self.now), max(leaving, self.now), self._next_wake())

    def _next_wake(self) -> float:
        wake = self.scheduler.next_wake(self.now)
        return math.inf if wake is None else wake

    def take_faults(self, faults: list[Fault]) -> None:
        """A mistake in a plugin is told to whoever gave it, in one line, and nothing is half done."""
        raise faults[0].error

    def _start_placed(self) -> None:
        """Pods that were placed have started."""
        placed, self._just_placed = self._just_placed, []
        for bind in placed:
            record = self.scheduler.cluster.pods.records.get(PodKey(bind.pod))
            if record is not None and record.assumed and self.placed.get(bind.pod) == bind.node:
                status = started(record.pod, self.now)
                seen = on_node(record.pod, bind.node, status, bind.annotations, bind.labels)
                self.scheduler.handle(PodSeen(seen))

    def _let_end(self) -> None:
        """Pods that have run for as long as they said are over."""
        for key, phase in list(self._ends.due(self.now)):
            record = self.scheduler.cluster.pods.records.get(PodKey(key))
            if record is not None and record.node_name:
                self.placed.pop(key, None)
                self._over.add(key)
                self.ended.append(EndedPod(record.pod, record.node_name, phase, self.now))
                self.scheduler.handle(PodSeen(over(record.pod, record.node_name, phase)))

    def _taint_deadlines(self) -> dict[PodKey, tuple[float, Taint]]:
        nodes, pods = self.scheduler.cluster.nodes, self.scheduler.cluster.pods
        there = (
            (record.pod, name)
            for name in self._taints.taints
            if name in nodes.row_of
            for record in pods.on(nodes.row_of[name])
            if not record.assumed or record.key in self.placed
        )
        return self._taints.deadlines(there, self.now) if self._taints.taints else {}

    def _evict_by_taints(self) -> None:
        """Pods on nodes with taints that they do not tolerate, or no longer, have to go."""
        for key, (deadline, taint) in self._taint_deadlines().items():
            if deadline <= self.now:
                self._lose_pod(self.scheduler.cluster.pods.records[key], f"{taint.key}:{taint.effect}")

    def _device_deadlines(self) -> dict[PodKey, tuple[float, str]]:
        """Of pods whose devices are tainted NoExecute: when they must go, and for which taint; since first seen so."""
        since, self._tainted_since = self._tainted_since, {}
        found: dict[PodKey, tuple[float, str]] = {}
        for pod, words, seconds in self.scheduler.cluster.claims.driven_away():
            key = PodKey(pod)
            record = self.scheduler.cluster.pods.records.get(key)
            one = (key, "" if record is None else record.pod.metadata.uid, words)
            self._tainted_since[one] = since.get(one, self.now)
            deadline = self._tainted_since[one] + seconds
            if deadline < found.get(key, (math.inf, ""))[0]:
                found[key] = (deadline, words)
        return found

    def _evict_by_device_taints(self) -> None:
        """Pods whose devices have taints that their claims do not tolerate, or no longer, have to go."""
        for key, (deadline, words) in self._device_deadlines().items():
            record = self.scheduler.cluster.pods.records.get(PodKey(key))
            if record is not None and record.node_name and deadline <= self.now:
                self._lose_pod(record, words)

    # What happens next.

    def change(self, before: Manifests, after: Manifests) -> None:
        """Let what differs between two pictures of the cluster happen."""
        known, self.given = self.given, {pod.key: pod for pod in after.pods}
        for event in differences(before, after):
            if isinstance(event, PodSeen):
                if self._is_over(event.pod, known.get(event.pod.key)) or self._is_returning(event.pod):
                    continue
                event = self._as_it_is_here(event.pod, known.get(event.pod.key))
            self.scheduler.handle(event)
            match event:
                case NodeSeen(node):
                    self._nodes.add(node.metadata.name)
                    self._taints.watch(node)
                case NodeLost(name):
                    self._nodes.discard(name)
                    self._taints.forget(name)
                    self._lose_pods_on(name)
                case PodLost(key):
                    self.placed.pop(key, None)
                    self._over.discard(key)
                    self._ends.forget(key)
                case PodSeen(pod):
                    self._ends.forget(pod.key) if pod.is_terminal else self._ends.watch(pod, self.now)
                    if pod.is_terminal:
                        self.placed.pop(pod.key, None)
        self._evict_by_taints()

    def _is_over(self, pod: Pod, before: Pod | None) -> bool:
        """Whether this is a pod that has ended by itself, and not another one of its name."""
        if before is None or before.metadata.uid != pod.metadata.uid:
            self._over.discard(pod.key)
        return pod.key in self._over

    def _is_returning(self, pod: Pod) -> bool:
        """Whether a pod has lost its node in this step, and is about to be made anew as its manifest says now."""
        return any(found.key == pod.key for found in self._returning)

    def _as_it_is_here(self, pod: Pod, before: Pod | None) -> PodSeen | PodLost:
        """What the manifests say of a pod, put in terms of the one that is here: it may have a place by now, or have
        been made anew. One that has only the name in common with it comes when it has been seen that it is gone.

        A manifest without spec.nodeName leaves a pod where it is; one that names another node knows better."""
        record = self.scheduler.cluster.pods.records.get(pod.key)
        if record is None or before is None:
            return PodSeen(pod)
        if before.metadata.uid != pod.metadata.uid:
            self._returning.append(pod)
            return PodLost(pod.key)
        spec, status = pod.spec, pod.status
        node = self.placed.get(pod.key) or ("" if record.assumed else record.node_name)
        is_elsewhere = spec.node_name not in ("", before.spec.node_name, node)
        if node and not pod.is_terminal and not is_elsewhere:
            spec, outcome = self._updated(pod, before, record, node)
            status = replace(status, start_time=status.start_time or record.pod.status.start_time)
            status = self._as_resized(replace(pod, status=status), outcome).status
        metadata = replace(pod.metadata, uid=record.pod.metadata.uid)
        if node:
            metadata = with_what_was_written(metadata, before.metadata, record.pod.metadata)
        return PodSeen(replace(pod, metadata=metadata, spec=spec, status=status))

    def _updated(self, pod: Pod, before: Pod, record: PodRecord, node: str) -> tuple[PodSpec, str]:
        """The spec of a pod on a node after its manifest changed, by as much as the API server lets an update change,
        and what its kubelet says of that.

        The kubelet resizes the pod. Where the node could never hold that much, the pod runs on with what it has."""
        problem = forbidden_change(before.spec, pod.spec)
        if problem is not None:
            raise InputError(f"Pod {pod.key}, which is on node {node}: {problem}")
        running = record.pod.spec
        spec = replace(updated_spec(running, before.spec, pod.spec), node_name=node)
        if all(getattr(spec, part) == getattr(running, part) for part in RESIZED_PARTS):
            return spec, DEFERRED if record.key in self._deferred else DONE
        outcome = self._resize_outcome(replace(pod, spec=spec), record)
        self.resized.append(ResizedPod(pod, node, outcome))
        if outcome == INFEASIBLE:
            spec = replace(spec, **{part: getattr(running, part) for part in RESIZED_PARTS})
        return spec, outcome

    def _resize_outcome(self, pod: Pod, record: PodRecord) -> str:
        """What a kubelet says of other amounts of CPU and memory for a pod that it runs."""
        cluster, asked = self.scheduler.cluster, pod_requests(pod)
        row = cluster.nodes.row_of.get(record.node_name)
        if row is None:
            return DONE
        allocatable = cluster.nodes.node(row).status.allocatable or {}
        there = (other for other in cluster.pods.on(row) if other is not record and other.leaving is None)
        others = [pod_requests(other.pod) for other in there]  # pods that are evicted are gone at once
        outcome = DONE
        for name in sorted(RESIZABLE):
            room, wanted = parse_quantity(allocatable.get(name, "0")), asked.get(name, 0)
            if wanted > room:
                return INFEASIBLE
            if wanted > room - sum(found.get(name, 0) for found in others):
                outcome = DEFERRED
        return outcome

    def _lose_pods_on(self, node: str) -> None:
        """A node is gone, and its pods with it."""
        for record in list(self.scheduler.cluster.pods.records.values()):
            pod = self.given.get(record.key)
            if record.node_name != node or pod is None or pod.is_terminal:
                continue  # of those that are not in the picture any more, it is said that they are gone
            self._lose_pod(record, "")

    def _lose_pod(self, record: PodRecord, taint: str) -> None:
        """A pod lost its node, with it or by one of its taints; one that somebody sees to waits again."""
        key, pod = record.key, self.given.get(record.key, record.pod)
        self.scheduler.handle(PodLost(key))
        self._ends.forget(key)
        was_placed_here = self.placed.pop(key, None) is not None
        is_daemon = is_for_its_node(pod)
        if is_daemon and not taint:
            return  # it was there for that node alone
        comes_back = was_placed_here or (controller_of(pod.metadata) is not None and not is_daemon)
        self.lost.append(LostPod(pod, record.node_name, comes_back, taint))
        if comes_back:
            self._returning.append(self._make_anew(pod))
