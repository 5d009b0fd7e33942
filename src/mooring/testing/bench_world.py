"""What happens around the scheduler while it is measured: pods come, end, are evicted, nodes change; always the same.

The world knows the time. It carries out what the scheduler decides and tells it what became of that, before the next
cycle.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from mooring.actions.admit.lifecycle.pods import unbound
from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import Event, NodeSeen, PodLost, PodSeen, WorkloadSeen
from mooring.model.keys import PodKey
from mooring.model.queued.workloads import QueuedWorkload
from mooring.model.values.durations import duration_seconds
from mooring.testing.workloads import Churn, Workload


class Arrival:
    """Pods that come at one moment, with the workload that they are, if it queues."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.pods: list[Pod] = []
        self.workloads: list[QueuedWorkload] = []


class World:
    """The world of one workload."""

    def __init__(self, workload: Workload, scheduler: Scheduler, arrivals: Sequence[Arrival] = ()) -> None:
        self._churn = workload.churn
        self._step = workload.seconds
        self._scheduler = scheduler
        self._arrivals = deque(sorted(arrivals, key=lambda arrival: arrival.seconds))
        self._ends: list[tuple[float, str]] = []
        """A heap; a pod that was evicted since, and may run again, ends at another time."""
        self._end_of: dict[str, float] = {}
        self._bound: list[str] = []
        """For churn to choose from."""
        self._turn = 0
        self._has_news = False
        """Whether something was told to the scheduler that it has not acted on."""
        self.now = 0.0

    @property
    def has_more(self) -> bool:
        """Whether anything is still going to happen by itself, or has happened unseen."""
        return bool(self._arrivals or self._end_of or self._has_news)

    def advance(self) -> list[Pod]:
        """Let what is due by now happen; the pods that came."""
        came: list[Pod] = []
        while self._arrivals and self._arrivals[0].seconds <= self.now:
            arrival = self._arrivals.popleft()
            came += arrival.pods
            self._scheduler.handle(*map(PodSeen, arrival.pods), *map(WorkloadSeen, arrival.workloads))
        self._scheduler.handle(*self._endings())
        self._has_news = False
        return came

    def carry_out(self, decisions: Iterable[Decision]) -> None:
        """Do what was decided, and let time pass until the next cycle."""
        for decision in decisions:
            if isinstance(decision, Bind):
                self._note_start(decision.pod)
            elif isinstance(decision, Evict):
                self._evict(decision.pod)
        if self._churn is not None:
            self._scheduler.handle(*self._disturbances(self._churn))
        if self._step is not None:
            self.now += self._step
            if not self._has_news and not len(self._scheduler.queue):
                self.now = max(self.now, self._next_due())

    def _next_due(self) -> float:
        while self._ends and self._end_of.get(self._ends[0][1]) != self._ends[0][0]:
            heapq.heappop(self._ends)
        due = [found[0].seconds for found in (self._arrivals,) if found] + [found[0] for found in self._ends[:1]]
        return min(due, default=self.now)

    def _note_start(self, key: str) -> None:
        if self._churn is not None:
            self._bound.append(key)
        record = self._scheduler.cluster.pods.records[PodKey(key)]
        duration = duration_seconds(record.pod) if self._step is not None else None
        if duration is not None:
            self._end_of[key] = self.now + duration
            heapq.heappush(self._ends, (self.now + duration, key))

    def _endings(self) -> Iterator[Event]:
        """Pods that have run for as long as they had to."""
        while self._ends and self._ends[0][0] <= self.now:
            end, key = heapq.heappop(self._ends)
            if self._end_of.get(key) == end:
                del self._end_of[key]
                record = self._scheduler.cluster.pods.records[PodKey(key)]
                spec = replace(record.pod.spec, node_name=record.node_name)
                yield PodSeen(replace(record.pod, spec=spec, status=PodStatus(phase="Succeeded")))

    def _evict(self, key: str) -> None:
        """A victim is gone at once; if it belongs to work that queues, another one is made in its place."""
        cluster = self._scheduler.cluster
        record = cluster.pods.records.get(PodKey(key))
        if record is None:
            return
        self._end_of.pop(key, None)
        self._scheduler.handle(PodLost(key))
        if key in cluster.tenants.workload_of:
            self._scheduler.handle(PodSeen(unbound(record.pod)))
        self._has_news = True

    def _disturbances(self, churn: Churn) -> Iterator[Event]:
        """What happens between two slices: pods end, nodes get other labels."""
        turn, self._turn = self._turn, self._turn + 1
        bound = self._bound
        for i in range(min(churn.delete_pods, len(bound))):
            yield PodLost(bound.pop((turn * 7919 + i * 104729) % len(bound)))
        nodes = self._scheduler.cluster.nodes
        rows = nodes.live_rows()
        for i in range(churn.relabel_nodes):
            yield NodeSeen(_relabelled(nodes.node(int(rows[(turn * 31 + i) % len(rows)])), turn))


def _relabelled(node: Node, turn: int) -> Node:
    labels = {**(node.metadata.labels or {}), "bench.mooring.dev/turn": str(turn)}
    metadata = msgspec.structs.replace(node.metadata, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)
