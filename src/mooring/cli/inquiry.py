"""Find a pod by what the user calls it, and the moment at which the scheduler decides about it."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.cli.offline import Loaded, Offline
from mooring.cli.progress import Progress
from mooring.cli.workloads import Workload, Workloads
from mooring.errors import InputError
from mooring.model.pods import Pod

if TYPE_CHECKING:
    from mooring.actions.gangs.explain import GangExplanation
    from mooring.engine.cycle import Scheduler
    from mooring.engine.explain import Explanation
    from mooring.model.decisions import Decision
    from mooring.state.pods import PodRecord

AS_MET = "as the scheduler met it in queue order: the pods before it have their places, those behind it do not"
AT_THE_END = "as things stand at the end, when every pod that fits has its place"
WITHOUT_IT = "as things stand at the end, had this pod no place yet"


@dataclass
class Finding:
    """What became of one pod, and why."""

    pod: Pod
    state: str
    """placed, waiting, forbidden, gated, running, evicted, not ours, leaving or finished"""
    node: str = ""
    message: str = ""
    as_of: str = ""
    explanation: "Explanation | None" = None
    row: int = -1
    gang: "GangExplanation | None" = None
    preemption: str = ""
    """What evicting others would do for it."""


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
    from mooring.model.membership import membership

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
    if pod.spec.node_name:
        decisions = offline.decide(progress)
        record = offline.scheduler.cluster.pods.records.get(pod.key)
        return _explain_bound(record, offline.scheduler) if record is not None else _explain_evicted(pod, decisions)
    return _explain_pending(pod, loaded, offline, progress)


def _explain_pending(pod: Pod, loaded: Loaded, offline: Offline, progress: Progress) -> Finding:
    from mooring.cli.result import why_waits
    from mooring.engine.explain import explain

    scheduler = offline.scheduler
    record = scheduler.cluster.pods.records[pod.key]
    placed = _follow(record, offline, progress, patient=False)
    if placed is not None:
        return placed
    offline.decide(progress)
    record = scheduler.cluster.pods.records[pod.key]  # admission may have made another of it
    if record.node_name:
        # Refused at first and placed later, when a pod that it wants to be near had come: again, step by step.
        again = loaded.start()
        placed = _follow(again.scheduler.cluster.pods.records[pod.key], again, progress, patient=True)
        assert placed is not None, f"{pod.key} was placed once and not again"
        return placed
    explanation = explain(scheduler.profiles[pod.spec.scheduler_name], scheduler.cluster, record.shape)
    gang = _explain_gang(record, scheduler)
    gate = next((rejection for entry, rejection in scheduler.queue.gated() if entry.record is record), None)
    if gate is not None:
        message = why_waits(scheduler, pod.key) or ", ".join(gate.reasons)
        return Finding(pod, "gated", "", message, AT_THE_END, explanation, gang=gang)
    message = (gang.message if gang is not None else "") or explanation.evaluation.message()
    preemption = _explain_preemption(record, scheduler, offline.now)
    return Finding(pod, "waiting", "", message, AT_THE_END, explanation, gang=gang, preemption=preemption)


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
    from mooring.actions.place import Place

    gang = next((found for found in scheduler.queue.gangs if found.has(record.key)), None)
    place = next((action for action in scheduler.actions if isinstance(action, Place)), None)
    if gang is None or place is None:
        return None
    return explain_gang(scheduler.cluster, scheduler.queue, gang, place.gangs, place.reservation)


def _explain_evicted(pod: Pod, decisions: Iterable["Decision"]) -> Finding:
    """For whom a pod that ran has to go."""
    from mooring.model.decisions import Evict

    evictions = (found for found in decisions if isinstance(found, Evict) and found.pod == pod.key)
    preemptor = next(found.preemptor for found in evictions)
    return Finding(pod, "evicted", pod.spec.node_name, f"it makes room for {preemptor}, which has a higher priority")


def _explain_bound(record: "PodRecord", scheduler: "Scheduler") -> Finding:
    """What the nodes would say to a pod that was bound before we came, were it not there."""
    from mooring.engine.explain import explain

    node, row = record.node_name, record.row
    if row < 0:
        return Finding(record.pod, "running", node, "it was bound before, to a node that is not known here")
    checkpoint = scheduler.cluster.checkpoint()
    scheduler.cluster.release(record.key)
    explanation = explain(scheduler.profiles[record.pod.spec.scheduler_name], scheduler.cluster, record.shape)
    scheduler.cluster.rollback(checkpoint)
    return Finding(record.pod, "running", node, "it was bound before", WITHOUT_IT, explanation, row)


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


def _follow(record: "PodRecord", offline: Offline, progress: Progress, *, patient: bool) -> Finding | None:
    """Run up to the moment at which the pod gets its node; None if it does not, or (not patient) not at once."""
    from mooring.engine.explain import explain

    scheduler = offline.scheduler
    has_more = offline.step(at_most=0)[1]  # admission first: it decides which pods are in the queue at all
    offline.decide(progress, at_most=scheduler.queue.count_ahead_of(record.key))
    while (turn := scheduler.queue.peek()) is not None or has_more:
        record = scheduler.cluster.pods.records.get(record.key, record)
        if turn is None or not turn.has(record.key):
            has_more = offline.step(at_most=1)[1]
            continue
        explanation = explain(turn.profile, scheduler.cluster, record.shape)
        decisions, _ = offline.step(at_most=1)
        if record.node_name:
            if len(explanation.evaluation.feasible):
                return Finding(record.pod, "placed", record.node_name, "", AS_MET, explanation, record.row)
            return Finding(record.pod, "placed", record.node_name, _who_goes(decisions), AS_MET, explanation)
        if not patient:
            return None
    return None


def _who_goes(decisions: Iterable["Decision"]) -> str:
    from mooring.model.decisions import Evict

    victims = ", ".join(decision.pod for decision in decisions if isinstance(decision, Evict))
    return f"room is made for it by evicting {victims}" if victims else "room is being made for it"
