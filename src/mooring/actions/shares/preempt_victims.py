"""Preemption inside a queue: from less important jobs of the same queue, whatever anybody deserves."""

import math
from collections.abc import Collection

from mooring.actions.shares.checks import Refusal
from mooring.actions.shares.jobs import Job, Members
from mooring.actions.shares.reclaim_rules import ReclaimRule
from mooring.actions.shares.reclaim_victims import TOO_SHORT, Reclaim
from mooring.actions.shares.resources import Amount


class PreemptWithinQueue(Reclaim):
    """One search for victims in the job's own queue: of lower priority, and after their `preemptMinRuntime`."""

    def _make_rule(self) -> ReclaimRule:
        return _OwnQueueRule()

    def _beyond_share(self) -> Refusal | None:
        return None  # what its own queue holds too much of, its own queue can give back

    def _is_own(self, row: int) -> bool:
        return False  # likewise

    def _is_enough(self) -> bool:
        return super()._beyond_share() is None and super()._is_enough()

    def _leaves(self) -> list[int]:
        return [self._job.leaf]

    def _may_be_victim(self, job: Job) -> bool:
        return job.demand.is_preemptible and job.demand.priority < self._job.demand.priority

    def _minimum_runtime(self, job: Job) -> float:
        seconds = self._cache.tree.preempt_runtimes[job.leaf]
        return self._settings.preempt_runtime_seconds if seconds is None else seconds

    def _nobody_left(self) -> Refusal:
        job = self._job
        message = f"less important jobs of queue {job.demand.queue} do not hold enough for job {job.key}"
        return Refusal(job.demand.queue, "", TOO_SHORT if self._ripe_at < math.inf else message, self._ripe_at)


class _OwnQueueRule:
    """Whoever is less important gives."""

    def begin(self, job: Job, amount: Amount, short: Collection[int]) -> Refusal | None:
        return None

    def may_take(self, victim: Job, amount: Amount) -> bool:
        return True

    def is_right(self, victim: Job) -> bool:
        return True

    def took(self, victim: Job, left: Members) -> None:
        """Nothing is kept."""

    def end(self) -> None:
        """Nothing is kept."""
