"""Who gives quota back when there is less of it than is held.

Quotas may shrink below what is in use: a cohort's members then hold more than they own together, or a queue more than
it may borrow. That is an overdraft, and nobody would be admitted like that. Those give back whose queues use more than
their own: low priorities first, then those that started last, and no more of them than it takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.quota.workload_info import AdmittedWorkload, PendingWorkload
from mooring.model.keys import WorkloadKey
from mooring.model.values.requests import PODS
from mooring.state.quota_tree import NO_PARENT, QuotaTree


class Overdraft(NamedTuple):
    """So much more than it may is used below a node, in one column."""

    node: int
    column: int
    amount: int


def overdraft_of(tree: QuotaTree, node: int, column: int) -> int:
    """By how much a node exceeds what there is at all, if it is a root, or its borrowing limit."""
    beyond = tree.usage_of(node, column) - tree.subtree_of(node, column)
    if tree.parent[node] != NO_PARENT:
        limit = tree.borrowing_limit_of(node, column)
        if limit is None:
            return 0
        beyond -= limit
    return max(0, beyond)


def find_overdrafts(tree: QuotaTree, nodes: Sequence[int], columns: Iterable[int]) -> list[Overdraft]:
    """All overdrafts among these nodes, parents last."""
    found = [
        Overdraft(node, column, overdraft_of(tree, node, column)) for column in columns for node in reversed(nodes)
    ]
    return [overdraft for overdraft in found if overdraft.amount]


def who_gives_back(ledger: Ledger, nodes: Sequence[int], wanted: Mapping[int, float]) -> list[AdmittedWorkload]:
    """Choose who must go so that the overdrafts of a tree shrink by what is wanted, by column; infinity: to nothing.

    `nodes` are those of the tree, parents first. What is about to be free, because who has it was told to go before,
    counts. The ledger is left as it was.
    """
    tree = ledger.tree
    most_left = {
        (found.node, found.column): max(0.0, found.amount - wanted[found.column])
        for found in find_overdrafts(tree, nodes, wanted)
    }
    if not most_left:
        return []
    admitted_workloads = [
        admitted for node in nodes if tree.nodes[node].is_queue for admitted in ledger.admitted_in(node)
    ]
    with ledger.what_if():
        for admitted in admitted_workloads:
            if admitted.is_evicted:
                ledger.remove(admitted)
        staying = sorted((admitted for admitted in admitted_workloads if not admitted.is_evicted), key=_order)
        chosen: dict[WorkloadKey, AdmittedWorkload] = {}
        for (node, column), most in most_left.items():
            for admitted in staying:
                if overdraft_of(tree, node, column) <= most:
                    break
                key = admitted.pending.key
                if key not in chosen and admitted.usage.get(column, 0) > 0 and _is_wrong(tree, admitted, node, column):
                    ledger.remove(admitted)
                    chosen[key] = admitted
        for key, admitted in reversed(list(chosen.items())):
            ledger.put_back(admitted)
            if all(overdraft_of(tree, *place) <= most for place, most in most_left.items()):
                del chosen[key]
            else:
                ledger.remove(admitted)
    return list(chosen.values())


def _order(admitted: AdmittedWorkload) -> tuple[int, float, str]:
    return admitted.pending.priority, -admitted.reserved_at, admitted.pending.uid


def _is_wrong(tree: QuotaTree, admitted: AdmittedWorkload, node: int, column: int) -> bool:
    """Tell whether a admitted workload is below the node, and everything on the way to it uses more than is its own."""
    for found in tree.paths[admitted.node]:
        if found == node:
            return True
        if not tree.exceeds(found, column):
            return False
    return False


def wanted_by_right(admission: Admission, nodes: Iterable[int], column: int) -> int:
    """How much is waited for in these queues by workloads that it would belong to: within their queue's own quota."""
    structure, tree = admission.structure, admission.structure.tree
    total = 0
    for node in nodes:
        queue = structure.queue_of_node.get(node)
        if queue is None or not queue.is_active:
            continue
        room = tree.subtree_of(node, column) - tree.usage_of(node, column)
        waiting = admission.pending.pending_queues[queue.name].waiting()
        for pending in sorted(waiting, key=lambda found: found.queue_order):
            amount = _asks_for(structure, pending, queue, column)
            if 0 < amount <= room and admission.pending.admits_namespace(pending):
                room -= amount
                total += amount
    return total


def _asks_for(structure: Structure, pending: PendingWorkload, queue: Queue, column: int) -> int:
    """What a workload could use in a column: of pod sets that the flavor's nodes take."""
    flavor, resource = structure.tree.columns[column]
    group = queue.group_by_resource.get(resource)
    if group is None or all(option.flavor != flavor for option in group.options):
        return 0
    return sum(
        pod_set.total(pod_set.count, with_pods=resource == PODS).get(resource, 0)
        for pod_set in pending.pod_sets
        if not structure.matcher.mismatch(flavor, pod_set.selection, pod_set.spec)
    )
