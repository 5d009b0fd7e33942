"""The pods that may not be evicted because a plan for a pod of the same or a higher priority relies on them.

A pod that holds a row while others leave for it may spread among pods elsewhere, or want to be near one. If one of
those were evicted meanwhile, the holder would not fit any more, and the pods that left for it would have left in vain.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.running import NO_POD, RunningPods, preemptor_priority
from mooring.engine.asking import faults_of
from mooring.engine.plugin import FilterAnswers
from mooring.engine.shortcuts import Reliance, SpoiledByOthers
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.plans import Plan, Reason
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.views import GuardedPod

Slots = NDArray[np.int64]


def relied_on(running: RunningPods, filters: Sequence[FilterAnswers], priority: int) -> Slots:
    """The slots of pods that a preemptor of this priority may not evict; `running` is up to date.

    Of the pods that count for a holder in one domain, the most important ones are spared.
    """
    cluster = running.cluster
    if not cluster.has_plans:
        return np.zeros(0, np.int64)
    asked = [plugin for plugin in filters if isinstance(plugin, SpoiledByOthers)]
    spared = [np.zeros(0, np.int64)]
    seen = set[tuple[int, int, Plan]]()
    for record, plan in _holders(cluster, priority):
        alike = (record.shape.id, record.row, plan)
        if alike in seen:
            continue
        seen.add(alike)
        held = GuardedPod.of(cluster, record, plan)
        own = {each.key for each in plan.holds}
        for plugin in asked:
            with faults_of(plugin, "relies_on"):
                found = plugin.relies_on(held, cluster.view)
            spared += [_slots(running, reliance, own, record) for reliance in found]
    return np.unique(np.concatenate(spared))


def _holders(cluster: Cluster, priority: int) -> Iterator[tuple[PodRecord, Plan]]:
    """The pods of at least this priority that hold rows until others have left, or until nodes are there."""
    for _, plan in cluster.plans():
        if plan.reason in (Reason.PERMIT, Reason.RESERVATION):
            continue  # as good as bound, or over with the cycle
        for held in plan.holds:
            record = cluster.pods.records.get(held.key)
            if record is None or record.row == UNBOUND or not record.nominated:
                continue
            if preemptor_priority(cluster, record.pod) >= priority:
                yield record, plan


def _slots(running: RunningPods, reliance: Reliance, own: set[PodKey], holder: PodRecord) -> Slots:
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
    found: Slots = running.slots.ravel()[index[rank < reliance.least[domains]]]
    return found


def _stays(record: PodRecord | None, own: set[PodKey], holder: PodRecord) -> bool:
    """Whether a pod can be expected to run when the holder is bound."""
    if record is None or record is holder or record.leaving is not None:
        return False
    return not record.nominated or record.key in own
