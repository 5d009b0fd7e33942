"""Who might have to go from some rows: those of lower priority, by themselves or with their gang, protected or not.

Pods on which a plan for a pod of the same or a higher priority relies are not among them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.cost import Cost
from mooring.actions.preempt.gangs.pool import Pool, gather_pool
from mooring.actions.preempt.pods.candidates import Candidates, ShapeAmounts, Spared, gather_crowd
from mooring.engine.asking import faults_of
from mooring.engine.held_pods import HeldPods
from mooring.engine.plugin import FilterAnswers, Mask
from mooring.engine.shortcuts import Reliance, SpoiledByOthers
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.gang_units import ALONE
from mooring.state.plans import Plan, Reason
from mooring.state.pods import PodRecord
from mooring.state.rows import Rows
from mooring.state.running import NO_POD, Matrix, RunningPods, preemptor_priority
from mooring.state.views import GuardedPod

NOBODY = np.zeros(0, np.int64)


class Victims:
    """Who might have to go from some rows: those of lower priority, its own gang aside."""

    def __init__(
        self,
        running: RunningPods,
        shares: ShapeAmounts,
        priority: int,
        rows: Rows,
        pod_key: PodKey,
        cost: Cost | None = None,
        needed: NDArray[np.int64] = NOBODY,
    ) -> None:
        """`pod_key` names the pod for which room is made, or any of its gang; `running` is up to date.

        `needed` are the slots of other pods that are not to go.
        """
        self.rows = rows
        self.cost = cost
        self._running = running
        self._shares = shares
        self._priority = priority
        self._own = running.gangs.slots_of(pod_key)
        self._needed = needed
        self._kept = np.union1d(self._own, needed) if len(needed) else self._own

    @property
    def has_gangs(self) -> bool:
        return bool(len(self.rows) and self._running.gangs.units)

    @property
    def has_protected(self) -> bool:
        """Whether anybody may be protected by a policy."""
        return self.cost is not None and self.cost.args.protects

    @cached_property
    def going_alone(self) -> Candidates:
        """Those that may go by themselves, and are not protected."""
        if not self.has_gangs and not self.has_protected:
            return self.everybody
        return self._gather(self._is_spared)

    @cached_property
    def everybody(self) -> Candidates:
        """All of them, whether they go alone and are protected or not."""
        return self._gather(self._is_kept if len(self._kept) else None)

    @cached_property
    def unprotected(self) -> Candidates:
        """Those that are not protected, whether they go alone or not."""
        return self._gather(lambda index: self._is_kept(index) | self._is_protected(index))

    def _gather(self, spared: Spared | None) -> Candidates:
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
            needed=self._needed,
            cost=self.cost,
            heed_protection=heed_protection,
        )

    def _is_kept(self, index: Matrix) -> Mask:
        return np.isin(self._running.slots.ravel().take(index), self._kept)

    def _is_spared(self, index: Matrix) -> Mask:
        slots = self._running.slots.ravel().take(index)
        spared: Mask = self._running.gangs.cores(slots) != ALONE
        if len(self._kept):
            spared |= np.isin(slots, self._kept)
        if self.has_protected:
            spared |= self._is_protected(index)
        return spared

    def _is_protected(self, index: Matrix) -> Mask:
        assert self.cost is not None
        protected: Mask = self._protected_until(index) > self.cost.moment
        return protected

    def _protected_until(self, index: Matrix) -> Matrix:
        """Until when each pod is protected; of a gang's core, until nobody of the gang is."""
        assert self.cost is not None
        until = self.cost.protected_until(index)
        if not self.has_gangs:
            return until
        cores = self._running.gangs.cores(self._running.slots.ravel().take(index))
        return np.maximum(until, self._gangs_protected_until[cores])

    @cached_property
    def _gangs_protected_until(self) -> Matrix:
        """By a unit's code; the last entry is that of ALONE."""
        assert self.cost is not None
        running = self._running
        index = np.flatnonzero(running.priorities.ravel() != NO_POD)
        slots = running.slots.ravel()[index]
        codes = np.maximum(running.gangs.cores(slots), running.gangs.surpluses(slots))
        found = np.zeros(max(running.gangs.units) + 2, np.int64)
        is_member = codes != ALONE
        np.maximum.at(found, codes[is_member], self.cost.protected_until(index[is_member]))
        return found

    def seconds_protected(self, candidates: Candidates) -> int:
        """How long it is until the first of those who are protected on some rows is so no more."""
        assert self.cost is not None
        until = self._protected_until(candidates.index)[candidates.gone]
        return self.cost.seconds_left(int(until[until > self.cost.moment].min()))


