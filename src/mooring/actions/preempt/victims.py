"""Who might have to go from some rows: those of lower priority, by themselves or with their gang, protected or not."""

from functools import cached_property

import numpy as np

from mooring.actions.preempt.cost import Cost
from mooring.actions.preempt.crowd import Crowd, Shares, Spared, gather_crowd
from mooring.actions.preempt.gang_units import ALONE
from mooring.actions.preempt.pool import Pool, gather_pool
from mooring.actions.preempt.running import Matrix, RunningPods
from mooring.engine.plugin import Mask
from mooring.state.rows import Rows


class Victims:
    """Who might have to go from some rows: those of lower priority, its own gang aside."""

    def __init__(
        self,
        running: RunningPods,
        shares: Shares,
        priority: int,
        rows: Rows,
        pod_key: str,
        cost: Cost | None = None,
    ) -> None:
        """`pod_key` names the pod for which room is made, or any of its gang; `running` is up to date."""
        self.rows = rows
        self.cost = cost
        self._running = running
        self._shares = shares
        self._priority = priority
        self._own = running.gangs.slots_of(pod_key)

    @property
    def has_gangs(self) -> bool:
        return bool(len(self.rows) and self._running.gangs.units)

    @property
    def _protects(self) -> bool:
        return self.cost is not None and self.cost.args.protects

    @cached_property
    def going_alone(self) -> Crowd:
        """Those that may go by themselves, and are not protected."""
        if not self.has_gangs and not self._protects:
            return self.everybody
        return self._gather(self._is_spared)

    @cached_property
    def everybody(self) -> Crowd:
        """All of them, whether they go alone and are protected or not."""
        return self._gather(self._is_own if len(self._own) else None)

    def _gather(self, spared: Spared | None) -> Crowd:
        return gather_crowd(self._running, self._shares, self.rows, self._priority, spared, self.cost)

    def pool(self, *, heed_protection: bool = True) -> Pool:
        """Those that are not protected, by themselves or with their gang."""
        on_rows = np.zeros(self._running.cluster.nodes.capacity, np.bool_)
        on_rows[self.rows] = True
        return gather_pool(
            self._running,
            self._priority,
            on_rows,
            own=self._own,
            cost=self.cost,
            heed_protection=heed_protection,
        )

    def _is_own(self, index: Matrix) -> Mask:
        return np.isin(self._running.slots.ravel().take(index), self._own)

    def _is_spared(self, index: Matrix) -> Mask:
        slots = self._running.slots.ravel().take(index)
        spared: Mask = self._running.gangs.cores(slots) != ALONE
        if len(self._own):
            spared |= np.isin(slots, self._own)
        if self.cost is not None and self._protects:
            spared |= self.cost.is_protected(index)
        return spared

    def protects(self, crowd: Crowd) -> Mask:
        """On which rows somebody is protected."""
        if self.cost is None or not self._protects:
            return np.zeros(len(crowd), np.bool_)
        found: Mask = np.logical_or.reduce(crowd.gone & self.cost.is_protected(crowd.index), axis=0)
        return found

    def seconds_protected(self, crowd: Crowd) -> int:
        """How long it is until the first of those who are protected on some rows is so no more."""
        assert self.cost is not None
        until = self.cost.protected_until(crowd.index)[crowd.gone]
        return self.cost.seconds_left(int(until[until > self.cost.moment].min()))
