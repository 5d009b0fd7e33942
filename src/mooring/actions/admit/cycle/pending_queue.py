"""Who waits in one queue: those to be tried, best first, and those parked until something changes.

A strict queue always tries its first workload again, so nobody passes it. A best-effort queue parks what cannot be
admitted, together with everything of the same shape, until quota is freed somewhere in its tree of cohorts.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from heapq import heapify, heappop, heappush

from mooring.actions.admit.cycle.conditions import PENDING_EVALUATION
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.quota.workload_info import PendingWorkload
from mooring.model.keys import WorkloadKey
from mooring.state.workloads import Condition, Logged

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


class Requeue(Enum):
    """Why a workload that was tried goes back."""

    NO_FIT = "no fit"
    NO_CANDIDATES = "nobody to preempt"
    PENDING_PREEMPTION = "waits for preempted workloads"
    PASSED_OVER = "did not fit any more after others"
    NAMESPACE_MISMATCH = "namespace not selected by the queue"
    PODS_NOT_READY = "waits for those admitted before to be ready"
    NO_PLACE = "no nodes to take its pods"
    ROOM_HELD = "what it would take is held for another"
    QUOTA_ENDS = "would lose its quota too soon"
    FAULT = "something raised in its turn"


_TRIED_AGAIN_AT_ONCE = frozenset({Requeue.PENDING_PREEMPTION, Requeue.PASSED_OVER, Requeue.PODS_NOT_READY})
_LET_OTHERS_PASS = frozenset({Requeue.NAMESPACE_MISMATCH, Requeue.FAULT})
"""Even in a strict queue."""
_SAME_FOR_THE_SHAPE = frozenset({Requeue.NO_FIT, Requeue.NO_CANDIDATES})

MOST_FAILED = 10_000
"""When so many shapes have failed, those that nobody has any more are forgotten."""

HeapEntry = tuple[int, float, str, WorkloadKey]


class _Bucket:
    """Workloads of one shape in a line, which are parked and tried again together; their order is kept meanwhile."""

    __slots__ = ("_entry_of", "_heap", "_told", "_untold", "group", "is_parked", "listed", "members")

    def __init__(self, group: str, *, is_parked: bool) -> None:
        self.group = group
        self.is_parked = is_parked
        self.members: dict[WorkloadKey, PendingWorkload] = {}
        self._heap: list[HeapEntry] = []
        self._entry_of: dict[WorkloadKey, HeapEntry] = {}
        self._told: Condition | None = None
        self._untold: dict[WorkloadKey, None] = {}
        """Who came since the others were told something."""
        self.listed: HeapEntry | None = None
        """As whom its first one stands among the heads of the line."""

    def add(self, pending: PendingWorkload) -> None:
        key = pending.key
        self.members[key] = pending
        entry = self._entry_of[key] = (*pending.queue_order, key)
        self._untold[key] = None
        heappush(self._heap, entry)
        if len(self._heap) > _most_listed(len(self.members)):
            self._heap = list(self._entry_of.values())
            heapify(self._heap)

    def discard(self, key: WorkloadKey) -> PendingWorkload:
        del self._entry_of[key]
        self._untold.pop(key, None)
        return self.members.pop(key)

    def tell(self, condition: Condition) -> list[WorkloadKey]:
        """All are to know this: those to whom it is news."""
        news = list(self._untold if condition == self._told else self.members)
        self._told = condition
        self._untold.clear()
        return news

    def first(self) -> HeapEntry | None:
        """Who comes first; entries of workloads that left are dropped here."""
        heap, entry_of = self._heap, self._entry_of
        while heap:
            entry = heap[0]
            if entry_of.get(entry[-1]) is entry:
                return entry
            heappop(heap)
        return None


def _most_listed(living: int) -> int:
    """When a heap is longer than this, most of it is of workloads that left, and were not passed over since."""
    return 2 * living + 64


Heads = list[tuple[HeapEntry, int, _Bucket]]
"""A heap of buckets by who comes first in them. Those that are parked, or have another first, are passed over."""


class PendingQueue:
    """One queue's workloads."""

    def __init__(self, queue: Queue, preemptors: Logged[str, WorkloadKey]) -> None:
        """`preemptors` says for which workload of each queue others were preempted."""
        self.queue = queue
        self._preemptors = preemptors
        self._bucket_of: dict[WorkloadKey, _Bucket] = {}
        self._buckets: dict[int, list[_Bucket]] = {}
        """By shape."""
        self._heads: dict[str, Heads] = {}
        """By group: those among whom the order never changes."""
        self._count = 0
        self._active = 0
        self._alone: dict[WorkloadKey, PendingWorkload] = {}
        """Parked for reasons of their own."""
        self._failed_shapes: dict[int, Condition] = {}
        """The shapes of which one was tried in vain since quota was last freed, and what was said of it."""

    def __len__(self) -> int:
        return self._active

    def __contains__(self, key: WorkloadKey) -> bool:
        return key in self._bucket_of or key in self._alone

    def add(self, pending: PendingWorkload) -> None:
        """Take in a workload; one whose shape has just failed need not be tried."""
        self._put(pending, is_parked=pending.shape in self._failed_shapes)

    def activate(self, pending: PendingWorkload) -> None:
        """Have a workload tried, whatever became of others like it."""
        if pending.key in self:
            self.discard(pending.key)
        self._put(pending, is_parked=False)

    def _put(self, pending: PendingWorkload, *, is_parked: bool) -> None:
        group = self._group(pending)
        buckets = self._buckets.setdefault(pending.shape, [])
        for bucket in buckets:
            if bucket.is_parked is is_parked and bucket.group == group:
                break
        else:
            bucket = _Bucket(group, is_parked=is_parked)
            buckets.append(bucket)
        bucket.add(pending)
        self._bucket_of[pending.key] = bucket
        if not is_parked:
            self._active += 1
            self._list(bucket)

    def _group(self, pending: PendingWorkload) -> str:
        return ""

    def _list(self, bucket: _Bucket) -> None:
        """Let the first of a bucket be found among the heads."""
        first = bucket.first()
        if first is not None and first != bucket.listed:
            bucket.listed = first
            self._count += 1
            heads = self._heads.setdefault(bucket.group, [])
            heappush(heads, (first, self._count, bucket))
            if len(heads) > _most_listed(len(self._bucket_of)):
                self._forget_gone(heads)

    def _forget_gone(self, heads: Heads) -> None:
        """Nobody passes over those who left while a queue is held, or its first one blocked."""
        listed = {id(found[-1]): found for found in heads if found[-1].members and found[-1].listed == found[0]}
        heads[:] = listed.values()
        heapify(heads)

    def find(self, key: WorkloadKey) -> PendingWorkload | None:
        bucket = self._bucket_of.get(key)
        return self._alone.get(key) if bucket is None else bucket.members[key]

    def discard(self, key: WorkloadKey) -> PendingWorkload | None:
        """Take a workload out, wherever it waits."""
        bucket = self._bucket_of.pop(key, None)
        if bucket is None:
            return self._alone.pop(key, None)
        pending = bucket.discard(key)
        self._active -= not bucket.is_parked
        if not bucket.members:
            buckets = self._buckets[pending.shape]
            buckets.remove(bucket)
            if not buckets:
                del self._buckets[pending.shape]
        return pending

    def pop(self) -> PendingWorkload:
        """Take the first workload; the line must not be empty."""
        key = WorkloadKey(self.sticky)
        sticky = None if self.queue.is_strict else self._bucket_of.get(key)
        if sticky is None or sticky.is_parked:
            key = self._first()[-1]
        pending = self.discard(key)
        assert pending is not None
        return pending

    def _first(self) -> HeapEntry:
        first = self._first_in(self._heads[""])
        assert first is not None
        return first

    def _first_in(self, heads: Heads) -> HeapEntry | None:
        """Who comes first of those that are not parked; what no longer holds is dropped on the way."""
        while heads:
            entry, _, bucket = heads[0]
            first = None if bucket.is_parked else bucket.first()
            if first == entry:
                return entry
            heappop(heads)
            if bucket.listed == entry:
                bucket.listed = None
                if first is not None:
                    self._list(bucket)
        return None

    def put_back(self, pending: PendingWorkload, why: Requeue, condition: Condition) -> list[WorkloadKey]:
        """Return a workload that was tried in vain to where it belongs; those parked with it to whom that is news."""
        if why is Requeue.PENDING_PREEMPTION:
            self._preemptors.put(self.queue.name, pending.key)
        is_tried_again = why in _TRIED_AGAIN_AT_ONCE or (self.queue.is_strict and why not in _LET_OTHERS_PASS)
        has_more_flavors = pending.position is not None and pending.position.is_pending
        if is_tried_again or has_more_flavors:
            self._put(pending, is_parked=False)
            return []
        if why not in _SAME_FOR_THE_SHAPE:
            self._alone[pending.key] = pending
            return []
        if len(self._failed_shapes) >= MOST_FAILED:
            self._failed_shapes = {shape: said for shape, said in self._failed_shapes.items() if shape in self._buckets}
        self._failed_shapes[pending.shape] = condition
        news: list[WorkloadKey] = []
        for bucket in self._buckets.get(pending.shape, ()):
            if not bucket.is_parked:
                bucket.is_parked = True
                self._active -= len(bucket.members)
                news += bucket.tell(condition)
        self._put(pending, is_parked=True)
        return news

    def admitted(self, key: WorkloadKey) -> None:
        if self.sticky == key:
            self._preemptors.take_out(self.queue.name)

    def retry(self, labels_of: Mapping[str, Mapping[str, str]]) -> None:
        """Quota was freed: whatever is parked may be tried again, unless it is known to be in the wrong namespace."""
        for shape in self._failed_shapes:
            for bucket in self._buckets.get(shape, ()):
                if bucket.is_parked:
                    bucket.is_parked = False
                    self._active += len(bucket.members)
                    self._list(bucket)
        self._failed_shapes.clear()
        for pending in list(self._alone.values()):
            if self.admits_namespace(pending, labels_of):
                self.activate(pending)

    def admits_namespace(self, pending: PendingWorkload, labels_of: Mapping[str, Mapping[str, str]]) -> bool:
        namespace = pending.namespace
        labels = labels_of.get(namespace) or {NAMESPACE_NAME_LABEL: namespace}
        return self.queue.namespaces.matches(labels)

    def words_for(self, pending: PendingWorkload) -> Condition:
        """What can be said of a workload that was not tried itself."""
        known = self._failed_shapes.get(pending.shape)
        if known is not None and self.is_parked(pending.key):
            return known
        return Condition(PENDING_EVALUATION, f"Workload waits for its turn in ClusterQueue {self.queue.name}")

    def is_parked(self, key: WorkloadKey) -> bool:
        bucket = self._bucket_of.get(key)
        return key in self._alone if bucket is None else bucket.is_parked

    @property
    def has_parked(self) -> bool:
        return self._active < len(self._bucket_of) or bool(self._alone)

    @property
    def parked(self) -> list[WorkloadKey]:
        """Those that are not to be tried until something changes."""
        return [*(key for key, bucket in self._bucket_of.items() if bucket.is_parked), *self._alone]

    @property
    def waiting_count(self) -> int:
        """How many workloads wait in the queue, parked or not."""
        return len(self._bucket_of) + len(self._alone)

    @property
    def is_waited_in(self) -> bool:
        return bool(self._bucket_of or self._alone)

    @property
    def sticky(self) -> str:
        """The workload that others were preempted for: it goes first, or they would have gone for nothing."""
        return self._preemptors.get(self.queue.name, "")

    def waiting(self, *, with_parked: bool = True) -> Iterator[PendingWorkload]:
        """All who wait here, in no particular order."""
        for buckets in self._buckets.values():
            for bucket in buckets:
                if with_parked or not bucket.is_parked:
                    yield from bucket.members.values()
        if with_parked:
            yield from self._alone.values()

    def in_order(self, *, with_parked: bool = False) -> list[PendingWorkload]:
        """The workloads to be tried, first one first; with those parked, as if they were to be tried as well."""
        sticky = "" if self.queue.is_strict else self.sticky
        return sorted(
            self.waiting(with_parked=with_parked), key=lambda found: (found.key != sticky, *found.queue_order)
        )
