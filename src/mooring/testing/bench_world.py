"""What happens around the scheduler while it is measured: pods come, end, are evicted, nodes change; always the same.

The world knows the time. It carries out what the scheduler decides and tells it what became of that, before the next
cycle.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mooring.drivers.world.ends import KnownEnds
from mooring.drivers.world.pods import made_anew, over
from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import Event, NodeSeen, PodLost, PodSeen, WorkloadSeen
from mooring.model.keys import PodKey
from mooring.model.queued.workloads import QueuedWorkload
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
        self._ends = KnownEnds()
        records = scheduler.cluster.pods.records
        self._given = {key: records[key].pod for key in scheduler.cluster.tenants.workload_of if key in records}
        """The pods that queue, as they were made: admission adds to them."""
        self._given.update((pod.key, pod) for arrival in arrivals for pod in arrival.pods)
        self._made_anew: Counter[str] = Counter()
        self._bound: list[str] = []
        """For churn to choose from."""
        self._turn = 0
        self._has_news = False
        """Whether something was told to the scheduler that it has not acted on."""
        self.now = 0.0

    @property
    def has_more(self) -> bool:
        """Whether anything is still going to happen by itself, or has happened unseen."""
        return bool(self._arrivals or self._ends or self._has_news)

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
                self._evict(decision.pod, is_moved=bool(decision.successor))
        if self._churn is not None:
            self._scheduler.handle(*self._disturbances(self._churn))
        if self._step is not None:
            self.now += self._step
            if not self._has_news and not len(self._scheduler.queue):
                self.now = max(self.now, self._next_due())

    def _next_due(self) -> float:
        due = min(self._arrivals[0].seconds if self._arrivals else math.inf, self._ends.next)
        return self.now if due == math.inf else due

    def _note_start(self, key: str) -> None:
        if self._churn is not None:
            self._bound.append(key)
        if self._step is not None:
            self._ends.start(self._scheduler.cluster.pods.records[PodKey(key)].pod, self.now)

    def _endings(self) -> Iterator[Event]:
        """Pods that have run for as long as they had to."""
        for key, phase in self._ends.due(self.now):
            record = self._scheduler.cluster.pods.records[PodKey(key)]
            yield PodSeen(over(record.pod, record.node_name, phase))

    def _evict(self, key: str, *, is_moved: bool) -> None:
        """A victim is gone at once; if it moves, or belongs to work that queues, another one is made in its place."""
        cluster = self._scheduler.cluster
        record = cluster.pods.records.get(PodKey(key))
        if record is None:
            return
        self._ends.forget(key)
        self._scheduler.handle(PodLost(key))
        if is_moved or key in cluster.tenants.workload_of:
            self._made_anew[key] += 1
            given = self._given.get(record.key, record.pod)
            self._scheduler.handle(PodSeen(made_anew(given, self._made_anew[key])))
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
