"""What is to happen and when: one heap over virtual time."""

import heapq
import math
from collections.abc import Callable
from typing import Any

Happening = Callable[[Any], None]


class Agenda:
    """Things that happen at their times, those of one moment in the order in which they were noted."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Happening, Any]] = []
        self._noted = 0

    @property
    def next(self) -> float:
        """When the next thing happens; never, if there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def note(self, at: float, happens: Happening, what: Any = None) -> None:
        """Let something happen then; what is never to happen is not noted."""
        if at < math.inf:
            self._noted += 1
            heapq.heappush(self._heap, (at, self._noted, happens, what))

    def let_happen(self, now: float) -> bool:
        """Let all happen that is due by now, also what is noted on the way; tell whether there was anything."""
        heap, found = self._heap, False
        while heap and heap[0][0] <= now:
            _, _, happens, what = heapq.heappop(heap)
            happens(what)
            found = True
        return found
