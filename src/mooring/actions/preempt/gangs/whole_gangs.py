"""Room for one pod by the going of whole gangs: looked for where pods by themselves are not enough.

For all rows at once by usage; then the cheapest row is tried in earnest where filters count pods elsewhere, and the
next one if they refuse it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mooring.actions.preempt.gangs.pool import Pool
from mooring.actions.preempt.gangs.unit_candidates import UnitCandidates, without_all
from mooring.actions.preempt.pods.candidates import ShapeAmounts
from mooring.actions.preempt.pods.reprieve import AskedFilter, passes_all
from mooring.actions.preempt.pods.what_if import WhatIf
from mooring.engine.plugin import Mask
from mooring.engine.verdict import Rejection
from mooring.state.gang_units import ALONE
from mooring.state.pods import PodRecord
from mooring.state.rows import Rows
from mooring.state.shapes import Shape


@dataclass(frozen=True)
class GangsGone:
    """A row that has room without some units."""

    row: int
    units: tuple[int, ...]
    """By their numbers in the pool."""
    violations: int


@dataclass(frozen=True)
class Asking:
    """What is to be asked about a row: the filters of one pod, by what their answers depend on."""

    shape: Shape
    by_usage: list[AskedFilter]
    elsewhere: list[AskedFilter]
    what_if: WhatIf
    is_concern: Callable[[], Mask]
    """By shape id: whether the going of such a pod matters to those that look elsewhere."""


def cheapest_with_gangs(
    pool: Pool, shares: ShapeAmounts, rows: Rows, asking: Asking
) -> tuple[GangsGone | None, dict[int, Rejection]]:
    """The cheapest of some rows on which whole gangs run, and why rows that were tried will not do."""
    refused: dict[int, Rejection] = {}
    rows = rows[_has_gang(pool)[rows]]
    rows = rows[passes_all(asking.by_usage, asking.shape, without_all(pool, shares, rows))]
    if not len(rows):
        return None, refused
    lines = UnitCandidates(pool, shares, rows)
    relevant = _relevant(pool, lines, asking)
    all_lines = lines.gone.copy()
    lines.reprieve(asking.by_usage, asking.shape)
    costs = lines.costs()
    fits_elsewhere = passes_all(asking.elsewhere, asking.shape, lines.nodes)
    for position in np.lexsort(costs[::-1]).tolist():
        row = int(rows[position])
        if not relevant[position]:
            gone = lines.gone[:, position]
            if fits_elsewhere[position] and gone.any():
                return GangsGone(row, tuple(lines.units[gone, position].tolist()), int(costs[0][position])), refused
            continue
        units = lines.units[all_lines[:, position], position].tolist()
        found = asking.what_if.groups_gone(row, _groups(pool, units), lines.needs(position))
        if isinstance(found, Rejection):
            refused[row] = found
        elif any(found):
            gone_units = tuple(unit for unit, is_gone in zip(units, found, strict=True) if is_gone)
            over = lines.over[all_lines[:, position], position].tolist()
            violations = sum(count for count, is_gone in zip(over, found, strict=True) if is_gone)
            return GangsGone(row, gone_units, violations), refused
    return None, refused


def _has_gang(pool: Pool) -> Mask:
    """Which rows of the table have a pod of a gang's core."""
    has = np.zeros(pool.running.cluster.nodes.capacity, np.bool_)
    has[pool.rows[pool.codes[pool.unit] != ALONE]] = True
    return has


def _relevant(pool: Pool, lines: UnitCandidates, asking: Asking) -> Mask:
    """On which rows a unit might go that filters care about which look beyond the row's usage."""
    if not asking.elsewhere:
        return np.zeros(len(lines.rows), np.bool_)
    matters = np.zeros(len(pool), np.bool_)
    matters[pool.unit[asking.is_concern()[pool.shapes]]] = True
    relevant: Mask = np.logical_or.reduce(lines.gone & matters[lines.units], axis=0)
    return relevant


def _groups(pool: Pool, units: list[int]) -> list[list[PodRecord]]:
    """Who goes with each unit; a gang's surplus on the row itself is there as units of its own."""
    groups = []
    for unit in units:
        apart = {record.key for other in units if pool.core[other] == unit for record in pool.records(other)}
        groups.append([record for record in pool.records(unit) if record.key not in apart])
    return groups
