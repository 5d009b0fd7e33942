"""Find a pod by what the user calls it, and the moment at which the scheduler decides about it."""

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from mooring.drivers.offline.driver import Loaded, Offline
from mooring.drivers.offline.following import follow, without
from mooring.errors import InputError
from mooring.model.api.pods import Pod
from mooring.observe.progress import Progress
from mooring.report.finding import AT_THE_END, WITHOUT_IT, Finding
from mooring.report.workloads import Workload, Workloads

if TYPE_CHECKING:
    from mooring.actions.gangs.explain import GangExplanation
    from mooring.engine.cycle import Scheduler
    from mooring.model.decisions import Decision, Evict
    from mooring.state.pods import PodRecord


def find_pods(loaded: Loaded, wanted: str) -> list[Pod]:
    """The pod of this name or namespace/name, or the pods of one workload: `train`, `job/train`, `team-a/train`."""
    refused = [refusal.found for refusal in loaded.manifests.refused if isinstance(refusal.found, Pod)]
    pods = [*loaded.manifests.pods, *refused] if refused else loaded.manifests.pods
    exact = [pod for pod in pods if wanted in (pod.key, pod.metadata.name)]
    if len(exact) == 1:
        return exact
    if exact:
        keys = ", ".join(pod.key for pod in exact[:5])
        raise InputError(f"pod {wanted}: expected a name that one pod has (namespace/name), found {keys}")
    workloads = Workloads(loaded.manifests)
    owned: dict[Workload, list[Pod]] = {}
    for pod in pods:
        owner = workloads.owner_of(pod)
        if owner is not None and _means(wanted, owner):
            owned.setdefault(owner, []).append(pod)
    if len(owned) == 1:
        return next(iter(owned.values()))
    if owned:
        several = ", ".join(f"{owner.namespace}/{owner.kind.lower()}/{owner.name}" for owner in owned)
        raise InputError(f"pod {wanted}: expected the name of one workload, found {several}")
    members = _members(loaded, wanted, pods)
    if members:
        return members
    raise InputError(f"pod {wanted}: expected the name of a pod{_near(wanted, pods)}, found none with it")


def _members(loaded: Loaded, wanted: str, pods: list[Pod]) -> list[Pod]:
    """The pods of the gang of this name: `train`, `research/train`, `gang/train`."""
    from mooring.model.gangs.membership import membership

    name = wanted.removeprefix("gang/").removeprefix("podgroup/")
    keys = {gang.key for gang in loaded.manifests.gangs if name in (gang.name, gang.name.rpartition("/")[2])}
    found = [(pod, membership(pod)) for pod in pods] if keys else []
    return [pod for pod, member in found if member is not None and member.gang in keys]


def _means(wanted: str, owner: Workload) -> bool:
    before, _, last = wanted.rpartition("/")
    kind = owner.kind.lower()
    return last == owner.name and before.lower() in ("", owner.namespace, kind, f"{owner.namespace}/{kind}")


def _near(wanted: str, pods: list[Pod]) -> str:
    names = [pod.key if "/" in wanted else pod.metadata.name for pod in pods]
    # Comparing with every name of a large cluster takes longer than reading it: those that begin alike come first.
    alike = [name for name in names if name[:2] == wanted[:2]] if len(names) > 5000 else names
    near = difflib.get_close_matches(wanted, alike[:20000], n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(dict.fromkeys(near))}?)" if near else ""


def inquire(loaded: Loaded, wanted: str, progress: Progress) -> Finding:
    """Decide as `schedule` does, up to the pod asked about, and explain what is decided there."""
    pods = find_pods(loaded, wanted)
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
    settled = _settled_before(pod, offline.scheduler)
    if settled is not None:
        return settled
    lost = next((found for found in offline.lost if found.pod.key == pod.key), None)
    if lost is not None and not lost.comes_back:
        return Finding(pod, "lost", lost.node, f"its node {lost.node} is gone, and nobody makes it anew")
    if lost is None and (pod.spec.node_name or pod.key in offline.placed):
        decisions = offline.decide(progress)
        record = offline.scheduler.cluster.pods.records.get(pod.key)
        if record is None:
            return _explain_evicted(pod, decisions)
        if not record.node_name:
            return _explain_waiting(record, offline)
        eviction = _eviction(pod, decisions)
        found = _explain_bound(record, offline)
        again = f"it was evicted and placed again: {eviction.reason}" if eviction is not None else ""
        return replace(found, state="placed", message=again) if again else found
    return _explain_pending(pod, loaded, offline, progress)


