"""What it would cost to preempt on each row, and the cheapest one, by kube-scheduler's criteria in their order.

Where a policy asks for it, work that is lost comes after broken budgets and the most important victim, and before
the sum of priorities, which counts victims.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.pods.crowd import Crowd
from mooring.actions.preempt.running import NOT_STARTED

LOWEST_PRIORITY = 1 << 31
"""Added to every priority, so that a victim more always costs more, negative priorities included."""
NOBODY = np.iinfo(np.int64).min

Values: TypeAlias = NDArray[np.int64]
"""One a row."""
Key: TypeAlias = tuple[int, ...]
"""What one row costs, criterion by criterion: the smallest key is the cheapest."""


def violations(crowd: Crowd) -> Values:
    """Victims whom a budget protects: the fewer the better."""
    count: Values = np.count_nonzero(crowd.gone & crowd.violating, axis=0)
    return count


def highest_priority(crowd: Crowd) -> Values:
    """The priority of the most important victim: the lower the better."""
    highest: Values = np.where(crowd.gone, crowd.priorities, NOBODY).max(axis=0)
    return highest


def work_lost(crowd: Crowd) -> Values:
    """How much work the victims would lose in all: the less the better."""
    lost: Values = np.where(crowd.gone, crowd.lost, 0).sum(axis=0)
    return lost


def total_priority(crowd: Crowd) -> Values:
    """The sum of the victims' priorities: the lower the better."""
    total: Values = np.where(crowd.gone, crowd.priorities + LOWEST_PRIORITY, 0).sum(axis=0)
    return total


def victim_count(crowd: Crowd) -> Values:
    count: Values = np.count_nonzero(crowd.gone, axis=0)
    return count


def earliest_start(crowd: Crowd) -> Values:
    """When the first of the most important victims started: the later the better, hence inverted."""
    is_highest = crowd.gone & (crowd.priorities == highest_priority(crowd))
    inverted: Values = ~np.where(is_highest, crowd.starts, NOT_STARTED).min(axis=0)
    return inverted


def tie(crowd: Crowd) -> Values:
    """The node's number for ties: the higher wins. kube-scheduler takes the first of an unordered list."""
    return ~crowd.ties


Criterion: TypeAlias = Callable[[Crowd], Values]
FIRST: tuple[Criterion, ...] = (violations, highest_priority)
THEN: tuple[Criterion, ...] = (total_priority, victim_count, earliest_start, tie)


def criteria(crowd: Crowd) -> tuple[Criterion, ...]:
    has_least_lost = crowd.cost is not None and crowd.cost.has_least_lost
    return (*FIRST, work_lost, *THEN) if has_least_lost else FIRST + THEN


def key_of(crowd: Crowd, position: int) -> Key:
    one = crowd.at(np.array([position]))
    return tuple(int(criterion(one)[0]) for criterion in criteria(crowd))


def cheapest(crowd: Crowd) -> int:
    """The position of the row to choose, if those who are gone are evicted; every row must have one."""
    left = np.arange(len(crowd))
    for criterion in FIRST:  # these rule out most rows: cheaper for all than to gather those that are left in between
        values = criterion(crowd)[left]
        left = left[values == values.min()]
    for criterion in criteria(crowd)[len(FIRST) :]:
        if len(left) == 1:
            break
        values = criterion(crowd.at(left))  # worked out only for the rows that are equal in those before
        left = left[values == values.min()]
    return int(left[0])
