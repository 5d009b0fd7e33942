"""Victims by rank: who has the better right to the quota, by place in the tree, by priority, by age.

Three classes of candidates: workloads in subtrees that use what is the preemptor's by right (hierarchy), other queues'
workloads over which it has no such right (priority), and those of its own queue. Only what lies in queues and cohorts
that use more than their nominal quota can be taken from others. Whether the preemptor itself may borrow at the same
time is tried both ways, because with borrowing fewer candidates are allowed, and without it less room is enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from mooring.actions.admit.preemption.targets import (
    IN_CLUSTER_QUEUE,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    IN_COHORT_RECLAMATION,
    Preemptor,
    Victim,
    candidates_in,
    fill_back,
    has_room,
)
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.workload_info import AdmittedWorkload, PendingWorkload
from mooring.model.api.kueue import NEVER
from mooring.state.quota_tree import NO_PARENT


class Candidate(NamedTuple):
    """A admitted workload that may become a victim."""

    admitted: AdmittedWorkload
    reason: str
    meeting: int
    """The lowest cohort above both queues; NO_PARENT for the preemptor's own queue."""
    forbids_borrowing: bool = False
    """Allowed only if the preemptor's queue ends up within its nominal quota."""


@dataclass(slots=True)
class Candidates:
    """The candidates by class."""

    hierarchy: list[Candidate] = field(default_factory=list)
    priority: list[Candidate] = field(default_factory=list)
    own_queue: list[Candidate] = field(default_factory=list)

    @property
    def are_all_own(self) -> bool:
        return not self.hierarchy and not self.priority

    def in_order(self) -> list[Candidate]:
        """Those on their way out first; then by class, and within it by who would be missed least."""
        classes = [
            sorted(found, key=lambda candidate: candidate.admitted.victim_order)
            for found in (self.hierarchy, self.priority, self.own_queue)
        ]
        leaving = [candidate for found in classes for candidate in found if candidate.admitted.is_evicted]
        staying = [candidate for found in classes for candidate in found if not candidate.admitted.is_evicted]
        return leaving + staying


def find_victims(ledger: Ledger, preemptor: Preemptor) -> list[Victim]:
    """Find a set of victims none of whom could stay; empty if there is none. The ledger is left as it was."""
    candidates = _collect(ledger, preemptor)
    ordered = candidates.in_order()
    for may_borrow in _attempts(ledger, preemptor, candidates) if ordered else ():
        with ledger.what_if():
            victims = _try(ledger, preemptor, ordered, may_borrow=may_borrow)
        if victims:
            return victims
    return []


def _attempts(ledger: Ledger, preemptor: Preemptor, candidates: Candidates) -> tuple[bool, ...]:
    """In which order to try with and without borrowing."""
    forbidden = not preemptor.queue.borrows_while_preempting
    if candidates.are_all_own or (forbidden and not _is_under_nominal(ledger, preemptor)):
        return (True,)
    if forbidden and not candidates.hierarchy:
        return (False, True)
    return (True, False)


def _is_under_nominal(ledger: Ledger, preemptor: Preemptor) -> bool:
    tree, node = ledger.tree, preemptor.queue.node
    return all(tree.usage_of(node, column) < tree.nominal_of(node, column) for column in preemptor.short_columns)


def _try(ledger: Ledger, preemptor: Preemptor, ordered: list[Candidate], *, may_borrow: bool) -> list[Victim]:
    victims: list[Victim] = []
    for candidate in ordered:
        if not _is_still_allowed(ledger, preemptor, candidate, may_borrow):
            continue
        ledger.remove(candidate.admitted)
        victims.append(Victim(candidate.admitted, candidate.reason))
        if has_room(ledger, preemptor, may_borrow=may_borrow):
            return fill_back(ledger, preemptor, victims, may_borrow=may_borrow)
    return []


def _is_still_allowed(ledger: Ledger, preemptor: Preemptor, candidate: Candidate, may_borrow: bool) -> bool:
    """Earlier victims may have brought a queue or cohort back within its nominal quota: then the rest may stay."""
    if candidate.meeting == NO_PARENT:
        return True
    if may_borrow and candidate.forbids_borrowing:
        return False
    for node in ledger.tree.paths[candidate.admitted.node]:
        if node == candidate.meeting:
            return True
        if ledger.tree.is_within_nominal(node, preemptor.short_columns):
            return False
    return True


def _collect(ledger: Ledger, preemptor: Preemptor) -> Candidates:
    queue = preemptor.queue
    found = Candidates()
    if queue.within_queue != NEVER:
        own = candidates_in(ledger, queue.node, preemptor, queue.within_queue)
        found.own_queue = [Candidate(admitted, IN_CLUSTER_QUEUE, NO_PARENT) for admitted in own]
    if queue.reclaim != NEVER and queue.has_cohort:
        _collect_from_others(ledger, preemptor, found)
    return found


def _collect_from_others(ledger: Ledger, preemptor: Preemptor, found: Candidates) -> None:
    """Walk up from the queue; once what is asked for fits by right below, everything farther away is in the wrong."""
    tree, queue = ledger.tree, preemptor.queue
    path = tree.paths[queue.node]
    has_right = False
    rest = dict(preemptor.usage)
    for below, cohort in pairwise(path):
        has_right = has_right or not any(tree.exceeds(below, column, amount) for column, amount in rest.items())
        rest = {column: max(0, amount - tree.local_available(below, column)) for column, amount in rest.items()}
        for node in _borrowing_queues(ledger, cohort, below, preemptor.short_columns):
            for admitted in candidates_in(ledger, node, preemptor, queue.reclaim):
                if has_right:
                    found.hierarchy.append(Candidate(admitted, IN_COHORT_RECLAMATION, cohort))
                elif _may_go_while_borrowing(queue, preemptor.pending, admitted.pending):
                    found.priority.append(Candidate(admitted, IN_COHORT_RECLAIM_WHILE_BORROWING, cohort))
                else:
                    found.priority.append(Candidate(admitted, IN_COHORT_RECLAMATION, cohort, forbids_borrowing=True))


def _may_go_while_borrowing(queue: Queue, preemptor: PendingWorkload, candidate: PendingWorkload) -> bool:
    if not queue.borrows_while_preempting or candidate.priority >= preemptor.priority:
        return False
    return queue.priority_threshold is None or candidate.priority <= queue.priority_threshold


def _borrowing_queues(ledger: Ledger, cohort: int, visited: int, columns: frozenset[int]) -> Iterator[int]:
    """The queues below a cohort, without the visited child's, that borrow together with all cohorts on the way."""
    tree = ledger.tree
    for child in tree.child_cohorts[cohort]:
        if child != visited and not tree.is_within_nominal(child, columns):
            yield from _borrowing_queues(ledger, child, visited, columns)
    for child in tree.child_queues[cohort]:
        if child != visited and not tree.is_within_nominal(child, columns):
            yield child
