"""When to stop: cycles run back to back until another one could decide nothing new.

A strict queue tries its head in every cycle, and so does whoever waits for victims to go. In a tree of cohorts in which
nothing was decided, and whose heads are those of an earlier such cycle, the next cycle would be the same again: it
sleeps until something happens in it.
"""

from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush

from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.workload_info import PendingWorkload
from mooring.model.keys import WorkloadKey


class Deadlines:
    """Times and the workloads they are for. A time that no longer counts is left in: whoever looks must check."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, WorkloadKey]] = []
        self._count = 0

    def add(self, time: float, key: WorkloadKey) -> None:
        self._count += 1
        heappush(self._heap, (time, self._count, key))

    def due(self, now: float) -> Iterator[WorkloadKey]:
        """Take out the workloads whose time has come, earliest first."""
        while self._heap and self._heap[0][0] <= now:
            yield heappop(self._heap)[-1]

    @property
    def next(self) -> float | None:
        return self._heap[0][0] if self._heap else None


Signature = tuple[object, ...]


class Settling:
    """Which trees sleep, by root."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self.asleep: set[int] = set()
        self._seen: dict[int, set[Signature]] = {}

    def wake(self, roots: Iterable[int]) -> None:
        """Something happened in these trees."""
        for root in roots:
            self.asleep.discard(root)
            self._seen.pop(root, None)

    def wake_all(self) -> None:
        self.asleep.clear()
        self._seen.clear()

    def note_cycle(self, heads: Iterable[PendingWorkload], decided: Collection[int]) -> None:
        """A cycle tried these heads, and decided something in those trees."""
        self.wake(decided)
        by_root: dict[int, list[object]] = {}
        for pending in heads:
            root = self._structure.queues[pending.queue_name].root
            by_root.setdefault(root, []).append((pending.key, _scan_state(pending)))
        for root, found in by_root.items():
            if root in decided:
                continue
            signature = tuple(found)
            seen = self._seen.setdefault(root, set())
            if signature in seen:
                self.asleep.add(root)
            seen.add(signature)


def _scan_state(pending: PendingWorkload) -> object:
    """Where the search for flavors goes on; a finished one starts anew."""
    position = pending.position
    if position is None or not position.is_pending:
        return None
    return tuple(tuple(sorted(tried.items())) for tried in position.tried)
