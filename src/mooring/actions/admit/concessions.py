"""Who would have to give what back for a waiting workload to start, whether or not policies allow it to be taken.

Three questions, each only if the one before found nobody: whom would the queue's own policies make go; whom, if the
queue had the boldest policies there are; and who holds what it needs, be it their own by right. Each who is found comes
with the policy in the way. All of this is what-if: the ledger is left as it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.cycle.flavor_modes import Mode, Reason
from mooring.actions.admit.preemption.targets import (
    Preemptor,
    Victim,
    candidate_order,
    fill_back,
    has_room,
    may_preempt,
)
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.quota.workload_info import AdmittedWorkload, PendingWorkload
from mooring.model.api.kueue import ANY, LOWER_PRIORITY, NEVER

TOO_MUCH = "nothing can be given back: it asks for more than the queue can ever have"
NO_FLAVOR = "nothing can be given back: no flavor of the queue takes its pods"
NO_PLACE = "nothing can be given back: its pods have no place in the topology even with all others gone"
INACTIVE = "nothing can be given back: the queue admits nobody as it is"

TOO_YOUNG = "minimumRuntimeBeforeReclaimSeconds: it has not run long enough"
FAIR_SHARING = "fair sharing: what it would hold is more than the other's share allows"

_HOPELESS = {Reason.ExceedsMaxQuota: TOO_MUCH, Reason.TopologyPlacementFailed: NO_PLACE}


@dataclass(frozen=True, slots=True)
class Concession:
    """What one workload would have to give back."""

    admitted: AdmittedWorkload
    amounts: Mapping[int, int]
    """By column, of what is short."""
    forbidden_by: str
    """The policy that keeps it from being taken; empty if none does."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What it takes for a workload to start."""

    concessions: tuple[Concession, ...] = ()
    pods: tuple[int, ...] = ()
    """With how many pods of each set it would start then."""
    usage: Mapping[int, int] = field(default_factory=dict)
    """By column, what they would hold."""
    has_quota: bool = False
    """There is quota for it as things stand: it waits for something else."""
    hopeless: str = ""
    """Why nothing that anybody gives back would help."""
    shortage: str = ""
    """What is short as things stand. The workload's condition tells what was when it was last tried."""


def find_outlook(admission: Admission, pending: PendingWorkload) -> Outlook:
    """Find out what a workload that waits in a line needs others to give back."""
    queue = admission.structure.queues[pending.queue_name]
    if not queue.is_active:
        return Outlook(hopeless=INACTIVE)
    entry = admission.what_if(pending, queue)
    if entry.assignment.mode == Mode.FIT:
        return Outlook(pods=entry.assignment.counts, usage=entry.assignment.usage, has_quota=True)
    is_allowed, shortage = bool(entry.victims), entry.assignment.message
    if not is_allowed:
        entry = admission.what_if(pending, _embolden(queue))
    assignment = entry.assignment
    if assignment.mode == Mode.NO_FIT:
        return Outlook(hopeless=_HOPELESS.get(assignment.reason, NO_FLAVOR))
    preemptor = Preemptor(pending, queue, assignment.usage, assignment.short_columns, assignment.needs)
    if is_allowed:
        found = [Concession(victim.admitted, _given_up(preemptor, victim.admitted), "") for victim in entry.victims]
    else:
        named = [victim.admitted for victim in entry.victims] or _in_order_of_right(admission.ledger, preemptor)
        found = _with_policies(admission, preemptor, _enough_of(named, admission.ledger, preemptor))
    return Outlook(tuple(found), assignment.counts, assignment.usage, shortage=shortage)


def _given_up(preemptor: Preemptor, admitted: AdmittedWorkload) -> dict[int, int]:
    return {column: admitted.usage[column] for column in sorted(preemptor.short_columns) if column in admitted.usage}


def _embolden(queue: Queue) -> Queue:
    """The queue as if it could take from everybody who is not in their right, and borrow on top."""
    return replace(queue, within_queue=ANY, reclaim=ANY, borrows_while_preempting=True, priority_threshold=None)


def _in_order_of_right(ledger: Ledger, preemptor: Preemptor) -> list[AdmittedWorkload]:
    """Everybody in the tree who holds something of what is short.

    Who borrows comes first, then the workload's own queue, and last those that hold no more than is theirs.
    """
    own, short = preemptor.queue.node, preemptor.short_columns

    def order(admitted: AdmittedWorkload) -> tuple[object, ...]:
        is_own = admitted.node == own
        return (_is_in_its_right(ledger, preemptor, admitted) and not is_own, is_own, *candidate_order(admitted, own))

    nodes = _queues_below(ledger, preemptor.queue.root)
    found = [
        admitted for node in nodes for admitted in ledger.admitted_in(node) if not short.isdisjoint(admitted.usage)
    ]
    return sorted(found, key=order)


