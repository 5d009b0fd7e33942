"""Victims: who may be asked to go by whom, and how a sufficient set is made smaller.

A preemptor comes with what it needs (amounts by column) and the columns in which it is short; a candidate must hold
something in one of these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.quota.workload_info import AdmittedWorkload, PendingWorkload
from mooring.actions.admit.topology.assigner import PodSetNeed
from mooring.model.api.kueue import ANY, LOWER_OR_NEWER_EQUAL_PRIORITY, LOWER_PRIORITY

IN_CLUSTER_QUEUE = "InClusterQueue"
IN_COHORT_RECLAMATION = "InCohortReclamation"
IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


class Victim(NamedTuple):
    """A admitted workload that is to go, and for which of the four reasons."""

    admitted: AdmittedWorkload
    reason: str


@dataclass(slots=True)  # not frozen: that makes making one three times as slow, and one is made for every head
class Preemptor:
    """A workload that looks for victims."""

    pending: PendingWorkload
    queue: Queue
    usage: Mapping[int, int]
    short_columns: frozenset[int]
    needs: tuple[PodSetNeed, ...] = ()
    """What must find a place in a topology as well."""


FindVictims = Callable[[Ledger, Preemptor], list[Victim]]


def may_preempt(preemptor: PendingWorkload, candidate: PendingWorkload, policy: str) -> bool:
    """Compare two workloads by a preemption policy."""
    if policy == ANY:
        return True
    if policy not in (LOWER_PRIORITY, LOWER_OR_NEWER_EQUAL_PRIORITY):
        return False
    if preemptor.priority != candidate.priority:
        return preemptor.priority > candidate.priority
    return policy == LOWER_OR_NEWER_EQUAL_PRIORITY and preemptor.queued_at < candidate.queued_at


def candidates_in(ledger: Ledger, node: int, preemptor: Preemptor, policy: str) -> list[AdmittedWorkload]:
    """The admitted workloads in one queue that the policy allows, and that hold something of what is short.

    They come in the order in which they would go. Those that are too young are spared by other queues, not by their
    own.
    """
    short, pending = preemptor.short_columns, preemptor.pending
    found = [admitted for admitted in ledger.in_victim_order(node) if not short.isdisjoint(admitted.usage)]
    if policy != ANY:
        found = [admitted for admitted in found if may_preempt(pending, admitted.pending, policy)]
    is_own = node == preemptor.queue.node
    if ledger.local_usage is not None:
        for admitted in found:
            admitted.local_usage = ledger.local_usage(admitted) if is_own and preemptor.queue.orders_by_usage else 0.0
        found.sort(key=lambda admitted: admitted.victim_order)
    if ledger.spares is None or is_own:
        return found
    return [admitted for admitted in found if not ledger.spares(admitted)]


def has_candidates(ledger: Ledger, node: int, preemptor: Preemptor, policy: str) -> bool:
    """Tell whether there are any in the preemptor's own queue, without finding all of them."""
    short, pending = preemptor.short_columns, preemptor.pending
    is_by_priority = policy != ANY and ledger.local_usage is None
    for admitted in ledger.in_victim_order(node):
        if is_by_priority and not admitted.is_evicted and admitted.pending.priority > pending.priority:
            return False  # so is everybody behind it
        if not short.isdisjoint(admitted.usage) and may_preempt(pending, admitted.pending, policy):
            return True
    return False


def candidate_order(admitted: AdmittedWorkload, own_node: int) -> tuple[bool, bool, float, int, float, str]:
    """Who goes first: those on their way out, other queues' workloads, low priorities, those that started last."""
    is_staying, usage, priority, newest, uid = admitted.victim_order
    return (is_staying, admitted.node == own_node, usage, priority, newest, uid)


def has_room(ledger: Ledger, preemptor: Preemptor, *, may_borrow: bool) -> bool:
    tree, node = ledger.tree, preemptor.queue.node
    for column, amount in preemptor.usage.items():
        if not may_borrow and tree.exceeds(node, column, amount):
            return False
        if amount > tree.available(node, column):
            return False
    return not preemptor.needs or ledger.topology.find(preemptor.needs).is_complete


def fill_back(ledger: Ledger, preemptor: Preemptor, victims: list[Victim], *, may_borrow: bool) -> list[Victim]:
    """Let those stay after all, last chosen first, without whom there is room as well.

    The last victim is what made the room, so it goes in any case.
    """
    for index in range(len(victims) - 2, -1, -1):
        ledger.put_back(victims[index].admitted)
        if has_room(ledger, preemptor, may_borrow=may_borrow):
            victims[index] = victims[-1]
            victims.pop()
        else:
            ledger.remove(victims[index].admitted)
    return victims
