"""How much of its quota each queue and cohort lends.

Quota that is lent comes out of a common pool: nobody says from whom. With several lenders all that is certain is the
least and the most that each of them lends; with one, the two are the same.
"""

from typing import NamedTuple

from mooring.state.quota_tree import QuotaTree


class Lent(NamedTuple):
    """In one column: what could be lent in all, what of it is not used by its owner, and what others use of that."""

    lendable: int
    idle: int
    at_least: int
    at_most: int


def lent_by_node(tree: QuotaTree, column: int) -> list[Lent]:
    """What every queue and cohort lends to others, at its own level or further up, by number of the node."""
    found = [Lent(0, 0, 0, 0)] * len(tree.nodes)
    # Parents come before their children: what a cohort lends upward, it has from those below it.
    for cohort, node in enumerate(tree.nodes):
        children = [*tree.child_cohorts[cohort], *tree.child_queues[cohort]]
        if node.is_queue or not children:
            continue
        idle = {child: _idle(tree, child, column) for child in children}
        borrowed = sum(max(0, tree.usage_of(child, column) - tree.subtree_of(child, column)) for child in children)
        pool = tree.nominal_of(cohort, column) + sum(idle.values())
        within = min(borrowed, pool)
        least, most = within + found[cohort].at_least, within + found[cohort].at_most
        for child in children:
            others = pool - idle[child]
            lendable = tree.subtree_of(child, column) - int(tree.local[child, column])
            found[child] = Lent(lendable, idle[child], max(0, least - others), min(idle[child], most))
    return found


def _idle(tree: QuotaTree, node: int, column: int) -> int:
    """What a queue or cohort could lend and does not use itself."""
    local = int(tree.local[node, column])
    used = max(0, tree.usage_of(node, column) - local)
    return max(0, tree.subtree_of(node, column) - local - used)
