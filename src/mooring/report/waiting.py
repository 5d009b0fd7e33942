"""Pods that have no node, and why: they wait, are behind a gate, are forbidden, or are another scheduler's."""

from collections import Counter

from msgspec import Struct

from mooring.engine.cycle import Scheduler
from mooring.engine.evaluate import evaluate
from mooring.engine.queue.queue import Entry
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import Manifests
from mooring.report.gangs import WhyHeld
from mooring.report.names import Workloads
from mooring.state.plans import Plan


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


def waiting(scheduler: Scheduler, workloads: Workloads) -> list[Waiting]:
    """Those whom no node takes, and those for whom room is being made, in queue order."""
    return [_waiting(entry.record.pod, message, plugins, workloads) for entry, message, plugins in reasons(scheduler)]


def nomination_message(scheduler: Scheduler, key: PodKey) -> str:
    """Where room is being made for a pod, and who has to be gone before; empty if that is not so."""
    plan_id = scheduler.cluster.plan_of(key)
    plan = None if plan_id is None else scheduler.cluster.plan(plan_id)
    if plan is None or plan.message:
        return "" if plan is None else plan.message
    node = next(held.node for held in plan.holds if held.key == key)
    is_gone = scheduler.cluster.is_out_of_the_way
    staying = [leaving.key for leaving in plan.leaves if not is_gone(leaving)]
    return f"nominated to {node}, waits for {', '.join(staying) or 'others'} to leave"


def gated(scheduler: Scheduler, workloads: Workloads) -> list[Waiting]:
    """Those that may not be tried yet."""
    why_held = WhyHeld(scheduler)
    return [
        _waiting(
            entry.record.pod,
            why_waits(scheduler, entry.record.key) or why_held.of(entry, rejection),
            (),
            workloads,
        )
        for entry, rejection in scheduler.queue.gated()
    ]


def _waiting(pod: Pod, message: str, plugins: tuple[str, ...], workloads: Workloads) -> Waiting:
    meta = pod.metadata
    return Waiting(meta.name, meta.namespace, message, plugins, pod.spec.priority or 0, workloads.name_of(pod))


def not_ours(scheduler: Scheduler, workloads: Workloads) -> list[NotOurs]:
    pods = [scheduler.cluster.pods.records[key].pod for key in scheduler.foreign()]
    return [
        NotOurs(pod.metadata.name, pod.metadata.namespace, pod.spec.scheduler_name, workloads.name_of(pod))
        for pod in pods
    ]


def forbidden(manifests: Manifests, workloads: Workloads) -> list[Forbidden]:
    """In the order in which they would have been created."""
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


def why_waits(scheduler: Scheduler, pod_key: PodKey) -> str:
    """What admission says of a pod whose workload waits for quota; empty if it says nothing."""
    cluster = scheduler.cluster
    key = cluster.tenants.workload_of.get(pod_key)
    known = cluster.workloads.records.get(key) if key is not None else None
    return "" if known is None else known.told.message


def _behind_the_others(scheduler: Scheduler, plan: Plan) -> list[tuple[Entry, str, tuple[str, ...]]]:
    """The members of a gang that it can do without: they come when those have started that hold their places."""
    gang = scheduler.queue.gangs.get(plan.gang) if plan.gang else None
    if gang is None:
        return []
    holding = {held.key for held in plan.holds}
    message = f"gang {gang.name}: waits for the members to start that it needs"
    return [(entry, message, ()) for key, entry in gang.entries.items() if key not in holding]


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
    for _, plan in scheduler.cluster.plans():
        holding = (scheduler.queue.nominated.get(held.key) for held in plan.holds)
        plugins = (plan.plugin,) if plan.plugin else ()
        found += [
            (entry, nomination_message(scheduler, entry.record.key), plugins) for entry in holding if entry is not None
        ]
        found += _behind_the_others(scheduler, plan)
    return sorted(found, key=lambda reason: reason[0])
