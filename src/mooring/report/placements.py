"""The result of `mooring schedule` as a value: what json and yaml print, and what the table is drawn from."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from msgspec import Struct

from mooring.actions.admit.action import Admit
from mooring.engine.cycle import Scheduler
from mooring.engine.evaluate import evaluate
from mooring.engine.queue.queue import Entry
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.loading.manifests import Manifests
from mooring.report.admissions import Admitted, Suspended, gather_admissions, owner_name
from mooring.report.gangs import Priorities, WhyHeld
from mooring.report.pools import Pool, pools
from mooring.report.workloads import Workloads


class Placement(Struct, rename="camel", omit_defaults=True, gc=False):
    pod: str
    namespace: str
    node: str
    priority: int
    owner: str = ""


class Waiting(Struct, rename="camel", omit_defaults=True):
    pod: str
    namespace: str
    message: str
    plugins: tuple[str, ...]
    """The plugins that refused it; for a gated pod, the one that holds it back."""
    priority: int
    owner: str = ""


class Forbidden(Struct, rename="camel", omit_defaults=True):
    """What the quotas or limits of its namespace keep out: it is never created, and no node is asked about it."""

    kind: str
    """Pod, or another kind that a quota counts."""
    name: str
    namespace: str
    message: str
    """What the API server says to who creates it."""
    reason: str
    """The same without the name of what is refused."""
    plugin: str
    """LimitRanger or ResourceQuota"""
    owner: str = ""
    workload_pods: int = 0
    """How many pods the owner has in all, those that are forbidden included."""


class NotOurs(Struct, rename="camel", omit_defaults=True):
    """A pod that waits for a scheduler whose name no profile has."""

    pod: str
    namespace: str
    scheduler_name: str
    owner: str = ""


@dataclass(frozen=True)
class LostPod:
    """A pod whose node is gone."""

    pod: Pod
    node: str
    comes_back: bool
    """Whether somebody makes it anew, as a pod that waits."""


class Evicted(Struct, rename="camel", omit_defaults=True):
    """A pod that ran and has to go."""

    pod: str
    namespace: str
    node: str
    preemptor: str
    """namespace/name of the pod for which room is made; empty if it goes for another reason."""
    priority: int
    """What counted: that of its gang, if it is in one."""
    preemptor_priority: int
    """Likewise."""
    owner: str = ""
    reason: str = ""
    preemptor_owner: str = ""
    """What a user would call the preemptor, if it is a workload whose quota is wanted back: Job/train."""


class Lost(Struct, rename="camel", omit_defaults=True):
    """A pod that ran on a node which is gone."""

    pod: str
    namespace: str
    node: str
    comes_back: bool
    """Whether somebody makes it anew: a controller, or whoever gave it to be placed here."""
    owner: str = ""


class Summary(Struct, rename="camel"):
    nodes: int
    placed: int
    nodes_used: int
    """How many nodes the placed pods went to."""
    waiting: int
    forbidden: int
    """How many pods; other objects are not counted here."""
    gated: int
    not_ours: int
    already_bound: int
    evicted: int
    lost: int
    """How many pods went with their nodes, those that somebody makes anew included."""
    admitted: int
    """How many workloads were given quota."""
    suspended: int
    """How many workloads had to give it back."""


class Result(Struct, rename="camel"):
    summary: Summary
    placements: list[Placement]
    """In the order of the decisions."""
    waiting: list[Waiting]
    """In queue order."""
    forbidden: list[Forbidden]
    """In the order in which they would have been created."""
    gated: list[Waiting]
    not_ours: list[NotOurs]
    evicted: list[Evicted]
    """Pods that ran when we came; in the order of the decisions."""
    lost: list[Lost]
    """Pods whose nodes went in this step of a story."""
    admitted: list[Admitted]
    """Workloads that were given quota; in the order of the decisions."""
    suspended: list[Suspended]
    """Workloads that had to give it back; in the order of the decisions."""
    pools: list[Pool]
    ignored: dict[str, int]
    """How many objects there were of each kind that scheduling does not read."""


def make_result(
    scheduler: Scheduler,
    manifests: Manifests,
    decisions: Iterable[Decision],
    pool_of: Mapping[str, str],
    ran: Set[str] | None = None,
    lost: Sequence[LostPod] = (),
) -> Result:
    """Gather what was decided, and why the others wait, as things stand at the end.

    `ran` are the pods that ran before; by default those that the manifests show on a node.
    """
    records = scheduler.cluster.pods.records
    workloads = Workloads(manifests)

    def owner(pod: Pod) -> str:
        found = workloads.owner_of(pod)
        return str(found) if found else ""

    decisions = list(decisions)
    admitted, suspended = gather_admissions(scheduler, decisions)
    queued = scheduler.cluster.tenants.workloads
    placements = []
    pods = {pod.key: pod for pod in manifests.pods}
    ran = {key for key, pod in pods.items() if pod.spec.node_name} if ran is None else ran
    evicted = []
    priorities = Priorities(scheduler.cluster.gangs, manifests.pods)
    for decision in decisions:
        if isinstance(decision, Bind):
            record = records.get(decision.pod)
            if record is None or record.node_name != decision.node:
                continue  # evicted since
            pod = record.pod
            meta = pod.metadata
            placements.append(Placement(meta.name, meta.namespace, decision.node, pod.spec.priority or 0, owner(pod)))
        elif isinstance(decision, Evict) and decision.pod in ran:
            pod, preemptor = pods[decision.pod], records.get(decision.preemptor)
            workload = queued.get(decision.preemptor)
            urgency = priorities.of(preemptor.pod) if preemptor is not None else 0
            evicted.append(
                Evicted(
                    pod.metadata.name,
                    pod.metadata.namespace,
                    decision.node,
                    decision.preemptor,
                    priorities.of(pod),
                    urgency if workload is None else workload.workload.spec.priority or 0,
                    owner(pod),
                    decision.reason,
                    "" if workload is None else owner_name(queued, decision.preemptor),
                )
            )
    waiting = []
    for entry, message, plugins in reasons(scheduler):
        pod = entry.record.pod
        meta = pod.metadata
        waiting.append(Waiting(meta.name, meta.namespace, message, plugins, pod.spec.priority or 0, owner(pod)))
    gated = []
    why_held = WhyHeld(scheduler)
    for entry, rejection in scheduler.queue.gated():
        pod = entry.record.pod
        meta, message = pod.metadata, why_waits(scheduler, pod.key) or why_held.of(entry, rejection)
        gated.append(Waiting(meta.name, meta.namespace, message, (), pod.spec.priority or 0, owner(pod)))
    not_ours = []
    for key in scheduler.foreign():
        pod = records[key].pod
        not_ours.append(NotOurs(pod.metadata.name, pod.metadata.namespace, pod.spec.scheduler_name, owner(pod)))
    forbidden = _forbidden(manifests, workloads)
    placed_keys = len(placements)
    return Result(
        summary=Summary(
            nodes=len(scheduler.cluster.nodes),
            placed=placed_keys,
            nodes_used=len({placement.node for placement in placements}),
            waiting=len(waiting),
            forbidden=sum(1 for found in forbidden if found.kind == "Pod"),
            gated=len(gated),
            not_ours=len(not_ours),
            already_bound=sum(1 for record in records.values() if record.node_name) - placed_keys,
            evicted=len(evicted),
            lost=len(lost),
            admitted=len(admitted),
            suspended=len(suspended),
        ),
        placements=placements,
        waiting=waiting,
        forbidden=forbidden,
        gated=gated,
        not_ours=not_ours,
        evicted=evicted,
        lost=[
            Lost(found.pod.metadata.name, found.pod.metadata.namespace, found.node, found.comes_back, owner(found.pod))
            for found in lost
        ],
        admitted=admitted,
        suspended=suspended,
        pools=pools(scheduler.cluster, pool_of),
        ignored=dict(sorted(manifests.ignored.items())),
    )


def _forbidden(manifests: Manifests, workloads: Workloads) -> list[Forbidden]:
    if not manifests.refused:
        return []
    refused = [refusal.found for refusal in manifests.refused if isinstance(refusal.found, Pod)]
    totals = Counter(workloads.owner_of(pod) for pod in (*manifests.pods, *refused))
    found = []
    for refusal in manifests.refused:
        meta, owner = refusal.found.metadata, workloads.owner_of(refusal.found)
        is_owned_pod = owner is not None and isinstance(refusal.found, Pod)
        found.append(
            Forbidden(
                refusal.found.kind,
                meta.name,
                meta.namespace,
                refusal.message,
                refusal.reason,
                refusal.plugin,
                str(owner) if owner else "",
                totals[owner] if is_owned_pod else 0,
            )
        )
    return found


def why_waits(scheduler: Scheduler, pod_key: str) -> str:
    """What admission says of a pod whose workload waits for quota; empty if it says nothing."""
    said = (found.why_waits(scheduler.cluster, pod_key) for found in scheduler.actions if isinstance(found, Admit))
    return next(said, "")


def reasons(scheduler: Scheduler) -> list[tuple[Entry, str, tuple[str, ...]]]:
    """Each pod that waits, in queue order, with the message and the plugins that refuse it as things stand now."""
    found: list[tuple[Entry, str, tuple[str, ...]]] = []
    for parked in scheduler.queue.parked():
        if parked.verdict is not None:
            message = "; ".join(parked.verdict.reasons)
            found += [(entry, message, (parked.verdict.plugin,)) for entry in parked.entries]
        elif parked.entries:
            evaluation = evaluate(parked.profile, scheduler.cluster, parked.entries[0].record.shape)
            message, plugins = evaluation.message(), evaluation.refusing_plugins()
            found += [(entry, message, plugins) for entry in parked.entries]
    return sorted(found, key=lambda reason: reason[0])
