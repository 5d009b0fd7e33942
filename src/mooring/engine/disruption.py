"""The one gate for evictions: whether pods may be evicted, and the plan that follows if they may.

Every eviction is made here, and spends the disruption budgets of its pod. A forced one, such as a preemption, takes the
pods that it was given: what protects them counted when they were chosen, as far as it does. A voluntary one, such as a
move, is refused where a budget has none to give, where part of a gang would be left behind, and where a pod says itself
that it is not to be disrupted. A pod that is leaving is told so once. A pod that holds room which is being made for it
never ran, and gives that up instead. Plans for a pod or gang that fail one after the other are stopped here, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Literal, NamedTuple, overload

from msgspec.structs import replace

from mooring.engine.queue.queue import Entry, Queue
from mooring.errors import NoProgress
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.decisions import Decision, Evict, Launch, Resize
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, PlanId, Reason, Setback, Successor, owner_of
from mooring.state.pods import UNBOUND, PodRecord

DO_NOT_DISRUPT = (
    ("karpenter.sh/do-not-disrupt", "true"),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
)
"""Annotations by which a pod says that it is not to be disrupted voluntarily, with their values."""

MOST_EVICTIONS_AT_ONCE = 10
"""So often a pod may be evicted without any time passing."""
MOST_SETBACKS = 10
"""So many plans for a pod or gang may fail one after the other."""
CALM_SECONDS = 300.0
"""After so long it may try again."""
FIRST_BACKOFF_SECONDS = 60.0
"""So long nothing is moved again after a move that failed, then twice as long after each."""
LONGEST_BACKOFF_SECONDS = 3600.0
MOST_NAMED = 10
"""Pods that a message names."""


@dataclass(frozen=True, slots=True)
class Forced:
    """Pods have to go: room is made for a more urgent pod, a workload is stopped, a gang is released."""

    message: str
    preemptor: str = ""
    gangs: Mapping[str, str] = field(default_factory=dict)
    """The names of gangs that go as a whole, by pod: the message says so."""

    def message_for(self, key: PodKey) -> str:
        gang = self.gangs.get(key)
        return f"{self.message}, gang {gang} as a whole" if gang else self.message


@dataclass(frozen=True, slots=True)
class Voluntary:
    """Pods would be better off elsewhere, or the cluster would be without them there."""

    message: str
    preemptor: str = ""
    minimum_runtime: float = 0.0
    """Seconds for which a pod must have run."""

    def message_for(self, key: PodKey) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why pods may not be disrupted now."""

    pod: str
    message: str


class Disrupted(NamedTuple):
    """Pods are being evicted: what the driver has to do, and the plan that was adopted, if there was one to adopt."""

    decisions: list[Decision]
    plan: Plan | None


@overload
def disrupt(
    cluster: Cluster, queue: Queue, records: Sequence[PodRecord], why: Forced, plan: Plan | None = None
) -> Disrupted: ...


@overload
def disrupt(
    cluster: Cluster, queue: Queue, records: Sequence[PodRecord], why: Voluntary, plan: Plan | None = None
) -> Disrupted | Refusal: ...


def disrupt(
    cluster: Cluster, queue: Queue, records: Sequence[PodRecord], why: Forced | Voluntary, plan: Plan | None = None
) -> Disrupted | Refusal:
    """Evict pods, all or none, and adopt the plan that they leave for, with them as those that leave.

    Without a plan nothing is held: that they leave is known of the pods themselves.
    """
    told = list[tuple[PodRecord, str]]()
    with cluster.what_if() as trial:
        for record in records:
            refusal = _refusal(cluster, record, why, queue.now) if isinstance(why, Voluntary) else None
            if refusal is not None:
                return refusal
            node = _tell(cluster, queue, record, why.message_for(record.key))
            if node:
                told.append((record, node))
        refusal = _leaves_part_of_a_gang(cluster, records) if isinstance(why, Voluntary) else None
        if refusal is not None:
            return refusal
        adopted: Plan | None = None
        first: list[Decision] = []
        if plan is not None:
            leaves = tuple(record.leaving for record in records if record.leaving is not None)
            adopted, first = begin(cluster, changed(plan, leaves=leaves))
        trial.keep()
    via: Literal["delete", "eviction"] = "eviction" if isinstance(why, Voluntary) else "delete"
    successors = _nodes_of_successors(adopted)
    evictions = [
        Evict(one.key, node, why.preemptor, why.message_for(one.key), successors.get(one.key, ""), via)
        for one, node in told
    ]
    return Disrupted([*first, *evictions], adopted)


def begin(cluster: Cluster, plan: Plan) -> tuple[Plan, list[Decision]]:
    """Adopt a plan; return it as adopted, and what the driver has to do for it besides evicting pods.

    The rest follows when that is done (`follow_up`): pods are bound, and nodes are terminated.
    """
    adopted = cluster.plan(cluster.adopt(plan))
    launches = [Launch(name, offer) for name, offer in zip(adopted.opened, adopted.opens, strict=True)]
    resizes = [Resize(amend.key, amend.patch.resources) for amend in adopted.amends if amend.patch.resources]
    return adopted, [*launches, *resizes]


def _tell(cluster: Cluster, queue: Queue, record: PodRecord, reason: str) -> str:
    """Note that a pod is being evicted; return the node that it has to leave, or nothing if it need not be told."""
    plan_id = cluster.plan_of(record.key)
    if plan_id is not None:
        withdraw(cluster, queue, plan_id)
        return ""
    node = record.node_name
    if not node or not cluster.mark_leaving(record.key):
        return ""  # it held room with others and gave it up with them, or was told before
    times = cluster.count_eviction(record.key, queue.now)
    if times > MOST_EVICTIONS_AT_ONCE:
        what = f"pod {record.key} was evicted {times - 1} times without any time passing"
        raise NoProgress(f"{what}, the last time because: {reason}; it is not evicted again")
    return node