def _explain_pending(pod: Pod, loaded: Loaded, offline: Offline, progress: Progress) -> Finding:
    placed = follow(pod.key, offline, progress, patient=False)
    if placed is not None:
        return placed
    offline.decide(progress)
    record = offline.scheduler.cluster.pods.records[pod.key]  # admission may have made another of it
    if not record.node_name:
        return _explain_waiting(record, offline)
    # Refused at first and placed later, when a pod that it wants to be near had come: again, step by step.
    placed = follow(pod.key, loaded.start(), progress, patient=True)
    return placed or replace(_explain_bound(record, offline), state="placed", message="")


def _explain_waiting(record: "PodRecord", offline: Offline) -> Finding:
    """What a pod waits for when everything is decided."""
    from mooring.engine.explain import explain
    from mooring.report.gangs import WhyHeld
    from mooring.report.placements import why_waits

    scheduler, pod = offline.scheduler, record.pod
    explanation = explain(scheduler.profiles[pod.spec.scheduler_name], scheduler.cluster, record.shape)
    gang = _explain_gang(record, scheduler)
    for entry, rejection in scheduler.queue.gated():
        if entry.record is record:
            message = why_waits(scheduler, pod.key) or WhyHeld(scheduler).of(entry, rejection)
            return Finding(pod, "gated", "", message, AT_THE_END, explanation, gang=gang)
    parked = next((found for found in scheduler.queue.parked() if pod.key in found.by_pod), None)
    if parked is not None and parked.verdict is not None:
        message = "; ".join(parked.verdict.reasons)
    else:
        message = (gang.message if gang is not None else "") or explanation.evaluation.message()
    is_capped = parked is not None and parked.is_capped
    if gang is not None and is_capped:
        gang.message = message
    return Finding(
        pod,
        "waiting",
        message=message,
        as_of=AT_THE_END,
        explanation=explanation,
        gang=gang,
        preemption=_explain_preemption(record, scheduler, offline.now),
        is_capped=is_capped,
    )


def _explain_preemption(record: "PodRecord", scheduler: "Scheduler", now: float) -> str:
    """Whether others could go for a pod that waits, or for its gang, and why not."""
    from mooring.actions.preempt.action import Preempt

    turns = (turn for parked in scheduler.queue.parked() if not parked.is_capped for turn in parked.turns())
    turn = next((turn for turn in turns if turn.has(record.key)), None)
    preempt = next((action for action in scheduler.actions if isinstance(action, Preempt)), None)
    return "" if turn is None or preempt is None else preempt.explain(scheduler.cluster, turn, now)


def _explain_gang(record: "PodRecord", scheduler: "Scheduler") -> "GangExplanation | None":
    """What the gang of a pod waits for, if it waits with one."""
    from mooring.actions.gangs.explain import explain_gang
    from mooring.actions.place.action import Place

    gang = next((found for found in scheduler.queue.gangs if found.has(record.key)), None)
    place = next((action for action in scheduler.actions if isinstance(action, Place)), None)
    if gang is None or place is None:
        return None
    return explain_gang(scheduler.cluster, scheduler.queue, gang, place.gangs, place.reservation)


def _eviction(pod: Pod, decisions: Iterable["Decision"]) -> "Evict | None":
    from mooring.model.decisions import Evict

    return next((found for found in decisions if isinstance(found, Evict) and found.pod == pod.key), None)


def _explain_evicted(pod: Pod, decisions: Iterable["Decision"]) -> Finding:
    """For whom a pod that ran has to go."""
    found = _eviction(pod, decisions)
    if found is None:
        return Finding(pod, "gone", pod.spec.node_name, "it was evicted, or lost with its node, in an earlier step")
    sake = f"it makes room for {found.preemptor}, which has a higher priority"
    return Finding(pod, "evicted", pod.spec.node_name, sake if found.preemptor else found.reason)


def _explain_bound(record: "PodRecord", offline: Offline) -> Finding:
    """What the nodes would say to a pod that was bound before we came, were it not there."""
    from mooring.report.gangs import place_wanted

    if record.row < 0:
        message = "it was bound before, to a node that is not known here"
        return Finding(record.pod, "running", record.node_name, message)
    return Finding(
        record.pod,
        "running",
        record.node_name,
        "it was bound before",
        WITHOUT_IT,
        without(offline, record),
        record.row,
        gang_place=place_wanted(offline.scheduler.cluster.gangs, record.key),
    )


def _settled_before(pod: Pod, scheduler: "Scheduler") -> Finding | None:
    """What needs no deciding here: pods that are over, on their way out, or another scheduler's."""
    name = pod.spec.scheduler_name
    if pod.is_terminal:
        return Finding(pod, "finished", pod.spec.node_name, f"it is over: {pod.status.phase}")
    if name not in scheduler.profiles:
        known = ", ".join(scheduler.profiles)
        return Finding(pod, "not ours", pod.spec.node_name, f'its schedulerName is "{name}"; the profiles are {known}')
    if pod.metadata.deletion_timestamp is not None and not pod.spec.node_name:
        return Finding(pod, "leaving", "", "it is being deleted, and will not be placed")
    return None
