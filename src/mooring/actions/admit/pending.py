"""Who waits in which queue: those to be tried, best first, and those parked until something changes.

A strict queue always tries its first workload again, so nobody passes it. A best-effort queue parks what cannot be
admitted, together with everything of the same shape, until quota is freed somewhere in its tree of cohorts.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from heapq import heappop, heappush

from mooring.actions.admit.applicants import Applicant
from mooring.actions.admit.structure import Queue, Structure

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


class Requeue(Enum):
    """Why a workload that was tried goes back."""

    NO_FIT = "no fit"
    NO_CANDIDATES = "nobody to preempt"
    PENDING_PREEMPTION = "waits for preempted workloads"
    PASSED_OVER = "did not fit any more after others"
    NAMESPACE_MISMATCH = "namespace not selected by the queue"


_TRIED_AGAIN_AT_ONCE = frozenset({Requeue.PENDING_PREEMPTION, Requeue.PASSED_OVER})
_SAME_FOR_THE_SHAPE = frozenset({Requeue.NO_FIT, Requeue.NO_CANDIDATES})

HeapEntry = tuple[int, float, str, str]


class Line:
    """One queue's workloads."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.parked: dict[str, Applicant] = {}
        self._active: dict[str, Applicant] = {}
        self._heap: list[HeapEntry] = []
        self._in_heap: set[HeapEntry] = set()
        """What the heap has; entries of workloads that left the line otherwise are skipped when they come up."""
        self._by_shape: dict[int, dict[str, None]] = {}
        self._failed_shapes: set[int] = set()
        self._sticky = ""
        """The workload that others were preempted for: it goes first, or they would have gone for nothing."""

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, key: str) -> bool:
        return key in self._active or key in self.parked

    def add(self, applicant: Applicant) -> None:
        """Take in a workload; one whose shape has just failed need not be tried."""
        if applicant.shape in self._failed_shapes:
            self.parked[applicant.key] = applicant
        else:
            self.activate(applicant)

    def activate(self, applicant: Applicant) -> None:
        key = applicant.key
        self.parked.pop(key, None)
        self._active[key] = applicant
        self._by_shape.setdefault(applicant.shape, {})[key] = None
        entry = (*applicant.queue_order, key)
        if entry not in self._in_heap:
            self._in_heap.add(entry)
            heappush(self._heap, entry)

    def discard(self, key: str) -> Applicant | None:
        """Take a workload out, wherever it waits."""
        applicant = self._active.get(key)
        if applicant is None:
            return self.parked.pop(key, None)
        self._deactivate(applicant)
        return applicant

    def _deactivate(self, applicant: Applicant) -> None:
        del self._active[applicant.key]
        same = self._by_shape[applicant.shape]
        del same[applicant.key]
        if not same:
            del self._by_shape[applicant.shape]

    def pop(self) -> Applicant:
        """Take the first workload; the line must not be empty."""
        sticky = None if self.queue.is_strict else self._active.get(self._sticky)
        if sticky is not None:
            self._deactivate(sticky)
            return sticky
        while True:
            entry = heappop(self._heap)
            self._in_heap.discard(entry)
            applicant = self._active.get(entry[-1])
            if applicant is not None and applicant.queue_order == entry[:-1]:
                self._deactivate(applicant)
                return applicant

    def put_back(self, applicant: Applicant, why: Requeue) -> None:
        """Return a workload that was tried and not admitted to where it belongs."""
        if why is Requeue.PENDING_PREEMPTION:
            self._sticky = applicant.key
        is_tried_again = why in _TRIED_AGAIN_AT_ONCE or (self.queue.is_strict and why is not Requeue.NAMESPACE_MISMATCH)
        has_more_flavors = applicant.position is not None and applicant.position.is_pending
        if is_tried_again or has_more_flavors:
            self.activate(applicant)
            return
        self.parked[applicant.key] = applicant
        if why in _SAME_FOR_THE_SHAPE:
            self._failed_shapes.add(applicant.shape)
            for key in list(self._by_shape.get(applicant.shape, ())):
                same = self._active[key]
                self._deactivate(same)
                self.parked[key] = same

    def admitted(self, key: str) -> None:
        if self._sticky == key:
            self._sticky = ""

    def retry(self, labels_of: Mapping[str, Mapping[str, str]]) -> None:
        """Quota was freed: whatever is parked may be tried again, unless it is in the wrong namespace."""
        self._failed_shapes.clear()
        for applicant in list(self.parked.values()):
            if self.admits_namespace(applicant, labels_of):
                self.activate(applicant)

    def admits_namespace(self, applicant: Applicant, labels_of: Mapping[str, Mapping[str, str]]) -> bool:
        namespace = applicant.namespace
        labels = labels_of.get(namespace) or {NAMESPACE_NAME_LABEL: namespace}
        return self.queue.namespaces.matches(labels)

    def in_order(self) -> list[Applicant]:
        """The workloads to be tried, first one first."""
        sticky = "" if self.queue.is_strict else self._sticky
        return sorted(self._active.values(), key=lambda found: (found.key != sticky, *found.queue_order))


class Pending:
    """The lines of all queues, and which of them have someone to try."""

    def __init__(self, structure: Structure, labels_of: Mapping[str, Mapping[str, str]]) -> None:
        self.lines = {name: Line(queue) for name, queue in structure.queues.items()}
        self._labels_of = labels_of
        self._ready: dict[str, None] = {}
        self._line_of: dict[str, Line] = {}
        self._by_root: dict[int, list[Line]] = {}
        for line in self.lines.values():
            self._by_root.setdefault(line.queue.root, []).append(line)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines.values())

    def add(self, applicant: Applicant) -> None:
        line = self._line_of[applicant.key] = self.lines[applicant.queue_name]
        line.add(applicant)
        self._note(line)

    def discard(self, key: str) -> bool:
        """Take a waiting workload out; False if there is none of that name."""
        line = self._line_of.get(key)
        if line is None or line.discard(key) is None:
            return False
        line.admitted(key)
        self._note(line)
        del self._line_of[key]
        return True

    @property
    def has_heads(self) -> bool:
        return bool(self._ready)

    def pop_heads(self) -> list[Applicant]:
        """Take one workload from every active queue that has any."""
        heads = []
        for name in list(self._ready):
            line = self.lines[name]
            heads.append(line.pop())
            self._note(line)
        return heads

    def put_back(self, applicant: Applicant, why: Requeue) -> None:
        line = self.lines[applicant.queue_name]
        line.put_back(applicant, why)
        self._note(line)

    def admitted(self, applicant: Applicant) -> None:
        self._line_of.pop(applicant.key).admitted(applicant.key)

    def admits_namespace(self, applicant: Applicant) -> bool:
        return self.lines[applicant.queue_name].admits_namespace(applicant, self._labels_of)

    def retry(self, queues: Iterable[Queue]) -> None:
        """Quota was freed in these queues: try again what is parked anywhere in their trees."""
        for root in {queue.root: None for queue in queues}:
            for line in self._by_root[root]:
                line.retry(self._labels_of)
                self._note(line)

    def _note(self, line: Line) -> None:
        if len(line) and line.queue.is_active:
            self._ready[line.queue.name] = None
        else:
            self._ready.pop(line.queue.name, None)
