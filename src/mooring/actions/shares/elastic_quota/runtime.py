"""Koordinator's runtime quota: what each quota may use at the moment.

Each gets what it asks for within its min, or its min in any case if it does not lend; minimums that are more than the
parent has are scaled down. What is left of the parent's part
goes by shared weight to those that ask for more, up to their max. Of a resource that a quota does not name it may use
what there is. A tree of its own divides its own total; the others divide what all such trees leave.
"""

import numpy as np

from mooring.actions.shares.by_weight import Past
from mooring.actions.shares.division import Division
from mooring.actions.shares.elastic_quota.dividing import Claim, scaled_minimums, share_out
from mooring.actions.shares.resources import UNLIMITED, Columns, Floats
from mooring.actions.shares.tree import ROOT_ROW, QueueTree


class Runtime(Division):
    """From minimums, then by shared weight."""

    name = "runtime"
    is_by_weight = True
    counts_undeserved = True
    limits_firm = True

    def deserved(self, tree: QueueTree, demand: Columns, past: Past | None) -> Floats:
        return runtime_quotas(tree, demand)


RUNTIME = Runtime()


def runtime_quotas(tree: QueueTree, demand: Columns) -> Floats:
    """The runtime quota of every quota, shape (quotas, resources)."""
    runtime = np.tile(tree.total, (len(tree), 1)).astype(np.int64)
    asked = _asked(tree, demand)
    for column, name in enumerate(tree.resources.names):
        totals = ((row, spec.own_total or {}) for row, spec in enumerate(tree.specs))
        apart = {row: total[name] for row, total in totals if name in total}
        for row, children in enumerate(tree.children):
            named = [child for child in children if child not in apart and _names(tree, child, name)]
            # Of equal remainders the first by name gets more, whichever namespace it is in.
            named.sort(key=lambda child: tree.name(child).rpartition("/")[2])
            total = int(runtime[row, column])
            if row == ROOT_ROW:
                total = max(0, total - sum(apart.values()))
            if named:
                runtime[named, column] = _divide(tree, named, column, total, asked)
            for child in children:
                if child in apart:
                    runtime[child, column] = min(int(runtime[row, column]), apart[child])
    runtime[ROOT_ROW] = tree.total
    found: Floats = runtime.astype(np.float64)
    return found


def _asked(tree: QueueTree, demand: Columns) -> Columns:
    """What each quota asks for: its own pods, and of each quota below what it asks for within its max.

    A quota that lends nothing asks for its min at least.
    """
    asked = demand.copy()
    most = np.array([tree.resources.row(spec.capability, missing=UNLIMITED) for spec in tree.specs])
    for row in reversed(range(len(tree))):  # those below before those above
        below = slice(tree.children[row].start, tree.children[row].stop)
        within = np.minimum(asked[below], most[below])
        asked[row] += within.sum(axis=0) - demand[below].sum(axis=0)
        spec = tree.specs[row]
        for name, least in spec.deserved.items() if not spec.lends else ():
            column = tree.resources.column_of[name]
            asked[row, column] = max(int(asked[row, column]), least)
    return asked


def _divide(tree: QueueTree, named: list[int], column: int, total: int, asked: Columns) -> list[int]:
    """Divide one resource of one quota among those below it that name it."""
    name = tree.resources.names[column]
    specs = [tree.specs[child] for child in named]
    minimums = scaled_minimums(total, [spec.deserved.get(name, 0) for spec in specs])
    claims = [
        Claim(
            least,
            min(spec.capability.get(name, UNLIMITED), int(asked[child, column])),
            max(0, int(spec.weights.get(name, 0))),
            spec.lends,
        )
        for child, spec, least in zip(named, specs, minimums, strict=True)
    ]
    return share_out(total, claims)


def _names(tree: QueueTree, row: int, name: str) -> bool:
    return name in tree.specs[row].capability or tree.specs[row].deserved.get(name, 0) > 0
