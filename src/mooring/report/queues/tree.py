"""Cohorts and ClusterQueues in the order of their tree."""

from collections.abc import Iterator
from typing import NamedTuple

from mooring.report.queues.data import CohortStatus, QueuesResult, QueueStatus


class TreeRow(NamedTuple):
    """A queue or a cohort at its place in the tree."""

    depth: int
    found: CohortStatus | QueueStatus


def tree_rows(result: QueuesResult) -> Iterator[TreeRow]:
    """Cohorts with what is below them, then the queues that are in none, each by name."""

    def below(cohort: str, depth: int) -> Iterator[TreeRow]:
        for child in sorted(result.cohorts, key=lambda found: found.name):
            if child.parent == cohort:
                yield TreeRow(depth, child)
                yield from below(child.name, depth + 1)
        for queue in result.queues:
            if queue.cohort == cohort:
                yield TreeRow(depth, queue)

    yield from below("", 0)
