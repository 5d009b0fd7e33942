"""The workloads of each queue: who holds what, who waits, and what others would have to give back for that."""

from collections.abc import Iterable, Iterator, Mapping

from mooring.actions.admit.concessions import Concession, Outlook, find_outlook
from mooring.actions.admit.cycle.conditions import NO_FLAVORS, WAITING_FOR_QUOTA
from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.quota.workload_info import PendingWorkload
from mooring.model.api.kueue import LOWER_OR_NEWER_EQUAL_PRIORITY
from mooring.model.keys import WorkloadKey
from mooring.report.admissions import owner_name
from mooring.report.amounts import in_units
from mooring.report.queues.data import GivenBack, HoldingWorkload, WaitingWorkload
from mooring.state.workloads import HOLDING, Stage, WorkloadRecord

HAS_QUOTA = "nobody has to give anything back: there is quota for it"


class WorkloadsByQueue:
    """All workloads, by the ClusterQueue that they hold quota of or want it from."""

    def __init__(self, admission: Admission, workloads: Mapping[WorkloadKey, WorkloadRecord]) -> None:
        self._admission = admission
        self._workloads = workloads
        self._queued = {key: workload.queued for key, workload in workloads.items()}
        self._by_queue: dict[str, list[WorkloadRecord]] = {}
        for workload in workloads.values():
            if workload.stage is not Stage.DONE:
                self._by_queue.setdefault(self._queue_of(workload), []).append(workload)
        self._outlooks: dict[tuple[object, ...], Outlook] = {}

    def _queue_of(self, workload: WorkloadRecord) -> str:
        """The name of its ClusterQueue, empty if there is none."""
        admitted = self._admission.admitted(workload.key)
        if admitted is not None:
            return admitted.pending.queue_name
        local = self._admission.local_queue(workload.workload)
        name = local.spec.cluster_queue if local is not None else ""
        return name if name in self._admission.structure.queues else ""

    # Who holds.

    def holding(self, queue: Queue) -> list[HoldingWorkload]:
        """Those that have quota of a queue, the first to get it first."""
        found = []
        columns = self._admission.structure.tree.columns
        admitted_workloads = self._admission.ledger.admitted_in(queue.node)
        for admitted in sorted(admitted_workloads, key=lambda admitted: (admitted.reserved_at, admitted.pending.uid)):
            workload = self._workloads.get(admitted.pending.key)
            namespace, _, name = admitted.pending.key.partition("/")
            found.append(
                HoldingWorkload(
                    workload=name,
                    namespace=namespace,
                    owner=owner_name(self._queued, admitted.pending.key),
                    local_queue=workload.workload.spec.queue_name if workload is not None else "",
                    priority=admitted.pending.priority,
                    stage=workload.stage.value if workload is not None else Stage.ADMITTED.value,
                    holds=_by_resource((columns[column].resource, amount) for column, amount in admitted.usage.items()),
                )
            )
        return found

    # Who waits.

    def waiting(self, queue: Queue) -> list[WaitingWorkload]:
        """Those that want quota of a queue: the line in its order, then those that may not stand in it."""
        line = self._admission.pending.pending_queues[queue.name]
        inside = line.in_order(with_parked=True)
        found = []
        for position, pending in enumerate(inside, start=1):
            if pending.key in self._workloads:
                found.append(self._in_line(queue, pending, position, inside[0]))
        workloads = (workload for workload in self._by_queue.get(queue.name, ()) if workload.key not in line)
        return [*found, *self._outside(workloads)]

    def without_queue(self) -> list[WaitingWorkload]:
        """Those whose LocalQueue or ClusterQueue is not there, and that hold nothing."""
        return list(self._outside(self._by_queue.get("", ())))

    def _outside(self, workloads: Iterable[WorkloadRecord]) -> Iterator[WaitingWorkload]:
        for workload in workloads:
            if workload.stage not in HOLDING:
                yield self._describe(workload, self._admission.intake.make_pending(workload.workload, ""))

    def _in_line(
        self, queue: Queue, pending: PendingWorkload, position: int, first: PendingWorkload
    ) -> WaitingWorkload:
        found = self._describe(self._workloads[pending.key], pending)
        found.position = position
        outlook = self._outlook(queue, pending)
        found.outlook = outlook.hopeless
        if outlook.has_quota:
            found.outlook = f"{HAS_QUOTA}{self._but(queue, pending, first)}"
        if outlook.shortage and found.message.startswith(NO_FLAVORS) and found.reason == WAITING_FOR_QUOTA:
            found.message = outlook.shortage  # others may have been given quota since it was tried
        found.gives_back = [self._given_back(concession) for concession in outlook.concessions]
        if outlook.pods and sum(outlook.pods) < found.pods:
            found.starts_with = sum(outlook.pods)
        return found

    def _but(self, queue: Queue, pending: PendingWorkload, first: PendingWorkload) -> str:
        """Why a workload waits though there is quota: whoever is before it in a strict queue, or holds it elsewhere."""
        if queue.is_strict and pending is not first:
            return f", but {self._who(first)} is before it"
        holding = [f"{self._who(head)} of queue {head.queue_name}" for head in self._heads_in_the_way(queue, pending)]
        if not holding:
            return ""
        return f", but it is kept for {', '.join(holding)}, first in line there and still short of some"

    def _who(self, pending: PendingWorkload) -> str:
        return f"{pending.key.partition('/')[0]} {owner_name(self._queued, pending.key)}"

    def _heads_in_the_way(self, queue: Queue, pending: PendingWorkload) -> list[PendingWorkload]:
        """The first in line of other queues of the same tree, beside whom a workload does not fit: each of them
        reserves what it is to get in a cycle, also while others have yet to give it back."""
        admission, ledger = self._admission, self._admission.ledger
        wanted = admission.what_if(pending, queue).assignment.usage
        found = []
        for other in admission.structure.queues.values():
            line = admission.pending.pending_queues[other.name].in_order(with_parked=True)
            if other is queue or other.root != queue.root or not line:
                continue
            with ledger.what_if():
                ledger.add_usage(other.node, admission.what_if(line[0], other).assignment.usage)
                is_in_the_way = not ledger.fits(queue.node, wanted)
            if is_in_the_way:
                found.append(line[0])
        return found

    def _outlook(self, queue: Queue, pending: PendingWorkload) -> Outlook:
        """Workloads of one shape have the same outlook, unless a policy compares their ages."""
        by_age = queue.within_queue == LOWER_OR_NEWER_EQUAL_PRIORITY
        alike = (queue.name, pending.shape, pending.queued_at if by_age else None)
        if alike not in self._outlooks:
            self._outlooks[alike] = find_outlook(self._admission, pending)
        return self._outlooks[alike]

    def _describe(self, workload: WorkloadRecord, pending: PendingWorkload) -> WaitingWorkload:
        namespace, _, name = workload.key.partition("/")
        amounts = [pair for pod_set in pending.pod_sets for pair in pod_set.total(pod_set.count, False).items()]
        least = sum(pod_set.min_count for pod_set in pending.pod_sets) if pending.can_shrink else None
        return WaitingWorkload(
            workload=name,
            namespace=namespace,
            owner=owner_name(self._queued, workload.key),
            local_queue=workload.workload.spec.queue_name,
            priority=pending.priority,
            pods=sum(pod_set.count for pod_set in pending.pod_sets),
            asks=_by_resource(pair for pair in amounts if pair[1]),
            reason=workload.condition.reason,
            message=workload.condition.message,
            least_pods=least,
        )

    def _given_back(self, concession: Concession) -> GivenBack:
        pending, columns = concession.admitted.pending, self._admission.structure.tree.columns
        namespace, _, name = pending.key.partition("/")
        return GivenBack(
            workload=name,
            namespace=namespace,
            owner=owner_name(self._queued, pending.key),
            cluster_queue=pending.queue_name,
            priority=pending.priority,
            amounts=_by_resource((columns[column].resource, amount) for column, amount in concession.amounts.items()),
            forbidden_by=concession.forbidden_by,
        )


def _by_resource(amounts: Iterable[tuple[str, int]]) -> dict[str, float]:
    total: dict[str, int] = {}
    for resource, amount in amounts:
        total[resource] = total.get(resource, 0) + amount
    return {resource: in_units(resource, amount) for resource, amount in sorted(total.items())}
