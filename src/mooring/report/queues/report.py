"""How Kueue's queues stand after a decision: quotas, shares, who holds, who waits and for what."""

from collections import Counter
from collections.abc import Iterable, Mapping

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.lifecycle.following import make_structure
from mooring.actions.admit.quota.fair_sharing import DominantShare
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.section import AdmissionSection
from mooring.engine.cycle import Scheduler
from mooring.model.api.kueue import BEST_EFFORT_FIFO, LOWER_PRIORITY, NEVER, STOP_NONE, STRICT_FIFO, LocalQueue
from mooring.model.decisions import Decision
from mooring.model.keys import WorkloadKey
from mooring.report.admissions import gather_admissions, gather_notices
from mooring.report.amounts import in_units
from mooring.report.queues.data import (
    CohortStatus,
    LocalQueueStatus,
    Preemption,
    QueuesResult,
    QueueStatus,
    QuotaStatus,
)
from mooring.report.queues.lending import Lent, lent_by_node
from mooring.report.queues.shares import shared_statuses
from mooring.report.queues.volcano import volcano_statuses
from mooring.report.queues.workloads import WorkloadsByQueue
from mooring.state.quota_tree import NO_PARENT, QuotaTree
from mooring.state.workloads import Stage, WorkloadRecord

WAITING = (Stage.WAITING, Stage.BACKOFF, Stage.OUTSIDE)


def make_queues_result(scheduler: Scheduler, decisions: Iterable[Decision], now: float) -> QueuesResult:
    """Gather how all queues stand."""
    decisions = list(decisions)
    admission, records = _admission(scheduler, now)
    admitted, suspended = gather_admissions(scheduler, decisions)
    workloads = WorkloadsByQueue(admission, records)
    report = _Report(admission, workloads)
    local_queues = scheduler.cluster.tenants.local_queues
    stages: dict[str, Counter[Stage]] = {}
    for workload in records.values():
        stages.setdefault(workload.local_queue, Counter())[workload.stage] += 1
    return QueuesResult(
        admitted=admitted,
        suspended=suspended,
        notices=gather_notices(scheduler, decisions),
        cohorts=report.cohorts(),
        queues=report.queues(),
        local_queues=[
            _local_queue(local_queues[key], admission, stages.get(key, Counter())) for key in sorted(local_queues)
        ],
        without_queue=workloads.without_queue(),
        volcano_queues=volcano_statuses(scheduler),
        shared_queues=shared_statuses(scheduler),
    )


def _admission(scheduler: Scheduler, now: float) -> tuple[Admission, Mapping[WorkloadKey, WorkloadRecord]]:
    """Ledger, lines and workloads; empty ones over the same queues, as they are now, if nothing has ever queued."""
    for section in scheduler.sections(AdmissionSection, now):
        return section.admission, section.workloads
    tenants = scheduler.cluster.tenants
    return Admission(make_structure(tenants, scheduler.cluster.log), local_queues=tenants.local_queues.values()), {}


