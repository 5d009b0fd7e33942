"""KAI's fair shares of a whole tree of queues: of each queue's share its children get theirs."""

import numpy as np

from mooring.actions.kai.division import NO_LIMIT, Claim, fair_shares
from mooring.actions.kai.queues import SHARED
from mooring.actions.volcano.proportion import Floats, Past
from mooring.actions.volcano.resources import UNLIMITED, Columns
from mooring.actions.volcano.tree import ROOT_ROW, QueueTree


def kai_shares(tree: QueueTree, demand: Columns, past: Past | None = None) -> Floats:
    """What every queue deserves of what KAI shares; of other resources nobody deserves anything."""
    deserved: Floats = np.zeros(demand.shape)
    k_value = 1.0 if past is None else past.k_value
    for column in [tree.resources.column_of[name] for name in SHARED if name in tree.resources.column_of]:
        deserved[ROOT_ROW, column] = tree.total[column]
        for row, children in enumerate(tree.children):
            claims = [_claim(tree, demand, past, child, column) for child in children]
            parts = tree.resources.parts.get(tree.resources.names[column], 1)
            shares = fair_shares(float(deserved[row, column]) / parts, claims, k_value)
            for child in children:
                deserved[child, column] = shares[tree.name(child)] * parts
    return deserved


def _claim(tree: QueueTree, demand: Columns, past: Past | None, row: int, column: int) -> Claim:
    spec, name = tree.specs[row], tree.resources.names[column]
    quota, parts = spec.deserved.get(name, 0), tree.resources.parts.get(name, 1)  # rounding is by whole ones
    return Claim(
        spec.name,
        request=float(demand[row, column]) / parts,
        quota=NO_LIMIT if quota >= UNLIMITED else quota / parts,
        limit=spec.capability[name] / parts if name in spec.capability else NO_LIMIT,
        weight=spec.weights.get(name, 0.0),
        priority=spec.priority,
        created=spec.created,
        usage=0.0 if past is None else float(past.used[row, column]),
    )
