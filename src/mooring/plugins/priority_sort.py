"""The queue's order: higher priority first, then whoever came first."""

from mooring.engine.plugin import QueueSort
from mooring.model.api.pods import Pod


class PrioritySort(QueueSort):
    def sort_key(self, pod: Pod, queued_at: float) -> tuple[int, float]:
        return -(pod.spec.priority or 0), queued_at
