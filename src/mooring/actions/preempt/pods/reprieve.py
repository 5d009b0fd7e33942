"""Who may stay after all: for all rows at once, victim by victim, those a budget protects first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.pods.candidates import Candidates, SupposedRows
from mooring.engine.asking import ask_filter_without, ask_passes
from mooring.engine.plugin import FilterAnswers, Mask
from mooring.engine.shortcuts import CountedRoom, SupposingFilter
from mooring.state.budgets import split_one_by_one
from mooring.state.rows import NodeRows
from mooring.state.running import Matrix, RunningPods
from mooring.state.shapes import Shape

AskedFilter = tuple[FilterAnswers, Any]
"""A filter with what it has prepared."""

WORTH_NARROWING = 8
"""Leaving rows out costs about as much as asking about all of them so many times."""


def passes_all(filters: Sequence[AskedFilter], shape: Shape, nodes: NodeRows) -> Mask:
    """Which rows all filters accept; those that count pods take it into account who is supposed to be gone."""
    passed: Mask | None = None
    for plugin, prepared in filters:
        if isinstance(plugin, SupposingFilter) and isinstance(nodes, SupposedRows) and nodes.gone is not None:
            answer = ask_filter_without(plugin, shape, nodes, prepared, nodes.gone) == 0
        else:
            answer = ask_passes(plugin, shape, nodes, prepared)
        passed = answer if passed is None else passed & answer
    return np.ones(len(nodes), np.bool_) if passed is None else passed


def asked_in_all(filters: Sequence[AskedFilter], shape: Shape) -> tuple[dict[str, int], list[AskedFilter]]:
    """What filters ask of rows that check nothing but free amounts, and the filters that check something else."""
    asked: dict[str, int] = {}
    others: list[AskedFilter] = []
    for plugin, prepared in filters:
        if not isinstance(plugin, CountedRoom):
            others.append((plugin, prepared))
        else:
            amounts = plugin.asks_for(shape, prepared)
            asked |= {name: max(amount, asked.get(name, 0)) for name, amount in amounts.items()}
    return asked, others


def reprieve(candidates: Candidates, filters: Sequence[AskedFilter], shape: Shape) -> Mask:
    """Bring back every victim, in order, with whom the pod still fits; return who is left gone.

    All rows must have room without all of their victims. What is free beyond that is followed as one matrix.
    """
    asked, others = asked_in_all(filters, shape)
    gone = candidates.gone.copy()
    positions = np.arange(len(candidates))
    trial = candidates.with_gone(candidates.gone.copy())
    slack = Slack.of(candidates, asked)
    for victim in range(len(gone)):
        has = candidates.gone[victim, positions]
        if not has.any():
            break  # lists are as long as those of all pods on the rows, and pods that go with their gang are not here
        if len(gone) - victim >= WORTH_NARROWING and np.count_nonzero(has) * 4 < len(positions):
            # Most rows have no victim so late: go on with the others.
            gone[: len(trial.gone), positions] = trial.gone
            positions, trial = positions[has], trial.at(np.flatnonzero(has))
            slack = slack.at(has)
            has = has[has]
        stays = slack.has_room_for(victim) & has
        if others and stays.any():
            stays &= passes_all(others, shape, trial.with_back(victim))
        slack = slack.without(victim, stays)
        trial.bring_back(victim, stays)
    gone[: len(trial.gone), positions] = trial.gone
    return gone


@dataclass(frozen=True, slots=True)
class Slack:
    """What is free on some rows beyond what is asked, resource by resource."""

    rows: int
    left: Sequence[NDArray[np.int64]]
    each: Sequence[Matrix]
    """What each victim has."""

    @classmethod
    def of(cls, candidates: Candidates, asked: dict[str, int]) -> "Slack":
        supposed = candidates.supposed()
        left = [supposed.free(name) - amount for name, amount in asked.items()]
        return cls(len(candidates), left, [candidates.share_of_each(("requested", name)) for name in asked])

    def at(self, kept: Mask) -> "Slack":
        """The same for some of the rows."""
        left, each = [left[kept] for left in self.left], [each[:, kept] for each in self.each]
        return Slack(int(np.count_nonzero(kept)), left, each)

    def has_room_for(self, victim: int) -> Mask:
        """Where the victim of this number could stay."""
        fits = np.ones(self.rows, np.bool_)
        for left, each in zip(self.left, self.each, strict=True):
            fits &= left >= each[victim]
        return fits

    def without(self, victim: int, where: Mask) -> "Slack":
        """What is left once the victim of this number is back on some rows."""
        parts = zip(self.left, self.each, strict=True)
        return Slack(self.rows, [left - np.where(where, each[victim], 0) for left, each in parts], self.each)


def mark_violating(candidates: Candidates, running: RunningPods) -> Candidates:
    """Find out whose eviction would break a budget; those come first from here on, each part by importance."""
    if not running.budgets:
        return candidates
    # Most rows have nobody whom a budget protects.
    positions = np.flatnonzero(np.logical_or.reduce(candidates.budget_sets.astype(np.bool_), axis=0))
    if not len(positions):
        return candidates
    some = candidates.at(positions)
    violating = _violating(some, running)
    is_row = violating.any(axis=0)
    positions, violating = positions[is_row], violating[:, is_row]
    if not len(positions):
        return candidates
    candidates.violating = candidates.violating.copy()
    candidates.violating[: len(violating), positions] = violating
    rank = np.where(candidates.violating[:, positions], 0, 1)
    rank[~candidates.gone[:, positions]] = 2  # padding stays behind
    return candidates.ordered(np.argsort(rank, axis=0, kind="stable"), positions)


def _violating(candidates: Candidates, running: RunningPods) -> Mask:
    """Count each budget down over a row's victims, the most important first, from what it allows."""
    sets = running.budgets.sets.values
    allowed = running.allowed_disruptions()
    # Nearly every pod has one budget or none: these are counted in columns, the others in a loop.
    only_budget = np.array([indices[0] if len(indices) == 1 else -1 for indices in sets], np.int64)
    has_several = np.array([len(indices) > 1 for indices in sets], np.bool_)
    budgets = np.where(candidates.gone, only_budget[candidates.budget_sets], -1)
    allows = np.where(budgets >= 0, allowed[budgets], np.iinfo(np.int64).max)
    violating: Mask = allows <= 0
    numbers, positions = np.nonzero((allows > 0) & (allows < len(candidates.gone)))
    if len(numbers):
        turns = _turns(positions * len(allowed) + budgets[numbers, positions])
        violating[numbers, positions] = turns >= allows[numbers, positions]
    for position in np.flatnonzero((has_several[candidates.budget_sets] & candidates.gone).any(axis=0)).tolist():
        is_pod = candidates.gone[:, position]
        row_sets = [sets[code] for code in candidates.budget_sets[is_pod, position].tolist()]
        violating[is_pod, position] = split_one_by_one(row_sets, allowed)
    return violating


def _turns(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many equal keys stand before each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    turns = np.empty(len(keys), np.int64)
    turns[order] = np.arange(len(keys)) - np.repeat(firsts, np.diff(np.append(firsts, len(keys))))
    return turns
