"""Victims by rank: who has the better right to the quota, by place in the tree, by priority, by age.

Three classes of candidates: workloads in subtrees that use what is the preemptor's by right (hierarchy), other queues'
workloads over which it has no such right (priority), and those of its own queue. Only what lies in queues and cohorts
that use more than their nominal quota can be taken from others. Whether the preemptor itself may borrow at the same
time is tried both ways, because with borrowing fewer candidates are allowed, and without it less room is enough.

The order in which workloads of other queues would go is kept from search to search (`kept.py`), and no more of them are
looked at than it takes to make room.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from mooring.actions.admit.preemption.kept import KeptCandidates
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
from mooring.actions.admit.quota.workload_info import AdmittedWorkload, PendingWorkload
from mooring.model.api.kueue import NEVER
from mooring.state.quota_tree import NO_PARENT, QuotaTree
from mooring.state.remembered import Derived


class Candidate(NamedTuple):
    """An admitted workload that may become a victim."""

    admitted: AdmittedWorkload
    reason: str
    meeting: int
    """The lowest cohort above both queues; NO_PARENT for the preemptor's own queue."""
    forbids_borrowing: bool = False
    """Allowed only if the preemptor's queue ends up within its nominal quota."""


_Entry = tuple[tuple[bool, float, int, float, str], int, int, AdmittedWorkload]


class VictimRanking:
    """The candidates of several queues in one list, in the order in which they would go."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._of_queue: dict[int, list[_Entry]] = {}

    def put(self, node: int, candidates: list[AdmittedWorkload]) -> None:
        """A queue has these candidates now, or none."""
        entries = self._entries
        for entry in self._of_queue.pop(node, ()):
            del entries[bisect_left(entries, entry)]
        if candidates:
            made = [(found.victim_order, node, index, found) for index, found in enumerate(candidates)]
            self._of_queue[node] = made
            for entry in made:
                insort(entries, entry)

    def __iter__(self) -> Iterator[AdmittedWorkload]:
        return (entry[-1] for entry in self._entries)

    @property
    def queues(self) -> Iterator[int]:
        """The queues that have candidates, by node."""
        return iter(self._of_queue)


class _Others:
    """The workloads of other queues that a preemptor may take quota from."""

    def __init__(self, ledger: Ledger, preemptor: Preemptor, ranking: VictimRanking) -> None:
        self._ledger = ledger
        self._preemptor = preemptor
        self._ranking = ranking
        self._rights = _rights(ledger.tree, preemptor)
        self._meetings: Derived[int, int | None] = Derived()
        self._meetings.put(preemptor.queue.node, None)

    def _meeting(self, node: int) -> int | None:
        """Where the path of a queue meets the preemptor's; None for the preemptor's own queue."""
        return self._meetings.of(node, self._find_meeting, node)

    def _find_meeting(self, node: int) -> int | None:
        return next((found for found in self._ledger.tree.paths[node] if found in self._rights), None)

    def has_any(self, *, by_right: bool) -> bool:
        """Tell whether there is a candidate to whose quota the preemptor has a right, or has none."""
        if by_right not in self._rights.values():
            return False
        tree, short = self._ledger.tree, self._preemptor.short_columns
        for node in self._ranking.queues:
            meeting = self._meeting(node)
            if meeting is not None and self._rights[meeting] is by_right:
                path = tree.paths[node]
                if not any(tree.is_within_nominal(found, short) for found in path[: path.index(meeting)]):
                    return True
        return False

    def in_order(self, *, by_right: bool, leaving: bool, may_borrow: bool) -> Iterator[Candidate]:
        """The candidates of one class, who would be missed least first: those on their way out, or the others.

        With `may_borrow`, those that forbid borrowing may be left out: they are not allowed then.
        """
        rights, queue, pending = self._rights, self._preemptor.queue, self._preemptor.pending
        is_forbidden = may_borrow and not by_right and not queue.borrows_while_preempting
        if by_right not in rights.values() or is_forbidden:
            return
        is_by_priority = not leaving and self._ledger.local_usage is None
        for admitted in self._ranking:
            if admitted.is_evicted is not leaving:
                if leaving:
                    return  # those on their way out come first
                continue
            meeting = self._meeting(admitted.node)
            if meeting is None or rights[meeting] is not by_right:
                continue
            if by_right:
                yield Candidate(admitted, IN_COHORT_RECLAMATION, meeting)
            elif _may_go_while_borrowing(queue, pending, admitted.pending):
                yield Candidate(admitted, IN_COHORT_RECLAIM_WHILE_BORROWING, meeting)
            elif may_borrow and is_by_priority:
                return  # those behind it are not of a lower priority
            else:
                yield Candidate(admitted, IN_COHORT_RECLAMATION, meeting, forbids_borrowing=True)


def _rights(tree: QuotaTree, preemptor: Preemptor) -> dict[int, bool]:
    """By cohort above a preemptor's queue, whether what it asks for is its own by right somewhere below: then
    everything that is farther away and borrows is in the wrong."""
    rights = {}
    has_right = False
    rest = preemptor.usage
    for below, cohort in pairwise(tree.paths[preemptor.queue.node]):
        has_right = has_right or not any(tree.exceeds(below, column, amount) for column, amount in rest.items())
        rest = {column: max(0, amount - tree.local_available(below, column)) for column, amount in rest.items()}
        rights[cohort] = has_right
    return rights


class ClassicalPreemption:
    """Finds victims by rank."""

    def __init__(self) -> None:
        self._kept: KeptCandidates[VictimRanking] = KeptCandidates(lambda ledger: VictimRanking())

    def find_victims(self, ledger: Ledger, preemptor: Preemptor) -> list[Victim]:
        """Find a set of victims none of which could stay; empty if there is none. The ledger is left as it was."""
        queue = preemptor.queue
        own: list[AdmittedWorkload] = []
        if queue.within_queue != NEVER:
            own = candidates_in(ledger, queue.node, preemptor, queue.within_queue)
        takes_from_others = queue.reclaim != NEVER and queue.has_cohort
        ranking = self._kept.of(ledger, preemptor) if takes_from_others else VictimRanking()
        others = _Others(ledger, preemptor, ranking)
        has_hierarchy = others.has_any(by_right=True)
        are_all_own = not has_hierarchy and not others.has_any(by_right=False)
        if are_all_own and not own:
            return []
        for may_borrow in _attempts(ledger, preemptor, has_hierarchy=has_hierarchy, are_all_own=are_all_own):
            if not may_borrow and _always_borrows(ledger, preemptor, own):
                continue
            with ledger.what_if():
                candidates = _in_order(others, own, may_borrow=may_borrow)
                victims = _try(ledger, preemptor, candidates, may_borrow=may_borrow)
            if victims:
                return victims
        return []


def _always_borrows(ledger: Ledger, preemptor: Preemptor, own: list[AdmittedWorkload]) -> bool:
    """Tell whether the preemptor's queue would borrow even if all candidates of its own queue were gone."""
    tree, node = ledger.tree, preemptor.queue.node
    return any(
        tree.exceeds(node, column, amount - sum(admitted.usage.get(column, 0) for admitted in own))
        for column, amount in preemptor.usage.items()
    )


