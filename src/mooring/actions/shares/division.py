"""Where deserved shares come from, and what else follows from that: one object for each way, chosen in the settings.

Here are those that any family may have; others are in the package of their family.
"""

from typing import TYPE_CHECKING

import numpy as np

from mooring.actions.shares.by_weight import Past, deserved_by_weight
from mooring.actions.shares.grouping import Grouping
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.order import HeapOrder, QueueOrder, ShareOrder
from mooring.actions.shares.reclaim_rules import DeservedRule, ReclaimRule
from mooring.actions.shares.resources import Columns, Floats
from mooring.actions.shares.tree import ROOT_ROW, QueueTree

if TYPE_CHECKING:
    from mooring.actions.shares.cache import ShareCache


class Division:
    """How the cluster is divided among queues."""

    name: str = ""
    is_by_weight: bool = False
    """Whether shares follow from weights. Then queues stop at what they deserve, unless the settings say otherwise."""
    counts_undeserved: bool = False
    """Whether a queue that holds some of a resource of which it deserves nothing holds all of its share."""
    limits_let_in_by_cluster: bool = True
    """Whether jobs are let in only for what the cluster has, not only for what their queue may have."""
    limits_firm: bool = False
    """Whether jobs that cannot be preempted hold no more than what the specs of their queues say is deserved."""
    protects_starters: bool = True
    """Whether nothing at all is taken from a job that has not run for long enough."""

    def deserved(self, tree: QueueTree, demand: Columns, past: Past | None) -> Floats:
        """What every queue deserves, shape (queues, resources), if so much is requested."""
        raise NotImplementedError

    def make_grouping(self, ledger: Ledger) -> Grouping:
        return Grouping()

    def make_order(self, cache: "ShareCache", *, moves_parents: bool) -> QueueOrder:
        """The order of queues: by shares. Where those of parents do not move, as in Volcano, in its heap."""
        if moves_parents or len(cache.tree.leaves) == len(cache.tree) - 1:
            return ShareOrder(cache.tree, cache.shares)
        return HeapOrder(cache.tree, cache.shares, cache.aside)

    def make_rule(self, cache: "ShareCache") -> ReclaimRule:
        """Which jobs give back."""
        return DeservedRule(cache.ledger, cache.shares, cache.checks)


class BySpec(Division):
    """From the specs of the queues, whatever they request at the moment."""

    name = "capacity"

    def deserved(self, tree: QueueTree, demand: Columns, past: Past | None) -> Floats:
        return deserved_by_spec(tree).astype(np.float64)


class Weighted(Division):
    """From weights and from what is requested, in whole devices and never more than there is: ours."""

    name = "weighted"
    is_by_weight = True
    counts_undeserved = True

    def deserved(self, tree: QueueTree, demand: Columns, past: Past | None) -> Floats:
        return deserved_by_weight(tree, demand, past).astype(np.float64)


BY_SPEC = BySpec()
WEIGHTED = Weighted()


def deserved_by_spec(tree: QueueTree) -> Columns:
    """What each queue is said to deserve, and at least its guarantee.

    As in Volcano it is at most what the queue can reach, but for trees, where it stays as it is written.
    Where a queue with children names no share of a resource, it deserves what its children do; so does the root.
    """
    is_flat = len(tree.leaves) == len(tree) - 1
    said = np.minimum(tree.own_deserved, tree.real_capability) if is_flat else tree.own_deserved
    deserved = np.maximum(said, tree.guarantee)
    for row in reversed(range(len(tree))):
        children = tree.children[row]
        if children:
            sums = deserved[children.start : children.stop].sum(axis=0)
            is_named = tree.own_deserved[row] > 0
            is_named &= row != ROOT_ROW
            deserved[row] = np.where(is_named, deserved[row], np.maximum(sums, tree.guarantee[row]))
    return deserved
