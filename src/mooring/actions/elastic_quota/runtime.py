"""Koordinator's runtime quota: what each quota may use at the moment.

Each gets what it asks for within its min. What is left of the parent's part goes by shared weight to those that ask for
more, up to their max. Of a resource that a quota does not name it may use what there is.
"""

import numpy as np

from mooring.actions.volcano.proportion import Floats, divide
from mooring.actions.volcano.resources import Columns
from mooring.actions.volcano.tree import ROOT_ROW, QueueTree


def runtime_quotas(tree: QueueTree, demand: Columns) -> Floats:
    """The runtime quota of every quota, shape (quotas, resources)."""
    names = tree.resources.names
    runtime = np.tile(tree.total, (len(tree), 1)).astype(np.int64)
    for column, name in enumerate(names):
        for row, children in enumerate(tree.children):
            named = [child for child in children if name in tree.specs[child].capability or _least(tree, child, name)]
            if not named:
                continue
            asked = np.minimum(tree.capability[named, column], demand[named, column])
            base = np.minimum([_least(tree, child, name) for child in named], asked).astype(np.int64)
            rest = max(0, int(runtime[row, column]) - int(base.sum()))
            weights = np.array([max(tree.specs[child].weights.get(name, 0.0), 0.0) for child in named])
            more = divide(np.array([rest]), weights, np.zeros((len(named), 1), np.int64), (asked - base)[:, None])
            runtime[named, column] = base + more[:, 0]
    runtime[ROOT_ROW] = tree.total
    found: Floats = runtime.astype(np.float64)
    return found


def _least(tree: QueueTree, row: int, name: str) -> int:
    return tree.specs[row].deserved.get(name, 0)
