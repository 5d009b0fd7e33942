"""The turns of a cycle: each entry against what the ones before it took.

Nothing here is for good: usage that is taken or kept free stands in the ledger until the cycle rolls it back. Victims
hold their quota until their pods are gone, so they count as gone only where a later entry asks whether it would fit.
"""

from mooring.actions.admit.applicants import Holder
from mooring.actions.admit.flavors import Mode
from mooring.actions.admit.ledger import Ledger
from mooring.actions.admit.nomination import Entry, Nominator
from mooring.actions.admit.pending import Requeue
from mooring.model.queueing import ANY


class Turns:
    """Gives each entry its turn; `admitted` and `preempting` are those that got something."""

    def __init__(self, ledger: Ledger, nominator: Nominator) -> None:
        self._ledger = ledger
        self._nominator = nominator
        self._leaving: dict[int, dict[str, Holder]] = {}
        """By root of the tree, the victims so far."""
        self.admitted: list[Entry] = []
        self.preempting: list[Entry] = []

    def take(self, entry: Entry) -> None:
        """Decide one entry: admit it, preempt for it, or say where it goes back to."""
        if self._overlaps(entry):
            self._plan_around(entry)
        assignment = entry.assignment
        if assignment.mode == Mode.NO_FIT:
            entry.requeue = Requeue.NO_FIT
        elif assignment.mode == Mode.PREEMPT and not entry.victims:
            entry.requeue = Requeue.NO_CANDIDATES
            self._keep_free(entry)
        elif assignment.mode == Mode.DEFERRED_FIT:
            self._use(entry)
            self._wait(entry)
        elif self._overlaps(entry) or not self._fits(entry):
            entry.requeue = Requeue.PASSED_OVER
        elif assignment.mode == Mode.PREEMPT:
            self._use(entry)
            leaving = self._leaving.setdefault(entry.queue.root, {})
            leaving.update((victim.holder.applicant.key, victim.holder) for victim in entry.victims)
            self.preempting.append(entry)
            self._wait(entry)
        else:
            self._use(entry)
            self.admitted.append(entry)

    def _overlaps(self, entry: Entry) -> bool:
        leaving = self._leaving.get(entry.queue.root)
        return leaving is not None and any(victim.holder.applicant.key in leaving for victim in entry.victims)

    def _remove_leaving(self, root: int) -> None:
        for holder in self._leaving.get(root, {}).values():
            self._ledger.remove(holder)

    def _plan_around(self, entry: Entry) -> None:
        """Someone else already makes a victim go: see whether that is enough, or whom else it would take."""
        mark = self._ledger.checkpoint()
        self._remove_leaving(entry.queue.root)
        again = self._nominator.plan_again(entry)
        self._ledger.rollback(mark)
        if again.assignment.mode == Mode.FIT:
            entry.assignment, entry.victims = again.assignment, []
            entry.assignment.mode = Mode.DEFERRED_FIT
        elif again.victims:
            entry.assignment, entry.victims = again.assignment, again.victims

    def _fits(self, entry: Entry) -> bool:
        ledger = self._ledger
        mark = ledger.checkpoint()
        self._remove_leaving(entry.queue.root)
        for victim in entry.victims:
            ledger.remove(victim.holder)
        fits = ledger.fits(entry.queue.node, entry.assignment.usage)
        ledger.rollback(mark)
        return fits

    def _use(self, entry: Entry) -> None:
        self._ledger.add_usage(entry.queue.node, entry.assignment.usage)

    def _wait(self, entry: Entry) -> None:
        """It is first in line now; when it comes up again, its search for flavors starts anew."""
        entry.requeue = Requeue.PENDING_PREEMPTION
        entry.applicant.position = None

    def _keep_free(self, entry: Entry) -> None:
        """Nobody can be made to go: keep the quota for it, lest smaller ones behind it take every bit that frees up.

        A queue that may take back its quota from anybody needs no such protection.
        """
        if entry.queue.reclaim == ANY:
            return
        tree, node = self._ledger.tree, entry.queue.node
        for column, amount in entry.assignment.usage.items():
            nominal, used = tree.nominal_of(node, column), tree.usage_of(node, column)
            if entry.assignment.borrow_height == 0:
                amount = max(0, min(amount, nominal - used))
            elif (limit := tree.borrowing_limit_of(node, column)) is not None:
                amount = min(amount, nominal + limit - used)
            tree.add(node, column, amount)
