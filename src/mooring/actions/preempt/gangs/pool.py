"""Everybody who might have to go, wherever they run, as flat columns: pods, and the units in which they go.

A unit is a pod by itself, or the core of a gang, which goes as a whole. Members beyond that are units of their own;
they cannot stay without the core. Neither can a gang inside a gang stay without what the outer one needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.cost import Cost
from mooring.state.gang_units import ALONE
from mooring.state.pods import PodRecord
from mooring.state.running import NOT_STARTED, RunningPods, importance

Numbers = NDArray[np.int64]
NOBODY = -1
"""Instead of a unit's number: nobody else has to stay for it to stay."""


@dataclass(frozen=True)
class Pool:
    """Units by number; gangs come first."""

    running: RunningPods
    index: Numbers
    """Of each pod: where it is in the matrices of `running`, flattened."""
    rows: Numbers
    """Of each pod."""
    unit: Numbers
    """Of each pod: the number of its unit."""
    codes: Numbers
    """Of each unit: its code among gang units, ALONE for a pod by itself."""
    core: Numbers
    """Of each unit: the number of the unit that has to stay for this one to stay, or NOBODY."""
    priorities: Numbers
    sizes: Numbers
    """How many pods go if this unit goes; for a gang with all of its surplus."""
    starts: Numbers
    """Of the first to start."""
    lost: Numbers
    """Work lost by its pods, in microseconds; nothing where no policy asks for it."""

    @property
    def shapes(self) -> Numbers:
        return self.running.shapes.ravel()[self.index]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def gang_count(self) -> int:
        return int(np.count_nonzero(self.codes != ALONE))

    def importance(self) -> Numbers:
        """The rank of each unit, the most important first: priority, work, gangs, more pods, the earlier start."""
        ties = self.running.cluster.nodes.tie.values
        first_rows = np.zeros(len(self), np.int64)
        first_rows[self.unit[::-1]] = self.rows[::-1]
        keys = [ties[first_rows], self.starts, -self.priorities]
        if self.gang_count:
            keys[2:2] = [-self.sizes, self.codes == ALONE]
        if self.lost.any():
            keys.insert(-1, -self.lost)
        order = np.lexsort(keys)
        rank = np.empty(len(self), np.int64)
        rank[order] = np.arange(len(self))
        return rank

    def over_budget(self, units: Numbers, places: Numbers, rank: Numbers) -> Numbers:
        """How many pods of each unit go beyond what budgets allow, if in its place all more important ones go too.

        `units` and `places` are parallel: a unit may be looked at in several places, each by itself.
        """
        over = np.zeros(len(units), np.int64)
        budgets = self.running.budgets
        if not budgets or not len(units):
            return over
        of_unit, of_budget, count = self._counts_by_budget()
        # Join: every place of a unit with every budget of it.
        begin, end = np.searchsorted(of_unit, units), np.searchsorted(of_unit, units + 1)
        entry = np.repeat(np.arange(len(units)), end - begin)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
        found = np.repeat(begin, end - begin) + within
        if not len(found):
            return over
        allowed = self.running.allowed_disruptions()[of_budget[found]]
        group = places[entry] * len(budgets.all) + of_budget[found]
        by_rank = np.lexsort((rank[units[entry]], group))
        counted = count[found][by_rank]
        total = np.cumsum(counted)
        is_first = np.concatenate([[True], np.diff(group[by_rank]) != 0])
        before = np.maximum.accumulate(np.where(is_first, total - counted, 0))
        exceeding = np.clip(total - before - allowed[by_rank], 0, counted)
        np.maximum.at(over, entry[by_rank], exceeding)
        return over

    def _counts_by_budget(self) -> tuple[Numbers, Numbers, Numbers]:
        """(unit, budget, pods of that unit that the budget protects), as three columns."""
        sets = self.running.budgets.sets.values
        codes = self.running.budget_sets.ravel()[self.index]
        sizes = np.array([len(indices) for indices in sets], np.int64)
        flat = np.array([index for indices in sets for index in indices], np.int64)
        first = np.cumsum(sizes) - sizes
        pods = np.flatnonzero(sizes[codes])
        counts = sizes[codes[pods]]
        pod = np.repeat(pods, counts)
        within = np.arange(len(pod)) - np.repeat(np.cumsum(counts) - counts, counts)
        budget = flat[first[codes[pod]] + within]
        number_of_budgets = max(1, len(self.running.budgets.all))
        keys, count = np.unique(self.unit[pod] * number_of_budgets + budget, return_counts=True)
        return keys // number_of_budgets, keys % number_of_budgets, count.astype(np.int64)

    def records(self, unit: int) -> list[PodRecord]:
        """Everybody who goes if a unit goes."""
        code = int(self.codes[unit])
        if code != ALONE:
            return list(self.running.gangs.units[code].members)
        # Pods by themselves come last, in the order of their units.
        slot = self.running.slots.item(self.index.item(unit - len(self)))
        record = self.running.cluster.pods.by_slot[slot]
        assert record is not None
        return [record]

    def goers(self, units: Sequence[int]) -> tuple[tuple[PodRecord, ...], dict[str, str]]:
        """Everybody who goes with some units, the most important first; and, by pod key, whose gang goes as a whole."""
        found: dict[str, PodRecord] = {}
        gangs: dict[str, str] = {}
        for unit in units:
            records = self.records(unit)
            found.update((record.key, record) for record in records)
            if self.codes[unit] != ALONE:
                name = self.running.gangs.units[int(self.codes[unit])].name
                gangs.update((record.key, name) for record in records)
        return tuple(sorted(found.values(), key=importance)), gangs


