"""Pods that a permit plugin lets wait: their room is held until all permit plugins allow them, or patience ends.

They hold it as nominated pods do, so that nobody else sees room there, and nobody evicts who does not run. They are
asked about again in every cycle, where nominations are followed up.
"""

from dataclasses import dataclass, replace

from mooring.engine.action import Cycle
from mooring.engine.evictions import nominate, withdraw
from mooring.engine.plugin import Change
from mooring.engine.queue.entry import Entry
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.decisions import Decision, Wait
from mooring.model.keys import NO_GANG, GangKey
from mooring.state.intentions import Nomination


@dataclass(frozen=True, slots=True)
class Hold:
    """Pods that a permit plugin lets wait together, and the rows to be held for them meanwhile."""

    entries: tuple[Entry, ...]
    rows: tuple[int, ...]
    verdict: Verdict


def hold_room(cycle: Cycle, hold: Hold, gang: GangKey = NO_GANG) -> list[Decision]:
    """Let pods wait where they are to run."""
    return _wait(cycle, nominate(cycle.cluster, cycle.queue, hold.entries, hold.rows, gang=gang), hold.verdict)


def go_on_waiting(cycle: Cycle, nomination: Nomination, verdict: Verdict) -> list[Decision]:
    """Pods were asked about, and are still to wait: they go on holding their room, or have to give it back."""
    if nomination.until is None:  # they waited for others to leave, so far
        return _wait(cycle, nomination, verdict)
    return _give_back(cycle, nomination, verdict) if cycle.now >= nomination.until else []


def _wait(cycle: Cycle, nomination: Nomination, verdict: Verdict) -> list[Decision]:
    assert verdict.hold_seconds is not None
    until, message = cycle.now + verdict.hold_seconds, "; ".join(verdict.reasons)
    longer = replace(nomination, until=until, plugin=verdict.plugin, message=message)
    cycle.cluster.renominate(nomination, longer)
    return [Wait(pod.key, message, (verdict.plugin,), pod.node) for pod in nomination.pods]


def _give_back(cycle: Cycle, nomination: Nomination, verdict: Verdict) -> list[Decision]:
    """Patience has ended: the room is anybody's, and the pods wait for something to happen like others."""
    queue = cycle.queue
    message = f"gave back its place, because {verdict.plugin} had not permitted it in time"
    entries = [queue.nominated[pod.key] for pod in nomination.pods]
    withdraw(cycle.cluster, queue, nomination)
    queue.note(Change.POD_GONE)
    gang = queue.gangs.get(nomination.gang) if nomination.gang else None
    if gang is not None and queue.take(gang):
        queue.park_gang(gang, message, is_capped=True, gave_back=True)
    elif gang is None:
        for entry in entries:
            queue.remove(entry.record.key)
            queue.park_alone(entry, Verdict(verdict.plugin, Rejection((message,))), gave_back=True)
    return [Wait(pod.key, message, (verdict.plugin,)) for pod in nomination.pods]
