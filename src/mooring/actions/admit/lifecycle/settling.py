"""When to stop: cycles run back to back until another one could decide nothing new.

A strict queue tries its head in every cycle, and so does whoever waits for victims to go. In a tree of cohorts in which
nothing was decided, and whose heads are those of an earlier such cycle, the next cycle would be the same again: it
sleeps until something happens in it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import count

from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.quota.workload_info import PendingWorkload
from mooring.model.keys import WorkloadKey


class Deadlines:
    """Times and the workloads they are for. A time that no longer counts stays until it is the first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, WorkloadKey]] = []
        self._arrivals = count()

    def add(self, time: float, key: WorkloadKey) -> None:
        heappush(self._heap, (time, next(self._arrivals), key))

    def due(self, now: float) -> Iterator[WorkloadKey]:
        """Take out the workloads whose time has come, earliest first."""
        while self._heap and self._heap[0][0] <= now:
            yield heappop(self._heap)[-1]

    def next(self, counts: Callable[[float, WorkloadKey], bool]) -> float | None:
        """The first time that still counts."""
        while self._heap:
            time, _, key = self._heap[0]
            if counts(time, key):
                return time
            heappop(self._heap)
        return None


Signature = tuple[object, ...]

MOST_TRIES = 100
"""How many cycles in a row may decide nothing in a tree of cohorts, for each workload that waits there, before the tree
is put to sleep and reported. A workload is tried once for each flavor of its queue, and again when room is given up."""


class Settling:
    """The trees of cohorts, by root, in which there is nothing to decide until something changes."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self.asleep: set[int] = set()
        self._seen: dict[int, set[Signature]] = {}
        """By root, the signatures of the cycles since something was decided or changed there."""

    def wake(self, roots: Iterable[int]) -> None:
        """Something happened in these trees."""
        for root in roots:
            self.asleep.discard(root)
            self._seen.pop(root, None)

    def wake_all(self) -> None:
        self.asleep.clear()
        self._seen.clear()

    def note_cycle(
        self,
        heads: Iterable[PendingWorkload],
        decided: Collection[int],
        held: Mapping[int, object],
        count_waiting: Callable[[int], int],
    ) -> list[int]:
        """Note which heads a cycle tried, in which trees it decided something, and what is held there after it.

        A tree whose signature repeats is put to sleep. So is one in which ever new signatures come without a decision:
        its root is returned, because that is a mistake in admission. `count_waiting` says how many workloads wait in a
        tree. So a run ends: a workload is admitted at most once in a run, and between two decisions in a tree there are
        at most so many cycles.
        """
        self.wake(decided)
        by_root: dict[int, list[object]] = {}
        for pending in heads:
            root = self._structure.queues[pending.queue_name].root
            by_root.setdefault(root, []).append((pending.key, _scan_state(pending)))
        restless = []
        for root, found in by_root.items():
            if root in decided:
                continue
            signature = (*found, held.get(root))
            seen = self._seen.setdefault(root, set())
            if signature in seen:
                self.asleep.add(root)
            seen.add(signature)
            if len(seen) % MOST_TRIES == 0 and len(seen) > MOST_TRIES * (1 + count_waiting(root)):
                self.asleep.add(root)
                restless.append(root)
        return restless


def _scan_state(pending: PendingWorkload) -> object:
    """Where the search for flavors goes on; a finished one starts anew."""
    position = pending.position
    if position is None or not position.is_pending:
        return None
    return tuple(tuple(sorted(tried.items())) for tried in position.tried)
