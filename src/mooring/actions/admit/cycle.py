"""One cycle of admission: which waiting workloads get quota, and who has to give some back.

In: a ledger of who holds quota, lines of who waits. Out: a report of what was decided. Drivers carry it out and tell
`Admission` what became of it; time comes in as an argument.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mooring.actions.admit import preemption
from mooring.actions.admit.applicants import Applicant, Holder, Intake, PodSetFlavors, make_holder
from mooring.actions.admit.fair_preemption import FINAL_SHARE, INITIAL_SHARE, FairPreemption
from mooring.actions.admit.fair_sharing import Share, Shares
from mooring.actions.admit.flavors import Assignment, Mode
from mooring.actions.admit.ledger import Ledger
from mooring.actions.admit.nomination import Entry, Nominator
from mooring.actions.admit.order import FairOrder, by_rank
from mooring.actions.admit.pending import Pending, Requeue
from mooring.actions.admit.structure import Queue, Structure
from mooring.actions.admit.turns import Turns
from mooring.model.queueing import STOP_NONE, LocalQueue, Workload

DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)


@dataclass(frozen=True, slots=True)
class Admit:
    """Give quota: these pods, on these flavors."""

    workload: str
    queue: str
    pod_sets: tuple[PodSetFlavors, ...]


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take quota back, for the sake of another workload."""

    workload: str
    queue: str
    reason: str
    preemptor: str


