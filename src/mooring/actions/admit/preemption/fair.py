"""Victims by share: whoever borrows most gives first, as long as that makes the shares more even.

Two rules decide whether a workload of another queue may be taken (KEP-1714): by S2-a the preemptor's share afterwards
must not exceed what the victim's queue is left with; by S2-b it must be less than what the victim's queue had before.
Where the past counts, S2-b must hold by present shares as well, and the preemptor must come before the victim in the
order of turns once both are out (`order.py`): else two queues would take from each other for ever.
The shares compared are those of the two children of the lowest cohort above both queues. A queue that stays within its
nominal quota takes back what is its own without asking.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

from mooring.actions.admit.preemption.borrowers import Borrowers, Candidates
from mooring.actions.admit.preemption.kept import KeptCandidates
from mooring.actions.admit.preemption.targets import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAMATION,
    Preemptor,
    Victim,
    candidate_order,
    candidates_in,
    fill_back,
    has_candidates,
    has_room,
)
from mooring.actions.admit.quota.fair_sharing import DominantShare, Shares
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.errors import InvariantBroken
from mooring.model.api.kueue import NEVER
from mooring.state.quota_tree import QuotaTree

FINAL_SHARE, INITIAL_SHARE = "LessThanOrEqualToFinalShare", "LessThanInitialShare"

Rule = Callable[[DominantShare, DominantShare, DominantShare], bool]
"""Decides by the preemptor's new share, the victim's old share and the victim's new share."""

RULES: dict[str, Rule] = {
    FINAL_SHARE: lambda preemptor_new, victim_old, victim_new: preemptor_new <= victim_new,
    INITIAL_SHARE: lambda preemptor_new, victim_old, victim_new: (
        preemptor_new < victim_old and preemptor_new.by_present < victim_old.by_present
    ),
}


class FairPreemption:
    """Finds victims under fair sharing, by one rule or by two in turn."""

    def __init__(self, shares: Shares, strategies: Sequence[str] = (FINAL_SHARE, INITIAL_SHARE)) -> None:
        self._shares = shares
        self._first_rule = RULES[strategies[0]]
        self._has_second_rule = len(strategies) > 1
        self._borrowers: KeptCandidates[Borrowers] = KeptCandidates(
            lambda ledger: Borrowers(ledger.tree, shares, {}), moves_with_time=shares.looks_back
        )

    def find_victims(self, ledger: Ledger, preemptor: Preemptor) -> list[Victim]:
        """Find victims, or none if no rule yields enough of them. The ledger is left as it was."""
        others = self._others(ledger, preemptor)
        own = _own_candidates(ledger, preemptor)
        if not own and (not others or self._is_in_vain(ledger.tree, preemptor, others)):
            return []
        with ledger.what_if():
            # The shares to compare are those with the preemptor admitted.
            ledger.add_usage(preemptor.queue.node, preemptor.usage)
            attempt = _VictimsSoFar(ledger, self._shares, preemptor)
            left = attempt.run_first(_ShareOrder(ledger, self._shares, preemptor, others, own), self._first_rule)
            if not attempt.has_room and self._has_second_rule:
                attempt.run_second(left)
            ledger.remove_usage(preemptor.queue.node, preemptor.usage)
            victims = attempt.victims
            if attempt.has_room:
                victims = fill_back(ledger, preemptor, victims, may_borrow=True)
        return victims if attempt.has_room else []

    def _others(self, ledger: Ledger, preemptor: Preemptor) -> Borrowers:
        queue = preemptor.queue
        if not queue.has_cohort or queue.reclaim == NEVER:
            return Borrowers(ledger.tree, self._shares, {})
        return self._borrowers.of(ledger, preemptor)

    def _is_in_vain(self, tree: QuotaTree, preemptor: Preemptor, others: Borrowers) -> bool:
        """Whether all are children of one cohort, and even the first to give has less than the preemptor would have."""
        queue, usage = preemptor.queue, preemptor.usage
        if tree.child_cohorts[queue.root] or self._shares.looks_back:
            return False
        if not any(tree.exceeds(queue.node, column, usage.get(column, 0)) for column in preemptor.short_columns):
            return False
        first = others.first(queue.root, (queue.node,))
        return first is None or self._shares.share_with(queue.node, usage) > self._shares.share(first)


