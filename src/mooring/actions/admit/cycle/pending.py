"""Who waits in which queue: those to be tried, best first, and those parked until something changes.

A strict queue always tries its first workload again, so nobody passes it. A best-effort queue parks what cannot be
admitted, together with everything of the same shape, until quota is freed somewhere in its tree of cohorts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from heapq import heappop, heappush

from mooring.actions.admit.lifecycle.conditions import PENDING_EVALUATION, Condition
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.workload_info import PendingWorkload
from mooring.state.related import RelatedObjects

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


_TRIED_AGAIN_AT_ONCE = frozenset({Requeue.PENDING_PREEMPTION, Requeue.PASSED_OVER, Requeue.PODS_NOT_READY})
_SAME_FOR_THE_SHAPE = frozenset({Requeue.NO_FIT, Requeue.NO_CANDIDATES})

HeapEntry = tuple[int, float, str, str]


class Line:
    """One queue's workloads."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.parked: dict[str, PendingWorkload] = {}
        self._active: dict[str, PendingWorkload] = {}
        self._heap: list[HeapEntry] = []
        self._in_heap: set[HeapEntry] = set()
        """What the heap has; entries of workloads that left the line otherwise are skipped when they come up."""
        self._by_shape: dict[int, dict[str, None]] = {}
        self._failed_shapes: dict[int, Condition] = {}
        """The shapes of which one was tried in vain since quota was last freed, and what was said of it."""
        self._sticky = ""
        """The workload that others were preempted for: it goes first, or they would have gone for nothing."""

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, key: str) -> bool:
        return key in self._active or key in self.parked

    def add(self, pending: PendingWorkload) -> None:
        """Take in a workload; one whose shape has just failed need not be tried."""
        if pending.shape in self._failed_shapes:
            self.parked[pending.key] = pending
        else:
            self.activate(pending)

    def activate(self, pending: PendingWorkload) -> None:
        key = pending.key
        self.parked.pop(key, None)
        self._active[key] = pending
        self._by_shape.setdefault(pending.shape, {})[key] = None
        entry = (*pending.queue_order, key)
        if entry not in self._in_heap:
            self._in_heap.add(entry)
            self._push(pending, entry)

    def _push(self, pending: PendingWorkload, entry: HeapEntry) -> None:
        heappush(self._heap, entry)

    def _pop_first(self) -> HeapEntry:
        return heappop(self._heap)

    def find(self, key: str) -> PendingWorkload | None:
        return self._active.get(key) or self.parked.get(key)

    def discard(self, key: str) -> PendingWorkload | None:
        """Take a workload out, wherever it waits."""
        pending = self._active.get(key)
        if pending is None:
            return self.parked.pop(key, None)
        self._deactivate(pending)
        return pending

    def _deactivate(self, pending: PendingWorkload) -> None:
        del self._active[pending.key]
        same = self._by_shape[pending.shape]
        del same[pending.key]
        if not same:
            del self._by_shape[pending.shape]

    def pop(self) -> PendingWorkload:
        """Take the first workload; the line must not be empty."""
        sticky = None if self.queue.is_strict else self._active.get(self._sticky)
        if sticky is not None:
            self._deactivate(sticky)
            return sticky
        while True:
            entry = self._pop_first()
            self._in_heap.discard(entry)
            if self._is_valid(entry):
                pending = self._active[entry[-1]]
                self._deactivate(pending)
                return pending

    def _is_valid(self, entry: HeapEntry) -> bool:
        """Tell whether the workload still waits to be tried, and where it stood."""
        pending = self._active.get(entry[-1])
        return pending is not None and pending.queue_order == entry[:-1]

    def put_back(self, pending: PendingWorkload, why: Requeue, condition: Condition) -> list[str]:
        """Return a workload that was tried and not admitted to where it belongs; those that are parked with it."""
        if why is Requeue.PENDING_PREEMPTION:
            self._sticky = pending.key
        is_tried_again = why in _TRIED_AGAIN_AT_ONCE or (self.queue.is_strict and why is not Requeue.NAMESPACE_MISMATCH)
        has_more_flavors = pending.position is not None and pending.position.is_pending
        if is_tried_again or has_more_flavors:
            self.activate(pending)
            return []
        self.parked[pending.key] = pending
        if why not in _SAME_FOR_THE_SHAPE:
            return []
        self._failed_shapes[pending.shape] = condition
        peers = list(self._by_shape.get(pending.shape, ()))
        for key in peers:
            same = self._active[key]
            self._deactivate(same)
            self.parked[key] = same
        return peers

    def admitted(self, key: str) -> None:
        if self._sticky == key:
            self._sticky = ""

    def retry(self, labels_of: Mapping[str, Mapping[str, str]]) -> None:
        """Quota was freed: whatever is parked may be tried again, unless it is in the wrong namespace."""
        self._failed_shapes.clear()
        if not self.parked:
            return
        admits = dict[str, bool]()  # by namespace: most lines have one
        for pending in list(self.parked.values()):
            admitted = admits.get(pending.namespace)
            if admitted is None:
                admitted = admits[pending.namespace] = self.admits_namespace(pending, labels_of)
            if admitted:
                self.activate(pending)

    def admits_namespace(self, pending: PendingWorkload, labels_of: Mapping[str, Mapping[str, str]]) -> bool:
        namespace = pending.namespace
        labels = labels_of.get(namespace) or {NAMESPACE_NAME_LABEL: namespace}
        return self.queue.namespaces.matches(labels)

    def words_for(self, pending: PendingWorkload) -> Condition:
        """What can be said of a workload that was not tried itself."""
        known = self._failed_shapes.get(pending.shape)
        if known is not None and pending.key in self.parked:
            return known
        return Condition(PENDING_EVALUATION, f"Workload waits for its turn in ClusterQueue {self.queue.name}")

    @property
    def is_waited_in(self) -> bool:
        return bool(self._active or self.parked)

    @property
    def sticky(self) -> str:
        return self._sticky

    @sticky.setter
    def sticky(self, key: str) -> None:
        self._sticky = key

    def waiting(self) -> Iterator[PendingWorkload]:
        """All who wait here, in no particular order."""
        yield from self._active.values()
        yield from self.parked.values()

    def in_order(self, *, with_parked: bool = False) -> list[PendingWorkload]:
        """The workloads to be tried, first one first; with those parked, as if they were to be tried as well."""
        sticky = "" if self.queue.is_strict else self._sticky
        found = self.waiting() if with_parked else self._active.values()
        return sorted(found, key=lambda found: (found.key != sticky, *found.queue_order))


