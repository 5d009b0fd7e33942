"""The turns of a cycle: each entry against what the ones before it took.

Nothing here is for good: usage that is taken or kept free stands in the ledger until the cycle rolls it back. Victims
hold their quota until their pods are gone, so they count as gone only where a later entry asks whether it would fit.
Many such entries come in a row, so victims are taken out of the ledger by the first that asks so, and put back by the
first that asks otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from mooring.actions.admit.cycle.conditions import NO_LONGER_FITS, OVERLAPPING_TARGETS
from mooring.actions.admit.cycle.flavor_modes import Mode
from mooring.actions.admit.cycle.nominate import Entry, Nominator
from mooring.actions.admit.cycle.pending_queue import Requeue
from mooring.actions.admit.cycle.policies.held_room import ROOM_HELD_MESSAGE, HeldRoom
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.actions.admit.topology.usage import TopologyUse
from mooring.model.api.kueue import ANY
from mooring.model.keys import WorkloadKey


class StartRefusal(NamedTuple):
    """Why a workload may not start although there is quota for it."""

    why: Requeue
    message: str


MayStart = Callable[[Entry], StartRefusal | None]
"""Asked of each entry that has quota, or will have once its victims are gone, last of all: a refusal is final."""


def anybody(entry: Entry) -> None:
    """Refuse nobody."""


class EntryProcessing:
    """Gives each entry its turn; `admitted`, `preempting` and `deferred` are those that got something."""

    def __init__(
        self,
        ledger: Ledger,
        nominator: Callable[[], Nominator],
        held: HeldRoom | None = None,
        may_start: MayStart = anybody,
        may_use: MayStart = anybody,
    ) -> None:
        """`may_use` is asked before quota is given or any workload preempted, `may_start` right before either.

        Plans are made by whatever `nominator` is at the time.
        """
        self._ledger = ledger
        self._nominator = nominator
        self._held = held
        self._may_start = may_start
        self._may_use = may_use
        self._served: set[WorkloadKey] = set()
        self._leaving: dict[int, dict[WorkloadKey, AdmittedWorkload]] = {}
        """By root of the tree, the victims so far."""
        self._relieved: set[int] = set()
        """The roots of the trees whose victims are out of the ledger just now."""
        self._promised: dict[int, list[tuple[int, Mapping[int, int], TopologyUse]]] = {}
        """By root of the tree, what counts as used and is not yet: by whom (as a node), how much, and where."""
        self.admitted: list[Entry] = []
        self.preempting: list[Entry] = []
        self.deferred: list[Entry] = []
        """Those for whom it is enough that somebody else's victims go."""

    def take(self, entry: Entry) -> None:
        """Decide one entry: admit it, preempt for it, or say where it goes back to."""
        if self._overlaps(entry):
            self._plan_around(entry)
        elif entry.assignment.needs and self._is_in_the_way(entry):
            self._put_back_leaving(*self._leaving)
            again = self._nominator().plan_again(entry)
            entry.assignment, entry.victims = again.assignment, again.victims
            entry.pending.position = again.assignment.position
        assignment = entry.assignment
        if assignment.mode == Mode.NO_FIT:
            entry.requeue = Requeue.NO_FIT
        elif assignment.mode == Mode.PREEMPT and not entry.victims:
            entry.requeue = Requeue.NO_CANDIDATES
            self._keep_free(entry)
        elif assignment.mode != Mode.DEFERRED_FIT and self._overlaps(entry):
            _refuse(entry, Requeue.PASSED_OVER, OVERLAPPING_TARGETS)
        elif assignment.mode != Mode.DEFERRED_FIT and not self._fits(entry):
            _refuse(entry, Requeue.PASSED_OVER, NO_LONGER_FITS)
        elif others := self._held_for_others(entry):
            _refuse(entry, Requeue.ROOM_HELD, ROOM_HELD_MESSAGE.format(others=", ".join(others)))
        elif refusal := self._may_use(entry):
            _refuse(entry, refusal.why, refusal.message)
        elif assignment.mode == Mode.DEFERRED_FIT or (assignment.mode == Mode.FIT and not self._fits_already(entry)):
            self._promise(entry)
            self.deferred.append(entry)
            self._wait(entry)
        elif refusal := self._may_start(entry):
            _refuse(entry, refusal.why, refusal.message)
        elif assignment.mode == Mode.PREEMPT:
            self._promise(entry)
            self._let_leave(entry)
            self.preempting.append(entry)
            self._wait(entry)
        else:
            self._use(entry)
            self.admitted.append(entry)
        if self._ledger.tree.child_cohorts[entry.queue.root]:
            self._put_back_leaving(entry.queue.root)  # whose turn is next depends on shares, and victims count there

    def give_up(self, entry: Entry) -> None:
        """Something raised in an entry's turn, and was undone."""
        self._served.discard(entry.pending.key)
        for found in (self.admitted, self.preempting, self.deferred):
            if found and found[-1] is entry:
                found.pop()

    def _overlaps(self, entry: Entry) -> bool:
        leaving = self._leaving.get(entry.queue.root)
        return leaving is not None and any(victim.admitted.pending.key in leaving for victim in entry.victims)

    def _let_leave(self, entry: Entry) -> None:
        root = entry.queue.root
        leaving = self._leaving.setdefault(root, {})
        for victim in entry.victims:
            self._ledger.log.note(leaving.pop, victim.admitted.pending.key)
            leaving[victim.admitted.pending.key] = victim.admitted
            if root in self._relieved:
                self._ledger.remove(victim.admitted)

    def _remove_leaving(self, *roots: int) -> None:
        """Let the ledger be as it will be once the victims so far are gone."""
        for root in roots:
            if root in self._leaving and root not in self._relieved:
                self._ledger.log.note(self._relieved.discard, root)
                self._relieved.add(root)
                for admitted in self._leaving[root].values():
                    self._ledger.remove(admitted)

    def _put_back_leaving(self, *roots: int) -> None:
        """Let the victims so far count again."""
        for root in roots:
            if root in self._relieved:
                self._ledger.log.note(self._relieved.add, root)
                self._relieved.discard(root)
                for admitted in self._leaving[root].values():
                    self._ledger.put_back(admitted)

    def _plan_around(self, entry: Entry) -> None:
        """Someone else already makes a victim go: see whether that is enough, or whom else it would take."""
        self._remove_leaving(entry.queue.root)
        assignment = entry.assignment
        if not assignment.needs and self._ledger.fits(entry.queue.node, assignment.usage):
            entry.assignment, entry.victims = replace(assignment, mode=Mode.DEFERRED_FIT, notes=[]), []
            return
        again = self._nominator().plan_again(entry)
        if again.assignment.mode == Mode.FIT:
            entry.assignment, entry.victims = again.assignment, []
            entry.assignment.mode = Mode.DEFERRED_FIT
        elif again.victims:
            entry.assignment, entry.victims = again.assignment, again.victims

    def _is_in_the_way(self, entry: Entry) -> bool:
        """Whether somebody was given the domains that an entry was to have, though there is quota for both."""
        ledger = self._ledger
        self._remove_leaving(*self._leaving)
        with ledger.what_if():
            self._remove_victims(entry)
            return ledger.fits(entry.queue.node, entry.assignment.usage) and not self._has_domains(entry)

    def _fits(self, entry: Entry) -> bool:
        ledger = self._ledger
        if not entry.victims and not entry.assignment.needs and entry.queue.root not in self._leaving:
            return ledger.fits(entry.queue.node, entry.assignment.usage)
        # Those of other trees, too, if they are in the way on nodes.
        self._remove_leaving(*(self._leaving if entry.assignment.needs else (entry.queue.root,)))
        with ledger.what_if():
            self._remove_victims(entry)
            return ledger.fits(entry.queue.node, entry.assignment.usage) and self._has_domains(entry)

    def _has_domains(self, entry: Entry) -> bool:
        assignment = entry.assignment
        flavors = {need.flavor for need in assignment.needs}
        return not flavors or self._ledger.topology.fits(flavors, assignment.topology_use)

    def _remove_victims(self, entry: Entry) -> None:
        for victim in entry.victims:
            self._ledger.remove(victim.admitted)

    def _fits_already(self, entry: Entry) -> bool:
        """Whether there is room for an entry while the victims of others are still there.

        Kueue does not ask: where victims leave more than they were made to go for, it hands out the rest before they
        are gone, and more is in use than there is. Here, whoever needs it waits for them like those they go for.
        """
        if not self._leaving.get(entry.queue.root):
            return True
        ledger = self._ledger
        self._put_back_leaving(entry.queue.root)
        with ledger.what_if():
            for node, usage, topology_use in self._promised.get(entry.queue.root, ()):
                ledger.remove_usage(node, usage)
                ledger.domains.remove(topology_use)
            return ledger.fits(entry.queue.node, entry.assignment.usage) and self._has_domains(entry)

    def _held_for_others(self, entry: Entry) -> list[str]:
        if self._held is None:
            return []
        self._put_back_leaving(entry.queue.root)
        return self._held.in_the_way(entry, self._served, self._leaving.get(entry.queue.root, {}).values())

    def _promise(self, entry: Entry) -> None:
        """Count what an entry will use, once others are gone."""
        assignment = entry.assignment
        self._count_promise(entry.queue, assignment.usage, assignment.topology_use)
        self._use(entry)

    def _count_promise(self, queue: Queue, usage: Mapping[int, int], topology_use: TopologyUse) -> None:
        promised = self._promised.setdefault(queue.root, [])
        self._ledger.log.note(promised.pop)
        promised.append((queue.node, usage, topology_use))

    def _use(self, entry: Entry) -> None:
        self._served.add(entry.pending.key)
        self._ledger.add_usage(entry.queue.node, entry.assignment.usage)
        if entry.assignment.topology_use:
            self._ledger.domains.add(entry.assignment.topology_use)

    def _wait(self, entry: Entry) -> None:
        """It is first in line now; when it comes up again, its search for flavors starts anew."""
        entry.requeue = Requeue.PENDING_PREEMPTION
        entry.pending.position = None

    def _keep_free(self, entry: Entry) -> None:
        """Nobody can be made to go: keep the quota for it, lest smaller ones behind it take every bit that frees up.

        A queue that may take back its quota from anybody needs no such protection.
        """
        if entry.queue.reclaim == ANY:
            return
        self._put_back_leaving(entry.queue.root)
        tree, node = self._ledger.tree, entry.queue.node
        kept: dict[int, int] = {}
        for column, amount in entry.assignment.usage.items():
            nominal, used = tree.nominal_of(node, column), tree.usage_of(node, column)
            if entry.assignment.borrow_height == 0:
                amount = max(0, min(amount, nominal - used))
            elif (limit := tree.borrowing_limit_of(node, column)) is not None:
                amount = min(amount, nominal + limit - used)
            kept[column] = amount
        self._ledger.add_usage(node, kept)
        topology_use = entry.assignment.topology_use
        if topology_use:
            self._ledger.domains.add(topology_use)
        self._count_promise(entry.queue, kept, topology_use)


def _refuse(entry: Entry, why: Requeue, message: str) -> None:
    entry.requeue, entry.message = why, message
