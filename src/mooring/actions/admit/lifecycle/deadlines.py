"""What is due when: times at which a workload must be looked at though nothing has happened to it."""

from collections.abc import Iterator
from heapq import heappop, heappush


class Deadlines:
    """Times and the works they are for. A time that no longer counts is left in: whoever looks must check."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._count = 0

    def add(self, time: float, key: str) -> None:
        self._count += 1
        heappush(self._heap, (time, self._count, key))

    def due(self, now: float) -> Iterator[str]:
        """Take out the workloads whose time has come, earliest first."""
        while self._heap and self._heap[0][0] <= now:
            yield heappop(self._heap)[-1]

    @property
    def next(self) -> float | None:
        return self._heap[0][0] if self._heap else None
