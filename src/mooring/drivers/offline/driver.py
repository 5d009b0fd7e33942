"""The driver for manifests: it carries decisions out at once, and lets time pass when it is told to."""

import math
from collections import Counter

from msgspec.structs import replace

from mooring.actions.admit.lifecycle.pods import unbound
from mooring.drivers.driver import Driver
from mooring.drivers.offline.clock import KnownEnds, TaintEvictions
from mooring.drivers.offline.differences import differences
from mooring.engine.action import Fault
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import timestamp_text
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend
from mooring.model.events import NodeLost, NodeSeen, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.loading.expansion import controller_of
from mooring.model.loading.manifests import Manifests
from mooring.observe.progress import Progress
from mooring.report.placements import EndedPod, LostPod
from mooring.state.pods import PodRecord

SLICE = 1024
"""Pods a cycle: a bar that moves a few times a second. Where nobody preempts, decisions are the same for any size."""
MOST_SUSPENSIONS = 3
"""How often one workload may be suspended before we take it that admission never comes to rest."""
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
        self._returning: list[Pod] = []
        """Those that are made anew as soon as it has been seen that the ones before them are gone."""
        self._suspended: set[str] = set()
        self._made_anew: Counter[str] = Counter()
        self._just_placed: list[str] = []
        self._ends, self._taints = KnownEnds(), TaintEvictions()
        self._tainted_since: dict[tuple[PodKey, str], float] = {}
        for node in manifests.nodes:
            self._taints.watch(node)
        for pod in manifests.pods:
            self._ends.watch(pod, now)
        self._evict_by_taints()

    # Deciding.

    def decide(self, progress: Progress, at_most: int | None = None) -> list[Decision]:
        """Run cycles until nothing is left to try, or for so many pods."""
        queue = self.scheduler.queue
        total = len(queue) if at_most is None else at_most
        progress.phase("placing pods", total)
        decisions: list[Decision] = []
        done = 0
        suspensions = Counter[str]()
        is_due = True
        while (len(queue) or is_due) and (at_most is None or done < at_most):
            size = SLICE if at_most is None else min(SLICE, at_most - done)
            made, is_due = self.step(size)
            decisions += made
            done += size
            suspensions.update(found.workload for found in made if isinstance(found, Suspend))
            if suspensions and max(suspensions.values()) > MOST_SUSPENSIONS:
                break  # workloads that preempt each other would go on for ever
            progress.reached(total - len(queue) if at_most is None else done)
        return decisions

    def step(self, at_most: int) -> tuple[list[Decision], bool]:
        """Run one cycle; tell whether a next one is due for what it changed in the world."""
        decisions = self.run_cycle(at_most)
        self._evict_by_device_taints()
        returning, self._returning = self._returning, []
        self.scheduler.handle(*map(PodSeen, returning))
        is_left = bool(self._returning) or bool(returning)
        return decisions, is_left or any(isinstance(found, Evict | Suspend) for found in decisions)

    def carry_out(self, decision: Decision) -> str:
        """Do it at once; nothing fails here.

        Pods that ran before are gone when they are evicted. Those that got their place only here, those of a workload
        that is suspended, and those that move wait again, as their controllers would see to.
        """
        match decision:
            case Bind(pod, node):
                self.placed[pod] = node
                self._just_placed.append(pod)
                self._ends.start(self.given[PodKey(pod)], self.now)
            case Evict(pod, moves_to=moves_to):
                is_seen_to = self.placed.pop(pod, None) is not None or bool(moves_to) or self._is_suspended(pod)
                self._ends.forget(pod)
                self.scheduler.handle(PodLost(pod))
                if is_seen_to:
                    self.scheduler.handle(PodSeen(self._make_anew(self.given[PodKey(pod)])))
            case Suspend(workload):
                self._suspended.add(workload)
            case Admit(workload):
                self._suspended.discard(workload)
        return ""

    def _is_suspended(self, pod: str) -> bool:
        return self.scheduler.cluster.tenants.workload_of.get(PodKey(pod)) in self._suspended

    def _make_anew(self, pod: Pod) -> Pod:
        """A pod as its controller makes it again: of the same name, and yet another."""
        self._made_anew[pod.key] += 1
        again = unbound(pod)
        return replace(again, metadata=replace(again.metadata, uid=f"{pod.key}#{self._made_anew[pod.key]}"))

    # Time.

    def pass_time(self, seconds: float, progress: Progress) -> list[Decision]:
        """Let time pass: what falls due happens at its time, and what is to be decided then is decided then."""
        self.lost, self.ended = [], []
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
        """Whoever was placed has started."""
        placed, self._just_placed = self._just_placed, []
        for key in placed:
            record = self.scheduler.cluster.pods.records.get(PodKey(key))
            if record is not None and record.assumed and key in self.placed:
                spec = replace(record.pod.spec, node_name=self.placed[key])
                status = replace(record.pod.status, start_time=timestamp_text(self.now))
                self.scheduler.handle(PodSeen(replace(record.pod, spec=spec, status=status)))

    def _let_end(self) -> None:
        """Pods that have run for as long as they said are over."""
        for key, phase in list(self._ends.due(self.now)):
            record = self.scheduler.cluster.pods.records.get(PodKey(key))
            if record is not None and record.node_name:
                self.placed.pop(key, None)
                self.ended.append(EndedPod(record.pod, record.node_name, phase, self.now))
                self.scheduler.handle(PodSeen(replace(record.pod, status=replace(record.pod.status, phase=phase))))

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
            self._tainted_since[key, words] = since.get((key, words), self.now)
            deadline = self._tainted_since[key, words] + seconds
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
                event = self._as_it_is_here(event.pod, known.get(event.pod.key))
            self.scheduler.handle(event)
            match event:
                case NodeSeen(node):
                    self._taints.watch(node)
                case NodeLost(name):
                    self._taints.forget(name)
                    self._lose_pods_on(name)
                case PodLost(key):
                    self.placed.pop(key, None)
                    self._ends.forget(key)
                case PodSeen(pod):
                    self._ends.forget(pod.key) if pod.is_terminal else self._ends.watch(pod, self.now)
                    if pod.is_terminal:
                        self.placed.pop(pod.key, None)
        self._evict_by_taints()

    def _as_it_is_here(self, pod: Pod, before: Pod | None) -> PodSeen | PodLost:
        """What the manifests say of a pod, put in terms of the one that is here: it may have a place by now, or have
        been made anew. One that has only the name in common with it comes when it has been seen that it is gone."""
        record = self.scheduler.cluster.pods.records.get(pod.key)
        if record is None or before is None:
            return PodSeen(pod)
        if before.metadata.uid != pod.metadata.uid:
            self._returning.append(pod)
            return PodLost(pod.key)
        spec, status = pod.spec, pod.status
        if pod.key in self.placed and spec == before.spec and not pod.is_terminal:
            spec = replace(spec, node_name=self.placed[pod.key])
            status = replace(status, start_time=status.start_time or record.pod.status.start_time)
        return PodSeen(
            replace(pod, metadata=replace(pod.metadata, uid=record.pod.metadata.uid), spec=spec, status=status)
        )

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
        owner = controller_of(pod.metadata)
        is_for_its_node = owner is not None and owner.kind in ("DaemonSet", "Node")
        if is_for_its_node and not taint:
            return  # it was there for that node alone
        comes_back = was_placed_here or (owner is not None and not is_for_its_node)
        self.lost.append(LostPod(pod, record.node_name, comes_back, taint))
        if comes_back:
            self._returning.append(self._make_anew(pod))