class Pending:
    """The lines of all queues, and which of them have someone to try."""

    def __init__(
        self,
        structure: Structure,
        labels_of: Mapping[str, Mapping[str, str]],
        make_line: Callable[[Queue], Line] = Line,
    ) -> None:
        self.lines = {name: make_line(queue) for name, queue in structure.queues.items()}
        self._labels_of = labels_of
        self._ready: dict[str, None] = {}
        self._line_of: dict[str, Line] = {}
        self.changed: set[int] = set()
        """The roots of trees in which somebody came, went or may be tried again; whoever reads it clears it."""
        self._unparked: set[int] = set()
        """The roots of trees in which nobody was parked since quota was last freed there."""
        self._by_root: dict[int, list[Line]] = {}
        for line in self.lines.values():
            self._by_root.setdefault(line.queue.root, []).append(line)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines.values())

    def add(self, pending: PendingWorkload) -> None:
        line = self._line_of[pending.key] = self.lines[pending.queue_name]
        line.add(pending)
        self.changed.add(line.queue.root)
        self._note(line)

    def discard(self, key: str) -> bool:
        """Take a waiting workload out; False if there is none of that name."""
        line = self._line_of.get(key)
        if line is None or line.discard(key) is None:
            return False
        line.admitted(key)
        self.changed.add(line.queue.root)
        self._note(line)
        del self._line_of[key]
        return True

    def find(self, key: str) -> PendingWorkload | None:
        """The waiting workload of that name, if there is one."""
        line = self._line_of.get(key)
        return None if line is None else line.find(key)

    def words_for(self, key: str) -> Condition | None:
        """What can be said of a waiting workload that was not tried; None if nobody of that name waits."""
        pending = self.find(key)
        return None if pending is None else self._line_of[key].words_for(pending)

    def try_again(self, keys: Iterable[str]) -> None:
        """Something happened that may help these workloads, if they are parked."""
        for key in keys:
            line = self._line_of.get(key)
            if line is not None and key in line.parked:
                line.activate(line.parked[key])
                self.changed.add(line.queue.root)
                self._note(line)

    @property
    def has_heads(self) -> bool:
        return bool(self._ready)

    def has_heads_outside(self, asleep: Collection[int]) -> bool:
        """Tell whether there is anyone to try in a tree that is not among the given ones."""
        return any(self.lines[name].queue.root not in asleep for name in self._ready)

    def pop_heads(self, asleep: Collection[int] = ()) -> list[PendingWorkload]:
        """Take one workload from every active queue that has any, but for the trees that sleep."""
        heads = []
        for name in list(self._ready):
            line = self.lines[name]
            if line.queue.root in asleep:
                continue
            heads.append(line.pop())
            self._note(line)
        return heads

    def put_back(self, pending: PendingWorkload, why: Requeue, condition: Condition) -> list[str]:
        line = self.lines[pending.queue_name]
        peers = line.put_back(pending, why, condition)
        self._unparked.discard(line.queue.root)
        self._note(line)
        return peers

    def admitted(self, pending: PendingWorkload) -> None:
        self._line_of.pop(pending.key).admitted(pending.key)

    def admits_namespace(self, pending: PendingWorkload) -> bool:
        return self.lines[pending.queue_name].admits_namespace(pending, self._labels_of)

    def retry(self, queues: Iterable[Queue]) -> None:
        """Quota was freed in these queues: try again what is parked anywhere in their trees."""
        for root in {queue.root: None for queue in queues}:
            self.changed.add(root)
            if root in self._unparked:
                continue
            lines = self._by_root[root]
            for line in lines:
                line.retry(self._labels_of)
                self._note(line)
            if not any(line.parked for line in lines):
                self._unparked.add(root)

    def _note(self, line: Line) -> None:
        if len(line) and line.queue.is_active:
            self._ready[line.queue.name] = None
        else:
            self._ready.pop(line.queue.name, None)


class NamespaceLabels(Mapping[str, Mapping[str, str]]):
    """By namespace, its labels as they are now."""

    def __init__(self, related: RelatedObjects) -> None:
        self._related = related

    def __getitem__(self, namespace: str) -> Mapping[str, str]:
        return self._related.namespaces[namespace].metadata.labels or {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._related.namespaces)

    def __len__(self) -> int:
        return len(self._related.namespaces)