def _enough_of(
    admitted_workloads: Sequence[AdmittedWorkload], ledger: Ledger, preemptor: Preemptor
) -> list[AdmittedWorkload]:
    """Of these, from the first on, as many as it takes, and none who could stay."""
    with ledger.what_if():
        victims: list[Victim] = []
        for admitted in admitted_workloads:
            ledger.remove(admitted)
            victims.append(Victim(admitted, ""))
            if has_room(ledger, preemptor, may_borrow=True):
                victims = fill_back(ledger, preemptor, victims, may_borrow=True)
                break
    return [victim.admitted for victim in victims]


def _queues_below(ledger: Ledger, root: int) -> Iterator[int]:
    tree = ledger.tree
    if tree.nodes[root].is_queue:
        yield root
    for child in tree.child_cohorts[root]:
        yield from _queues_below(ledger, child)
    yield from tree.child_queues[root]


# Policies.


def _with_policies(
    admission: Admission, preemptor: Preemptor, admitted_workloads: Sequence[AdmittedWorkload]
) -> list[Concession]:
    """Each with the policy in the way, once those before it have gone: that may put others in their right.

    Its own queue comes first: what that gives up decides whether the workload is within its nominal quota.
    """
    ledger = admission.ledger
    found = []
    with ledger.what_if():
        for admitted in sorted(admitted_workloads, key=lambda admitted: admitted.node != preemptor.queue.node):
            policy = _forbidding_policy(ledger, preemptor, admitted, is_fair=admission.is_fair)
            found.append(Concession(admitted, _given_up(preemptor, admitted), policy))
            ledger.remove(admitted)
    return found


def _forbidding_policy(ledger: Ledger, preemptor: Preemptor, admitted: AdmittedWorkload, *, is_fair: bool) -> str:
    queue, pending = preemptor.queue, preemptor.pending
    if _wants_more_than_its_own(ledger, preemptor, is_fair=is_fair):
        return f"reclaimWithinCohort: {NEVER}" if is_fair else f"borrowWithinCohort: {NEVER}"
    if admitted.node == queue.node:
        is_allowed = may_preempt(pending, admitted.pending, queue.within_queue)
        return "" if is_allowed else f"withinClusterQueue: {queue.within_queue}"
    if _is_in_its_right(ledger, preemptor, admitted):
        return f"{ledger.tree.nodes[admitted.node].name} uses no more than its nominal quota"
    if not may_preempt(pending, admitted.pending, queue.reclaim):
        return f"reclaimWithinCohort: {queue.reclaim}"
    if ledger.spares is not None and ledger.spares(admitted):
        return TOO_YOUNG
    if _has_right_to(ledger, preemptor, admitted):
        return ""
    if is_fair:
        return FAIR_SHARING
    if not queue.borrows_while_preempting:
        return f"borrowWithinCohort: {NEVER}"
    threshold = queue.priority_threshold
    if admitted.pending.priority >= pending.priority:
        return f"borrowWithinCohort: {LOWER_PRIORITY}"
    if threshold is not None and admitted.pending.priority > threshold:
        return f"borrowWithinCohort: {LOWER_PRIORITY}, maxPriorityThreshold: {threshold}"
    return ""


def _wants_more_than_its_own(ledger: Ledger, preemptor: Preemptor, *, is_fair: bool) -> bool:
    """Whether it is too large for its queue's nominal quota, and the queue may not borrow and preempt at once.

    Then nobody is preempted for it, not even in its own queue; unless a cohort above owns as much.
    """
    tree, queue = ledger.tree, preemptor.queue
    if queue.borrows_while_preempting or (is_fair and queue.reclaim != NEVER):
        return False
    return any(
        preemptor.usage[column] > tree.nominal_of(queue.node, column)
        and not tree.borrow_height(queue.node, column, preemptor.usage[column])[1]
        for column in preemptor.short_columns
    )


def _is_in_its_right(ledger: Ledger, preemptor: Preemptor, admitted: AdmittedWorkload) -> bool:
    """Whether somebody of another queue, or a cohort above it, uses nothing that is not its own of what is short."""
    tree = ledger.tree
    ours = tree.paths[preemptor.queue.node]
    below = [node for node in tree.paths[admitted.node] if node not in ours]
    return any(tree.is_within_nominal(node, preemptor.short_columns) for node in below)


def _has_right_to(ledger: Ledger, preemptor: Preemptor, admitted: AdmittedWorkload) -> bool:
    """Whether what is asked for is the preemptor's by right, somewhere below the cohort where the two meet."""
    tree = ledger.tree
    theirs = tree.paths[admitted.node]
    rest = dict(preemptor.usage)
    for below, cohort in pairwise(tree.paths[preemptor.queue.node]):
        if not any(tree.exceeds(below, column, amount) for column, amount in rest.items()):
            return True
        if cohort in theirs:
            return False
        rest = {column: max(0, amount - tree.local_available(below, column)) for column, amount in rest.items()}
    return False
