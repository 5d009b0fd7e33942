"""The driver for manifests: it carries decisions out at once, and lets time pass when it is told to."""

from collections import Counter
from dataclasses import dataclass, field

from msgspec.structs import replace

from mooring.actions.admit.lifecycle.pods import unbound
from mooring.drivers.offline.differences import differences
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Suspend
from mooring.model.events import NodeLost, PodLost, PodSeen
from mooring.model.loading.expansion import controller_of
from mooring.model.loading.manifests import Manifests
from mooring.observe.progress import Progress
from mooring.report.placements import LostPod

SLICE = 1024
"""Pods a cycle: a bar that moves a few times a second. Where nobody preempts, decisions are the same for any size."""


MOST_SUSPENSIONS = 3
"""How often one workload may be suspended before we take it that admission never comes to rest."""


@dataclass
class Offline:
    """The driver for manifests: time stands still unless it is told to pass, and decisions are carried out at once."""

    scheduler: Scheduler
    now: float
    given: dict[str, Pod]
    """The pods as the manifests have them, by key."""
    placed: dict[str, str] = field(default_factory=dict)
    """pod key -> node: what was decided here and still stands."""
    returning: list[Pod] = field(default_factory=list)
    """Those that are made anew as soon as it has been seen that the ones before them are gone."""
    lost: list[LostPod] = field(default_factory=list)
    """The pods whose nodes went when the cluster last changed."""

    def decide(self, progress: Progress, at_most: int | None = None) -> list[Decision]:
        """Run cycles until nothing is left to try, or for so many pods."""
        queue = self.scheduler.queue
        total = len(queue) if at_most is None else at_most
        progress.phase("placing pods", total)
        decisions: list[Decision] = []
        done = 0
        suspensions = Counter[str]()
        room_is_made = True
        while (len(queue) or room_is_made) and (at_most is None or done < at_most):
            size = SLICE if at_most is None else min(SLICE, at_most - done)
            made, room_is_made = self.step(size)
            decisions += made
            done += size
            suspensions.update(found.workload for found in made if isinstance(found, Suspend))
            if suspensions and max(suspensions.values()) > MOST_SUSPENSIONS:
                break  # workloads that preempt each other would go on for ever
            progress.reached(total - len(queue) if at_most is None else done)
        return decisions

    def step(self, at_most: int) -> tuple[list[Decision], bool]:
        """Run one cycle and complete its evictions at once; tell whether a next one is due for what that changes.

        Pods that ran before are gone. Those that got their place only here wait again, as their workloads would see to.
        """
        decisions = self.scheduler.cycle(self.now, at_most=at_most)
        workload_of = self.scheduler.cluster.tenants.workload_of
        suspended = {decision.workload for decision in decisions if isinstance(decision, Suspend)}
        evicted = bool(suspended)
        for decision in decisions:
            if isinstance(decision, Bind):
                self.placed[decision.pod] = decision.node
            elif isinstance(decision, Evict):
                evicted = True
                self.scheduler.handle(PodLost(decision.pod))
                if self.placed.pop(decision.pod, None) is not None or workload_of.get(decision.pod) in suspended:
                    self.scheduler.handle(PodSeen(unbound(self.given[decision.pod])))
        returning, self.returning = self.returning, []
        self.scheduler.handle(*map(PodSeen, returning))
        return decisions, evicted or bool(returning)

    def pass_time(self, seconds: float) -> None:
        """Let time pass; whoever was placed has started meanwhile."""
        for key, node in self.placed.items():
            record = self.scheduler.cluster.pods.records.get(key)
            if record is not None and record.assumed:
                spec = replace(record.pod.spec, node_name=node)
                status = replace(record.pod.status, start_time=timestamp_text(self.now))
                self.scheduler.handle(PodSeen(replace(record.pod, spec=spec, status=status)))
        self.now += seconds

    def change(self, before: Manifests, after: Manifests) -> None:
        """Let what differs between two pictures of the cluster happen."""
        self.given = {pod.key: pod for pod in after.pods}
        self.lost = []
        for event in differences(before, after):
            if isinstance(event, PodSeen) and self._is_another(event.pod):
                self.returning.append(event.pod)
                event = PodLost(event.pod.key)
            self.scheduler.handle(event)
            if isinstance(event, NodeLost):
                self._lose_pods_on(event.name)
            elif isinstance(event, PodLost):
                self.placed.pop(event.key, None)
            elif isinstance(event, PodSeen) and event.pod.is_terminal:
                self.placed.pop(event.pod.key, None)

    def _is_another(self, pod: Pod) -> bool:
        """Whether a pod has only the name in common with one that was there."""
        known = self.scheduler.cluster.pods.records.get(pod.key)
        return known is not None and known.pod.metadata.uid != pod.metadata.uid

    def _lose_pods_on(self, node: str) -> None:
        """A node is gone, and its pods with it; those that somebody sees to wait again."""
        for record in list(self.scheduler.cluster.pods.records.values()):
            pod = self.given.get(record.key)
            if record.node_name != node or pod is None or pod.is_terminal:
                continue  # of those that are not in the picture any more, it is said that they are gone
            self.scheduler.handle(PodLost(record.key))
            was_placed_here = self.placed.pop(record.key, None) is not None
            owner = controller_of(pod.metadata)
            if owner is not None and owner.kind in ("DaemonSet", "Node"):
                continue  # it was there for that node alone
            comes_back = was_placed_here or owner is not None
            self.lost.append(LostPod(pod, node, comes_back))
            if comes_back:
                self.returning.append(unbound(pod))
