"""Those for whom room is being made, a pod or a gang: they have their places in the state until they are bound.

All members of a gang are nominated together, bound together, and give up their places together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mooring.actions.gangs.steps import Reservations
from mooring.actions.preempt.gangs.check import MembersInPlace
from mooring.actions.preempt.gangs.search import wants_of
from mooring.actions.preempt.pods.search import Search, refusals
from mooring.engine.binding import needs_steps
from mooring.engine.plugin import Change
from mooring.engine.queue.queue import Entry, Queue
from mooring.model.decisions import Bind, Decision
from mooring.model.events import BindFailed
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord


@dataclass(frozen=True)
class Leaving:
    """A pod that is being evicted, as it was when that was decided."""

    key: str
    uid: str
    row: int

    @classmethod
    def of(cls, record: PodRecord) -> "Leaving":
        return cls(record.key, record.pod.metadata.uid, record.row)

    def is_gone(self, cluster: Cluster) -> bool:
        record = cluster.pods.records.get(self.key)
        return record is None or record.row != self.row or record.pod.metadata.uid != self.uid


@dataclass(frozen=True)
class Seat:
    """The place of one pod."""

    entry: Entry
    uid: str
    node: str
    row: int
    labels: Mapping[str, str]
    """Of the node: with others it may be in another domain, and of no use to a gang that wants a certain one."""

    @property
    def key(self) -> str:
        return self.entry.record.key

    def is_taken(self, cluster: Cluster) -> bool:
        """Whether the pod has it still: seen anew, it may have been placed anew; confirmed, the world has bound it."""
        record = cluster.pods.records.get(self.key)
        return record is self.entry.record and record.row == self.row and record.assumed

    def is_same_place(self, cluster: Cluster) -> bool:
        """Whether its node is there, and in the domains that it was in."""
        row = cluster.nodes.row_of.get(self.node)
        return row == self.row and (cluster.nodes.node(self.row).metadata.labels or {}) == self.labels

    def is_lost(self, cluster: Cluster) -> bool:
        """Whether the pod has it still, and its node is gone."""
        record = cluster.pods.records.get(self.key)
        if record is None or record is not self.entry.record or not record.assumed:
            return False
        return record.row == UNBOUND and record.node_name == self.node


@dataclass(frozen=True, eq=False)
class Nomination:
    """Pods for which room is being made, and who has to be gone before."""

    seats: tuple[Seat, ...]
    victims: tuple[Leaving, ...]
    gang: str = ""
    """The key of the outermost gang; nothing for a pod by itself."""


class Nominations:
    """All of them, by pod."""

    def __init__(self) -> None:
        self._by_pod: dict[str, Nomination] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._by_pod

    def __iter__(self) -> Iterator[Nomination]:
        return iter(dict.fromkeys(self._by_pod.values()))

    def has_gang(self, root: str) -> bool:
        return any(nomination.gang == root for nomination in self._by_pod.values())

    def hold(self, nomination: Nomination, cluster: Cluster, queue: Queue) -> None:
        """Let pods take their seats, and wait no longer."""
        for seat in nomination.seats:
            queue.remove(seat.key)
            cluster.assume(seat.key, seat.row)
            cluster.gangs.nominate(seat.key, holds_room=True)
            self._by_pod[seat.key] = nomination

    def give_up(self, key: str, cluster: Cluster, queue: Queue) -> None:
        """Take the room back from a pod, and from all that were nominated with it: they wait again."""
        self._dissolve(self._by_pod[key], cluster, queue)

    def _forget(self, nomination: Nomination, cluster: Cluster) -> None:
        for seat in nomination.seats:
            self._by_pod.pop(seat.key, None)
            cluster.gangs.nominate(seat.key, holds_room=False)

    def _dissolve(self, nomination: Nomination, cluster: Cluster, queue: Queue) -> bool:
        """Let those wait again who still have their seats; tell whether there was anybody."""
        self._forget(nomination, cluster)
        waiting = [seat.entry for seat in nomination.seats if seat.is_taken(cluster)]
        for entry in waiting:
            cluster.release(entry.record.key)
        for seat in nomination.seats:
            if seat.is_lost(cluster):
                cluster.observe(BindFailed(seat.key))
                waiting.append(seat.entry)
        self._put_back(nomination, waiting, queue)
        return bool(waiting)

    def _put_back(self, nomination: Nomination, waiting: list[Entry], queue: Queue) -> None:
        if not nomination.gang:
            queue.put_back(waiting)
            return
        for entry in waiting:
            queue.add(entry.record, entry.profile, entry.queued_at)
        queue.gang_changed(nomination.gang)  # whoever of it still waits belongs with them again

    # What became of them.

    def follow_up(self, search: Search, queue: Queue, now: float) -> list[Decision]:
        """Bind those whose victims are gone; forget those that have lost their places."""
        cluster = search.cluster
        decisions: list[Decision] = []
        for nomination in list(self):
            held = [self._is_held(seat, cluster, queue, now) for seat in nomination.seats]  # each has its say
            if not all(held):
                if self._dissolve(nomination, cluster, queue):
                    queue.note(Change.POD_GONE)  # what was held is anybody's
            elif all(victim.is_gone(cluster) for victim in nomination.victims):
                self._forget(nomination, cluster)
                decisions += self._bind(nomination, search, queue)
        return decisions

    def _is_held(self, seat: Seat, cluster: Cluster, queue: Queue, now: float) -> bool:
        """Whether a pod still has its seat; it takes it again if the world showed it as waiting."""
        record = cluster.pods.records.get(seat.key)
        if record is None or record.pod.metadata.uid != seat.uid:
            return False
        if record.row != UNBOUND:
            return seat.is_taken(cluster) and seat.is_same_place(cluster)
        if record.node_name:  # its node is gone while it held room there
            cluster.observe(BindFailed(seat.key))
            queue.add(cluster.pods.records[seat.key], seat.entry.profile, now)
            return False
        if not seat.is_same_place(cluster):
            return False
        seat.entry.record = record
        queue.remove(seat.key)
        cluster.assume(seat.key, seat.row)
        return True

    def _bind(self, nomination: Nomination, search: Search, queue: Queue) -> list[Decision]:
        """Bind pods whose victims are gone, if the filters agree; else they are to be tried anew."""
        cluster = search.cluster
        entries = [seat.entry for seat in nomination.seats]
        if not _is_whole(cluster, nomination) or not fits(search, nomination) or not _take_steps(cluster, entries):
            for entry in entries:
                cluster.release(entry.record.key)
            self._put_back(nomination, entries, queue)
            queue.note(Change.POD_GONE)
            return []
        if nomination.gang:
            queue.gang_changed(nomination.gang)
            queue.gangs.look_again_after(nomination.gang)
            for shape in {entry.record.shape.id: entry.record.shape for entry in entries}.values():
                queue.note(Change.POD_BOUND, shape)
        return [Bind(seat.key, seat.node) for seat in nomination.seats]


def _is_whole(cluster: Cluster, nomination: Nomination) -> bool:
    """Whether gangs are whole with those that have seats: they may have been released or withdrawn in the meantime."""
    table = cluster.gangs
    parts = {part.key: part for seat in nomination.seats if (part := table.of(seat.key)) is not None}
    roots = {root.key: root for part in parts.values() if (root := table.root_of(part))}
    if nomination.gang and list(roots) != [nomination.gang]:
        return False
    return all(part.is_whole() for part in parts.values()) and all(
        table.is_whole(root) and table.may_start(root) for root in roots.values()
    )


def fits(search: Search, nomination: Nomination) -> bool:
    """Whether every pod could come to its seat, with all others in theirs."""
    cluster = search.cluster
    if len(nomination.seats) == 1:
        seat = nomination.seats[0]
        cluster.release(seat.key)
        there = np.array([seat.row], np.intp)
        answer = refusals(seat.entry.profile, cluster, seat.entry.record.shape, there)
        cluster.assume(seat.key, seat.row)
        return bool(len(answer.feasible))
    wants = wants_of(search, [(seat.entry.record, seat.entry.profile) for seat in nomination.seats])
    if not all(want.is_row[[record.row for record in want.records]].all() for want in wants):
        return False
    return MembersInPlace(cluster, wants).all_fit()


def _take_steps(cluster: Cluster, entries: list[Entry]) -> bool:
    """Take all pods through the steps after the choice of a node; nothing is left behind if a plugin refuses one."""
    stepping = [entry for entry in entries if needs_steps(entry.profile, entry.record.shape)]
    reservations = Reservations(cluster)
    refused = next((found for entry in stepping if (found := reservations.add(entry)) is not None), None)
    if refused is None and reservations.bind(stepping) is None:
        return True
    reservations.undo()
    return False


def seat_of(entry: Entry, row: int, cluster: Cluster) -> Seat:
    node = cluster.nodes.node(row)
    return Seat(entry, entry.record.pod.metadata.uid, node.metadata.name, row, node.metadata.labels or {})