def _own_candidates(ledger: Ledger, preemptor: Preemptor) -> list[AdmittedWorkload]:
    queue = preemptor.queue
    if queue.within_queue == NEVER or not has_candidates(ledger, queue.node, preemptor, queue.within_queue):
        return []
    return candidates_in(ledger, queue.node, preemptor, queue.within_queue)


class _VictimsSoFar:
    """Victims as they are chosen; they leave the ledger at once, so that every share is the current one."""

    def __init__(self, ledger: Ledger, shares: Shares, preemptor: Preemptor) -> None:
        self._ledger = ledger
        self._shares = shares
        self._preemptor = preemptor
        self.victims: list[Victim] = []
        self.has_room = False

    def run_first(self, processing: "_ShareOrder", rule: Rule) -> Candidates:
        """Choose until there is room; return those that the rule spared."""
        spared: Candidates = {}
        is_entitled = self._is_within_nominal()
        while not self.has_room and (node := processing.next_queue()) is not None:
            if node == self._preemptor.queue.node:
                self._choose(processing.pop(node), IN_CLUSTER_QUEUE)
            elif is_entitled:
                self._choose(processing.pop(node), IN_COHORT_RECLAMATION)
            else:
                self._choose_one_by(rule, processing, node, spared)
        return spared

    def _choose_one_by(self, rule: Rule, processing: "_ShareOrder", node: int, spared: Candidates) -> None:
        """Choose the first of a queue that the rule allows; shares move with every victim, so at most one."""
        preemptor_new, victim_old = self._compare(node)
        if preemptor_new > victim_old:
            # A victim's going can only lower its queue's share, so neither rule would allow any of them.
            if processing.are_all_rivals:
                processing.end()  # the others have no higher a share
            else:
                spared.setdefault(node, []).extend(processing.pop_all(node))
            return
        while processing.has(node):
            admitted = processing.pop(node)
            if rule(preemptor_new, victim_old, self._share_without(admitted)) and self._comes_before(admitted):
                self._choose(admitted, IN_COHORT_FAIR_SHARING)
                return
            spared.setdefault(node, []).append(admitted)

    def run_second(self, spared: Candidates) -> None:
        """Go through the queues once more with the milder rule, at most one victim from each."""
        own = spared.pop(self._preemptor.queue.node, [])
        others = Borrowers(self._ledger.tree, self._shares, spared)
        processing = _ShareOrder(self._ledger, self._shares, self._preemptor, others, own)
        while not self.has_room and (node := processing.next_queue()) is not None:
            preemptor_new, victim_old = self._compare(node)
            if RULES[INITIAL_SHARE](preemptor_new, victim_old, victim_old):
                admitted = processing.pop(node)
                if self._comes_before(admitted):
                    self._choose(admitted, IN_COHORT_FAIR_SHARING)
            elif processing.are_all_rivals and preemptor_new >= victim_old:
                return
            processing.drop(node)

    def _choose(self, admitted: AdmittedWorkload, reason: str) -> None:
        ledger, preemptor = self._ledger, self._preemptor
        ledger.remove(admitted)
        self.victims.append(Victim(admitted, reason))
        ledger.remove_usage(preemptor.queue.node, preemptor.usage)
        self.has_room = has_room(ledger, preemptor, may_borrow=True)
        ledger.add_usage(preemptor.queue.node, preemptor.usage)

    def _is_within_nominal(self) -> bool:
        tree, preemptor = self._ledger.tree, self._preemptor
        return not any(tree.exceeds(preemptor.queue.node, column) for column in preemptor.short_columns)

    def _compare(self, node: int) -> tuple[DominantShare, DominantShare]:
        ours, theirs = self._rivals(node)
        return self._shares.share(ours), self._shares.share(theirs)

    def _share_without(self, admitted: AdmittedWorkload) -> DominantShare:
        rival = self._rivals(admitted.node)[1]
        if rival == admitted.node:
            return self._shares.share_with(rival, {column: -amount for column, amount in admitted.usage.items()})
        with self._ledger.what_if():
            self._ledger.remove(admitted)
            return self._shares.share(rival)

    def _comes_before(self, admitted: AdmittedWorkload) -> bool:
        """Tell whether the preemptor gets what a victim leaves; without a past that follows from the rules."""
        if not self._shares.looks_back:
            return True
        ledger, preemptor = self._ledger, self._preemptor
        with ledger.what_if():
            ledger.remove(admitted)
            ledger.remove_usage(preemptor.queue.node, preemptor.usage)
            ours, theirs = self._compare(admitted.node)
        return ours.value < theirs.value

    def _rivals(self, node: int) -> tuple[int, int]:
        """The children of the lowest cohort above both queues: ours and theirs."""
        paths, own = self._ledger.tree.paths, self._preemptor.queue.node
        ours = paths[own]
        if paths[node][1] == ours[1]:
            return own, node
        for below, cohort in pairwise(paths[node]):
            if cohort in ours:
                return ours[ours.index(cohort) - 1], below
        raise InvariantBroken("candidates for preemption come from one tree of cohorts")


