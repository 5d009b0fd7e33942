"""Pods that a permit plugin lets wait: their rows are held until all permit plugins allow them, or time is up.

They hold their rows as nominated pods do, so that no other pod sees room there. They are asked about again in every
cycle, where plans are followed up.
"""

from dataclasses import dataclass, replace

from mooring.engine.action import Cycle
from mooring.engine.disruption import nominate, withdraw
from mooring.engine.plugin import Change
from mooring.engine.queue.entries import Entry
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.decisions import Decision, Wait
from mooring.model.keys import NO_GANG, GangKey
from mooring.state.plans import Plan, PlanId, Reason


@dataclass(frozen=True, slots=True)
class PermitHold:
    """Pods that a permit plugin lets wait together, and the rows to be held for them meanwhile."""

    entries: tuple[Entry, ...]
    rows: tuple[int, ...]
    verdict: Verdict


def hold_room(cycle: Cycle, hold: PermitHold, gang: GangKey = NO_GANG) -> list[Decision]:
    """Let pods wait where they are to run."""
    cluster = cycle.cluster
    plan = nominate(cluster, cycle.queue, hold.entries, hold.rows, gang=gang, reason=Reason.PERMIT)
    plan_id = cluster.plan_of(plan.holds[0].key)
    assert plan_id is not None
    return _wait(cycle, plan_id, plan, hold.verdict)


def go_on_waiting(cycle: Cycle, plan_id: PlanId, plan: Plan, verdict: Verdict) -> list[Decision]:
    """Let pods go on holding their rows after they were asked about, or make them give the rows back."""
    if plan.until is None:  # they waited for others to leave, so far
        return _wait(cycle, plan_id, plan, verdict)
    return _give_back(cycle, plan_id, plan, verdict) if cycle.now >= plan.until else []


def _wait(cycle: Cycle, plan_id: PlanId, plan: Plan, verdict: Verdict) -> list[Decision]:
    assert verdict.hold_seconds is not None
    until, message = cycle.now + verdict.hold_seconds, "; ".join(verdict.reasons)
    longer = replace(plan, reason=Reason.PERMIT, leaves=(), until=until, plugin=verdict.plugin, message=message)
    cycle.cluster.renew(plan_id, longer)
    return [Wait(held.key, message, (verdict.plugin,), held.node) for held in plan.holds]


def _give_back(cycle: Cycle, plan_id: PlanId, plan: Plan, verdict: Verdict) -> list[Decision]:
    """Give back rows whose time is up: the pods wait for something to happen like others."""
    queue = cycle.queue
    message = f"gave back its place, because {verdict.plugin} had not permitted it in time"
    entries = [queue.nominated[held.key] for held in plan.holds]
    withdraw(cycle.cluster, queue, plan_id)
    queue.note(Change.POD_GONE)
    gang = queue.gangs.get(plan.gang) if plan.gang else None
    if gang is not None and queue.take(gang):
        queue.park_gang(gang, message, is_capped=True, gave_back=True)
    elif gang is None:
        for entry in entries:
            queue.remove(entry.record.key)
            queue.park_alone(entry, Verdict(verdict.plugin, Rejection((message,))), gave_back=True)
    return [Wait(held.key, message, (verdict.plugin,)) for held in plan.holds]
