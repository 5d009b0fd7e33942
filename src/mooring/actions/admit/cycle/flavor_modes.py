"""How good a flavor is for a workload: what it takes to use it, and which of two is better by a queue's policy."""

from enum import IntEnum
from typing import NamedTuple

from mooring.actions.admit.quota.structure import Queue


class Possibility(IntEnum):
    """What it takes to use a flavor, best last."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


class Mode(IntEnum):
    """What it takes to admit a workload, best last."""

    NO_FIT = 0
    PREEMPT = 1
    DEFERRED_FIT = 2
    FIT = 3


class Reason(IntEnum):
    """Why there is no fit, most telling last; the names are those of the workload's condition."""

    NONE = 0
    TopologyPlacementFailed = 1
    WaitingForQuota = 2
    ExceedsMaxQuota = 3
    NoMatchingFlavor = 4


class FlavorMode(NamedTuple):
    """How good a flavor is: what it takes, and how far up the tree the quota would have to come from."""

    possibility: Possibility
    borrow_height: int


BEST = FlavorMode(Possibility.FIT, 0)
WORST = FlavorMode(Possibility.NO_FIT, 2**31)


def is_preferred(first: FlavorMode, second: FlavorMode, prefers_preemption: bool) -> bool:
    """Tell whether the first grade is strictly better by the queue's preference."""
    if first.possibility == Possibility.NO_FIT:
        return False
    if second.possibility == Possibility.NO_FIT:
        return True
    hopeless = first.possibility == Possibility.NO_CANDIDATES
    if hopeless != (second.possibility == Possibility.NO_CANDIDATES):
        return not hopeless
    by_possibility = first.possibility - second.possibility
    by_borrowing = second.borrow_height - first.borrow_height
    if prefers_preemption:
        return by_borrowing > 0 if by_borrowing else by_possibility > 0
    return by_possibility > 0 if by_possibility else by_borrowing > 0


def tries_next(flavor_mode: FlavorMode, queue: Queue) -> bool:
    """Tell whether the search goes on behind a flavor of this grade."""
    if flavor_mode.possibility <= Possibility.NO_CANDIDATES:
        return True
    if flavor_mode.possibility != Possibility.FIT and queue.tries_next_instead_of_preempting:
        return True
    return flavor_mode.borrow_height > 0 and queue.tries_next_instead_of_borrowing


def milder(first: Reason, second: Reason) -> Reason:
    """Of alternatives, the one that is easiest to overcome explains the wait."""
    return second if first == Reason.NONE else min(first, second)