def _nodes_of_successors(plan: Plan | None) -> dict[PodKey, str]:
    """By pod that leaves, the node that is held for its successor."""
    holds = plan.holds if plan is not None else ()
    return {held.holder.pod.key: held.node for held in holds if isinstance(held.holder, Successor)}


def _refusal(cluster: Cluster, record: PodRecord, why: Voluntary, now: float) -> Refusal | None:
    """Why one pod may not be evicted voluntarily; the pods before it count."""
    if record.row == UNBOUND or record.nominated or record.leaving is not None:
        return Refusal(record.key, "it does not run, or is leaving")
    if not cluster.budgets.allows(record.pod):
        return Refusal(record.key, "a disruption budget has none to give")
    annotations = record.pod.metadata.annotations or {}
    said = next((key for key, value in DO_NOT_DISRUPT if annotations.get(key) == value), None)
    if said is not None:
        return Refusal(record.key, f"its annotation {said} is {annotations[said]}")
    started = timestamp_seconds(record.pod.status.start_time)
    if why.minimum_runtime and started is not None and now - started < why.minimum_runtime:
        return Refusal(record.key, f"it has run for less than {why.minimum_runtime:g}s")
    return None


def _leaves_part_of_a_gang(cluster: Cluster, records: Sequence[PodRecord]) -> Refusal | None:
    """Whether a gang would be left with too few members: gangs are evicted whole."""
    for record in records:
        part = cluster.gangs.of(record.key)
        if part is not None and part.bound() and not part.is_whole():
            return Refusal(record.key, "others of its gang would be left behind")
    return None


def successor_of(cluster: Cluster, record: PodRecord) -> Successor:
    """The pod that the controller of a pod will create in its place."""
    pod = as_created(record.pod)
    return Successor(owner_of(pod), cluster.shape_for(pod), pod)


def as_created(pod: Pod) -> Pod:
    """A pod as its controller creates it: on no node, without uid and status."""
    metadata = replace(pod.metadata, uid="", deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


# Pods that get the room of others: they are nominated, or withdrawn.


def check_progress(cluster: Cluster, subject: str, now: float) -> None:
    """Raise NoProgress if too many plans for a pod or gang failed one after the other, the last not long ago."""
    setback = cluster.setbacks.get(subject)
    if setback is None or setback.times < MOST_SETBACKS or now - setback.last >= CALM_SECONDS:
        return
    pods = ", ".join(sorted(setback.pods)[:MOST_NAMED]) or "none"
    more = f" and {len(setback.pods) - MOST_NAMED} more" if len(setback.pods) > MOST_NAMED else ""
    what = f"room was made for {subject} {setback.times} times, and it was never bound"
    raise NoProgress(f"{what}; evicted: {pods}{more}; it evicts no more for {CALM_SECONDS:g}s")


def again_at(setback: Setback) -> float:
    """When pods may be moved again for a subject: twice as long after each move that failed."""
    seconds = FIRST_BACKOFF_SECONDS * 2.0 ** min(setback.times - 1, 16)
    return setback.last + min(seconds, LONGEST_BACKOFF_SECONDS)


def nominate(
    cluster: Cluster,
    queue: Queue,
    entries: Sequence[Entry],
    rows: Sequence[int],
    victims: Iterable[PodRecord] = (),
    gang: GangKey = NO_GANG,
    reason: Reason = Reason.PREEMPTION,
) -> Plan:
    """Let pods hold rows, as others leave these for them or until they are permitted to start, and wait in no queue."""
    leaves = tuple(victim.leaving for victim in victims if victim.leaving is not None)
    for entry in entries:
        queue.set_aside(entry)
    return cluster.plan(cluster.adopt(Plan(reason, holds_of(entries, rows), leaves, gang)))


def holds_of(entries: Sequence[Entry], rows: Sequence[int]) -> tuple[Held, ...]:
    """Each pod with its row."""
    return tuple(Held(entry.record.key, row) for entry, row in zip(entries, rows, strict=True))


def withdraw(cluster: Cluster, queue: Queue, plan_id: PlanId, *, is_setback: bool = True) -> bool:
    """Take back the rows that pods hold together: they wait again. Return whether any pod held one."""
    for other in cluster.resting_on(plan_id):
        withdraw(cluster, queue, other, is_setback=is_setback)
    plan = cluster.plan(plan_id)
    holding = {held.key for held in plan.holds if _is_there(cluster, held)}
    cluster.drop(plan_id, queue.now, is_setback=is_setback)
    entries = [entry for held in plan.holds if (entry := queue.nominated.pop(held.key, None)) is not None]
    waiting = [entry for entry in entries if entry.record.key in holding]
    if not plan.gang:
        queue.put_back(waiting)
    else:
        for entry in waiting:
            queue.let_in(entry.record, entry.profile, entry.queued_at)
        queue.gang_changed(plan.gang)  # members of it that still wait belong with them again
    return bool(holding)


def is_held(cluster: Cluster, held: Held) -> bool:
    """Whether a pod still holds its row: it is the same pod, and its node is there, in the domains that it was in."""
    if not _is_there(cluster, held) or cluster.pods.records[held.key].row != held.row:
        return False
    if cluster.nodes.row_of.get(held.node) != held.row:
        return False
    labels = cluster.nodes.node(held.row).metadata.labels or {}
    # A node that was launched gets further labels when it registers.
    return labels == held.labels or (held.offer is not None and labels.items() >= held.labels.items())


def _is_there(cluster: Cluster, held: Held) -> bool:
    record = cluster.pods.records.get(held.key)
    return record is not None and record.nominated and record.pod.metadata.uid == held.uid
