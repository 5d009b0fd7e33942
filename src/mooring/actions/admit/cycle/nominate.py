"""What would be done for one workload as things stand: its flavors, its victims, with fewer pods if need be."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.actions.admit.cycle.flavor_assigner import Assignment, FlavorAssigner, Pins
from mooring.actions.admit.cycle.grades import Grade, Mode, Possibility
from mooring.actions.admit.cycle.pending import Requeue
from mooring.actions.admit.lifecycle.conditions import (
    MISCONFIGURED,
    NAMESPACE_MISMATCH,
    WAITING_FOR_PLACEMENT,
    WAITING_FOR_PODS_READY,
    WAITING_FOR_PREEMPTED_WORKLOADS,
    WAITING_FOR_QUOTA,
    Condition,
)
from mooring.actions.admit.preemption.targets import FindVictims, Preemptor, Victim
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.workload_info import PendingWorkload, ScanPosition


@dataclass(slots=True, eq=False)
class Entry:
    """A head on its way through the cycle."""

    pending: PendingWorkload
    queue: Queue
    assignment: Assignment
    victims: list[Victim] = field(default_factory=list)
    requeue: Requeue | None = None
    """Where it goes if it is not admitted; None once it is."""
    message: str = ""


class Kept(NamedTuple):
    """What was planned for a head, and all that it depended on."""

    ledger: Ledger
    version: int
    tried: tuple[Mapping[str, int], ...] | None
    """Where its search for flavors began."""
    assignment: Assignment
    victims: tuple[Victim, ...]


class Nominator:
    """Plans for one workload at a time, against the ledger as it stands; leaves the ledger as it was."""

    def __init__(
        self,
        structure: Structure,
        ledger: Ledger,
        find_victims: FindVictims,
        *,
        fair_sharing: bool,
        ignores_undeclared: bool = False,
        keeps: bool = True,
    ) -> None:
        self._ledger = ledger
        self._keeps = keeps
        self._find_victims = find_victims
        self._assigner = FlavorAssigner(
            structure.tree,
            structure.matcher,
            self._ask,
            topology=ledger.topology,
            fair_sharing=fair_sharing,
            ignores_undeclared=ignores_undeclared,
        )
        self._known: dict[tuple[str, frozenset[tuple[int, int]], frozenset[int], tuple[int, ...]], list[Victim]] = {}

    def nominate(self, pending: PendingWorkload, queue: Queue, cycle: int) -> Entry:
        """Plan a head; its scan position is used if it is recent or nothing changed in its queue since."""
        generation = self._ledger.generation[queue.node]
        position = pending.position
        if position is not None and position.cycle < cycle - 1 and position.generation != generation:
            position = None
        # Where places count as well as quota, other things change the plan too: nodes, and who runs on them.
        keeps = self._keeps and not queue.topology_flavors
        entry = self._kept(pending, queue, position) if keeps else None
        if entry is None:
            entry = self._plan(pending, queue, position, None, (cycle, generation))
            self._keep(entry, position)
            pending.position = entry.assignment.position
        elif (found := entry.assignment.position) is not None:
            pending.position = ScanPosition(cycle, generation, found.tried)
        return entry

    def _kept(self, pending: PendingWorkload, queue: Queue, position: ScanPosition | None) -> Entry | None:
        """The plan made last, if nothing has changed since in the tree of cohorts, which is all that it depends on."""
        kept = pending.nomination
        if not isinstance(kept, Kept) or kept.ledger is not self._ledger:
            return None
        if kept.version != self._ledger.version(queue.root) or kept.tried != _tried(position):
            return None
        return Entry(pending, queue, kept.assignment, list(kept.victims))

    def _keep(self, entry: Entry, position: ScanPosition | None) -> None:
        version = self._ledger.version(entry.queue.root)
        kept = Kept(self._ledger, version, _tried(position), entry.assignment, tuple(entry.victims))
        entry.pending.nomination = kept

    def plan_again(self, entry: Entry) -> Entry:
        """Plan once more after others had their turn, with the flavors as nominated."""
        given = {found.name: found.flavors for found in entry.assignment.pod_sets}
        pins = [given.get(pod_set.name, {}) for pod_set in entry.pending.pod_sets]
        was_at = entry.assignment.position
        self.forget()
        now_at = (0, 0) if was_at is None else (was_at.cycle, was_at.generation)
        again = self._plan(entry.pending, entry.queue, None, pins, now_at)
        self.forget()
        return again

    def forget(self) -> None:
        """The ledger changed: victims found before mean nothing any more."""
        self._known.clear()

    def _plan(
        self,
        pending: PendingWorkload,
        queue: Queue,
        position: ScanPosition | None,
        pins: Pins | None,
        now_at: tuple[int, int],
    ) -> Entry:
        def attempt(counts: Sequence[int] | None) -> Entry:
            assignment = self._assigner.assign(pending, queue, counts, position=position, pins=pins, now_at=now_at)
            entry = Entry(pending, queue, assignment)
            if assignment.mode == Mode.PREEMPT:
                entry.victims = self._victims(pending, queue, assignment)
            return entry

        entry = attempt(None)
        if not is_feasible(entry) and pending.can_shrink:
            entry = find_largest(pending, attempt) or entry
        if entry.assignment.needs and entry.assignment.mode == Mode.PREEMPT:
            self._find_place(entry)
        return entry

    def _find_place(self, entry: Entry) -> None:
        """Where a preemptor will go once its victims are gone; without victims, where it would on an empty cluster."""
        ledger, assignment = self._ledger, entry.assignment
        with ledger.what_if():
            for victim in entry.victims:
                ledger.remove(victim.admitted)
            assignment.take_topology(ledger.topology.find(assignment.needs, is_empty=not entry.victims))

    def _victims(self, pending: PendingWorkload, queue: Queue, assignment: Assignment) -> list[Victim]:
        return self._find(Preemptor(pending, queue, assignment.usage, assignment.short_columns, assignment.needs))

    def _find(self, preemptor: Preemptor) -> list[Victim]:
        """Victims of the same need are asked for again and again: by each column, by the whole, by smaller counts."""
        counts = tuple(need.count for need in preemptor.needs)
        key = (preemptor.pending.key, frozenset(preemptor.usage.items()), preemptor.short_columns, counts)
        victims = self._known.get(key)
        if victims is None:
            victims = self._known[key] = self._find_victims(self._ledger, preemptor)
        return list(victims)

    def _ask(self, pending: PendingWorkload, queue: Queue, column: int, amount: int) -> Grade:
        """What preemption could do in one column alone."""
        victims = self._find(Preemptor(pending, queue, {column: amount}, frozenset((column,))))
        ledger = self._ledger
        if not victims:
            return Grade(Possibility.NO_CANDIDATES, ledger.tree.borrow_height(queue.node, column, amount)[0])
        with ledger.what_if():
            for victim in victims:
                ledger.remove(victim.admitted)
            height, _ = ledger.tree.borrow_height(queue.node, column, amount)
        is_own = any(victim.admitted.node == queue.node for victim in victims)
        return Grade(Possibility.PREEMPT if is_own else Possibility.RECLAIM, height)


def _tried(position: ScanPosition | None) -> tuple[Mapping[str, int], ...] | None:
    return None if position is None else position.tried


def is_feasible(entry: Entry) -> bool:
    return entry.assignment.mode == Mode.FIT or bool(entry.victims)


def find_largest(pending: PendingWorkload, attempt: Callable[[Sequence[int]], Entry]) -> Entry | None:
    """Find the most pods that can be admitted, between the minimum counts and the full ones, by bisection.

    Step i of D takes away the i-th part of what each pod set can do without.
    """
    spare = [pod_set.count - pod_set.min_count for pod_set in pending.pod_sets]
    steps = sum(spare)
    best = None
    low, high = 0, steps + 1
    while low < high:
        middle = (low + high) // 2
        counts = [
            pod_set.count - extra * middle // steps for pod_set, extra in zip(pending.pod_sets, spare, strict=True)
        ]
        entry = attempt(counts)
        if is_feasible(entry):
            best, high = entry, middle
        else:
            low = middle + 1
    return best


QUOTA_RESERVED = "QuotaReserved"


def describe(entry: Entry) -> Condition:
    """The reason and the message of a workload's QuotaReserved condition after its turn."""
    message = entry.message or entry.assignment.message
    match entry.requeue:
        case None:
            return Condition(QUOTA_RESERVED, f"Quota reserved in ClusterQueue {entry.queue.name}")
        case Requeue.NAMESPACE_MISMATCH:
            return Condition(MISCONFIGURED, NAMESPACE_MISMATCH)
        case Requeue.PENDING_PREEMPTION if entry.victims:
            message = f"{message}. Pending the preemption of {len(entry.victims)} workload(s)"
            return Condition(WAITING_FOR_PREEMPTED_WORKLOADS, message)
        case Requeue.PENDING_PREEMPTION:
            return Condition(
                WAITING_FOR_PREEMPTED_WORKLOADS, "Pending the preemption of workloads for the sake of others"
            )
        case Requeue.NO_FIT if entry.assignment.reason:
            return Condition(entry.assignment.reason.name, message)
        case Requeue.PODS_NOT_READY:
            return Condition(WAITING_FOR_PODS_READY, message)
        case Requeue.NO_PLACE:
            return Condition(WAITING_FOR_PLACEMENT, message)
        case _:
            return Condition(WAITING_FOR_QUOTA, message)
