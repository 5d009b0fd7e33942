"""One cycle of admission: which waiting workloads get quota, and who has to give some back.

In: a ledger of who holds quota, lines of who waits. Out: a report of what was decided. Whoever runs the cycles carries
it out and tells `Admission` what became of it; time comes in as an argument.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from mooring.actions.admit.cycle.conditions import MISCONFIGURED, SUSPENDED
from mooring.actions.admit.cycle.entry_processing import EntryProcessing, MayStart, anybody
from mooring.actions.admit.cycle.faults import blame
from mooring.actions.admit.cycle.flavor_assigner import Assignment
from mooring.actions.admit.cycle.flavor_modes import Mode
from mooring.actions.admit.cycle.nominate import Entry, Nominator, describe
from mooring.actions.admit.cycle.order import FairOrder, by_rank
from mooring.actions.admit.cycle.pending import Pending
from mooring.actions.admit.cycle.pending_queue import Requeue
from mooring.actions.admit.cycle.policies.held_room import HeldRoom
from mooring.actions.admit.cycle.policies.own_rules import OwnRules
from mooring.actions.admit.preemption.classical import ClassicalPreemption
from mooring.actions.admit.preemption.fair import FINAL_SHARE, INITIAL_SHARE, FairPreemption
from mooring.actions.admit.quota.fair_sharing import DominantShare, Shares
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.resource_rules import ResourceRules
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.quota.topology_needs import Unplaceable, needs_of
from mooring.actions.admit.quota.workload_info import (
    AdmittedWorkload,
    Intake,
    PendingWorkload,
    claims_of,
    make_admitted,
)
from mooring.actions.admit.topology.assigner import TopologyAssigner
from mooring.actions.admit.topology.replacement import replace_node
from mooring.actions.admit.topology.usage import DomainUsage
from mooring.engine.action import Fault
from mooring.errors import PluginError
from mooring.model.api.kueue import STOP_NONE, LocalQueue, Workload
from mooring.model.decisions import PodSetFlavors
from mooring.model.keys import WorkloadKey
from mooring.state.workloads import Condition, WorkloadTable

DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)

_KEEPS_ITS_HOLD = frozenset(
    {Requeue.PENDING_PREEMPTION, Requeue.PASSED_OVER, Requeue.PODS_NOT_READY, Requeue.ROOM_HELD}
)
"""After these, what is held for a workload stays so."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who was given quota: these pods, on these flavors."""

    workload: WorkloadKey
    queue: str
    pod_sets: tuple[PodSetFlavors, ...]


@dataclass(frozen=True, slots=True)
class Preempted:
    """Whose quota is taken back, for the sake of which workload."""

    workload: WorkloadKey
    queue: str
    reason: str
    preemptor: WorkloadKey


