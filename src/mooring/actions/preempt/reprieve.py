"""Who may stay after all: for all rows at once, victim by victim, those a budget protects first."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mooring.actions.preempt.budgets import split_one_by_one
from mooring.actions.preempt.crowd import Crowd
from mooring.actions.preempt.running import RunningPods
from mooring.engine.evaluate import ask_passes
from mooring.engine.plugin import FilterAnswers, Mask
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

AskedFilter = tuple[FilterAnswers, Any]
"""A filter with what it has prepared."""


def passes_all(filters: Sequence[AskedFilter], shape: Shape, nodes: NodeRows) -> Mask:
    passed = np.ones(len(nodes), np.bool_)
    for plugin, prepared in filters:
        passed &= ask_passes(plugin, shape, nodes, prepared)
    return passed


def reprieve(crowd: Crowd, filters: Sequence[AskedFilter], shape: Shape) -> None:
    """Bring back every victim, in order, with whom the pod still fits; changes the crowd."""
    for victim in range(crowd.gone.shape[1]):
        positions = np.flatnonzero(crowd.counts > victim)
        nodes = crowd.with_back(positions, victim)
        crowd.bring_back(positions[passes_all(filters, shape, nodes)], victim)


def mark_violating(crowd: Crowd, running: RunningPods) -> Crowd:
    """Find out whose eviction would break a budget; those come first from here on, each part by importance."""
    if not running.budgets or not crowd.budget_sets.any():
        return crowd
    crowd.violating = _violating(crowd, running)
    if not crowd.violating.any():
        return crowd
    rank = np.where(crowd.violating, 0, 1)
    rank[~crowd.gone] = 2  # padding stays behind
    return crowd.ordered(np.argsort(rank, axis=1, kind="stable"))


def _violating(crowd: Crowd, running: RunningPods) -> Mask:
    """Count each budget down over a row's victims, the most important first, from what it allows."""
    sets = running.budgets.sets.values
    allowed = running.allowed_disruptions()
    # Nearly every pod has one budget or none: these are counted in columns, the others in a loop.
    only_budget = np.array([indices[0] if len(indices) == 1 else -1 for indices in sets], np.int64)
    has_several = np.array([len(indices) > 1 for indices in sets], np.bool_)
    budgets = np.where(crowd.gone, only_budget[crowd.budget_sets], -1)
    allows = np.where(budgets >= 0, allowed[budgets], np.iinfo(np.int64).max)
    violating: Mask = allows <= 0
    uncertain = (allows > 0) & (allows < crowd.gone.shape[1])
    lines, columns = np.nonzero(uncertain)
    if len(lines):
        turns = _turns(lines * len(allowed) + budgets[lines, columns])
        violating[lines, columns] = turns >= allows[lines, columns]
    for line in np.flatnonzero((has_several[crowd.budget_sets] & crowd.gone).any(axis=1)).tolist():
        count = int(crowd.counts[line])
        row_sets = [sets[code] for code in crowd.budget_sets[line, :count].tolist()]
        violating[line, :count] = split_one_by_one(row_sets, allowed)
    return violating


def _turns(keys: Any) -> Any:
    """How many equal keys stand before each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    firsts = np.flatnonzero(is_first)
    turns = np.empty(len(keys), np.int64)
    turns[order] = np.arange(len(keys)) - np.repeat(firsts, np.diff(np.append(firsts, len(keys))))
    return turns
