"""What would be done for one workload as things stand: its flavors, its victims, with fewer pods if need be."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.actions.admit.cycle.conditions import (
    MISCONFIGURED,
    NAMESPACE_MISMATCH,
    WAITING_FOR_PLACEMENT,
    WAITING_FOR_PODS_READY,
    WAITING_FOR_PREEMPTED_WORKLOADS,
    WAITING_FOR_QUOTA,
)
from mooring.actions.admit.cycle.flavor_assigner import Assignment, FlavorAssigner, Pins
from mooring.actions.admit.cycle.flavor_modes import FlavorMode, Mode, Possibility
from mooring.actions.admit.cycle.pending_queue import Requeue
from mooring.actions.admit.preemption.targets import FindVictims, Preemptor, Victim
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.quota.workload_info import PendingWorkload, ScanPosition
from mooring.model.api.kueue import ANY
from mooring.state.remembered import Derived
from mooring.state.workloads import Condition

MOST_KEPT = 10_000
"""How many plans are kept by shape; ever new shapes must not grow the memory for ever."""


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

    @property
    def can_start(self) -> bool:
        """Whether its turn may change anything: there is room, or could be, or what would be is kept for it."""
        assignment = self.assignment
        return assignment.mode == Mode.FIT or bool(self.victims or assignment.needs) or self.queue.reclaim != ANY


class Kept(NamedTuple):
    """What was planned for a head, and all that it depended on."""

    ledger: Ledger
    version: int
    tried: tuple[Mapping[str, int], ...] | None
    """Where its search for flavors began."""
    assignment: Assignment
    victims: tuple[Victim, ...]


class Short(NamedTuple):
    """What was planned for somebody who asks for so much of one column, when so much of it was to be had."""

    assignment: Assignment
    column: int
    amount: int
    available: int


_Need = tuple[str, tuple[tuple[int, int], ...], frozenset[int], tuple[int, ...]]
"""A workload, with amounts by column, the columns that are short, and how many pods need a place."""


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
        self._fits: Derived[tuple[int, int], Assignment] = Derived(MOST_KEPT)
        """By queue and shape, plans that need nobody to go, with the first flavors that were looked at."""
        self._short: Derived[tuple[int, int], Short] = Derived(MOST_KEPT)
        """By queue and shape, plans for which others would have to go, where one flavor of one resource is all."""
        self._known: Derived[_Need, list[Victim]] = Derived()

    def nominate(self, pending: PendingWorkload, queue: Queue, cycle: int) -> Entry:
        """Plan a head; its scan position is used if it is recent or nothing changed in its queue since."""
        generation = self._ledger.generation[queue.node]
        position = pending.position
        if position is not None and position.cycle < cycle - 1 and position.generation != generation:
            position = None
        # Where places count as well as quota, other things change the plan too: nodes, and who runs on them.
        keeps = self._keeps and not queue.topology_flavors
        entry = (self._fitting(pending, queue, position) or self._kept(pending, queue, position)) if keeps else None
        if entry is None:
            entry = self._plan(pending, queue, position, None, (cycle, generation))
            if keeps:
                self._keep(entry, position)
        found = entry.assignment.position
        if found is not None and (found.cycle, found.generation) != (cycle, generation):
            found = ScanPosition(cycle, generation, found.tried)
        pending.position = found
        return entry

    def _fitting(self, pending: PendingWorkload, queue: Queue, position: ScanPosition | None) -> Entry | None:
        """The plan that the last one of its shape had, if its first flavors still have room, from as near as then."""
        if position is not None and position.is_pending:
            return None
        kept = self._fits.get((queue.node, pending.shape))
        if kept is None:
            return None
        available, borrow_height, node = self._ledger.tree.available, self._ledger.tree.borrow_height, queue.node
        for column, amount in kept.usage.items():
            if amount > available(node, column) or borrow_height(node, column, amount)[0] != kept.borrow_height:
                return None
        return Entry(pending, queue, kept)

    def _kept(self, pending: PendingWorkload, queue: Queue, position: ScanPosition | None) -> Entry | None:
        """The plan made last, if nothing has changed since in the tree of cohorts, which is all that it depends on."""
        kept = pending.nomination
        if not isinstance(kept, Kept) or kept.ledger is not self._ledger:
            return None
        if kept.version != self._ledger.version(queue.root) or kept.tried != _tried(position):
            return None
        return Entry(pending, queue, kept.assignment, list(kept.victims))

    def _keep(self, entry: Entry, position: ScanPosition | None) -> None:
        pending, queue, assignment = entry.pending, entry.queue, entry.assignment
        if assignment.mode == Mode.FIT:
            # Who takes fewer pods where room is short wants more of them as soon as there is more room.
            is_best = assignment.is_first_choice and not pending.can_shrink
            if is_best and (position is None or not position.is_pending):
                self._fits.put((queue.node, pending.shape), assignment)
            return
        version = self._ledger.version(queue.root)
        pending.nomination = Kept(self._ledger, version, _tried(position), assignment, tuple(entry.victims))

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
        self._known.forget()

    def _plan(
        self,
        pending: PendingWorkload,
        queue: Queue,
        position: ScanPosition | None,
        pins: Pins | None,
        now_at: tuple[int, int],
    ) -> Entry:
        entry = self._as_short_as_before(pending, queue, position)
        if entry is not None:
            return entry

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
        self._keep_short(entry, position)
        return entry

    def _as_short_as_before(
        self, pending: PendingWorkload, queue: Queue, position: ScanPosition | None
    ) -> Entry | None:
        """The plan that the last one of its shape had, if the same is missing: who would have to go is found anew."""
        kept = self._short.get((queue.node, pending.shape))
        if kept is None or (position is not None and position.is_pending):
            return None
        assignment, column, amount, available = kept
        if self._ledger.tree.available(queue.node, column) != available:
            return None
        flavor_mode, _ = self._assigner.flavor_mode(pending, queue, column, amount)
        if flavor_mode.possibility == Possibility.NO_FIT or flavor_mode.borrow_height != assignment.borrow_height:
            return None
        return Entry(pending, queue, assignment, self._victims(pending, queue, assignment))

    def _keep_short(self, entry: Entry, position: ScanPosition | None) -> None:
        pending, queue, assignment = entry.pending, entry.queue, entry.assignment
        if assignment.mode != Mode.PREEMPT or not assignment.is_first_choice or len(assignment.usage) != 1:
            return
        if pending.can_shrink or len(pending.pod_sets) != 1 or queue.topology_flavors or not self._keeps:
            return
        is_only_flavor = assignment.position is not None and not assignment.position.is_pending
        if is_only_flavor and (position is None or not position.is_pending):
            (column, amount), *_ = assignment.usage.items()
            available = self._ledger.tree.available(queue.node, column)
            self._short.put((queue.node, pending.shape), Short(assignment, column, amount, available))

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
        counts = tuple([need.count for need in preemptor.needs])
        key = (preemptor.pending.key, tuple(preemptor.usage.items()), preemptor.short_columns, counts)
        return list(self._known.of(key, self._find_victims, self._ledger, preemptor))

    def _ask(self, pending: PendingWorkload, queue: Queue, column: int, amount: int) -> FlavorMode:
        """What preemption could do in one column alone."""
        victims = self._find(Preemptor(pending, queue, {column: amount}, frozenset((column,))))
        ledger, tree = self._ledger, self._ledger.tree
        height, _ = tree.borrow_height(queue.node, column, amount)
        if not victims:
            return FlavorMode(Possibility.NO_CANDIDATES, height)
        is_own = any(victim.admitted.node == queue.node for victim in victims)
        if is_own or len(tree.paths[queue.node]) > 2:  # else only the queue's own usage counts, and that stays
            with ledger.what_if():
                for victim in victims:
                    ledger.remove(victim.admitted)
                height, _ = tree.borrow_height(queue.node, column, amount)
        return FlavorMode(Possibility.PREEMPT if is_own else Possibility.RECLAIM, height)


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
