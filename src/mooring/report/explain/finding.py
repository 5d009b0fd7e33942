"""What there is to say of one pod as things stand: it waits, runs, was just placed, or never was ours to place."""

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.engine.cycle import Scheduler
from mooring.engine.explain import Explanation, explain
from mooring.engine.queue.parked import Parked
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision, Evict
from mooring.model.keys import PodKey
from mooring.report.explain.data import GangStatus
from mooring.report.gangs import WhyHeld, gang_status, members_with, place_wanted
from mooring.report.waiting import nomination_message, why_waits
from mooring.state.pods import PodRecord

AS_MET = "as the scheduler met it in queue order: the pods before it have their places, those behind it do not"
AT_THE_END = "as things stand at the end, when every pod that fits has its place"
WITHOUT_IT = "as things stand at the end, had this pod no place yet"
WHEN_PLACED = "as things stood when it had just got its place, had it none yet"


@dataclass
class Finding:
    """What became of one pod, and what every plugin says to it about every node at that moment."""

    pod: Pod
    state: str
    node: str = ""
    message: str = ""
    as_of: str = ""
    explanation: Explanation | None = None
    row: int = -1
    """Of the node that it has."""
    gang: GangStatus | None = None
    preemption: str = ""
    evicted: tuple[str, ...] = ()
    gang_place: str = ""
    is_capped: bool = False
    hint: str = ""

    @property
    def wants_node(self) -> bool:
        """Whether it waits for want of a node, so that a change to one could help."""
        if self.state not in ("waiting", "gated") or self.explanation is None or self.is_capped or self.hint:
            return False
        return not len(self.explanation.evaluation.feasible)


def find_settled(pod: Pod, scheduler: Scheduler) -> Finding | None:
    """What needs no deciding here: pods that are over, on their way out, or another scheduler's."""
    name = pod.spec.scheduler_name
    if pod.is_terminal:
        return Finding(pod, "finished", pod.spec.node_name, f"it is over: {pod.status.phase}")
    if name not in scheduler.profiles:
        said = (
            f'its schedulerName is "{name}"; the profiles are {", ".join(scheduler.profiles)}; --as {name} takes it on'
        )
        return Finding(pod, "not ours", pod.spec.node_name, said)
    if pod.metadata.deletion_timestamp is not None and not pod.spec.node_name:
        return Finding(pod, "leaving", "", "it is being deleted, and will not be placed")
    return None


def find_waiting(record: PodRecord, scheduler: Scheduler, now: float) -> Finding:
    """What a pod waits for when everything is decided."""
    pod = record.pod
    if record.nominated:
        return Finding(pod, "waiting", "", nomination_message(scheduler, pod.key))
    explanation = explain(scheduler.profiles[pod.spec.scheduler_name], scheduler.cluster, record.shape)
    gang = gang_status(scheduler, record.key, now)
    for entry, rejection in scheduler.queue.gated():
        if entry.record is record:
            said = why_waits(scheduler, pod.key)
            hint = _queue_hint(scheduler, pod.key) if said else ""
            message = said or WhyHeld(scheduler).of(entry, rejection)
            return Finding(pod, "gated", "", message, AT_THE_END, explanation, gang=gang, hint=hint)
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
        preemption=_preemption(record, scheduler, now),
        is_capped=is_capped,
        hint=_share_hint(scheduler, parked) if parked is not None and is_capped else "",
    )


def _queue_hint(scheduler: Scheduler, pod: PodKey) -> str:
    """Where to see what a workload without quota waits for."""
    tenants = scheduler.cluster.tenants
    workload = tenants.workloads[tenants.workload_of[pod]].workload
    queue = f"{workload.metadata.namespace}/{workload.spec.queue_name}"
    return f"mooring queues --queue {queue} shows the workloads before it, and those that would have to give back"


def _share_hint(scheduler: Scheduler, parked: Parked) -> str:
    queues = (scheduler.shared.of_turn(scheduler.cluster, turn) for turn in parked.turns())
    queue = next((found for found in queues if found is not None), None)
    return "" if queue is None else f"mooring queues --queue {queue.name} shows what the queue holds and deserves"


def find_running(record: PodRecord, scheduler: Scheduler) -> Finding:
    """What the nodes would say to a pod that was bound before we came, were it not there."""
    if record.row < 0:
        message = "it was bound before, to a node that is not known here"
        return Finding(record.pod, "running", record.node_name, message)
    return Finding(
        record.pod,
        "running",
        record.node_name,
        "it was bound before",
        WITHOUT_IT,
        explain_without(scheduler, record),
        record.row,
        gang_place=place_wanted(scheduler.cluster.gangs, record.key),
    )


def find_placed(
    record: PodRecord, scheduler: Scheduler, explanation: Explanation | None, decisions: Iterable[Decision]
) -> Finding:
    """What there is to say of a pod that has just got its place; `explanation` is as of its turn, if it had one."""
    gangs = scheduler.cluster.gangs
    together = members_with(gangs, record.key)
    evicted = [found.pod for found in decisions if isinstance(found, Evict) and found.preemptor in together]
    for_whom = "it" if len(together) == 1 else "its gang"
    plan_id = scheduler.cluster.plan_of(record.key)
    held = "" if plan_id is None else scheduler.cluster.plan(plan_id).message
    message = f"it {held}" if held else ""
    return Finding(
        record.pod,
        "placed",
        record.node_name,
        f"room is made for {for_whom} by evicting {', '.join(evicted)}" if evicted else message,
        WHEN_PLACED if explanation is None else AS_MET,
        explain_without(scheduler, record) if explanation is None else explanation,
        record.row,
        evicted=tuple(evicted),
        gang_place=place_wanted(gangs, record.key),
    )


def find_evicted(pod: Pod, decisions: Iterable[Decision]) -> Finding:
    """For whom a pod that ran has to go."""
    found = eviction_of(pod, decisions)
    if found is None:
        return Finding(pod, "gone", pod.spec.node_name, "it was evicted, or lost with its node, in an earlier step")
    sake = f"it makes room for {found.preemptor}, which has a higher priority"
    return Finding(pod, "evicted", pod.spec.node_name, sake if found.preemptor else found.reason)


def eviction_of(pod: Pod, decisions: Iterable[Decision]) -> Evict | None:
    return next((found for found in decisions if isinstance(found, Evict) and found.pod == pod.key), None)


def explain_without(scheduler: Scheduler, record: PodRecord) -> Explanation:
    """What the nodes would say to a pod that has a place, had it none."""
    with scheduler.cluster.what_if():
        scheduler.cluster.release(record.key)
        return explain(scheduler.profiles[record.pod.spec.scheduler_name], scheduler.cluster, record.shape)


def _preemption(record: PodRecord, scheduler: Scheduler, now: float) -> str:
    """Whether others could go for a pod that waits, or for its gang, and why not."""
    turns = (turn for parked in scheduler.queue.parked() if not parked.is_capped for turn in parked.turns())
    turn = next((turn for turn in turns if turn.has(record.key)), None)
    return "" if turn is None else scheduler.explain(turn, now)
