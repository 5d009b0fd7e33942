"""One cycle of the scheduler: the main flow.

Events come in, decisions go out. Everything a cycle may do is an action; which actions run, and in which order, is the
literal list in `mooring.actions`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from mooring.engine.plugin import Change
from mooring.engine.profile import Profile
from mooring.engine.queue.backoff import Backoff
from mooring.engine.queue.queue import Queue
from mooring.engine.queue.shared import share_queue
from mooring.model.api.meta import timestamp_seconds
from mooring.model.decisions import Decision, Wait, WorkloadDecision
from mooring.model.events import (
    BindFailed,
    Event,
    GangLost,
    GangSeen,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
)
from mooring.model.loading.manifests import Manifests
from mooring.state.cluster import Cluster
from mooring.state.loading import populate
from mooring.state.pods import UNBOUND
from mooring.state.shapes import Shape


class Action(Protocol):
    """Something that a cycle may do: reads the cluster and the queue, returns decisions, assumes them."""

    def run(self, cluster: Cluster, queue: Queue, now: float, at_most: int) -> list[Decision]: ...


class Scheduler:
    """The engine as drivers see it: `handle` what happened, `cycle` to decide."""

    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Profile],
        actions: Sequence[Action],
        backoff: Backoff | None = None,
    ) -> None:
        self.cluster = cluster
        self.profiles = profiles
        self.queue = Queue(cluster.gangs, backoff, lambda turn: bool(share_queue(cluster, turn)))
        self.actions = actions
        self._arrived: list[Event] = []

    def handle(self, *events: Event) -> None:
        """Take note of what happened; the next cycle acts on it."""
        self._arrived.extend(events)

    def load(self, manifests: Manifests, now: float = math.inf) -> None:
        """Take in a whole cluster at once; pods queue since they were created, those that do not say since now."""
        populate(self.cluster, manifests)
        for pod in manifests.pods:
            created = timestamp_seconds(pod.metadata.creation_timestamp)
            self._enqueue(pod.key, now if created is None else created)

    def cycle(self, now: float, *, at_most: int = 2**31) -> list[Decision]:
        """Decide what can be decided now, for at most so many pods; call again while the queue is not empty."""
        # 1. Apply the events that arrived; put back what they may unblock.
        arrived, self._arrived = self._arrived, []
        for event in arrived:
            self._apply(event, now)
        self.queue.advance(now)
        # 2. Admit, place, preempt: each action in its turn, least disruptive first.
        decisions: list[Decision] = []
        for action in self.actions:
            decisions = _with_last_words(decisions, action.run(self.cluster, self.queue, now, at_most))
        # 3. The decisions are assumed already; the driver carries them out and reports what became of them.
        return decisions

    def _apply(self, event: Event, now: float) -> None:
        if isinstance(event, PodSeen):
            self._see_pod(event, now)
            return
        cluster = self.cluster
        before = self._place_of(event.key) if isinstance(event, PodLost) else None
        versions = (cluster.nodes_version, cluster.gangs.version)
        objects = (cluster.related.version, cluster.tenants.version)
        cluster.observe(event)
        match event:
            case NodeSeen() | NodeLost():
                if cluster.nodes_version != versions[0]:  # a heartbeat helps nobody
                    self.queue.note(Change.NODE)
            case ObjectSeen() | ObjectLost():
                if (cluster.related.version, cluster.tenants.version) != objects:  # nor does a count in a status
                    self.queue.note(Change.RELATED)
            case GangSeen(gang) if cluster.gangs.version != versions[1]:
                self.queue.gang_changed(gang.key)
            case GangLost(key) if cluster.gangs.version != versions[1]:
                self.queue.gang_changed(key)
            case BindFailed(key):
                self.queue.remove(key)
                self._enqueue(key, now)
                self.queue.note(Change.POD_GONE)
            case PodLost(key):
                self.queue.remove(key)
                if before:
                    self.queue.note(Change.POD_GONE)

    def _see_pod(self, event: PodSeen, now: float) -> None:
        key = event.pod.key
        known = self.cluster.pods.records.get(key)
        uid = known.pod.metadata.uid if known is not None else ""
        before = self._place_of(key) if known is not None else None
        self.cluster.observe(event)
        if known is not None and uid != event.pod.metadata.uid:
            self.queue.remove(key)  # another pod of the same name
        self._enqueue(key, now)
        after = self._place_of(key)
        if before != after:  # a pod that finishes, or runs on as another, makes room like one that is gone
            gone = Change.POD_GONE if before else Change(0)
            self.queue.note(gone | Change.POD_BOUND if after else gone)

    def _place_of(self, key: str) -> tuple[Shape, int] | None:
        """What a pod that runs is, and on which row."""
        record = self.cluster.pods.records.get(key)
        return None if record is None or record.row == UNBOUND else (record.shape, record.row)

    def _enqueue(self, key: str, now: float) -> None:
        """Let a pod wait, or go on waiting, if that is what it has to do."""
        record = self.cluster.pods.records.get(key)
        waits = record is not None and record.row == UNBOUND and not record.node_name
        profile = self.profiles.get(record.pod.spec.scheduler_name) if record is not None and waits else None
        if record is None or profile is None or record.pod.metadata.deletion_timestamp is not None:
            self.queue.remove(key)
        else:
            self.queue.update(record, profile, now)

    def foreign(self) -> Iterable[str]:
        """The pods that wait for a scheduler with another name."""
        for record in self.cluster.pods.records.values():
            if not record.node_name and record.pod.spec.scheduler_name not in self.profiles:
                yield record.key


def _with_last_words(before: list[Decision], after: list[Decision]) -> list[Decision]:
    """All decisions in order; what a later action says of a pod replaces an earlier word that it waits."""
    if not after:
        return before
    spoken_of = {decision.pod for decision in after if not isinstance(decision, WorkloadDecision)}
    return [found for found in before if not (isinstance(found, Wait) and found.pod in spoken_of)] + after
