"""When pods that run are over, as far as they say how long they run."""

import heapq
import math
from collections.abc import Iterator

from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.values.durations import DURATION, duration_seconds


class KnownEnds:
    """A heap of ends; a pod that left its node and runs again ends at another time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str, int, str]] = []
        """When, the phase that the pod then has, in which order they started, and the pod."""
        self._number_of: dict[str, int] = {}
        self._started = 0

    def __len__(self) -> int:
        return len(self._number_of)

    def start(self, pod: Pod, at: float) -> None:
        """A pod runs since then."""
        seconds = duration_seconds(pod)
        if seconds is not None:
            self._started += 1
            self._number_of[pod.key] = self._started
            phase = "Succeeded" if DURATION in (pod.metadata.annotations or {}) else "Failed"
            heapq.heappush(self._heap, (at + seconds, phase, self._started, pod.key))

    def watch(self, pod: Pod, now: float) -> None:
        """A pod was seen as it is: if it runs, it may say since when."""
        if pod.spec.node_name and not pod.is_terminal:
            began = timestamp_seconds(pod.status.start_time)
            self.start(pod, now if began is None else began)

    def forget(self, key: str) -> None:
        self._number_of.pop(key, None)

    @property
    def next(self) -> float:
        heap = self._heap
        while heap and self._number_of.get(heap[0][3]) != heap[0][2]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def due(self, now: float) -> Iterator[tuple[str, str]]:
        """Take out the pods that are over by now, the first to end first, each with its last phase."""
        while self.next <= now:
            _, phase, _, key = heapq.heappop(self._heap)
            del self._number_of[key]
            yield key, phase