def _in_order(others: _Others, own: list[AdmittedWorkload], *, may_borrow: bool) -> Iterator[Candidate]:
    """Those on their way out first; then by class, and within it by who would be missed least."""
    for leaving in (True, False):
        yield from others.in_order(by_right=True, leaving=leaving, may_borrow=may_borrow)
        yield from others.in_order(by_right=False, leaving=leaving, may_borrow=may_borrow)
        yield from (Candidate(found, IN_CLUSTER_QUEUE, NO_PARENT) for found in own if found.is_evicted is leaving)


def _attempts(ledger: Ledger, preemptor: Preemptor, *, has_hierarchy: bool, are_all_own: bool) -> tuple[bool, ...]:
    """In which order to try with and without borrowing."""
    forbidden = not preemptor.queue.borrows_while_preempting
    if are_all_own or (forbidden and not _is_under_nominal(ledger, preemptor)):
        return (True,)
    if forbidden and not has_hierarchy:
        return (False, True)
    return (True, False)


def _is_under_nominal(ledger: Ledger, preemptor: Preemptor) -> bool:
    tree, node = ledger.tree, preemptor.queue.node
    return all(tree.usage_of(node, column) < tree.nominal_of(node, column) for column in preemptor.short_columns)


def _try(ledger: Ledger, preemptor: Preemptor, ordered: Iterator[Candidate], *, may_borrow: bool) -> list[Victim]:
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


def _may_go_while_borrowing(queue: Queue, preemptor: PendingWorkload, candidate: PendingWorkload) -> bool:
    if not queue.borrows_while_preempting or candidate.priority >= preemptor.priority:
        return False
    return queue.priority_threshold is None or candidate.priority <= queue.priority_threshold
