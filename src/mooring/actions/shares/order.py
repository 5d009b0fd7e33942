"""Which queue comes next, and which of its jobs.

Queues by share: of those with the highest priority, at every level of the tree the one that holds least of what it
deserves; then those that deserve anything, then the oldest, then by name. Priorities and ages are those of the queues
that hold jobs; the ones above them only have shares.

Queues by hierarchical dominant shares: see `hierarchical.py`.

Jobs of one queue: higher priority, then those with too few members, then the smaller dominant share, then the oldest,
then by key.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

from mooring.actions.shares.hdrf import HierarchicalShares
from mooring.actions.shares.jobs import Job
from mooring.actions.shares.queue_shares import QueueShares
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.tournament import Key, Tournament
from mooring.actions.shares.tree import QueueTree

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


class HeapOrder(ShareOrder):
    """By the same shares, for queues below other queues, in the binary heap that Volcano has.

    Two queues compare where their paths part, and by age where that is a tie. So x can come before y, y before z and
    z before x: which one is served is then decided by their places in the heap. A queue leaves it for its turn and is
    pushed again after that.
    """

    def __init__(self, tree: QueueTree, shares: QueueShares, aside: Container[int]) -> None:
        """`aside`: the queues that have no further turn in this cycle."""
        super().__init__(tree, shares)
        self._aside = aside
        self._downwards = [tuple(reversed(path)) for path in tree.paths]
        self._heap: list[int] = []
        self._members: set[int] = set()
        self._taking_part: set[int] = set()
        self._out: int | None = None
        self.rebuild, self.update, self.best = self._rebuild, self._update, self._best

    def _rebuild(self, leaves: Iterable[int]) -> None:
        self._heap, self._out = [], None
        self._members, self._taking_part = set(), set()
        for leaf in leaves:
            self._update(leaf, True)

    def _update(self, leaf: int, takes_part: bool) -> None:
        if not takes_part:
            self._taking_part.discard(leaf)
            return
        self._taking_part.add(leaf)
        if leaf not in self._members and leaf != self._out:
            self._push(leaf)

    def _best(self) -> int | None:
        if self._out is not None and self._out not in self._aside:
            self._push(self._out)
        self._out = None
        while self._heap and self._out is None:
            leaf = self._pop()
            if leaf in self._taking_part:
                self._out = leaf
        return self._out

    def _push(self, leaf: int) -> None:
        self._members.add(leaf)
        heap, at = self._heap, len(self._heap)
        heap.append(leaf)
        while at and self._is_before(leaf, heap[(at - 1) // 2]):
            heap[at], at = heap[(at - 1) // 2], (at - 1) // 2
        heap[at] = leaf

    def _pop(self) -> int:
        heap = self._heap
        best, last = heap[0], heap.pop()
        self._members.discard(best)
        at, size = 0, len(heap)
        while (child := 2 * at + 1) < size:
            if child + 1 < size and self._is_before(heap[child + 1], heap[child]):
                child += 1
            if not self._is_before(heap[child], last):
                break
            heap[at], at = heap[child], child
        if heap:
            heap[at] = last
        return best

    def _is_before(self, leaf: int, other: int) -> bool:
        specs, shares = self._tree.specs, self._shares
        if specs[leaf].priority != specs[other].priority:
            return specs[leaf].priority > specs[other].priority
        one, two = next(
            pair for pair in zip(self._downwards[leaf], self._downwards[other], strict=False) if pair[0] != pair[1]
        )
        first = (shares[one], not shares.has_deserved[one], self._ties[leaf])
        return first < (shares[two], not shares.has_deserved[two], self._ties[other])


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


class JobHeap:
    """The jobs of one queue that want a turn, best first. Entries that are out of date go when they come to the top."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._jobs = jobs
        self._heap: list[JobKey] = []

    def put(self, job: Job, key: JobKey) -> None:
        job.heap_key = key
        heappush(self._heap, key)

    def moved(self, job: Job) -> None:
        """What the job holds, or what it is a part of, has changed."""

    @property
    def priority(self) -> int | None:
        """The highest of all that want a turn; None if there are none."""
        job = JobHeap.head(self)
        return None if job is None else job.demand.priority

    def head(self) -> Job | None:
        while self._heap:
            key = self._heap[0]
            job = self._jobs.get(key[-1])
            if job is not None and job.heap_key == key:
                return job
            heappop(self._heap)
        return None