# Pods on which plans rely. A pod that holds a row while others leave for it may spread among pods elsewhere, or want to
# be near one. If one of those were evicted meanwhile, the holder would not fit any more, and the pods that left for it
# would have left in vain.


def relied_on(running: RunningPods, filters: Sequence[FilterAnswers], priority: int) -> NDArray[np.int64]:
    """The slots of pods that a preemptor of this priority may not evict; `running` is up to date.

    Of the pods that count for a holder in one domain, the most important ones are spared.
    """
    cluster = running.cluster
    if not cluster.has_plans:
        return np.zeros(0, np.int64)
    held_pods = next(plugin for plugin in filters if isinstance(plugin, HeldPods))
    spared = [np.zeros(0, np.int64)]
    for shape, keys in cluster.view.tentative_pods().items():
        asked = held_pods.filters_of(shape)
        seen = set[tuple[int, Plan]]()
        for record, plan in _holders(cluster, keys):
            alike = (record.row, plan)
            if alike in seen or preemptor_priority(cluster, record.pod) < priority:
                continue
            seen.add(alike)
            found = _relied_on_by(cluster, asked, record, plan)
            if found is None:
                break  # no pod of this shape relies on any
            own = {each.key for each in plan.holds}
            spared += [_slots(running, reliance, own, record) for reliance in found]
    return np.unique(np.concatenate(spared))


def _relied_on_by(
    cluster: Cluster, asked: Sequence[SpoiledByOthers], record: PodRecord, plan: Plan
) -> list[Reliance] | None:
    """On which pods a holder relies; None if no pod of its shape does on any."""
    held = GuardedPod.of(cluster, record, plan)
    found: list[Reliance] | None = None
    for plugin in asked:
        with faults_of(plugin, "relies_on"):
            reliances = plugin.relies_on(held, cluster.view)
        if reliances is not None:
            found = [*(found or ()), *reliances]
    return found


def _holders(cluster: Cluster, keys: Iterable[PodKey]) -> Iterator[tuple[PodRecord, Plan]]:
    """Those of some pods that hold rows until others have left, or until nodes are there."""
    for key in keys:
        plan_id, record = cluster.plan_of(key), cluster.pods.records[key]
        if plan_id is None or not record.nominated:
            continue  # it leaves
        plan = cluster.plan(plan_id)
        if plan.reason is not Reason.RESERVATION:  # which is over with the cycle
            yield record, plan


def _slots(running: RunningPods, reliance: Reliance, own: set[PodKey], holder: PodRecord) -> NDArray[np.int64]:
    """The slots of the most important pods in each domain, as many as have to stay there."""
    width = max(1, running.priorities.shape[1])
    is_counted = (running.priorities != NO_POD).ravel() & (reliance.effects.at(running.shapes.ravel()) != 0)
    index = np.flatnonzero(is_counted)
    index = index[index // width < len(reliance.domains)]
    domains = reliance.domains[index // width]
    needed = (domains >= 0) & (reliance.least[domains] > 0)
    index, domains = index[needed], domains[needed]
    stays = [_stays(running.cluster.pods.by_slot[slot], own, holder) for slot in running.slots.ravel()[index].tolist()]
    index, domains = index[stays], domains[stays]
    order = np.lexsort((running.starts.ravel()[index], -running.priorities.ravel()[index], domains))
    index, domains = index[order], domains[order]
    rank = np.arange(len(domains)) - np.searchsorted(domains, domains)
    found: NDArray[np.int64] = running.slots.ravel()[index[rank < reliance.least[domains]]]
    return found


def _stays(record: PodRecord | None, own: set[PodKey], holder: PodRecord) -> bool:
    """Whether a pod can be expected to run when the holder is bound."""
    if record is None or record is holder or record.leaving is not None:
        return False
    return not record.nominated or record.key in own
