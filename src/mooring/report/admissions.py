"""Which workloads were given quota, had to give it back, or will have to, as values: one line of a result each."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.section import AdmissionSection
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import timestamp_text
from mooring.model.decisions import Admit, Decision, Notice, Suspend
from mooring.model.keys import WorkloadKey
from mooring.model.queued.workloads import QueuedWorkload
from mooring.report.amounts import in_units


class AssignedDomain(Struct, rename="camel"):
    values: tuple[str, ...]
    count: int


class AssignedTopology(Struct, rename="camel"):
    """The domains that the pods of one pod set were assigned."""

    name: str
    levels: tuple[str, ...]
    domains: list[AssignedDomain]


class Admitted(Struct, rename="camel", omit_defaults=True):
    """A workload that was given quota, and still has it."""

    workload: str
    """The name of the Workload."""
    namespace: str
    owner: str
    """What a user would call it: Job/train."""
    cluster_queue: str
    pods: int
    asked_pods: int
    """How many pods it asked quota for; more than `pods` if it is admitted in part."""
    flavors: dict[str, list[str]]
    """By resource, the flavors that it is taken from."""
    borrowed: dict[str, float]
    """By resource, how much it takes of its queue beyond the nominal quota, now that all is decided."""
    message: str
    pending_checks: tuple[str, ...] = ()
    """The admission checks that keep it from starting."""
    topology: list[AssignedTopology] = []
    """Of pod sets that were assigned domains of a topology, which."""


class Suspended(Struct, rename="camel", omit_defaults=True):
    """A workload that had quota when we came, and had to give it back."""

    workload: str
    namespace: str
    owner: str
    cluster_queue: str
    """Empty if its LocalQueue is not there any more."""
    reason: str
    """Kueue's: InCohortReclamation, PodsReadyTimeout and the like."""
    message: str
    preemptor: str = ""
    """namespace/name of the Workload that gets the quota."""
    preemptor_owner: str = ""


class Noticed(Struct, rename="camel", omit_defaults=True):
    """A workload that was told that it will lose its quota: nothing happens to it before then."""

    workload: str
    namespace: str
    owner: str
    at: str
    """When it will lose it."""
    message: str


def find_admission(scheduler: Scheduler) -> Admission | None:
    """The ledger and the lines of quota; None if nothing has ever queued."""
    return next((section.current for section in scheduler.sections(AdmissionSection)), None)


def owner_name(workloads: Mapping[WorkloadKey, QueuedWorkload], key: str) -> str:
    """`Job/train`; the Workload's own name if nobody knows whose it is."""
    workload = workloads.get(WorkloadKey(key))
    if workload is None or not workload.owner_key[-1]:
        return f"Workload/{key.partition('/')[2]}"
    kind, _, name = workload.owner_key
    return f"{kind}/{name}"


def gather_admissions(scheduler: Scheduler, decisions: Iterable[Decision]) -> tuple[list[Admitted], list[Suspended]]:
    """What became of workloads, in the order of the decisions; who came and went in between is not mentioned."""
    workloads, admission = scheduler.cluster.tenants.workloads, find_admission(scheduler)
    admitted: dict[str, Admit] = {}
    suspended: dict[str, Suspend] = {}
    came_here: set[str] = set()
    for decision in decisions:
        if isinstance(decision, Admit):
            if decision.workload not in suspended:
                came_here.add(decision.workload)
            admitted.pop(decision.workload, None)
            admitted[decision.workload] = decision
        elif isinstance(decision, Suspend):
            admitted.pop(decision.workload, None)
            if decision.workload not in came_here:
                suspended[decision.workload] = decision
    return (
        [_admitted(found, workloads, admission) for found in admitted.values()],
        [_suspended(found, workloads, admission) for found in suspended.values()],
    )


def gather_notices(scheduler: Scheduler, decisions: Iterable[Decision]) -> list[Noticed]:
    """Who was told what about the quota that it will lose, in the order of the decisions."""
    workloads = scheduler.cluster.tenants.workloads
    found = []
    for notice in decisions:
        if isinstance(notice, Notice):
            namespace, _, name = notice.workload.partition("/")
            owner = owner_name(workloads, notice.workload)
            found.append(Noticed(name, namespace, owner, timestamp_text(notice.at), notice.message))
    return found


def _admitted(found: Admit, workloads: Mapping[WorkloadKey, QueuedWorkload], admission: Admission | None) -> Admitted:
    namespace, _, name = found.workload.partition("/")
    flavors: dict[str, dict[str, None]] = {}
    for pod_set in found.podsets:
        for resource, flavor in pod_set.flavors.items():
            flavors.setdefault(resource, {})[flavor] = None
    given = sum(pod_set.count for pod_set in found.podsets)
    admitted = None if admission is None else admission.admitted(WorkloadKey(found.workload))
    return Admitted(
        workload=name,
        namespace=namespace,
        owner=owner_name(workloads, found.workload),
        cluster_queue=found.cluster_queue,
        pods=given,
        asked_pods=given if admitted is None else sum(pod_set.count for pod_set in admitted.pending.pod_sets),
        flavors={resource: list(names) for resource, names in flavors.items()},
        borrowed={} if admission is None else _borrowed(admission, found.cluster_queue, found.workload),
        message=found.message,
        pending_checks=found.pending_checks,
        topology=[
            AssignedTopology(
                pod_set.name,
                pod_set.topology.levels,
                [AssignedDomain(domain.values, domain.count) for domain in pod_set.topology.domains],
            )
            for pod_set in found.podsets
            if pod_set.topology is not None
        ],
    )


def _borrowed(admission: Admission, queue: str, key: str) -> dict[str, float]:
    """What a workload takes of its queue beyond its nominal quota: whoever came to it first has the queue's own."""
    tree, compiled = admission.structure.tree, admission.structure.queues.get(queue)
    if compiled is None or not compiled.has_cohort:
        return {}
    line = sorted(admission.ledger.admitted_in(compiled.node), key=lambda found: (found.reserved_at, found.pending.uid))
    borrowed: dict[str, float] = {}
    for column in tree.declared[compiled.node]:
        nominal, used = tree.nominal_of(compiled.node, column), 0
        for found in line:
            before, used = used, used + found.usage.get(column, 0)
            beyond = max(0, used - nominal) - max(0, before - nominal)
            if found.pending.key == key and beyond:
                resource = tree.columns[column].resource
                borrowed[resource] = borrowed.get(resource, 0) + in_units(resource, beyond)
    return borrowed


def _suspended(
    found: Suspend, workloads: Mapping[WorkloadKey, QueuedWorkload], admission: Admission | None
) -> Suspended:
    namespace, _, name = found.workload.partition("/")
    workload = workloads.get(WorkloadKey(found.workload))
    local = admission.local_queue(workload.workload) if admission is not None and workload is not None else None
    return Suspended(
        workload=name,
        namespace=namespace,
        owner=owner_name(workloads, found.workload),
        cluster_queue=local.spec.cluster_queue if local is not None else "",
        reason=found.reason,
        message=found.message,
        preemptor=found.preemptor,
        preemptor_owner=owner_name(workloads, found.preemptor) if found.preemptor else "",
    )
