"""Who is too young to be reclaimed: one of our own policies (minimumRuntimeBeforeReclaimSeconds).

A workload that was admitted less than so long ago is no candidate for what other queues want back, be it by right, by
priority or by share. Preemption by priority within its own queue stays as it is.
"""

from mooring.actions.admit.workload_info import AdmittedWorkload


class MinimumRuntime:
    """Spares the young, and remembers when somebody who was spared comes of age."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.now = 0.0
        self._due: dict[str, float] = {}
        """By queue in which somebody was spared, when the first of them comes of age."""

    def spares(self, admitted: AdmittedWorkload) -> bool:
        """Tell whether a workload must not be taken anything yet; one that is on its way out is not spared."""
        if self.seconds <= 0 or admitted.is_evicted:
            return False
        of_age = admitted.running_since + self.seconds
        if of_age <= self.now:
            return False
        queue = admitted.pending.queue_name
        self._due[queue] = min(self._due.get(queue, of_age), of_age)
        return True

    def came_of_age(self) -> list[str]:
        """The queues in which somebody has come of age since they were spared; each is told once."""
        found = [queue for queue, at in self._due.items() if at <= self.now]
        for queue in found:
            del self._due[queue]
        return found

    @property
    def next(self) -> float | None:
        return min(self._due.values(), default=None)