class _Report:
    """Queues and cohorts, each with its quotas."""

    def __init__(self, admission: Admission, workloads: WorkloadsByQueue) -> None:
        self._admission = admission
        self._workloads = workloads
        self._tree = admission.structure.tree
        self._lent = [lent_by_node(self._tree, column) for column in range(len(self._tree.columns))]
        self._totals = _totals_below(self._tree)

    def cohorts(self) -> list[CohortStatus]:
        tree = self._tree
        found = []
        for name, node in self._admission.structure.cohort_node.items():
            parent = tree.parent[node]
            found.append(
                CohortStatus(
                    name=name,
                    parent="" if parent == NO_PARENT else tree.nodes[parent].name,
                    weight=_plain(tree.nodes[node].weight),
                    weighted_share=_share(self._admission.cohort_share(name)),
                    quotas=self._quotas(node),
                )
            )
        return found

    def queues(self) -> list[QueueStatus]:
        return [self._queue(queue) for _, queue in sorted(self._admission.structure.queues.items())]

    def _queue(self, queue: Queue) -> QueueStatus:
        parent = self._tree.parent[queue.node]
        holding = self._workloads.holding(queue)
        waiting = self._workloads.waiting(queue)
        stages = Counter(found.stage for found in holding)
        return QueueStatus(
            name=queue.name,
            cohort="" if parent == NO_PARENT else self._tree.nodes[parent].name,
            active=queue.is_active,
            inactive_reason=queue.inactive_reason,
            strategy=STRICT_FIFO if queue.is_strict else BEST_EFFORT_FIFO,
            preemption=Preemption(
                queue.within_queue,
                queue.reclaim,
                LOWER_PRIORITY if queue.borrows_while_preempting else NEVER,
            ),
            weight=_plain(self._tree.nodes[queue.node].weight),
            weighted_share=_share(self._admission.share(queue.name)),
            admitted=stages[Stage.ADMITTED.value],
            reserved=stages[Stage.RESERVED.value],
            waiting=len(waiting),
            quotas=self._quotas(queue.node),
            holding_workloads=holding,
            waiting_workloads=waiting,
        )

    def _quotas(self, node: int) -> list[QuotaStatus]:
        return [self._quota(node, column) for column in self._tree.declared[node]]

    def _quota(self, node: int, column: int) -> QuotaStatus:
        tree, (flavor, resource) = self._tree, self._tree.columns[column]
        nominal, used = self._totals[node, column]
        lent: Lent = self._lent[column][node]
        given = tree.nodes[node].quotas.get(column)
        has_parent = tree.parent[node] != NO_PARENT
        beyond = tree.usage_of(node, column) - tree.subtree_of(node, column) if has_parent else 0
        lending_limit = given.lending_limit if given is not None and has_parent else None

        def shown(amount: int) -> float:
            return in_units(resource, amount)

        def limit(amount: int | None) -> float | None:
            return None if amount is None else shown(amount)

        return QuotaStatus(
            flavor=flavor,
            resource=resource,
            nominal=shown(nominal),
            used=shown(used),
            borrowed=shown(max(0, beyond)),
            borrowing_limit=limit(tree.borrowing_limit_of(node, column)),
            available=shown(tree.available(node, column)),
            lending_limit=limit(lending_limit),
            idle=shown(lent.idle),
            lent_at_least=shown(lent.at_least),
            lent_at_most=shown(lent.at_most),
        )


def _totals_below(tree: QuotaTree) -> dict[tuple[int, int], tuple[int, int]]:
    """Of each node and column: nominal quota and use, of a cohort with all that is below it.

    The tree itself counts of a cohort only what its members do not keep to themselves.
    """
    totals: dict[tuple[int, int], tuple[int, int]] = {}
    for node in reversed(range(len(tree.nodes))):
        for column in tree.declared[node]:
            nominal, used = totals.get((node, column), (0, 0))
            nominal += tree.nominal_of(node, column)
            used += tree.usage_of(node, column) if tree.nodes[node].is_queue else 0
            totals[node, column] = (nominal, used)
            parent = tree.parent[node]
            if parent != NO_PARENT:
                above = totals.get((parent, column), (0, 0))
                totals[parent, column] = (above[0] + nominal, above[1] + used)
    return totals


def _share(share: DominantShare) -> float | None:
    return None if share.is_weightless else _plain(round(share.value, 3))


def _plain(number: float) -> float:
    """A whole number without its decimal point."""
    return int(number) if number == int(number) else number


def _local_queue(found: LocalQueue, admission: Admission, stages: Counter[Stage]) -> LocalQueueStatus:
    reason = why_inactive(found, admission)
    return LocalQueueStatus(
        name=found.metadata.name,
        namespace=found.metadata.namespace,
        cluster_queue=found.spec.cluster_queue,
        active=not reason,
        inactive_reason=reason,
        admitted=stages[Stage.ADMITTED],
        reserved=stages[Stage.RESERVED],
        waiting=sum(stages[stage] for stage in WAITING),
    )


def why_inactive(found: LocalQueue, admission: Admission) -> str:
    """What keeps a LocalQueue from taking workloads; empty if nothing does."""
    if (found.spec.stop_policy or STOP_NONE) != STOP_NONE:
        return "is stopped"
    queue = admission.structure.queues.get(found.spec.cluster_queue)
    if queue is None:
        return f"ClusterQueue {found.spec.cluster_queue} doesn't exist"
    return "" if queue.is_active else f"ClusterQueue {queue.name} is inactive: {queue.inactive_reason}"
