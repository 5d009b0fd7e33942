"""Jobs that are parts of something larger, which has limits and an order of its own."""

from collections.abc import Mapping

from mooring.actions.shares.checks import Refusal
from mooring.actions.shares.jobs import Job
from mooring.actions.shares.order import JobHeap
from mooring.actions.shares.resources import Amount


class Grouping:
    """In most families every job stands for itself."""

    def join(self, job: Job) -> None:
        """A job came, with what it holds."""

    def leave(self, job: Job) -> None:
        """A job is gone that holds nothing any more."""

    def change(self, job: Job, amount: Amount, sign: int) -> None:
        """A job got so much, or lost it."""

    def refuse(self, job: Job) -> Refusal | None:
        """Why a job gets nothing more because of what it is a part of."""
        return None

    def may_take(self, reclaimer: Job, victim: Job) -> bool:
        """Whether a job may take from another, as far as it is for the groups to say."""
        return True

    def make_heap(self, jobs: Mapping[str, Job]) -> JobHeap:
        """The jobs of one queue that want a turn, in their order."""
        return JobHeap(jobs)
