"""Pods that got a node, that had to leave one, or lost it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.keys import PodKey, WorkloadKey
from mooring.report.admissions import owner_name
from mooring.report.gangs import Priorities
from mooring.report.names import Workloads


class Placement(Struct, rename="camel", omit_defaults=True, gc=False):
    pod: str
    namespace: str
    node: str
    priority: int
    owner: str = ""
    pool: str = ""
    """Of the node; empty if it is in none."""


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
    """A pod that lost its node: it is gone, or does not want the pod any more."""

    pod: str
    namespace: str
    node: str
    comes_back: bool
    """Whether somebody makes it anew: a controller, or whoever gave it to be placed here."""
    owner: str = ""
    taint: str = ""
    """The taint of its node that drove it away: key:NoExecute; empty if the node is gone."""


class Ended(Struct, rename="camel", omit_defaults=True):
    """A pod that ran for as long as it said."""

    pod: str
    namespace: str
    node: str
    phase: str
    """Succeeded; Failed if its activeDeadlineSeconds were over."""
    at: str
    owner: str = ""


class Resized(Struct, rename="camel", omit_defaults=True):
    """A pod on a node whose manifest asks for other amounts of CPU or memory."""

    pod: str
    namespace: str
    node: str
    outcome: str
    """Done; Deferred until there is room on the node; Infeasible: the pod runs on with what it has."""
    owner: str = ""


DONE, DEFERRED, INFEASIBLE = "Done", "Deferred", "Infeasible"
"""What becomes of a resize, as the kubelet has it."""


@dataclass(frozen=True)
class ResizedPod:
    pod: Pod
    node: str
    outcome: str


@dataclass(frozen=True)
class LostPod:
    """A pod whose node is gone, or does not want it any more."""

    pod: Pod
    node: str
    comes_back: bool
    """Whether somebody makes it anew, as a pod that waits."""
    taint: str = ""


@dataclass(frozen=True)
class EndedPod:
    pod: Pod
    node: str
    phase: str
    at: float


def placements(
    scheduler: Scheduler, decisions: Iterable[Decision], workloads: Workloads, pool_of: Mapping[str, str]
) -> list[Placement]:
    """The pods that were bound and still are, in the order of the decisions."""
    records = scheduler.cluster.pods.records
    found: dict[str, Placement] = {}
    for decision in decisions:
        record = records.get(PodKey(decision.pod)) if isinstance(decision, Bind) else None
        if record is not None and isinstance(decision, Bind) and record.node_name == decision.node:
            pod, meta = record.pod, record.pod.metadata
            found.pop(decision.pod, None)
            found[decision.pod] = Placement(
                pod=meta.name,
                namespace=meta.namespace,
                node=decision.node,
                priority=pod.spec.priority or 0,
                owner=workloads.name_of(pod),
                pool=pool_of.get(decision.node, ""),
            )
    return list(found.values())


def evictions(
    scheduler: Scheduler,
    decisions: Iterable[Decision],
    pods: Mapping[PodKey, Pod],
    ran: Mapping[str, Pod],
    workloads: Workloads,
) -> list[Evicted]:
    """Those that ran before and have to go, in the order of the decisions; some may have been deleted since."""
    priorities = Priorities(scheduler.cluster.gangs, pods.values())
    records, queued = scheduler.cluster.pods.records, scheduler.cluster.tenants.workloads

    def gather() -> Iterator[Evicted]:
        for decision in decisions:
            if not isinstance(decision, Evict) or decision.pod not in ran:
                continue
            pod, preemptor = ran[decision.pod], records.get(PodKey(decision.preemptor))
            workload = queued.get(WorkloadKey(decision.preemptor))
            urgency = priorities.of(preemptor.pod) if preemptor is not None else 0
            yield Evicted(
                pod=pod.metadata.name,
                namespace=pod.metadata.namespace,
                node=decision.node,
                preemptor=decision.preemptor,
                priority=priorities.of(pod),
                preemptor_priority=urgency if workload is None else workload.workload.spec.priority or 0,
                owner=workloads.name_of(pod),
                reason=decision.reason,
                preemptor_owner="" if workload is None else owner_name(queued, decision.preemptor),
            )

    return list(gather())


def losses(lost: Sequence[LostPod], workloads: Workloads) -> list[Lost]:
    return [
        Lost(
            found.pod.metadata.name,
            found.pod.metadata.namespace,
            found.node,
            found.comes_back,
            workloads.name_of(found.pod),
            found.taint,
        )
        for found in lost
    ]


def endings(ended: Sequence[EndedPod], workloads: Workloads) -> list[Ended]:
    return [
        Ended(
            found.pod.metadata.name,
            found.pod.metadata.namespace,
            found.node,
            found.phase,
            timestamp_text(found.at),
            workloads.name_of(found.pod),
        )
        for found in ended
    ]


def resizes(resized: Sequence[ResizedPod], workloads: Workloads) -> list[Resized]:
    return [
        Resized(
            found.pod.metadata.name,
            found.pod.metadata.namespace,
            found.node,
            found.outcome,
            workloads.name_of(found.pod),
        )
        for found in resized
    ]
