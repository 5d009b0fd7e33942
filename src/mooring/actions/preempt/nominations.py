"""What becomes of those for whom room is being made, a pod or a gang: they are bound, or look again.

All members of a gang are nominated together, bound together, and give up their room together.
"""

import numpy as np

from mooring.actions.preempt.gangs.check import MembersInPlace
from mooring.actions.preempt.gangs.search import wants_of
from mooring.actions.preempt.pods.search import Search, refusals
from mooring.engine.action import Cycle, Fault
from mooring.engine.binding import Steps, decisions_to_bind, needs_steps
from mooring.engine.evictions import is_held, withdraw
from mooring.engine.permits import go_on_waiting
from mooring.engine.plugin import Change
from mooring.engine.queue.queue import Entry
from mooring.engine.verdict import Verdict
from mooring.model.decisions import Decision
from mooring.state.cluster import Cluster
from mooring.state.intentions import Nomination


def follow_up(cycle: Cycle, search: Search) -> list[Decision]:
    """Bind those whose victims are gone; those who have lost their room, or do not fit into it, wait again."""
    cluster, queue = cycle.cluster, cycle.queue
    decisions: list[Decision] = []
    for nomination in list(cluster.nominations()):
        if not all(is_held(cluster, pod) for pod in nomination.pods):
            if withdraw(cluster, queue, nomination):
                queue.note(Change.POD_GONE)  # what was held is anybody's
        elif all(map(cluster.is_out_of_the_way, nomination.victims)):
            decisions += _bind(cycle, search, nomination)
    return decisions


def _bind(cycle: Cycle, search: Search, nomination: Nomination) -> list[Decision]:
    """Bind pods whose victims are gone, if the filters agree; else they are to be tried anew."""
    cluster, queue = cycle.cluster, cycle.queue
    entries = [queue.nominated[pod.key] for pod in nomination.pods]
    is_bound = False
    refused: Verdict | None = None
    with cycle.attempt() as attempt:
        cluster.confirm(nomination)
        if _is_whole(cluster, nomination) and fits(search, entries):
            refused = _take_steps(cluster, entries)
            is_bound = refused is None
        if is_bound:
            attempt.keep()
    if attempt.error is None and refused is not None and refused.hold_seconds is not None:
        return go_on_waiting(cycle, nomination, refused)
    if not is_bound:
        withdraw(cluster, queue, nomination)
        queue.note(Change.POD_GONE)
        if attempt.error is not None:
            _fail(cycle, nomination, entries, attempt.error)
        return []
    for pod in nomination.pods:
        queue.nominated.pop(pod.key, None)
    if nomination.gang:
        queue.gang_changed(nomination.gang)
        queue.gangs.look_again_after(nomination.gang)
        for shape in {entry.record.shape.id: entry.record.shape for entry in entries}.values():
            queue.note(Change.POD_BOUND, shape)
    return [*decisions_to_bind(cluster, [entry.record for entry in entries])]


def _fail(cycle: Cycle, nomination: Nomination, entries: list[Entry], error: Exception) -> None:
    """Set those aside who gave up their room because something raised; a gang that lacks members waits for these."""
    gang = cycle.queue.gangs.get(nomination.gang) if nomination.gang else None
    if gang is None:
        cycle.fail(entries, error)
    elif cycle.queue.take(gang):
        cycle.fail([gang], error)
    else:
        cycle.faults.append(Fault(nomination.gang, error))


def _is_whole(cluster: Cluster, nomination: Nomination) -> bool:
    """Whether gangs are whole with those nominated: they may have been released or withdrawn in the meantime."""
    table = cluster.gangs
    parts = {part.key: part for pod in nomination.pods if (part := table.of(pod.key)) is not None}
    roots = {root.key: root for part in parts.values() if (root := table.root_of(part))}
    if nomination.gang and list(roots) != [nomination.gang]:
        return False
    return all(part.is_whole() for part in parts.values()) and all(
        table.is_whole(root) and table.may_start(root) for root in roots.values()
    )


def fits(search: Search, entries: list[Entry]) -> bool:
    """Whether every pod could come to the row that it has, with all others in theirs."""
    cluster = search.cluster
    if len(entries) == 1:
        record = entries[0].record
        row = record.row
        with cluster.what_if():
            cluster.release(record.key)
            answer = refusals(entries[0].profile, cluster, record.shape, np.array([row], np.intp))
        return bool(len(answer.feasible))
    wants = wants_of(search, [(entry.record, entry.profile) for entry in entries])
    if not all(want.is_row[[record.row for record in want.records]].all() for want in wants):
        return False
    return MembersInPlace(cluster, wants).all_fit()


def _take_steps(cluster: Cluster, entries: list[Entry]) -> Verdict | None:
    """Take all pods through the steps after the choice of a node; say who refuses one."""
    stepping = [entry for entry in entries if needs_steps(entry.profile, entry.record.shape)]
    steps = Steps(cluster)
    for entry in stepping:
        refused = steps.reserve(entry)
        if refused is not None:
            return refused
    return steps.bind(stepping)
