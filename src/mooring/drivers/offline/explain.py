"""Run a driver to the moment at which the scheduler decides about one pod, and say what is decided there."""

from dataclasses import replace

from mooring.drivers.offline.driver import Offline
from mooring.drivers.offline.reading import Loaded
from mooring.engine.explain import explain
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision, Wait
from mooring.model.keys import PodKey
from mooring.observe.progress import Progress
from mooring.report.explain.data import PodExplanation
from mooring.report.explain.finding import (
    Finding,
    eviction_of,
    find_evicted,
    find_placed,
    find_running,
    find_settled,
    find_waiting,
)
from mooring.report.explain.pod import describe
from mooring.report.names import find_pods

MOST_SINGLE_STEPS = 2000
"""How many turns before a pod's own are taken one by one; further ones in steps that grow, so that it ends soon."""
LARGEST_STEP = 2**20
MOST_STEPS = MOST_SINGLE_STEPS + 64


def explain_pod(loaded: Loaded, wanted: str, progress: Progress) -> PodExplanation:
    """Decide as `schedule` does, up to the pod that a user asks about, and explain what is decided there."""
    return describe(_find_out(loaded, wanted, progress))


def _find_out(loaded: Loaded, wanted: str, progress: Progress) -> Finding:
    pods = find_pods(loaded.manifests, wanted, loaded.inputs.namespace)
    reasons = {refusal.key: refusal.reason for refusal in loaded.manifests.refused if isinstance(refusal.found, Pod)}
    offline = loaded.start()
    pod = pods[0]
    if len(pods) > 1:
        # Of a workload, the pod that waits is the one worth asking about, if there is one.
        offline.decide(progress)
        records = offline.scheduler.cluster.pods.records
        pod = next((found for found in pods if found.key in reasons), pod)
        pod = next((found for found in pods if found.key in records and not records[found.key].node_name), pod)
        offline = loaded.start()
    if pod.key in reasons:
        return Finding(pod, "forbidden", "", reasons[pod.key])
    settled = find_settled(pod, offline.scheduler)
    if settled is not None:
        return settled
    lost = next((found for found in offline.lost if found.pod.key == pod.key), None)
    if lost is not None and not lost.comes_back:
        return Finding(pod, "lost", lost.node, f"its node {lost.node} is gone, and nobody makes it anew")
    if lost is None and (pod.spec.node_name or pod.key in offline.placed):
        return _one_that_ran(pod, offline, progress)
    return _one_that_waited(pod, loaded, offline, progress)


def _one_that_ran(pod: Pod, offline: Offline, progress: Progress) -> Finding:
    """It may have to go, and may come back."""
    decisions = offline.decide(progress)
    record = offline.scheduler.cluster.pods.records.get(pod.key)
    if record is None:
        return find_evicted(pod, decisions)
    if not record.node_name or record.nominated:
        return find_waiting(record, offline.scheduler, offline.now)
    eviction = eviction_of(pod, decisions)
    found = find_running(record, offline.scheduler)
    again = f"it was evicted and placed again: {eviction.reason}" if eviction is not None else ""
    return replace(found, state="placed", message=again) if again else found


def _one_that_waited(pod: Pod, loaded: Loaded, offline: Offline, progress: Progress) -> Finding:
    placed = follow(pod.key, offline, progress, patient=False)
    if placed is not None:
        return placed
    offline.decide(progress)
    record = offline.scheduler.cluster.pods.records[pod.key]  # admission may have made another of it
    if not record.node_name or record.nominated:
        return find_waiting(record, offline.scheduler, offline.now)
    # Refused at first and placed later, when a pod that it wants to be near had come: again, step by step.
    placed = follow(pod.key, loaded.start(), progress, patient=True)
    return placed or replace(find_running(record, offline.scheduler), state="placed", message="")


def follow(key: PodKey, offline: Offline, progress: Progress, *, patient: bool) -> Finding | None:
    """Run up to the moment at which a pod gets its node; None if it does not, or (not patient) not at its first turn.

    Several turns may be taken in one step, those of pods that fare as others did a moment ago. A patient run goes back
    for whoever was passed over in that way.
    """
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
            return find_placed(records[key], scheduler, explanation, decisions)
        if is_its_turn and not patient:
            return None
        is_stuck = not has_more and len(queue) >= before and not any(map(_changes_something, made))
        size = min(size * 2, LARGEST_STEP) if is_stuck or number >= MOST_SINGLE_STEPS else 1
    if patient and key in records and records[key].node_name:
        return find_placed(records[key], scheduler, None, decisions)
    return None


def _changes_something(decision: Decision) -> bool:
    return not isinstance(decision, Wait)
