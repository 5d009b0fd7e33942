"""Run a driver up to the moment at which one pod gets its node."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mooring.drivers.offline.driver import Offline
from mooring.observe.progress import Progress
from mooring.report.finding import AS_MET, WHEN_PLACED, Finding

if TYPE_CHECKING:
    from mooring.engine.explain import Explanation
    from mooring.model.decisions import Decision
    from mooring.state.pods import PodRecord

MOST_SINGLE_STEPS = 2000
"""How many turns before a pod's own are taken one by one; further ones in steps that grow, so that it ends soon."""
LARGEST_STEP = 2**20
MOST_STEPS = MOST_SINGLE_STEPS + 64


def follow(key: str, offline: Offline, progress: Progress, *, patient: bool) -> Finding | None:
    """Run up to the moment at which a pod gets its node; None if it does not, or (not patient) not at its first turn.

    Several turns may be taken in one step, those of pods that fare as others did a moment ago. A patient run goes back
    for whoever was passed over in that way.
    """
    from mooring.engine.explain import explain

    scheduler = offline.scheduler
    queue, records = scheduler.queue, scheduler.cluster.pods.records
    decisions, has_more = offline.step(at_most=0)  # admission first: it decides which pods are in the queue at all
    if has_more and key not in records:
        decisions += offline.step(at_most=0)[0]  # it is made anew
    ahead = queue.count_ahead_of(key)
    decisions += offline.decide(progress, at_most=max(0, ahead - MOST_SINGLE_STEPS) if patient else ahead)
    size = 1
    for number in range(MOST_STEPS):
        if key not in records or records[key].node_name or not (len(queue) or has_more):
            break
        turn = queue.peek()
        is_its_turn = turn is not None and turn.has(key)
        explanation = explain(turn.profile, scheduler.cluster, records[key].shape) if turn and is_its_turn else None
        before = len(queue)
        made, has_more = offline.step(at_most=size)
        decisions += made
        if key in records and records[key].node_name:
            return _placed(offline, records[key], explanation, decisions)
        if is_its_turn and not patient:
            return None
        is_stuck = not has_more and len(queue) >= before and not any(map(_changes_something, made))
        size = min(size * 2, LARGEST_STEP) if is_stuck or number >= MOST_SINGLE_STEPS else 1
    if patient and key in records and records[key].node_name:
        return _placed(offline, records[key], None, decisions)
    return None


def without(offline: Offline, record: "PodRecord") -> "Explanation":
    """What the nodes would say to a pod that has a place, had it none."""
    from mooring.engine.explain import explain

    scheduler = offline.scheduler
    checkpoint = scheduler.cluster.checkpoint()
    scheduler.cluster.release(record.key)
    explanation = explain(scheduler.profiles[record.pod.spec.scheduler_name], scheduler.cluster, record.shape)
    scheduler.cluster.rollback(checkpoint)
    return explanation


def _placed(
    offline: Offline, record: "PodRecord", explanation: "Explanation | None", decisions: Iterable["Decision"]
) -> Finding:
    """What there is to say of a pod that has just got its place; `explanation` is as of its turn, if it had one."""
    from mooring.model.decisions import Evict
    from mooring.report.gangs import members_with, place_wanted

    gangs = offline.scheduler.cluster.gangs
    together = members_with(gangs, record.key)
    evicted = [found.pod for found in decisions if isinstance(found, Evict) and found.preemptor in together]
    for_whom = "it" if len(together) == 1 else "its gang"
    return Finding(
        record.pod,
        "placed",
        record.node_name,
        f"room is made for {for_whom} by evicting {', '.join(evicted)}" if evicted else "",
        WHEN_PLACED if explanation is None else AS_MET,
        without(offline, record) if explanation is None else explanation,
        record.row,
        evicted=tuple(evicted),
        gang_place=place_wanted(gangs, record.key),
    )


def _changes_something(decision: "Decision") -> bool:
    from mooring.model.decisions import Wait

    return not isinstance(decision, Wait)