@dataclass(slots=True)
class CycleReport:
    """What one cycle decided."""

    cycle: int
    heads: dict[str, str] = field(default_factory=dict)
    """By queue, the workload that was tried."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """By workload tried, the reason of its QuotaReserved condition."""
    admitted: list[Admit] = field(default_factory=list)
    preempted: list[Preempt] = field(default_factory=list)


class Admission:
    """All of admission's state: the ledger, the lines, and the counter of cycles."""

    def __init__(
        self,
        structure: Structure,
        *,
        local_queues: Iterable[LocalQueue] = (),
        namespace_labels: Mapping[str, Mapping[str, str]] | None = None,
        fair_sharing: bool = False,
        strategies: Sequence[str] = DEFAULT_STRATEGIES,
    ) -> None:
        self.structure = structure
        self.ledger = Ledger(structure.tree)
        self.pending = Pending(structure, namespace_labels or {})
        self.cycle = 0
        self._shares = Shares(structure.tree)
        self._local_queues = {(found.metadata.namespace, found.metadata.name): found for found in local_queues}
        self._intake = Intake()
        find_victims = (
            FairPreemption(self._shares, strategies).find_victims if fair_sharing else preemption.find_victims
        )
        self._nominator = Nominator(structure, self.ledger, find_victims, fair_sharing=fair_sharing)
        self._order = FairOrder(self.ledger, self._shares) if fair_sharing else by_rank

    def run_cycle(self, now: float) -> CycleReport:
        """Decide once for the head of every queue."""
        self.cycle += 1
        report = CycleReport(self.cycle)
        # 1. Take the first workload of every active queue.
        heads = self.pending.pop_heads()
        report.heads = {applicant.queue_name: applicant.key for applicant in heads}
        # 2. Nominate: find flavors and victims for each, all against the same state.
        entries = [self._nominate(applicant) for applicant in heads]
        # 3. Order them, and give each its turn; later ones see what earlier ones took. All of this is what-if.
        mark = self.ledger.checkpoint()
        turns = Turns(self.ledger, self._nominator)
        for entry in self._order([entry for entry in entries if entry.requeue is None]):
            turns.take(entry)
        self.ledger.rollback(mark)
        self._nominator.forget()
        # 4. Carry out what was decided.
        for entry in turns.admitted:
            report.admitted.append(self._admit(entry, now))
        for entry in turns.preempting:
            report.preempted += self._preempt(entry)
        # 5. The others go back in line, or are parked.
        for entry in entries:
            report.outcomes[entry.applicant.key] = _outcome(entry)
            if entry.requeue is not None:
                self.pending.put_back(entry.applicant, entry.requeue)
        return report

    def _nominate(self, applicant: Applicant) -> Entry:
        queue = self.structure.queues[applicant.queue_name]
        if not self.pending.admits_namespace(applicant):
            return Entry(applicant, queue, Assignment(Mode.NO_FIT, ()), requeue=Requeue.NAMESPACE_MISMATCH)
        entry = self._nominator.nominate(applicant, queue, self.cycle)
        if entry.assignment.mode == Mode.NO_FIT:
            entry.requeue = Requeue.NO_FIT  # it could take nothing from the others, so it needs no turn
        return entry

    def _admit(self, entry: Entry, now: float) -> Admit:
        applicant, assignment = entry.applicant, entry.assignment
        holder = Holder(applicant, entry.queue.node, assignment.usage, assignment.pod_sets, reserved_at=now)
        self.ledger.reserve(holder)
        self.pending.admitted(applicant)
        applicant.position = None
        return Admit(applicant.key, entry.queue.name, assignment.pod_sets)

    def _preempt(self, entry: Entry) -> list[Preempt]:
        decisions = []
        for holder, reason in entry.victims:
            if not holder.is_evicted:
                holder.is_evicted = True
                victim = holder.applicant
                decisions.append(Preempt(victim.key, victim.queue_name, reason, entry.applicant.key))
        return decisions

    # What happened outside

    def add(self, workload: Workload) -> str:
        """Take in a workload, waiting or holding quota; say why if it cannot wait in any queue."""
        admission = workload.status.admission
        if admission is not None:
            queue = self.structure.queues.get(admission.cluster_queue)
            if queue is None:
                return f"ClusterQueue {admission.cluster_queue} doesn't exist"
            applicant = self._intake.make_applicant(workload, queue.name)
            self.ledger.reserve(make_holder(workload, applicant, queue.node, self.structure.column_of))
            return ""
        local = self._local_queues.get((workload.metadata.namespace, workload.spec.queue_name))
        if local is None:
            return f"LocalQueue {workload.spec.queue_name} doesn't exist"
        if (local.spec.stop_policy or STOP_NONE) != STOP_NONE:
            return f"LocalQueue {workload.spec.queue_name} is stopped"
        if local.spec.cluster_queue not in self.structure.queues:
            return f"ClusterQueue {local.spec.cluster_queue} doesn't exist"
        self.pending.add(self._intake.make_applicant(workload, local.spec.cluster_queue))
        return ""

    def finish_evictions(self, keys: Iterable[str]) -> None:
        """The pods of these victims are gone: they wait again, and what they held is free for whoever is first."""
        freed = [self._release(key) for key in keys]
        for holder in freed:
            self.pending.add(holder.applicant)
        self.pending.retry(self._queue_of(holder) for holder in freed)

    def finish(self, keys: Iterable[str]) -> None:
        """These workloads are done or deleted, whether they held quota or waited for it."""
        freed = [self._release(key) for key in keys if not self.pending.discard(key) and key in self.ledger]
        self.pending.retry(self._queue_of(holder) for holder in freed)

    def _release(self, key: str) -> Holder:
        holder = self.ledger.release(key)
        holder.applicant.position = None
        return holder

    def _queue_of(self, holder: Holder) -> Queue:
        return self.structure.queue_of_node[holder.node]

    def share(self, queue: str) -> Share:
        return self._shares.share(self.structure.queues[queue].node)


def _outcome(entry: Entry) -> str:
    match entry.requeue:
        case None:
            return "QuotaReserved"
        case Requeue.NAMESPACE_MISMATCH:
            return "Misconfigured"
        case Requeue.PENDING_PREEMPTION:
            return "WaitingForPreemptedWorkloads"
        case Requeue.NO_FIT if entry.assignment.reason:
            return entry.assignment.reason.name
        case _:
            return "WaitingForQuota"
