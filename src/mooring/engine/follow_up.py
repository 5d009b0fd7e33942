"""Carry adopted plans on: bind the pods whose room is there, and give up plans that cannot be carried out.

This is the first step of a cycle, so that pods are bound to the room that was made for them before less urgent pods are
placed. It is done again after pods were placed, for the others. All members of a gang are bound together, and give up
their rows together.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mooring.engine.action import Cycle, Fault
from mooring.engine.answers.answers import is_by_usage
from mooring.engine.asking import ask_filter, ask_narrow, ask_pre_filter
from mooring.engine.binding import Steps, decisions_to_bind, needs_steps
from mooring.engine.disruption import is_held, withdraw
from mooring.engine.permits import go_on_waiting
from mooring.engine.plugin import SKIP, Change, FilterAnswers, PreFilter
from mooring.engine.queue.entries import Entry
from mooring.engine.queue.queue import Queue
from mooring.engine.shortcuts import Incremental, SpoiledByOthers
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.decisions import Decision, Terminate
from mooring.state.cluster import Cluster
from mooring.state.plans import Plan, PlanId, Reason, Successor
from mooring.state.pods import UNBOUND, Leaving, PodRecord

PATIENCE_SECONDS = 60.0
"""How long a row is held for a successor after the pod before it is gone."""


def follow_up(cycle: Cycle, *, is_first: bool = False) -> list[Decision]:
    """Bind the holders whose victims are gone; those that have lost their rows, or do not fit there, wait again.

    As the first step of a cycle (`is_first`), leave out pods that a permit plugin lets wait, and pods behind another
    one that is to be tried now: it may want their room, and a pod that is not bound gives that up without having run.
    """
    cluster, queue = cycle.cluster, cycle.queue
    if not cluster.has_plans:
        return []
    decisions: list[Decision] = []
    for plan_id in [plan_id for plan_id, _ in cluster.plans()]:
        if not cluster.is_adopted(plan_id):
            continue  # it was carried out in place of one before it
        plan = cluster.plan(plan_id)
        if is_first and (plan.reason is Reason.PERMIT or _is_behind(queue, plan)):
            continue
        if not all(is_held(cluster, held) for held in plan.holds):
            # A node that came as another one than was asked for is no failed launch: its pods are tried on it.
            if withdraw(cluster, queue, plan_id, is_setback=plan.reason is not Reason.SCALE_UP):
                queue.note(Change.POD_GONE)  # other pods may have what was held
        elif not all(map(cluster.is_out_of_the_way, plan.leaves)):
            continue
        else:
            decisions += _go_on(cycle, plan_id, plan)
    return decisions


def _go_on(cycle: Cycle, plan_id: PlanId, plan: Plan) -> list[Decision]:
    """Take the next step of a plan for which all pods have left that were to leave."""
    cluster = cycle.cluster
    decisions: list[Decision] = []
    if plan.drains:
        _give_up_in_time(cycle, plan_id, plan)  # an action goes on with it when its nodes are there
        return decisions
    if plan.closes and not plan.is_closing:
        if any(_stays(cluster, leaving) for leaving in plan.leaves):
            withdraw(cluster, cycle.queue, plan_id)  # a pod could not be evicted: its node stays with it
            cycle.queue.note(Change.POD_GONE)
            return decisions
        going = [name for name in plan.closes if name in cluster.nodes.row_of]
        decisions += [Terminate(name, plan.message or plan.reason.value) for name in going]
        plan = replace(plan, is_closing=True)
        cluster.renew(plan_id, plan)
    if cluster.awaits_nodes(plan):
        _give_up_in_time(cycle, plan_id, plan)
    elif any(isinstance(held.holder, Successor) for held in plan.holds):
        _await_successors(cycle, plan_id, plan)
    elif plan.holds:
        urgent = _give_way(cycle, plan_id)
        decisions += _bind(cycle, urgent, cluster.plan(urgent))
    elif any(name in cluster.nodes.row_of for name in plan.closes) or not all(map(cluster.is_amended, plan.amends)):
        _give_up_in_time(cycle, plan_id, plan)
    else:
        cluster.settle(plan_id)
    return decisions


def _give_up_in_time(cycle: Cycle, plan_id: PlanId, plan: Plan) -> None:
    """Give a plan up whose time is over: a node has not come or gone, or a pod has not been changed."""
    if plan.until is not None and cycle.now >= plan.until:
        withdraw(cycle.cluster, cycle.queue, plan_id)
        cycle.queue.note(Change.POD_GONE)


def _give_way(cycle: Cycle, plan_id: PlanId) -> PlanId:
    """Let the most urgent pod that waits on a row have the room that has become free there; return its plan.

    Pods leave a node in any order. The pod that gives way waits for those that the more urgent one was to wait for:
    else it would be bound, and evicted for the other pod when that does not get its room.
    """
    cluster, queue = cycle.cluster, cycle.queue
    plan = cluster.plan(plan_id)
    entry = _only_entry(queue, plan)
    if entry is None:
        return plan_id
    others = [
        (other.key, other_id)
        for other_id, waiting in cluster.plans()
        if waiting.holds[:1]
        and waiting.holds[0].row == plan.holds[0].row
        and (other := _only_entry(queue, waiting)) is not None
        and other.key < entry.key
        and is_held(cluster, waiting.holds[0])
        and not all(map(cluster.is_out_of_the_way, waiting.leaves))
    ]
    for _, other_id in sorted(others):
        with cluster.what_if() as trial:
            other_plan = cluster.plan(other_id)
            cluster.renew(other_id, replace(other_plan, leaves=plan.leaves))
            cluster.renew(plan_id, replace(plan, leaves=other_plan.leaves))
            if _fits(cluster, [queue.nominated[other_plan.holds[0].key]]):
                trial.keep()
                return other_id
    return plan_id


def _only_entry(queue: Queue, plan: Plan) -> Entry | None:
    """The pod for which alone others leave a row; None for gangs, and for other plans."""
    if plan.gang or plan.reason is not Reason.PREEMPTION or len(plan.holds) != 1:
        return None
    return queue.nominated.get(plan.holds[0].key)


def _await_successors(cycle: Cycle, plan_id: PlanId, plan: Plan) -> None:
    """Hold rows for pods that are yet to be created, as long as they may be expected."""
    cluster, queue = cycle.cluster, cycle.queue
    if any(_stays(cluster, leaving) for leaving in plan.leaves):
        withdraw(cluster, queue, plan_id)  # it could not be evicted: there is no successor
    elif plan.until is None:
        cluster.renew(plan_id, replace(plan, until=cycle.now + PATIENCE_SECONDS))
        return
    elif cycle.now < plan.until:
        return
    else:
        withdraw(cluster, queue, plan_id, is_setback=False)  # its workload may have been made smaller
    queue.note(Change.POD_GONE)


def _stays(cluster: Cluster, leaving: Leaving) -> bool:
    """Whether a pod that was being evicted runs on."""
    record = cluster.pods.records.get(leaving.key)
    return record is not None and record.pod.metadata.uid == leaving.uid and record.row != UNBOUND


def _is_behind(queue: Queue, plan: Plan) -> bool:
    """Whether another pod or gang that is to be tried now comes before the holders in the order of the queue."""
    turn = queue.peek()
    entries = [entry for held in plan.holds if (entry := queue.nominated.get(held.key)) is not None]
    return turn is not None and bool(entries) and turn.key < min(entry.key for entry in entries)


def _bind(cycle: Cycle, plan_id: PlanId, plan: Plan) -> list[Decision]:
    """Bind pods whose victims are gone, if the filters agree; else they are to be tried anew."""
    cluster, queue = cycle.cluster, cycle.queue
    entries = [queue.nominated[held.key] for held in plan.holds]
    is_bound = False
    refused: Verdict | None = None
    with cycle.attempt() as attempt:
        cluster.settle(plan_id)
        _take_devices(cluster, entries)
        if _is_whole(cluster, plan) and _fits(cluster, entries):
            refused = _take_steps(cluster, entries)
            is_bound = refused is None
        if is_bound:
            attempt.keep()
    if attempt.error is None and refused is not None and refused.hold_seconds is not None:
        return go_on_waiting(cycle, plan_id, plan, refused)
    if not is_bound and attempt.error is None and plan.opens and plan.until is not None and cycle.now < plan.until:
        return []  # the node is there, and not ready yet
    if not is_bound:
        withdraw(cluster, queue, plan_id)
        queue.note(Change.POD_GONE)
        if attempt.error is not None:
            _fail(cycle, plan, entries, attempt.error)
        return []
    for held in plan.holds:
        queue.nominated.pop(held.key, None)
    if plan.gang:
        queue.gang_changed(plan.gang)
        queue.gangs.look_again_after(plan.gang)
    for shape in {entry.record.shape.id: entry.record.shape for entry in entries}.values():
        queue.note(Change.POD_BOUND, shape)
    return [*decisions_to_bind(cluster, [entry.record for entry in entries])]


def _take_devices(cluster: Cluster, entries: Sequence[Entry]) -> None:
    """Let pods take their devices, CPUs and memory anew: what others had of these is free now."""
    taking = [entry.record for entry in entries if cluster.takes_devices(entry.record)]
    released = [cluster.release(record.key) for record in taking]
    for each in released:
        cluster.assume(each.record.key, each.row)


def _fits(cluster: Cluster, entries: Sequence[Entry]) -> bool:
    """Whether pods fit on their rows: beside all that is held, or at least beside all that is there.

    The second counts because rows that are held for others are over-committed until their own victims have left. Those
    others were given their rows with these pods in place.
    """
    if _all_fit(cluster, entries):
        return True
    waiting = [
        held.key
        for _, plan in cluster.plans()
        if not all(map(cluster.is_out_of_the_way, plan.leaves))
        for held in plan.holds
        if is_held(cluster, held)
    ]
    if not waiting:
        return False
    with cluster.what_if():
        for key in waiting:
            cluster.let_go(key)
        return _all_fit(cluster, entries)


def _all_fit(cluster: Cluster, entries: Sequence[Entry]) -> bool:
    """Whether each pod fits with all others in place, and those that take devices one after the other, too.

    Of pods that share a card, each would fit beside the others: whether the card is there is asked for the first only.
    What depends on pods elsewhere is asked with all of them in place: a gang that spreads may not in another order.
    """
    taking = [entry for entry in entries if cluster.takes_devices(entry.record)]
    if len(taking) > 1:
        with cluster.what_if():
            released = [cluster.release(entry.record.key) for entry in taking]
            for entry, each in zip(taking, released, strict=True):
                cluster.assume(entry.record.key, each.row)
                if not all_fit(cluster, [entry], only_here=True):
                    return False
    return all_fit(cluster, entries)


def _fail(cycle: Cycle, plan: Plan, entries: list[Entry], error: Exception) -> None:
    """Set pods aside that gave up their rows because something raised; a gang that lacks members waits for these."""
    gang = cycle.queue.gangs.get(plan.gang) if plan.gang else None
    if gang is None:
        cycle.fail(entries, error)
    elif cycle.queue.take(gang):
        cycle.fail([gang], error)
    else:
        cycle.faults.append(Fault(plan.gang, error))


def _is_whole(cluster: Cluster, plan: Plan) -> bool:
    """Whether gangs are whole with the holders: they may have been released or withdrawn in the meantime."""
    table = cluster.gangs
    parts = {part.key: part for held in plan.holds if (part := table.of(held.key)) is not None}
    roots = {root.key: root for part in parts.values() if (root := table.root_of(part))}
    if plan.gang and list(roots) != [plan.gang]:
        return False
    return all(part.is_whole() for part in parts.values()) and all(
        table.is_whole(root) and table.may_start(root) for root in roots.values()
    )


def _take_steps(cluster: Cluster, entries: list[Entry]) -> Verdict | None:
    """Take all pods through the steps after the choice of a node; return the refusal if there is one."""
    stepping = [entry for entry in entries if needs_steps(entry.profile, entry.record.shape)]
    steps = Steps(cluster)
    for entry in stepping:
        refused = steps.reserve(entry)
        if refused is not None:
            return refused
    return steps.bind(stepping)


# Whether pods that have their places could come to them again, each with all others in place.

Gathered = list[tuple[FilterAnswers, Any]]


def all_fit(cluster: Cluster, entries: Sequence[Entry], *, only_here: bool = False) -> bool:
    """Whether every pod could come to its row; of equal pods on one row, one is asked about.

    With `only_here`, as far as pods elsewhere have nothing to do with it.
    """
    kinds: dict[tuple[str, int], list[Entry]] = {}
    for entry in entries:
        kinds.setdefault((entry.profile.name, entry.record.shape.id), []).append(entry)
    return all(_kind_fits(cluster, alike, only_here=only_here) for alike in kinds.values())


def _kind_fits(cluster: Cluster, entries: Sequence[Entry], *, only_here: bool) -> bool:
    profile, shape = entries[0].profile, entries[0].record.shape
    filters = [each for each in profile.filters if not (only_here and isinstance(each, SpoiledByOthers))]
    one_a_row = {entry.record.row: entry.record for entry in entries}
    names = {cluster.nodes.name(row) for row in one_a_row}
    for plugin in filters:
        narrowed = ask_narrow(plugin, shape) if isinstance(plugin, PreFilter) else None
        if isinstance(narrowed, Rejection) or (narrowed is not None and not names <= narrowed):
            return False
    gathered: Gathered = []
    for row, record in one_a_row.items():
        with cluster.what_if():
            cluster.release(record.key)
            gathered = _gather(cluster, record, row, filters, gathered)
            if not all(_accepts(cluster, record, row, plugin, prepared) for plugin, prepared in gathered):
                return False
        for _, prepared in gathered:
            if isinstance(prepared, Incremental):
                prepared.update_one(shape.id, row, 1)
    return True


def _gather(
    cluster: Cluster, record: PodRecord, row: int, filters: Sequence[FilterAnswers], before: Gathered
) -> Gathered:
    """What filters gather for a pod that was just taken off its row; counts follow those gathered before."""
    if not before:
        return [(plugin, ask_pre_filter(plugin, record.shape, cluster)) for plugin in filters]
    found: Gathered = []
    for plugin, prepared in before:
        if isinstance(prepared, Incremental):
            prepared.update_one(record.shape.id, row, -1)
        elif not is_by_usage(plugin) and not (prepared is SKIP and plugin.skip_is_settled):
            prepared = ask_pre_filter(plugin, record.shape, cluster)  # it may have been about the pod itself
        found.append((plugin, prepared))
    return found


def _accepts(cluster: Cluster, record: PodRecord, row: int, plugin: FilterAnswers, prepared: Any) -> bool:
    if prepared is SKIP or isinstance(prepared, Rejection):
        return prepared is SKIP
    return not ask_filter(plugin, record.shape, cluster.rows(np.array([row], np.intp)), prepared)[0]
