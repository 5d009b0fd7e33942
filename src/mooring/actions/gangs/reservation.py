"""Room that is kept for a gang that has waited long: no starvation, and backfill where it does no harm.

The first gang in the queue that has waited long enough, and would fit if nothing else ran, gets a reservation. Whenever
its turn comes and it still does not fit, what is free for its members is held until the end of the cycle, so that
nobody behind it takes it; whoever is ahead of it has had its turn before. Two kinds of pods may pass: those that end
before the gang could start, as far as durations are known, and those that it may evict at once when its room is
complete, because their priority is lower. Between cycles nothing is held: the gang itself has nothing until it has all.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from mooring.actions.gangs.members import grouped, needed_members
from mooring.actions.gangs.placing import GangPlacer
from mooring.engine.gang_entry import PLUGIN
from mooring.engine.plugin import Change
from mooring.engine.queue import Entry, GangEntry, Queue
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.durations import duration_seconds
from mooring.model.meta import timestamp_seconds
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord


@dataclass
class Held:
    """What is held for a gang just now."""

    gang: GangEntry
    keys: list[str]
    start: float
    """When it could start, as far as durations are known."""


class Reservation:
    """At most one at a time."""

    def __init__(self, placer: GangPlacer, after_seconds: float) -> None:
        self._placer = placer
        self._after = after_seconds
        self.held: Held | None = None
        self.keeps_out = False
        """Whether anybody has been refused since room is held, who might have had it."""
        self.holder: GangEntry | None = None
        """The gang for which room was held last."""

    def begin(self, cluster: Cluster, queue: Queue, now: float) -> None:
        """Give the gang that is to get the reservation its turn, if there is anybody to keep the room from."""
        if self.keeps_out and (self.holder is None or self.holder.where != "parked"):
            self.keeps_out = False
            queue.note(Change.POD_GONE)  # the gang runs or is gone: what was held for it is anybody's
        if self._after < 0 or not len(queue):
            return
        waiting = [gang for gang in queue.gangs if gang.where in ("parked", "backoff") and self._has_waited(gang, now)]
        for gang in sorted(waiting, key=lambda gang: (gang.key, gang.arrival)):
            if self._could_ever_fit(cluster, gang) and queue.take(gang):
                queue.put_back([gang])
                return

    def hold(self, cluster: Cluster, gang: GangEntry, now: float) -> None:
        """Hold what is free for a gang that was just refused, if it has waited long enough and nobody else holds."""
        if self.held is not None or self._after < 0 or not self._has_waited(gang, now):
            return
        if self._could_ever_fit(cluster, gang):
            start = self._start(cluster, gang, now)
            self.held = Held(gang, self._fill(cluster, gang), start)
            self.holder = gang

    def _has_waited(self, gang: GangEntry, now: float) -> bool:
        return gang.first_tried is not None and now - gang.first_tried >= self._after

    @contextmanager
    def lifted_for(self, cluster: Cluster, entry: Entry, now: float) -> Iterator[None]:
        """Let a pod that may backfill see the room that is held, and hold what it leaves."""
        held = self.held
        if held is None or not self.is_open_to(entry, now):
            yield
            return
        self._let_go(cluster)
        yield
        held.keys = self._fill(cluster, held.gang)
        self.held = held

    def end(self, cluster: Cluster) -> None:
        self._let_go(cluster)

    def _let_go(self, cluster: Cluster) -> None:
        if self.held is not None:
            for key in self.held.keys:
                cluster.release(key)
            self.held = None

    def is_open_to(self, entry: Entry, now: float) -> bool:
        """Whether a pod may take room that is held: it ends in time, or makes way at once."""
        held = self.held
        if held is None:
            return False
        if entry.record.priority < held.gang.priority and held.gang.may_preempt:
            return True
        duration = duration_seconds(entry.record.pod)
        return duration is not None and now + duration <= held.start

    def verdict_on(self, cluster: Cluster, refused: Sequence[Entry]) -> Verdict | None:
        """What to tell a pod that would have had a place but for the room that is held."""
        held = self.held
        if held is None or not refused:
            return None
        checkpoint = cluster.checkpoint()
        for key in held.keys:
            cluster.release(key)
        row = self._placer.batches.choose(cluster, refused[0].profile, refused[0].record.shape)
        cluster.rollback(checkpoint)
        if row < 0:
            return None
        self.keeps_out = True
        return Verdict(PLUGIN, Rejection((f"room is kept for gang {held.gang.name}, which is ahead",)))

    def _fill(self, cluster: Cluster, gang: GangEntry) -> list[str]:
        """Assume places for as many members as there is room for; they are not bound."""
        keys: list[str] = []
        for group in grouped(needed_members(gang, cluster.gangs), cluster.gangs):
            for entry in group.entries:
                row = self._placer.batches.choose(cluster, group.profile, group.shape)
                if row < 0:
                    break
                cluster.assume(entry.record.key, row)
                keys.append(entry.record.key)
        return keys

    def _could_ever_fit(self, cluster: Cluster, gang: GangEntry) -> bool:
        """Whether each group of members would fit if nothing else ran: else the room would be kept in vain."""
        for group in grouped(needed_members(gang, cluster.gangs), cluster.gangs):
            settled = self._placer.rooms.of(group.profile, cluster, group.shape).answers.settled
            nodes = cluster.rows(settled.rows)
            counts = nodes.allowed_pods.copy()
            for resource, amount in group.shape.requests.items():
                if amount:
                    counts = np.minimum(counts, nodes.allocatable(resource) // amount)
            if int(counts.sum()) < group.size:
                return False
        return True

    def _start(self, cluster: Cluster, gang: GangEntry, now: float) -> float:
        """The earliest moment at which it fits by what is known of the ends of those that run; inf if none is."""
        ends = sorted(_known_ends(cluster, now), key=lambda found: found[0])
        needed = needed_members(gang, cluster.gangs)
        low, high = 1, len(ends) + 1
        while low < high:  # the fewest ends after which it fits
            middle = (low + high) // 2
            if self._fits_after(cluster, gang, needed, [record for _, record in ends[:middle]]):
                high = middle
            else:
                low = middle + 1
        return ends[low - 1][0] if low <= len(ends) else math.inf

    def _fits_after(
        self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry], ended: Sequence[PodRecord]
    ) -> bool:
        checkpoint = cluster.checkpoint()
        for record in ended:
            if record.row != UNBOUND:
                cluster.release(record.key)
        fits = self._placer.try_together(cluster, gang, needed) is None
        cluster.rollback(checkpoint)
        return fits


def _known_ends(cluster: Cluster, now: float) -> Iterator[tuple[float, PodRecord]]:
    for record in cluster.pods.records.values():
        if record.row == UNBOUND:
            continue
        duration = duration_seconds(record.pod)
        if duration is not None:
            started = timestamp_seconds(record.pod.status.start_time)
            yield max(now, (now if started is None else started) + duration), record
