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
from mooring.actions.admit.quota.tree import NO_PARENT, QuotaTree
from mooring.actions.admit.workload_info import Applicant, Holder
from mooring.model.values.requests import PODS


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


def who_gives_back(ledger: Ledger, nodes: Sequence[int], wanted: Mapping[int, float]) -> list[Holder]:
    """Choose who must go so that the overdrafts of a tree shrink by what is wanted, by column; infinity: to nothing.

    `nodes` are those of the tree, parents first. What is about to be free, because its holder was told to go before,
    counts. The ledger is left as it was.
    """
    tree = ledger.tree
    most_left = {
        (found.node, found.column): max(0.0, found.amount - wanted[found.column])
        for found in find_overdrafts(tree, nodes, wanted)
    }
    if not most_left:
        return []
    holders = [holder for node in nodes if tree.nodes[node].is_queue for holder in ledger.holders_in(node)]
    mark = ledger.checkpoint()
    for holder in holders:
        if holder.is_evicted:
            ledger.remove(holder)
    staying = sorted((holder for holder in holders if not holder.is_evicted), key=_order)
    chosen: dict[str, Holder] = {}
    for (node, column), most in most_left.items():
        for holder in staying:
            if overdraft_of(tree, node, column) <= most:
                break
            key = holder.applicant.key
            if key not in chosen and holder.usage.get(column, 0) > 0 and _is_wrong(tree, holder, node, column):
                ledger.remove(holder)
                chosen[key] = holder
    for key, holder in reversed(list(chosen.items())):
        ledger.put_back(holder)
        if all(overdraft_of(tree, *place) <= most for place, most in most_left.items()):
            del chosen[key]
        else:
            ledger.remove(holder)
    ledger.rollback(mark)
    return list(chosen.values())


def _order(holder: Holder) -> tuple[int, float, str]:
    return holder.applicant.priority, -holder.reserved_at, holder.applicant.uid


def _is_wrong(tree: QuotaTree, holder: Holder, node: int, column: int) -> bool:
    """Tell whether a holder is below the node, and everything on the way to it uses more than is its own."""
    for found in tree.paths[holder.node]:
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
        waiting = admission.pending.lines[queue.name].waiting()
        for applicant in sorted(waiting, key=lambda found: found.queue_order):
            amount = _asks_for(structure, applicant, queue, column)
            if 0 < amount <= room and admission.pending.admits_namespace(applicant):
                room -= amount
                total += amount
    return total


def _asks_for(structure: Structure, applicant: Applicant, queue: Queue, column: int) -> int:
    """What a workload could use in a column: of pod sets that the flavor's nodes take."""
    flavor, resource = structure.tree.columns[column]
    group = queue.group_by_resource.get(resource)
    if group is None or all(option.flavor != flavor for option in group.options):
        return 0
    return sum(
        pod_set.total(pod_set.count, with_pods=resource == PODS).get(resource, 0)
        for pod_set in applicant.pod_sets
        if not structure.matcher.mismatch(flavor, pod_set.selection, pod_set.spec)
    )
