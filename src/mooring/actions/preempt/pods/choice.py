"""What it would cost to preempt on each row, and the cheapest one, by kube-scheduler's criteria in their order.

Where a policy asks for it, work that is lost comes after broken budgets and the most important victim, and before
the sum of priorities, which counts victims.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.pods.candidates import Candidates
from mooring.actions.preempt.pods.reprieve import AskedFilter, asked_in_all, passes_all, reprieve
from mooring.engine.plugin import Mask
from mooring.state.running import NO_POD, NOT_STARTED
from mooring.state.shapes import Shape

LOWEST_PRIORITY = 1 << 31
"""Added to every priority, so that a victim more always costs more, negative priorities included."""
NOBODY = np.iinfo(np.int64).min

Values: TypeAlias = NDArray[np.int64]
"""One a row."""
Key: TypeAlias = tuple[int, ...]
"""What one row costs, criterion by criterion: the smallest key is the cheapest."""


def violations(candidates: Candidates) -> Values:
    """Victims whom a budget protects: the fewer the better."""
    count: Values = np.count_nonzero(candidates.gone & candidates.violating, axis=0)
    return count


def highest_priority(candidates: Candidates) -> Values:
    """The priority of the most important victim: the lower the better."""
    highest: Values = np.where(candidates.gone, candidates.priorities, NOBODY).max(axis=0)
    return highest


def work_lost(candidates: Candidates) -> Values:
    """How much work the victims would lose in all: the less the better."""
    lost: Values = np.where(candidates.gone, candidates.lost, 0).sum(axis=0)
    return lost


def total_priority(candidates: Candidates) -> Values:
    """The sum of the victims' priorities: the lower the better."""
    total: Values = np.where(candidates.gone, candidates.priorities + LOWEST_PRIORITY, 0).sum(axis=0)
    return total


def victim_count(candidates: Candidates) -> Values:
    count: Values = np.count_nonzero(candidates.gone, axis=0)
    return count


def earliest_start(candidates: Candidates) -> Values:
    """When the first of the most important victims started: the later the better, hence inverted."""
    is_highest = candidates.gone & (candidates.priorities == highest_priority(candidates))
    inverted: Values = ~np.where(is_highest, candidates.starts, NOT_STARTED).min(axis=0)
    return inverted


def tie(candidates: Candidates) -> Values:
    """The node's number for ties: the higher wins. kube-scheduler takes the first of an unordered list."""
    return ~candidates.ties


Criterion: TypeAlias = Callable[[Candidates], Values]
FIRST: tuple[Criterion, ...] = (violations, highest_priority)
THEN: tuple[Criterion, ...] = (total_priority, victim_count, earliest_start, tie)


def criteria(candidates: Candidates) -> tuple[Criterion, ...]:
    has_least_lost = candidates.cost is not None and candidates.cost.has_least_lost
    return (*FIRST, work_lost, *THEN) if has_least_lost else FIRST + THEN


def key_of(candidates: Candidates, position: int) -> Key:
    one = candidates.at(np.array([position]))
    return tuple(int(criterion(one)[0]) for criterion in criteria(candidates))


def cheapest(candidates: Candidates) -> int:
    """The position of the row to choose, if those who are gone are evicted; every row must have one."""
    left = np.arange(len(candidates))
    for criterion in FIRST:  # these rule out most rows: cheaper for all than to gather those that are left in between
        values = criterion(candidates)[left]
        left = left[values == values.min()]
    for criterion in criteria(candidates)[len(FIRST) :]:
        if len(left) == 1:
            break
        values = criterion(candidates.at(left))  # worked out only for the rows that are equal in those before
        left = left[values == values.min()]
    return int(left[0])


def least_costs(candidates: Candidates, by_usage: Sequence[AskedFilter], shape: Shape) -> tuple[NDArray[np.int64], ...]:
    """The criteria of `choice`, one value a row: no way to make room on that row costs less."""
    ordered = candidates.ordered(np.lexsort((candidates.starts, -candidates.priorities, ~candidates.gone), axis=0))
    relaxed = ordered.with_gone(reprieve(ordered, by_usage, shape))
    # Somebody has to go, if only the least important, even where usage is not what stands in the way.
    lowest = np.where(candidates.gone, candidates.priorities, NO_POD).min(axis=0)
    highest = np.where(relaxed.gone.any(axis=0), highest_priority(relaxed), lowest)
    # Whoever needs a victim above that costs more already. So nobody above it goes, and some have to on its very level.
    up_to = candidates.gone & (candidates.priorities <= highest)
    below = up_to & (candidates.priorities < highest)
    count = _fewest(candidates, up_to, None, by_usage, shape)
    on_level = np.minimum(_fewest(candidates, up_to & ~below, below, by_usage, shape), count)
    others = np.arange(len(candidates.gone))[:, np.newaxis] < count - on_level
    lowest_first = np.sort(np.where(up_to, candidates.priorities, NO_POD), axis=0)
    total = np.where(others, lowest_first + LOWEST_PRIORITY, 0).sum(axis=0) + on_level * (highest + LOWEST_PRIORITY)
    latest = np.where(up_to & ~below, candidates.starts, NOBODY).max(axis=0)
    violations = _least_violations(candidates, by_usage, shape)
    has_least_lost = candidates.cost is not None and candidates.cost.has_least_lost
    lost = (_least_lost(candidates, up_to, count),) if has_least_lost else ()
    return (violations, highest, *lost, total, count, ~latest, tie(candidates))


def _least_lost(candidates: Candidates, among: Mask, count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The workload of those who would lose the least, so many of them."""
    least_first = np.sort(np.where(among, candidates.lost, np.iinfo(np.int64).max), axis=0)
    least: NDArray[np.int64] = np.where(np.arange(len(among))[:, np.newaxis] < count, least_first, 0).sum(axis=0)
    return least


def _least_violations(candidates: Candidates, by_usage: Sequence[AskedFilter], shape: Shape) -> NDArray[np.int64]:
    """1 where there is not room enough with everybody there whom a budget protects."""
    if not candidates.violating.any():
        return np.zeros(len(candidates), np.int64)
    others = candidates.with_gone(candidates.gone & ~candidates.violating)
    return (~passes_all(by_usage, shape, others.supposed())).astype(np.int64)


def _fewest(
    candidates: Candidates, among: Mask, besides: Mask | None, by_usage: Sequence[AskedFilter], shape: Shape
) -> NDArray[np.int64]:
    """How many victims of some it takes at the least, with others gone besides: by the resource that is shortest."""
    fewest = np.ones(len(candidates), np.int64)
    for name, amount in asked_in_all(by_usage, shape)[0].items():
        each = candidates.share_of_each(("requested", name))
        lacking = amount - candidates.nodes.free(name)
        if besides is not None:
            lacking = lacking - np.where(besides, each, 0).sum(axis=0)
        largest_first = np.cumsum(-np.sort(-np.where(among, each, 0), axis=0), axis=0)
        fewest = np.maximum(fewest, 1 + np.count_nonzero(largest_first < lacking, axis=0))
    enough: NDArray[np.int64] = np.minimum(fewest, np.count_nonzero(among, axis=0))
    return enough
