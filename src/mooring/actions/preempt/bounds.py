"""The least that preemption could cost on each row, from columns alone: rows that cannot win need no what-if.

This takes for granted that no filter by usage refuses a node because too little runs on it.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.choice import LOWEST_PRIORITY, Costs, costs_of
from mooring.actions.preempt.crowd import Crowd
from mooring.actions.preempt.reprieve import AskedFilter, passes_all, reprieve
from mooring.actions.preempt.running import NO_POD
from mooring.state.shapes import Shape


@runtime_checkable
class AsksForResources(Protocol):
    """What a filter has prepared, if it is about amounts of resources: names, and amounts as one column."""

    names: tuple[str, ...]
    amounts: NDArray[np.int64]


def least_costs(crowd: Crowd, by_usage: Sequence[AskedFilter], shape: Shape) -> Costs:
    """No way to make room on a row costs less than this."""
    relaxed = crowd.at(np.arange(len(crowd)))
    relaxed = relaxed.ordered(_by_importance(relaxed))
    reprieve(relaxed, by_usage, shape)
    cheapest = np.sort(np.where(crowd.gone, crowd.priorities, NO_POD), axis=1)
    found = costs_of(relaxed)
    # Somebody has to go, if only the least important, even where usage is not what stands in the way.
    highest = np.where(relaxed.gone.any(axis=1), found.highest, cheapest[:, 0])
    count = _fewest(crowd, by_usage)
    others = np.arange(cheapest.shape[1]) < (count - 1)[:, np.newaxis]
    total = np.where(others, cheapest + LOWEST_PRIORITY, 0).sum(axis=1) + highest + LOWEST_PRIORITY
    is_highest = crowd.gone & (crowd.priorities == highest[:, np.newaxis])
    latest = np.where(is_highest, crowd.starts, np.iinfo(np.int64).min).max(axis=1)
    return Costs(_least_violations(crowd, by_usage, shape), highest, total, count, latest, found.tie)


def _by_importance(crowd: Crowd) -> NDArray[np.intp]:
    return np.lexsort((crowd.starts, -crowd.priorities, ~crowd.gone), axis=1)


def _least_violations(crowd: Crowd, by_usage: Sequence[AskedFilter], shape: Shape) -> NDArray[np.int64]:
    """1 where there is not room enough with everybody there whom a budget protects."""
    if not crowd.violating.any():
        return np.zeros(len(crowd), np.int64)
    others = crowd.at(np.arange(len(crowd)))
    others.gone = others.gone & ~others.violating
    return (~passes_all(by_usage, shape, others.supposed())).astype(np.int64)


def _fewest(crowd: Crowd, by_usage: Sequence[AskedFilter]) -> NDArray[np.int64]:
    """How many victims it takes at the least: the largest first, of the resource that is shortest."""
    fewest = np.ones(len(crowd), np.int64)
    for _, prepared in by_usage:
        if isinstance(prepared, AsksForResources):
            for name, amount in zip(prepared.names, prepared.amounts.flat, strict=True):
                fewest = np.maximum(fewest, _fewest_for(crowd, name, int(amount)))
    return np.minimum(fewest, crowd.counts)


def _fewest_for(crowd: Crowd, name: str, amount: int) -> NDArray[np.int64]:
    free = (crowd.table.allocatable(name) - crowd.table.requested(name))[crowd.rows]
    each = np.where(crowd.gone, crowd.shares.of(("requested", name), crowd.shapes), 0)
    back = np.cumsum(-np.sort(-each, axis=1), axis=1)
    return 1 + (back < (amount - free)[:, np.newaxis]).sum(axis=1)
