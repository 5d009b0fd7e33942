"""Which queue comes next, and which of its jobs.

Queues by share: of those with the highest priority, at every level of the tree the one that holds least of what it
deserves; then those that deserve anything, then the oldest, then by name. Priorities and ages are those of the queues
that hold jobs; the ones above them only have shares.

Queues by hierarchical dominant shares: see `hierarchical.py`.

Jobs of one queue: higher priority, then those with too few members, then the smaller dominant share, then the oldest,
then by key.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

from mooring.actions.volcano.hdrf import HierarchicalShares
from mooring.actions.volcano.jobs import Job
from mooring.actions.volcano.queue_shares import QueueShares
from mooring.actions.volcano.settings import ShareSettings
from mooring.actions.volcano.standings import Key, Tournament
from mooring.actions.volcano.tree import QueueTree

JobKey = tuple[Any, ...]
"""Urgency, whether it has its minimum of members, its share, its age, its key: the smallest has the next turn."""


class QueueOrder(Protocol):
    """The order of the leaf queues that take part."""

    def rebuild(self, leaves: Iterable[int]) -> None: ...

    def update(self, leaf: int, takes_part: bool) -> None: ...

    def best(self) -> int | None: ...

    def victim_key(self, leaf: int, way: Sequence[int]) -> Key:
        """Who gives back first is smallest. The way leads from the leaf to just below a queue above the reclaimer's."""


class ShareOrder:
    """By what queues hold of what they deserve."""

    def __init__(self, tree: QueueTree, shares: QueueShares) -> None:
        self._tree = tree
        self._shares = shares
        self._ties = [(spec.created, spec.name) for spec in tree.specs]
        self._tournament = Tournament(tree.parent, self._key)
        self.rebuild, self.update, self.best = (
            self._tournament.rebuild,
            self._tournament.update,
            self._tournament.best,
        )

    def _key(self, row: int, best: Key | None) -> Key:
        urgency, ties = (-self._tree.specs[row].priority, self._ties[row]) if best is None else (best[0], best[3:])
        return (urgency, self._shares[row], not self._shares.has_deserved[row], *ties)

    def victim_key(self, leaf: int, way: Sequence[int]) -> Key:
        spec = self._tree.specs[leaf]
        return (spec.priority, tuple(-self._shares[row] for row in reversed(way)), -spec.created, spec.name)


class HierarchicalOrder:
    """By hierarchical dominant shares. Queues hang below the parts that their ways lead to."""

    def __init__(self, tree: QueueTree, shares: HierarchicalShares) -> None:
        self._tree = tree
        self._shares = shares
        self._first = len(shares.parent)
        self._node_of = {leaf: self._first + index for index, leaf in enumerate(tree.leaves)}
        parent = shares.parent + [shares.node_of_queue[leaf] for leaf in tree.leaves]
        self._tournament = Tournament(parent, self._key)

    def _key(self, node: int, best: Key | None) -> Key:
        if best is None:
            spec = self._tree.specs[self._tree.leaves[node - self._first]]
            return ((), spec.created, spec.name)
        return ((self._shares.standing(node), *best[0]), *best[1:])

    def rebuild(self, leaves: Iterable[int]) -> None:
        self._tournament.rebuild(self._node_of[leaf] for leaf in leaves)

    def update(self, leaf: int, takes_part: bool) -> None:
        self._tournament.update(self._node_of[leaf], takes_part)

    def best(self) -> int | None:
        node = self._tournament.best()
        return None if node is None else self._tree.leaves[node - self._first]

    def victim_key(self, leaf: int, way: Sequence[int]) -> Key:
        standings = tuple((not is_saturated, -share) for is_saturated, share in self._shares.standings(leaf))
        return (standings, -self._tree.specs[leaf].created, self._tree.name(leaf))


def job_key(job: Job, settings: ShareSettings) -> JobKey:
    demand = job.demand
    if demand.application:  # its line orders applications, and has them by their own standing
        return (-demand.priority, demand.created, demand.key)
    by_share, urgency = settings.orders_jobs_by_share, demand.priority if settings.orders_jobs_by_priority else 0
    return (-urgency, job.has_enough, job.share if by_share else 0.0, demand.created, demand.key)


class Line:
    """The jobs of one queue that want a turn, best first. Entries that are out of date go when they come to the top."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._jobs = jobs
        self._heap: list[JobKey] = []

    def put(self, job: Job, key: JobKey) -> None:
        job.line_key = key
        heappush(self._heap, key)

    def moved(self, job: Job) -> None:
        """What the job holds, or what it is a part of, has changed."""

    def head(self) -> Job | None:
        while self._heap:
            key = self._heap[0]
            job = self._jobs.get(key[-1])
            if job is not None and job.line_key == key:
                return job
            heappop(self._heap)
        return None
