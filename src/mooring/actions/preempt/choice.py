"""What it would cost to preempt on each row, and the cheapest one, by kube-scheduler's criteria in their order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.crowd import Crowd
from mooring.actions.preempt.running import NOT_STARTED

LOWEST_PRIORITY = 1 << 31
"""Added to every priority, so that a victim more always costs more, negative priorities included."""


@dataclass(frozen=True)
class Costs:
    """One a row; the criteria in their order."""

    violations: NDArray[np.int64]
    """Disruption budgets broken: the fewer the better."""
    highest: NDArray[np.int64]
    """The priority of the most important victim: the lower the better."""
    total: NDArray[np.int64]
    """The sum of the victims' priorities: the lower the better."""
    count: NDArray[np.int64]
    start: NDArray[np.int64]
    """When the first of the most important victims started: the later the better."""
    tie: NDArray[np.int64]
    """The node's number for ties: the higher wins. kube-scheduler takes the first of an unordered list."""

    def columns(self) -> tuple[NDArray[np.int64], ...]:
        """All criteria so that less is better; unsigned starts and ties cannot overflow by their sign."""
        return self.violations, self.highest, self.total, self.count, ~self.start, ~self.tie

    def key(self, position: int) -> tuple[int, ...]:
        return tuple(int(column[position]) for column in self.columns())

    def cheapest(self) -> int:
        """The position of the row to choose."""
        left = np.arange(len(self.violations))
        for column in self.columns():
            if len(left) == 1:
                break
            values = column[left]
            left = left[values == values.min()]
        return int(left[0])


def costs_of(crowd: Crowd) -> Costs:
    """What it costs to evict those who are gone; every row must have one."""
    highest = np.where(crowd.gone, crowd.priorities, np.iinfo(np.int64).min).max(axis=1)
    is_highest = crowd.gone & (crowd.priorities == highest[:, np.newaxis])
    return Costs(
        violations=(crowd.gone & crowd.violating).sum(axis=1),
        highest=highest,
        total=np.where(crowd.gone, crowd.priorities + LOWEST_PRIORITY, 0).sum(axis=1),
        count=crowd.gone.sum(axis=1),
        start=np.where(is_highest, crowd.starts, NOT_STARTED).min(axis=1),
        tie=crowd.table.tie.values[crowd.rows],
    )