@dataclass(slots=True)
class CycleReport:
    """What one cycle decided."""

    cycle: int
    heads: dict[str, WorkloadKey] = field(default_factory=dict)
    """By queue, the workload that was tried."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """By workload tried, the reason of its QuotaReserved condition."""
    conditions: dict[WorkloadKey, Condition] = field(default_factory=dict)
    """By workload that waits on, tried or alike one that was: why."""
    failed: list[WorkloadKey] = field(default_factory=list)
    """Those in whose turn something raised."""
    held: Mapping[int, object] = field(default_factory=dict, compare=False)
    """By root of the tree of cohorts, what is held for which workloads after the cycle."""
    admitted: list[Admitted] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    tried: list[PendingWorkload] = field(default_factory=list, compare=False)


class _Planning(NamedTuple):
    """What finds plans for entries, and their order, with what each part remembers from plan to plan."""

    nominator: Nominator
    shares: Shares
    order: Callable[[list[Entry]], Iterable[Entry]]


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
        rules: ResourceRules | None = None,
        orders_by_eviction: bool = True,
        holds_freed_room: bool = False,
        own: OwnRules | None = None,
        balances_placement: bool = False,
        keeps_nominations: bool = True,
        table: WorkloadTable | None = None,
        intake: Intake | None = None,
        cycle: int = 0,
    ) -> None:
        """With `keeps_nominations=False` every head is planned from nothing: slow, and a measure of the other way."""
        self.cycle = cycle
        table = table or WorkloadTable(structure.tree.log)
        self.intake = intake or Intake(rules or ResourceRules(), orders_by_eviction)
        self.own = own or OwnRules(table)
        self._with_queues = partial(
            Admission,
            namespace_labels=namespace_labels,
            fair_sharing=fair_sharing,
            strategies=strategies,
            holds_freed_room=holds_freed_room,
            own=self.own,
            balances_placement=balances_placement,
            keeps_nominations=keeps_nominations,
            table=table,
            intake=self.intake,
        )
        """The same rules for other queues."""
        self._fair_sharing = fair_sharing
        self._strategies = strategies
        self._keeps_nominations = keeps_nominations
        self.faults: dict[WorkloadKey, Exception] = {}
        """What was raised in whose turn, until `take_faults`."""
        self._adrift: dict[WorkloadKey, AdmittedWorkload] = {}
        """Those who hold quota of a queue that is not there: they run on, and count again when it is back."""
        self.structure = structure
        self.topology = TopologyAssigner(DomainUsage(structure.tree.log), balanced=balances_placement)
        """Places pods in the topologies of flavors; whoever knows the nodes tells it of them (`TopologySurvey`)."""
        self._local_queues = {(found.metadata.namespace, found.metadata.name): found for found in local_queues}
        self.ledger: Ledger = self.own.make_ledger(structure, self.topology, self._local_queues.values())
        labels = namespace_labels if namespace_labels is not None else {}
        self.pending = Pending(structure, labels, self.own.line_maker(table.preemptors))
        self.held = HeldRoom(self.ledger, structure, table.held_quota) if holds_freed_room else None
        self._planning = self._plan_from_nothing()

    def _plan_from_nothing(self) -> "_Planning":
        """What finds plans, victims and shares, with nothing remembered."""
        structure = self.structure
        self.ledger.lose_followers()
        shares = self.own.make_shares(structure.tree)
        preemption = FairPreemption(shares, self._strategies) if self._fair_sharing else ClassicalPreemption()
        nominator = Nominator(
            structure,
            self.ledger,
            preemption.find_victims,
            fair_sharing=self._fair_sharing,
            ignores_undeclared=self.intake.rules.ignores_undeclared,
            keeps=self._keeps_nominations and not self.own.moves_with_time,
        )
        return _Planning(nominator, shares, FairOrder(self.ledger, shares) if self._fair_sharing else by_rank)

    def rebuilt(
        self, structure: Structure, local_queues: Iterable[LocalQueue], holding: Mapping[WorkloadKey, AdmittedWorkload]
    ) -> "Admission":
        """Admission with these queues, in which these hold what they hold; who waits is to be added anew.

        This one is given up, be it whole or not.
        """
        fresh = self._with_queues(structure, local_queues=local_queues, cycle=self.cycle)
        in_order = dict.fromkeys(admitted.pending.key for admitted in self.ledger.admitted_workloads())
        for key in [*(key for key in in_order if key in holding), *(key for key in holding if key not in in_order)]:
            fresh._hold(holding[key])
        return fresh

    def run_cycle(
        self, now: float, *, asleep: Collection[int] = (), may_start: MayStart = anybody, may_use: MayStart = anybody
    ) -> CycleReport:
        """Decide once for the head of every queue, but for the trees that sleep."""
        self.cycle += 1
        self.own.set_time(now)
        report = CycleReport(self.cycle)
        # 1. Take the first workload of every active queue.
        heads = report.tried = self.pending.pop_heads(asleep)
        report.heads = {pending.queue_name: pending.key for pending in heads}
        # 2. Nominate: find flavors and victims for each, all against the same state.
        entries = [self._nominate(pending) for pending in heads]
        # 3. Order them, and give each its turn; later ones see what earlier ones took. All of this is what-if.
        with self.ledger.what_if():
            processing = EntryProcessing(self.ledger, lambda: self._planning.nominator, self.held, may_start, may_use)
            self._take_turns(processing, self._planning.order([entry for entry in entries if entry.requeue is None]))
        self._planning.nominator.forget()
        key = None
        try:
            # 4. Carry out what was decided.
            for entry in processing.admitted:
                key = entry.pending.key
                report.admitted.append(self._admit(entry, now))
            for entry in processing.preempting:
                key = entry.pending.key
                report.preempted += self._preempt(entry)
            # 5. The others go back in line, or are parked.
            for entry in entries:
                key = entry.pending.key
                self._put_back(entry, report)
        except Exception as error:
            blame(key, error)
        self._hold_room(entries, [*processing.preempting, *processing.deferred])
        if self.held is not None:
            report.held = {queue.root: self.held.signature(queue.root) for queue in {entry.queue for entry in entries}}
        return report

    def _put_back(self, entry: Entry, report: CycleReport) -> None:
        """Let a workload that had its turn go where it belongs, unless it was admitted, and say why."""
        key, condition = entry.pending.key, describe(entry)
        report.outcomes[key] = condition.reason
        if entry.requeue is None:
            return
        peers = self.pending.put_back(entry.pending, entry.requeue, condition)
        report.conditions[key] = condition
        if peers:
            report.conditions.update(dict.fromkeys(peers, condition))
        if entry.requeue is Requeue.FAULT:
            report.failed.append(key)

    def _nominate(self, pending: PendingWorkload) -> Entry:
        queue = self.structure.queues[pending.queue_name]
        if not self.pending.admits_namespace(pending):
            return Entry(pending, queue, Assignment(Mode.NO_FIT, ()), requeue=Requeue.NAMESPACE_MISMATCH)
        try:
            entry = self._planning.nominator.nominate(pending, queue, self.cycle)
        except Exception as error:  # a mistake of ours costs this workload its turn, not everybody theirs
            entry = Entry(pending, queue, Assignment(Mode.NO_FIT, ()))
            self._fail(entry, error)
            return entry
        if entry.assignment.mode == Mode.NO_FIT:
            entry.requeue = Requeue.NO_FIT  # it could take nothing from the others, so it needs no turn
        return entry

    def _take_turns(self, processing: EntryProcessing, entries: Iterable[Entry]) -> None:
        """Let each entry have its turn; what raises in it, a plugin perhaps, costs this one alone."""
        log = self.ledger.log
        steps = log.steps
        assert steps is not None
        for entry in entries:
            begin = len(steps)
            try:
                processing.take(entry)
            except Exception as error:
                log.undo_to(begin)
                processing.give_up(entry)
                self._fail(entry, error)

    def _fail(self, entry: Entry, error: Exception) -> None:
        self.faults[entry.pending.key] = error
        entry.assignment, entry.victims, entry.pending.position = Assignment(Mode.NO_FIT, ()), [], None
        entry.requeue, entry.message = Requeue.FAULT, Fault(entry.pending.key, error).message
        if not isinstance(error, PluginError):
            self._planning = (
                self._plan_from_nothing()
            )  # whatever is remembered from before may be half of what it should be

    def take_faults(self) -> dict[WorkloadKey, Exception]:
        """What was raised, and in whose turn, since this was last asked."""
        faults, self.faults = self.faults, {}
        return faults

    def _admit(self, entry: Entry, now: float) -> Admitted:
        pending, pod_sets = entry.pending, entry.assignment.pod_sets
        admitted = AdmittedWorkload(pending, entry.queue.node, claims_of(pending, pod_sets), reserved_at=now)
        self.ledger.reserve(admitted)
        if self.own.local is not None:
            self.own.local.charge(admitted)
        self.pending.admitted(pending)
        pending.position = None
        return Admitted(pending.key, entry.queue.name, pod_sets)

    def _preempt(self, entry: Entry) -> list[Preempted]:
        decisions = []
        for admitted, reason in entry.victims:
            if not admitted.is_evicted:
                self.ledger.mark_evicted(admitted)
                victim = admitted.pending
                decisions.append(Preempted(victim.key, victim.queue_name, reason, entry.pending.key))
        return decisions

    def _hold_room(self, entries: Iterable[Entry], waiting_for_victims: Iterable[Entry]) -> None:
        if self.held is None:
            return
        for entry in waiting_for_victims:
            self.held.keep(entry)
        for entry in entries:
            position = entry.pending.position
            has_more_flavors = position is not None and position.is_pending  # it is tried again in the next cycle
            if entry.requeue not in _KEEPS_ITS_HOLD and not has_more_flavors:
                # That nothing is held for it any more is part of the signature by which cycles are seen to repeat.
                self._give_up_hold(entry.pending.key, is_news=False)

    def _give_up_hold(self, key: WorkloadKey, *, is_news: bool = True) -> None:
        queue = None if self.held is None else self.held.give_up(key)
        if queue is not None:
            self.pending.retry([queue], is_news=is_news)

    # What happened outside

    def local_queue(self, workload: Workload) -> LocalQueue | None:
        return self._local_queues.get((workload.metadata.namespace, workload.spec.queue_name))

    def find_queue(self, workload: Workload) -> Queue | Condition:
        """The queue in which a workload is to wait, or why there is none."""
        name = workload.spec.queue_name
        local = self.local_queue(workload)
        if local is None:
            return Condition(MISCONFIGURED, f"LocalQueue {name} doesn't exist")
        if (local.spec.stop_policy or STOP_NONE) != STOP_NONE:
            return Condition(SUSPENDED, f"LocalQueue {name} is inactive")
        queue = self.structure.queues.get(local.spec.cluster_queue)
        return queue or Condition(MISCONFIGURED, f"ClusterQueue {local.spec.cluster_queue} doesn't exist")

    def add(self, workload: Workload, finished: Mapping[str, int] | None = None) -> str:
        """Take in a workload, waiting or holding quota; say why if it cannot wait in any queue.

        `finished` says how many pods of each set are done, if it is not what the workload's status says.
        """
        admission = workload.status.admission
        if admission is not None:
            pending = self.intake.make_pending(workload, admission.cluster_queue, finished)
            self._hold(make_admitted(workload, pending, -1))
            known = admission.cluster_queue in self.structure.queues
            return "" if known else f"ClusterQueue {admission.cluster_queue} doesn't exist"
        queue = self.find_queue(workload)
        if isinstance(queue, Condition):
            return queue.message
        self.wait(self.intake.make_pending(workload, queue.name, finished))
        return ""

    def wait(self, pending: PendingWorkload) -> None:
        """Let a workload stand in the line of its queue."""
        self.pending.add(pending)

    def _hold(self, admitted: AdmittedWorkload) -> None:
        queue = self.structure.queues.get(admitted.pending.queue_name)
        if queue is None:
            self._adrift[admitted.pending.key] = admitted
        else:
            admitted.node = queue.node
            self.ledger.reserve(admitted)

    def admitted(self, key: WorkloadKey) -> AdmittedWorkload | None:
        """What a workload holds, be its queue there or not."""
        return self.ledger.admitted(key) if key in self.ledger else self._adrift.get(key)

    def reclaim(self, key: WorkloadKey, reclaimed: Mapping[str, int]) -> None:
        """So many pods of each set of a workload are done: what they held is free."""
        if key in self.ledger:
            self.ledger.reclaim(key, reclaimed)
            self.pending.retry([self._queue_of(self.ledger.admitted(key))])

    def find_replacement(self, key: WorkloadKey, failed: str) -> tuple[PodSetFlavors, ...] | None:
        """The pods of a workload with other domains in place of a node; None if there are none, or if it is not
        known any more what it asked for."""
        if key not in self.ledger:
            return None
        admitted = self.ledger.admitted(key)
        needs = needs_of(self._queue_of(admitted), admitted.pending.pod_sets, admitted.pod_sets)
        return None if isinstance(needs, Unplaceable) else replace_node(self.topology, needs, admitted.pod_sets, failed)

    def finish_evictions(self, keys: Iterable[WorkloadKey]) -> None:
        """The pods of these victims are gone: they wait again, and what they held is free for whoever is first."""
        freed = [self._release(key) for key in keys]
        for admitted in freed:
            self.pending.add(admitted.pending)
        self.pending.retry(self._queue_of(admitted) for admitted in freed)

    def finish(self, keys: Iterable[WorkloadKey]) -> None:
        """These workloads are done, deleted or told to wait elsewhere, whether they held quota or waited for it."""
        freed = []
        for key in keys:
            self._adrift.pop(key, None)
            if self.pending.discard(key):
                self._give_up_hold(key)
            elif key in self.ledger:
                freed.append(self._release(key))
        self.pending.retry(self._queue_of(admitted) for admitted in freed)

    def _release(self, key: WorkloadKey) -> AdmittedWorkload:
        admitted = self.ledger.release(key)
        admitted.pending.position = None
        return admitted

    def _queue_of(self, admitted: AdmittedWorkload) -> Queue:
        return self.structure.queue_of_node[admitted.node]

    def share(self, queue: str) -> DominantShare:
        return self._planning.shares.share(self.structure.queues[queue].node)

    def cohort_share(self, cohort: str) -> DominantShare:
        return self._planning.shares.share(self.structure.cohort_node[cohort])

    @property
    def is_fair(self) -> bool:
        """Whether victims are found by shares."""
        return self._fair_sharing

    def what_if(self, pending: PendingWorkload, queue: Queue) -> Entry:
        """What would be done for a waiting workload, were its queue this one; nothing changes."""
        self._planning.nominator.forget()
        entry = self._planning.nominator.nominate(replace(pending, position=None, nomination=None), queue, self.cycle)
        self._planning.nominator.forget()
        return entry
