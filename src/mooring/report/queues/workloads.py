"""The workloads of each queue: who holds what, who waits, and what others would have to give back for that."""

from collections.abc import Iterable, Iterator, Mapping

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.lifecycle.stages import HOLDING, Stage, Work
from mooring.actions.admit.preemption.concessions import Concession, Outlook, find_outlook
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.workload_info import Applicant
from mooring.model.api.kueue import LOWER_OR_NEWER_EQUAL_PRIORITY
from mooring.report.admissions import owner_name
from mooring.report.amounts import in_units
from mooring.report.queues.data import GivenBack, HoldingWorkload, WaitingWorkload

HAS_QUOTA = "nobody has to give anything back: there is quota for it"


class WorkloadsByQueue:
    """All works, by the ClusterQueue that they hold quota of or want it from."""

    def __init__(self, admission: Admission, works: Mapping[str, Work]) -> None:
        self._admission = admission
        self._works = works
        self._queued = {key: work.queued for key, work in works.items()}
        self._by_queue: dict[str, list[Work]] = {}
        for work in works.values():
            if work.stage is not Stage.DONE:
                self._by_queue.setdefault(self._queue_of(work), []).append(work)
        self._outlooks: dict[tuple[object, ...], Outlook] = {}

    def _queue_of(self, work: Work) -> str:
        """The name of its ClusterQueue, empty if there is none."""
        holder = self._admission.holder(work.key)
        if holder is not None:
            return holder.applicant.queue_name
        local = self._admission.local_queue(work.workload)
        name = local.spec.cluster_queue if local is not None else ""
        return name if name in self._admission.structure.queues else ""

    # Who holds.

    def holding(self, queue: Queue) -> list[HoldingWorkload]:
        """Those that have quota of a queue, the first to get it first."""
        found = []
        columns = self._admission.structure.tree.columns
        holders = self._admission.ledger.holders_in(queue.node)
        for holder in sorted(holders, key=lambda holder: (holder.reserved_at, holder.applicant.uid)):
            work = self._works.get(holder.applicant.key)
            namespace, _, name = holder.applicant.key.partition("/")
            found.append(
                HoldingWorkload(
                    workload=name,
                    namespace=namespace,
                    owner=owner_name(self._queued, holder.applicant.key),
                    local_queue=work.workload.spec.queue_name if work is not None else "",
                    priority=holder.applicant.priority,
                    stage=work.stage.value if work is not None else Stage.ADMITTED.value,
                    holds=_by_resource((columns[column].resource, amount) for column, amount in holder.usage.items()),
                )
            )
        return found

    # Who waits.

    def waiting(self, queue: Queue) -> list[WaitingWorkload]:
        """Those that want quota of a queue: the line in its order, then those that may not stand in it."""
        line = self._admission.pending.lines[queue.name]
        inside = line.in_order(with_parked=True)
        found = []
        for position, applicant in enumerate(inside, start=1):
            if applicant.key in self._works:
                found.append(self._in_line(queue, applicant, position, inside[0]))
        works = (work for work in self._by_queue.get(queue.name, ()) if work.key not in line)
        return [*found, *self._outside(works)]

    def without_queue(self) -> list[WaitingWorkload]:
        """Those whose LocalQueue or ClusterQueue is not there, and that hold nothing."""
        return list(self._outside(self._by_queue.get("", ())))

    def _outside(self, works: Iterable[Work]) -> Iterator[WaitingWorkload]:
        for work in works:
            if work.stage not in HOLDING:
                yield self._describe(work, self._admission.intake.make_applicant(work.workload, ""))

    def _in_line(self, queue: Queue, applicant: Applicant, position: int, first: Applicant) -> WaitingWorkload:
        found = self._describe(self._works[applicant.key], applicant)
        found.position = position
        outlook = self._outlook(queue, applicant)
        found.outlook = outlook.hopeless
        if outlook.has_quota:
            namespace = first.key.partition("/")[0]
            is_behind = queue.is_strict and applicant is not first
            behind = f", but {namespace} {owner_name(self._queued, first.key)} is before it" if is_behind else ""
            found.outlook = f"{HAS_QUOTA}{behind}"
        found.gives_back = [self._given_back(concession) for concession in outlook.concessions]
        if outlook.pods and sum(outlook.pods) < found.pods:
            found.starts_with = sum(outlook.pods)
        return found

    def _outlook(self, queue: Queue, applicant: Applicant) -> Outlook:
        """Workloads of one shape have the same outlook, unless a policy compares their ages."""
        by_age = queue.within_queue == LOWER_OR_NEWER_EQUAL_PRIORITY
        alike = (queue.name, applicant.shape, applicant.queued_at if by_age else None)
        if alike not in self._outlooks:
            self._outlooks[alike] = find_outlook(self._admission, applicant)
        return self._outlooks[alike]

    def _describe(self, work: Work, applicant: Applicant) -> WaitingWorkload:
        namespace, _, name = work.key.partition("/")
        amounts = [pair for pod_set in applicant.pod_sets for pair in pod_set.total(pod_set.count, False).items()]
        least = sum(pod_set.min_count for pod_set in applicant.pod_sets) if applicant.can_shrink else None
        return WaitingWorkload(
            workload=name,
            namespace=namespace,
            owner=owner_name(self._queued, work.key),
            local_queue=work.workload.spec.queue_name,
            priority=applicant.priority,
            pods=sum(pod_set.count for pod_set in applicant.pod_sets),
            asks=_by_resource(pair for pair in amounts if pair[1]),
            reason=work.words.reason,
            message=work.words.message,
            least_pods=least,
        )

    def _given_back(self, concession: Concession) -> GivenBack:
        applicant, columns = concession.holder.applicant, self._admission.structure.tree.columns
        namespace, _, name = applicant.key.partition("/")
        return GivenBack(
            workload=name,
            namespace=namespace,
            owner=owner_name(self._queued, applicant.key),
            cluster_queue=applicant.queue_name,
            priority=applicant.priority,
            amounts=_by_resource((columns[column].resource, amount) for column, amount in concession.amounts.items()),
            forbidden_by=concession.forbidden_by,
        )


def _by_resource(amounts: Iterable[tuple[str, int]]) -> dict[str, float]:
    total: dict[str, int] = {}
    for resource, amount in amounts:
        total[resource] = total.get(resource, 0) + amount
    return {resource: in_units(resource, amount) for resource, amount in sorted(total.items())}
