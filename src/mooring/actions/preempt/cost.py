"""What a profile says preemption may cost, at one moment: who is protected until when, and what work would be lost.

All of it is column arithmetic over the matrices of `running`: an index there in, one value a pod out.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.tolerations import scheduled_at, toleration_of
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.engine.plugin import Mask
from mooring.state.remembered import Preemptions
from mooring.state.running import NOT_STARTED, Matrix, RunningPods

SECOND = 1_000_000
"""Times are in microseconds."""
FOREVER = 2**62
"""A time that never comes."""
NEVER_SECONDS = FOREVER // SECOND // 2
"""What is so long away never comes."""


class Cost:
    """The policy of one profile at one moment; `running` is up to date."""

    def __init__(
        self, args: PreemptionCostArgs, running: RunningPods, preemptions: Preemptions, now: float, priority: int = 0
    ) -> None:
        """`priority` is that of the preemptor."""
        self.args = args
        self._priority = priority
        self._running = running
        self._spared = preemptions.spared(args, now)
        self._now = now
        # Manifests in files come without a clock: the moment is then that of the latest start.
        latest = int(running.starts[running.starts != NOT_STARTED].max(initial=0))
        self.moment = max(latest, int(now * SECOND)) if math.isfinite(now) else latest

    @property
    def has_least_lost(self) -> bool:
        return self.args.least_work_lost

    def lost(self, index: Matrix) -> Matrix:
        """How much work each pod would lose, in microseconds; nothing if it has not started."""
        saved = self._running.saved.ravel().take(index)
        return np.where(saved == NOT_STARTED, 0, np.maximum(self.moment - saved, 0))

    def is_protected(self, index: Matrix) -> Mask:
        """Who is no victim at this moment."""
        protected: Mask = self.protected_until(index) > self.moment
        return protected

    def protected_until(self, index: Matrix) -> Matrix:
        """Until when each pod is protected; 0 if it is not."""
        until = np.zeros(index.shape, np.int64)
        if self.args.has_minimum_runtime:
            starts = self._running.starts.ravel().take(index)
            minimum = self._minimum_runtime()[self._running.classes.ravel().take(index)]
            # Who has not started loses nothing by going.
            is_free = (starts == NOT_STARTED) | (minimum == 0)
            until = np.where(is_free, 0, np.minimum(starts, self.moment) + minimum)
        if self._spared:
            spared = self._spared_until()[self._running.workloads.ravel().take(index)]
            until = np.maximum(until, spared)
        if self.args.heed_tolerations:
            until = np.maximum(until, self._tolerated_until(index))
        return until

    def seconds_left(self, until: int) -> int:
        """How long it is until then, in whole seconds, rounded up."""
        return -(-(until - self.moment) // SECOND)

    def _minimum_runtime(self) -> NDArray[np.int64]:
        """By the code of a priority class."""
        by_class = self.args.minimum_runtime_seconds_by_priority_class
        names = self._running.class_names.values
        seconds = [by_class.get(name, self.args.minimum_runtime_seconds) for name in names]
        return np.array(seconds, np.int64) * SECOND

    def _tolerated_until(self, index: Matrix) -> Matrix:
        """Until when each pod tolerates preemptors of this priority; 0 if it does not."""
        running = self._running
        seconds = self._toleration_seconds()[running.classes.ravel().take(index)]
        until = np.where(seconds < 0, FOREVER, 0)
        slots = running.slots.ravel().take(index)
        for position in np.flatnonzero((seconds > 0).ravel()).tolist():
            record = running.cluster.pods.by_slot[int(slots.ravel()[position])]
            at = None if record is None else scheduled_at(record.pod)
            # A pod that is not known to be scheduled tolerates it, as nothing says since when.
            until.ravel()[position] = (
                FOREVER if at is None else min(FOREVER, int(at * SECOND) + int(seconds.ravel()[position]) * SECOND)
            )
        return until

    def _toleration_seconds(self) -> NDArray[np.int64]:
        """By the code of a priority class: for how long its pods tolerate preemptors of this priority."""
        classes = self._running.cluster.related.priority_classes
        found = [
            None if (known := classes.get(name)) is None else toleration_of(known)
            for name in self._running.class_names.values
        ]
        tolerated = [one is not None and self._priority < one.minimum_priority for one in found]
        seconds = [one.seconds if is_so and one is not None else 0 for one, is_so in zip(found, tolerated, strict=True)]
        return np.clip(np.array(seconds or [0], np.int64), -1, FOREVER // SECOND)

    def _spared_until(self) -> NDArray[np.int64]:
        """By the code of a workload."""
        until = np.zeros(max(1, len(self._running.workload_names)), np.int64)
        for workload, end in self._spared.items():
            code = self._running.workload_names.code_of.get(workload)
            if code is not None:
                until[code] = self.moment + int((end - self._now) * SECOND)
        return until
