"""Deserved shares as the queues' owners wrote them down, whatever anybody asks for at the moment."""

import numpy as np

from mooring.actions.volcano.resources import Columns
from mooring.actions.volcano.tree import ROOT_ROW, QueueTree


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
