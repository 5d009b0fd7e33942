"""What it would cost to preempt on each row, and the cheapest one, by kube-scheduler's criteria in their order."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.crowd import Crowd
from mooring.actions.preempt.running import NOT_STARTED

LOWEST_PRIORITY = 1 << 31
"""Added to every priority, so that a victim more always costs more, negative priorities included."""
NOBODY = np.iinfo(np.int64).min

Key = tuple[int, ...]
"""What one row costs, criterion by criterion: the smallest key is the cheapest."""


def violations(crowd: Crowd) -> NDArray[np.int64]:
    """Victims whom a budget protects: the fewer the better."""
    return np.count_nonzero(crowd.gone & crowd.violating, axis=0)


def highest_priority(crowd: Crowd) -> NDArray[np.int64]:
    """The priority of the most important victim: the lower the better."""
    return np.where(crowd.gone, crowd.priorities, NOBODY).max(axis=0)


def total_priority(crowd: Crowd) -> NDArray[np.int64]:
    """The sum of the victims' priorities: the lower the better."""
    return np.where(crowd.gone, crowd.priorities + LOWEST_PRIORITY, 0).sum(axis=0)


def victim_count(crowd: Crowd) -> NDArray[np.int64]:
    return np.count_nonzero(crowd.gone, axis=0)


def earliest_start(crowd: Crowd) -> NDArray[np.int64]:
    """When the first of the most important victims started: the later the better, hence inverted."""
    is_highest = crowd.gone & (crowd.priorities == highest_priority(crowd))
    return ~np.where(is_highest, crowd.starts, NOT_STARTED).min(axis=0)


def tie(crowd: Crowd) -> NDArray[np.int64]:
    """The node's number for ties: the higher wins. kube-scheduler takes the first of an unordered list."""
    return ~crowd.ties


CRITERIA: tuple[Callable[[Crowd], NDArray[np.int64]], ...] = (
    violations,
    highest_priority,
    total_priority,
    victim_count,
    earliest_start,
    tie,
)


def key_of(crowd: Crowd, position: int) -> Key:
    one = crowd.at(np.array([position]))
    return tuple(int(criterion(one)[0]) for criterion in CRITERIA)


def cheapest(crowd: Crowd) -> int:
    """The position of the row to choose, if those who are gone are evicted; every row must have one."""
    left = np.arange(len(crowd))
    for criterion in CRITERIA:
        if len(left) == 1:
            break
        crowd_left = crowd.at(left)  # each criterion is worked out only for the rows that are equal in those before
        values = criterion(crowd_left)
        left = left[values == values.min()]
    return int(left[0])
