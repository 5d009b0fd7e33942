"""Pods that are evicted to be made anew with what is recommended, as their autoscaler's update mode asks for.

Nothing is evicted in vain: only pods for whose successors a node has room now, and none of which the successor would
have the old amounts again, because nothing gives new pods what is recommended. Budgets and gangs are respected.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.resize.targets import DEFERRED, PENDING, Target
from mooring.engine.action import Cycle
from mooring.engine.disruption import Refusal, Voluntary, as_created, disrupt
from mooring.model.api.meta import timestamp_seconds
from mooring.model.decisions import Decision
from mooring.model.pod_patch import PodPatch
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.remembered import Renewal

AGAIN_SECONDS = 3600.0
"""Pods that began after the first eviction of a series are not evicted again for so long after the last one."""
MISSING_SECONDS = 600.0
"""So long after an eviction a controller counts as having the pods that it had then."""
DEFERRED_SECONDS = 300.0
"""A resize that a kubelet has deferred for so long is given up where the pod may be made anew, as the updater does."""
INFEASIBLE = "Infeasible"


@dataclass(frozen=True, slots=True)
class Renewed:
    """What came of it: decisions, or why there are none, and when to look again."""

    decisions: list[Decision]
    problem: str = ""
    again_at: float = math.inf


def configured_pods(cluster: Cluster, target: Target, present: int, now: float) -> int:
    """How many pods a controller has, those included that were evicted and are not there again yet."""
    renewal = cluster.renewals.of(target)
    return max(present, renewal.replicas) if renewal is not None and now < renewal.last + MISSING_SECONDS else present


def renew(
    cycle: Cycle,
    rehearsal: Rehearsal,
    target: Target,
    members: Sequence[tuple[PodRecord, PodPatch]],
    replicas: int,
    why: str,
) -> Renewed:
    """Evict pods together, for their controller to make them anew with these amounts."""
    cluster, now = cycle.cluster, cycle.now
    renewal = cluster.renewals.of(target)
    is_recent = renewal is not None and now < renewal.last + AGAIN_SECONDS
    if renewal and is_recent and any(_began(record) >= math.floor(renewal.first) for record, _ in members):
        problem = "it was made anew and has not got what is recommended: nothing gives new pods their amounts"
        return Renewed([], problem, renewal.last + AGAIN_SECONDS)
    with cluster.what_if():
        for record, _ in members:
            cluster.release(record.key)
        placed = rehearsal.place(cluster, [patch.apply(as_created(record.pod)) for record, patch in members])
    if placed.problem:
        return Renewed([], f"it is not evicted, as it would wait: {placed.problem}")
    records = [record for record, _ in members]
    made = disrupt(cluster, cycle.queue, records, Voluntary(f"Evicted by right-sizing: {why}"))
    if isinstance(made, Refusal):
        return Renewed([], f"it is not evicted, as {made.message}")
    first = renewal.first if renewal is not None and now < renewal.last + AGAIN_SECONDS else now
    cluster.renewals.set(target, Renewal(first, now, replicas))
    return Renewed(made.decisions)


def stuck_since(record: PodRecord) -> tuple[float, str] | None:
    """From when on a resize that its kubelet does not carry out is given up, and what the kubelet says of it."""
    for one in record.pod.status.conditions or ():
        if one.type == PENDING and one.status == "True":
            since = timestamp_seconds(one.last_transition_time) or 0.0
            if one.reason == INFEASIBLE:
                return since, "its kubelet says that the node could never hold it"
            if one.reason == DEFERRED:
                return since + DEFERRED_SECONDS, "its kubelet has deferred it for five minutes"
    return None


def _began(record: PodRecord) -> float:
    pod = record.pod
    times = (timestamp_seconds(pod.status.start_time), timestamp_seconds(pod.metadata.creation_timestamp))
    return max((time for time in times if time is not None), default=-math.inf)
