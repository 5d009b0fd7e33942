"""Moves that are under way, and what became of those before: nobody is moved again while the last one is open.

A move is over when what was made in the pod's place has a place itself. If that is outside of its pools again, the
move was in vain: its workload is let be until its pool has other room than then, and for twice as long each time.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from mooring.actions.move_back.spilled import members, rows_of, workload_of
from mooring.config.node_pools import NodePool
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.nodes import PLACES
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.shapes import Shape

FIRST_BACKOFF_SECONDS = 60.0
LONGEST_BACKOFF_SECONDS = 3600.0
PATIENCE_SECONDS = 60.0
"""So long after a pod is gone, its workload may have been made smaller: then nobody comes in its place."""

Identity = tuple[PodKey, str]
"""A pod's key and uid: a StatefulSet makes another of the same name."""


def identity(record: PodRecord) -> Identity:
    return record.key, record.pod.metadata.uid


@dataclass(slots=True)
class Move:
    """A pod that was told to go back to its own pools."""

    pod: Identity
    workload: str
    shape: Shape
    own: tuple[NodePool, ...]
    before: frozenset[Identity]
    """The pods that its workload had."""
    gone_at: float | None = None


@dataclass(slots=True)
class InVain:
    """A workload whose move did not help."""

    times: int
    again_at: float
    room: bytes
    """What its pools had free then."""


@dataclass
class Moves:
    """All that are under way, and the workloads that are let be."""

    open: list[Move] = field(default_factory=list)
    _in_vain: dict[str, InVain] = field(default_factory=dict)
    _seen: set[PodKey] | None = None
    """Collects the pods that came to rows, while any move is open."""
    _taken: set[Identity] = field(default_factory=set)
    """Those of them that have closed one: each stands for one pod that went."""

    def begin(self, move: Move, cluster: Cluster) -> None:
        if self._seen is None:
            self._seen = cluster.pods.watch()
        self.open.append(move)

    def follow(self, cluster: Cluster, now: float) -> None:
        """Close the moves whose replacement has a place, or will not come."""
        if self._seen is None:
            return
        arrived = [record for key in sorted(self._seen) if (record := cluster.pods.records.get(key)) is not None]
        self.open = [move for move in self.open if not self._is_over(move, arrived, cluster, now)]
        if not self.open:
            cluster.pods.unwatch(self._seen)
            self._seen, self._taken = None, set()

    def _is_over(self, move: Move, arrived: list[PodRecord], cluster: Cluster, now: float) -> bool:
        record = cluster.pods.records.get(move.pod[0])
        if record is not None and identity(record) == move.pod:
            if record.leaving is None and record.pod.metadata.deletion_timestamp is None:
                self._note_in_vain(move, cluster, now)  # it could not be evicted
                return True
            return False
        if move.gone_at is None:
            move.gone_at = now
        replacement = next((found for found in arrived if _replaces(found, move, self._taken)), None)
        if replacement is not None:
            self._taken.add(identity(replacement))
            if rows_of(move.own, cluster)[replacement.row]:
                self._in_vain.pop(move.workload, None)
            else:
                self._note_in_vain(move, cluster, now)
            return True
        if now < move.gone_at + PATIENCE_SECONDS:
            return False
        return all(identity(found) in move.before for found in members(cluster).get(move.workload, ()))

    # Those who are let be.

    def may_try(self, workload: str, own: Collection[NodePool], shape: Shape, cluster: Cluster, now: float) -> bool:
        """Whether a workload was not moved in vain, or long enough ago, and its pools have other room than then."""
        known = self._in_vain.get(workload)
        return known is None or (now >= known.again_at and room_in(own, shape, cluster) != known.room)

    def _note_in_vain(self, move: Move, cluster: Cluster, now: float) -> None:
        """Let a workload be; those that have no pods any more are forgotten."""
        there = members(cluster) if self._in_vain else {}
        self._in_vain = {workload: known for workload, known in self._in_vain.items() if workload in there}
        known = self._in_vain.get(move.workload)
        times = 1 if known is None else known.times + 1
        seconds = min(FIRST_BACKOFF_SECONDS * 2.0 ** min(times - 1, 16), LONGEST_BACKOFF_SECONDS)
        self._in_vain[move.workload] = InVain(times, now + seconds, room_in(move.own, move.shape, cluster))

    def next_wake(self, now: float) -> float | None:
        """When patience or a backoff ends."""
        times = [known.again_at for known in self._in_vain.values()]
        times += [move.gone_at + PATIENCE_SECONDS for move in self.open if move.gone_at is not None]
        return min((time for time in times if time > now), default=None)


def _replaces(record: PodRecord, move: Move, taken: set[Identity]) -> bool:
    """Whether a pod has a place that was made in place of the one that was moved."""
    if record.row == UNBOUND or record.nominated or identity(record) in taken or identity(record) in move.before:
        return False
    return workload_of(record.pod) == move.workload


def room_in(pools: Collection[NodePool], shape: Shape, cluster: Cluster) -> bytes:
    """What the nodes of some pools have free of all that a pod asks for: a value that changes with it."""
    nodes = cluster.rows(rows_of(tuple(pools), cluster).nonzero()[0])
    columns = [nodes.free(resource) for resource in (*shape.requests, PLACES)]
    return b"".join((nodes.index.tobytes(), *(column.tobytes() for column in columns)))