def gather_pool(
    running: RunningPods,
    priority: int,
    on_rows: NDArray[np.bool_],
    *,
    own: Numbers,
    needed: Numbers,
    cost: Cost | None = None,
    heed_protection: bool = True,
) -> Pool:
    """All units of less than this priority that have a pod on some rows (a mask over the table's), gangs at all theirs.

    `own` are slots of pods that are not to be touched: the gang's for which room is made. `needed` are those of other
    pods that are not to go.
    """
    width = running.priorities.shape[1]
    index = np.flatnonzero(running.priorities.ravel() < priority)
    slots = running.slots.ravel()[index]
    if len(own):
        kept = ~np.isin(slots, own)
        index, slots = index[kept], slots[kept]
    core, surplus = running.gangs.cores(slots), running.gangs.surpluses(slots)
    rows = index // max(1, width)
    is_here = on_rows[rows]
    is_protected = np.isin(slots, needed) if len(needed) else np.zeros(len(index), np.bool_)
    if cost is not None and heed_protection and cost.args.protects:
        is_protected |= cost.is_protected(index)
    # A gang goes as a whole or not at all: not at all if any of it is protected.
    codes = np.setdiff1d(core[is_here], np.concatenate([core[is_protected], surplus[is_protected], [ALONE]]))
    number_of = np.full(int(max(core.max(initial=0), surplus.max(initial=0))) + 2, NOBODY, np.int64)
    number_of[codes] = np.arange(len(codes))  # the last entry is that of ALONE
    core, surplus = number_of[core], number_of[surplus]
    is_single = is_here & ~is_protected & (running.gangs.cores(slots) == ALONE)
    with_gang = np.where(is_single, NOBODY, np.where(core != NOBODY, core, surplus))
    gangs, singles = np.flatnonzero(with_gang != NOBODY), np.flatnonzero(is_single)
    gangs = gangs[np.argsort(with_gang[gangs], kind="stable")]
    unit = np.concatenate([with_gang[gangs], len(codes) + np.arange(len(singles))])
    needs = np.concatenate([np.full(len(codes), NOBODY), surplus[singles]])
    inner = gangs[(core[gangs] != NOBODY) & (surplus[gangs] != NOBODY)]
    needs[core[inner]] = surplus[inner]
    return _pool(running, index[np.concatenate([gangs, singles])], unit, codes, needs, cost)


def _pool(
    running: RunningPods, index: Numbers, unit: Numbers, codes: Numbers, needs: Numbers, cost: Cost | None
) -> Pool:
    total = len(needs)
    starts = np.full(total, NOT_STARTED, np.int64)
    np.minimum.at(starts, unit, running.starts.ravel()[index])
    lost = np.zeros(total, np.int64)
    if cost is not None and cost.has_least_lost:
        np.add.at(lost, unit, cost.lost(index))
    sizes = np.bincount(unit, minlength=total)
    is_gang = np.arange(total) < len(codes)
    for dependent in (np.flatnonzero((needs != NOBODY) & ~is_gang), np.flatnonzero((needs != NOBODY) & is_gang)):
        np.add.at(sizes, needs[dependent], sizes[dependent])
        np.add.at(lost, needs[dependent], lost[dependent])
    first = np.zeros(total, np.int64)
    first[unit[::-1]] = index[::-1]
    priorities = running.priorities.ravel()[first]
    all_codes = np.concatenate([codes, np.full(total - len(codes), ALONE)])
    rows = index // max(1, running.priorities.shape[1])
    return Pool(running, index, rows, unit, all_codes, needs, priorities, sizes, starts, lost)