class _ShareOrder:
    """Whose turn it is to give: from the root down, always the child with the highest share."""

    def __init__(
        self,
        ledger: Ledger,
        shares: Shares,
        preemptor: Preemptor,
        others: Borrowers,
        own: list[AdmittedWorkload],
    ) -> None:
        """`others` as they stand without the preemptor, `own` are the candidates of its own queue."""
        self._tree = ledger.tree
        self._shares = shares
        self._own = preemptor.queue.node
        self._root = preemptor.queue.root
        self._own_path = self._tree.paths[self._own]
        self._others = others
        self._own_candidates = own
        self._left: Candidates = {self._own: own[::-1]}
        """Of those who had a turn, and of its own queue. The last one first, so that the next to go is at the end."""
        self._done: set[int] = set()

    def _candidates(self, node: int) -> list[AdmittedWorkload]:
        found = self._left.get(node)
        if found is None:
            found = self._left[node] = self._others.candidates.get(node, [])[::-1]
        return found

    @property
    def are_all_rivals(self) -> bool:
        """Whether all queues are children of the preemptor's cohort, so that all shares are compared with one."""
        return not self._tree.child_cohorts[self._root]

    def end(self) -> None:
        """Nobody else is to give."""
        self._done.add(self._root)

    def has(self, node: int) -> bool:
        return bool(self._candidates(node))

    def pop(self, node: int) -> AdmittedWorkload:
        return self._candidates(node).pop()

    def pop_all(self, node: int) -> list[AdmittedWorkload]:
        found, self._left[node] = self._candidates(node)[::-1], []
        return found

    def drop(self, node: int) -> None:
        self._done.add(node)

    def next_queue(self) -> int | None:
        if self._root == self._own:
            return self._own if self.has(self._own) and self._own not in self._done else None
        while self._root not in self._done:
            node = self._highest(self._root)
            if node is not None:
                return node
        return None

    def _highest(self, cohort: int) -> int | None:
        """The queue whose turn it is below a cohort; None if looking only showed that some have nothing to give."""
        queue, queue_share = self._highest_queue(cohort)
        child, child_share = self._highest_cohort(cohort)
        if queue is None and child is None:
            self._done.add(cohort)
            return None
        # On a tie the cohort: inside it the one that is most in the wrong can be found.
        if child is not None and (queue_share is None or (child_share is not None and child_share >= queue_share)):
            return self._highest(child)
        return queue

    def _highest_queue(self, cohort: int) -> tuple[int | None, DominantShare | None]:
        """Of those that had a turn already, whose shares have moved, and of the first of the others."""
        best: int | None = None
        best_share: DominantShare | None = None
        moved = [node for node in self._left if self._tree.parent[node] == cohort]
        first = self._others.first(cohort, self._left)
        for queue in moved if first is None else [*moved, first]:
            if queue in self._done:
                continue
            share = self._shares.share(queue)
            if best_share is not None and share < best_share:
                continue
            if (share.is_zero and queue != self._own) or not self._candidates(queue):
                self._done.add(queue)
            elif best is None or share != best_share or self._order(queue) < self._order(best):
                best, best_share = queue, share
        return best, best_share

    def _order(self, queue: int) -> tuple[bool, bool, float, int, float, str]:
        return candidate_order(self._candidates(queue)[-1], self._own)

    def _has_candidates(self, cohort: int) -> bool:
        return self._others.cohorts.get(cohort, 0) > 0 or (bool(self._own_candidates) and cohort in self._own_path)

    def _highest_cohort(self, cohort: int) -> tuple[int | None, DominantShare | None]:
        best, best_share = None, None
        for child in self._tree.child_cohorts[cohort]:
            if child in self._done or not self._has_candidates(child):
                continue
            share = self._shares.share(child)
            # Along the preemptor's own path there may be something to even out below, whatever the share here.
            if share.is_zero and child not in self._own_path:
                self._done.add(child)
            elif best is None or best_share is None or share >= best_share:
                best, best_share = child, share
        return best, best_share
