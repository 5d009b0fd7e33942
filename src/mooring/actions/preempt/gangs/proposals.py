"""Units whose going would make room for a gang, as far as columns can tell: the cheapest proposals first.

Cheap is, in this order: nobody beyond what disruption budgets allow, the lowest priority that suffices, pods by
themselves before whole gangs, and then little lost work, where a policy asks for it, and few victims.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.cost import Cost
from mooring.actions.preempt.gangs.choice import Chooser
from mooring.actions.preempt.gangs.demand import Board, Want
from mooring.actions.preempt.gangs.pool import NOBODY, Numbers, Pool
from mooring.actions.preempt.gangs.spare import spare, spare_by_total
from mooring.actions.preempt.pods.candidates import ShapeAmounts
from mooring.engine.plugin import Mask
from mooring.state.gang_units import ALONE
from mooring.state.pods import PodRecord
from mooring.state.rows import Rows

MOST_DOMAINS = 3
"""So many domains are looked at closely, those first where the least is missing."""


@dataclass(frozen=True)
class Asked:
    """What a gang asks for."""

    wants: Sequence[Want]
    rows: Rows
    """Where its members could be."""
    domains: NDArray[np.int32] | None
    """By row of the table: the domain that all members have to share; None where they need not."""
    only_filters: bool
    """Whether its placing looks at nothing but filters and these domains."""


class Proposals:
    """All proposals for one gang, at one moment."""

    def __init__(self, pool: Pool, shares: ShapeAmounts, asked: Asked, cost: Cost | None) -> None:
        self.pool = pool
        self.wants = wants = asked.wants
        self.board = Board(pool, shares, asked.rows, wants)
        self._domain = np.zeros(len(asked.rows), np.intp)
        if asked.domains is not None:
            self._domain = np.unique(asked.domains[asked.rows], return_inverse=True)[1]
        self._domain_count = int(self._domain.max(initial=0)) + 1
        self._by_lost_work = cost is not None and cost.has_least_lost
        self._rank = pool.importance()
        is_simple = asked.domains is None and asked.only_filters and len(wants) == 1
        self._is_exact = is_simple and wants[0].is_exact
        """Whether what columns propose is sure to do."""

    def __iter__(self) -> Iterator[Mask]:
        everybody = np.ones(len(self.pool), np.bool_)
        if not self.is_enough_somewhere:
            return
        within_budgets = self._within_budgets()
        for may_go in (everybody,) if within_budgets.all() else (within_budgets, everybody):
            level = self._lowest_level(may_go)
            if level is None:
                continue
            low = may_go & (self.pool.priorities <= level)
            boards = self._most_promising(low)
            found = [gone for board in boards if (gone := self._choose(board, low)) is not None]
            yield from sorted(found, key=self._cost)
            if self._is_exact:
                return
            # Placing looks at more than columns do: perhaps with more room.
            for board in boards:
                yield self._all_on(board, may_go)

    # Is it enough?

    def _room(self, gone: Mask) -> NDArray[np.int64]:
        """(wants, domains): how many members would find room."""
        nodes = self.board.supposed(gone)
        rooms = [np.bincount(self._domain, want.room(nodes), self._domain_count) for want in self.wants]
        return np.stack(rooms).astype(np.int64)

    def _enough(self, gone: Mask) -> Mask:
        """Which domains would hold the gang."""
        counts = np.array([[want.count] for want in self.wants])
        enough: Mask = np.logical_and.reduce(self._room(gone) >= counts, axis=0)
        return enough

    @cached_property
    def is_enough_somewhere(self) -> bool:
        """Whether the gang might fit if all units of the pool were gone."""
        return bool(len(self.pool)) and bool(self._enough(np.ones(len(self.pool), np.bool_)).any())

    @property
    def most_room(self) -> int:
        """For how many members there would be room if all units of the pool were gone."""
        counts = np.array([[want.count] for want in self.wants])
        return int(np.minimum(self._room(np.ones(len(self.pool), np.bool_)), counts).sum(axis=0).max())

    def _lowest_level(self, may_go: Mask) -> int | None:
        """The lowest priority such that the going of all units up to it would be enough."""
        levels = np.unique(self.pool.priorities[may_go])
        low, high = 0, len(levels)
        if not high or not self._enough(may_go).any():
            return None
        while low < high:
            middle = (low + high) // 2
            if self._enough(may_go & (self.pool.priorities <= levels[middle])).any():
                high = middle
            else:
                low = middle + 1
        return int(levels[high])

    def _within_budgets(self) -> Mask:
        """The units that could all go together without breaking a budget, the least important of each budget."""
        units = np.arange(len(self.pool))
        within: Mask = self.pool.over_budget(units, np.zeros_like(units), -self._rank) == 0
        # A gang goes with all of its surplus, or not at all.
        core = self.pool.core
        for _ in range(2):  # nor does a gang around a gang
            within[core[(core != NOBODY) & ~within]] = False
        return within

    # Who exactly?

    def _most_promising(self, may_go: Mask) -> list[Board]:
        """The domains that would do, those first in which the least is missing as things are."""
        enough = np.flatnonzero(self._enough(may_go))
        counts = np.array([[want.count] for want in self.wants])
        missing = np.maximum(counts - self._room(np.zeros(len(may_go), np.bool_)), 0).sum(axis=0)
        best = enough[np.argsort(missing[enough], kind="stable")][:MOST_DOMAINS]
        if self._domain_count == 1:
            return [self.board]
        return [self.board.at(np.flatnonzero(self._domain == domain)) for domain in best.tolist()]

    def _all_on(self, board: Board, may_go: Mask) -> Mask:
        is_here = np.zeros(len(may_go), np.bool_)
        is_here[board.units] = True
        return board.closed(may_go & is_here)

    def _choose(self, board: Board, may_go: Mask) -> Mask | None:
        choice = Chooser(board, self._rank, by_lost_work=self._by_lost_work).choose(may_go)
        if choice is None:
            return None
        gone = spare(board, choice, self.order(choice.gone))
        return spare_by_total(board, self.wants[0], gone, self.order(gone)) if self._is_exact else gone

    def order(self, gone: Mask) -> Numbers:
        """In which order units that are gone may stay: those a budget protects first, then the most important."""
        units = np.flatnonzero(gone)
        over = np.zeros(len(gone), np.int64)
        over[units] = self.pool.over_budget(units, np.zeros_like(units), self._rank)
        order = np.where(over > 0, self._rank - len(gone), self._rank)
        core = self.pool.core
        for _ in range(2):  # nobody before those without whom it cannot stay
            order = np.where(core != NOBODY, np.maximum(order, order[core]), order)
        return order

    def violations(self, gone: Mask) -> int:
        """How many pods go beyond what budgets allow."""
        units = np.flatnonzero(gone)
        return int(self.pool.over_budget(units, np.zeros_like(units), self._rank).sum())

    def _cost(self, gone: Mask) -> tuple[float, ...]:
        pool = self.pool
        alone = gone & ((pool.core < 0) | ~gone[pool.core])  # a gang's surplus is counted with it
        highest = int(pool.priorities[gone].max(initial=-(1 << 31)))
        gangs = int(np.count_nonzero(gone & (pool.codes != ALONE)))
        lost = int(pool.lost[alone].sum()) if self._by_lost_work else 0
        return self.violations(gone), highest, lost, int(pool.sizes[alone].sum()), gangs

    def core_records(self, unit: int, gone: Mask) -> list[PodRecord]:
        """Who comes back with a unit; of a gang, those of its surplus too that are no units of the pool's."""
        if self.pool.codes[unit] == ALONE:
            return self.pool.records(unit)
        dependent = np.flatnonzero((self.pool.core == unit) & gone)
        apart = {record.key for number in dependent.tolist() for record in self.pool.records(number)}
        return [record for record in self.pool.records(unit) if record.key not in apart]
