"""Volcano's division by weight (its plugin proportion), in rounds.

What is left is offered by weight again and again, to all queues that have jobs and are not satisfied in everything yet;
a queue gets no more than it requests or can reach, and no less than its guarantee, on top of which later rounds add.
Shares are fractions, and large guarantees can make them exceed what there is.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mooring.actions.shares.by_weight import Past
from mooring.actions.shares.division import WEIGHTED, Division
from mooring.actions.shares.resources import NOTHING, Columns, Floats, volcano_units
from mooring.actions.shares.tree import ROOT_ROW, QueueTree
from mooring.model.values.requests import PODS


class Proportion(Division):
    """From weights and from what is requested, anew in each cycle; with past use, without loss."""

    name = "proportion"
    is_by_weight = True
    limits_let_in_by_cluster = False

    def deserved(self, tree: QueueTree, demand: Columns, past: Past | None) -> Floats:
        return deserved_in_rounds(tree, demand) if past is None else WEIGHTED.deserved(tree, demand, past)


PROPORTION = Proportion()


def deserved_in_rounds(tree: QueueTree, demand: Columns) -> Floats:
    """Divide the cluster among the queues below the root, each one's share among its children, and so on."""
    weights = np.array([spec.weight for spec in tree.specs])
    counts = np.array([name != PODS for name in tree.resources.names] or [True])
    # Rounding decides who gets the last place, so amounts are in Volcano's units, and added in its order of steps.
    units = volcano_units(tree.resources)
    deserved: Floats = tree.guarantee * units
    deserved[ROOT_ROW] = tree.capability[ROOT_ROW] * units
    has_jobs = [any(asked) for asked in demand.tolist()]
    for row, children in enumerate(tree.children):
        below = np.array([child for child in children if has_jobs[child]], dtype=np.intp)
        if len(below):
            request = demand[below] * units
            most = np.minimum(tree.real_capability[below] * units, request)
            rounds = Rounds(weights[below], tree.guarantee[below] * units, most, request)
            deserved[below] = _in_rounds(deserved[row], rounds, counts)
    return deserved / units


class Rounds(NamedTuple):
    """Queues that divide something, shape (queues,) and (queues, resources)."""

    weights: Floats
    least: Floats
    most: Floats
    request: Floats


def _in_rounds(amount: Floats, queues: Rounds, counts: npt.NDArray[np.bool_]) -> Floats:
    """Divide amounts (resources,) among queues; `counts` are the resources of which a rest is offered again."""
    weights, least, most, request = queues
    deserved = np.zeros_like(least)
    is_open = np.ones(len(weights), dtype=bool)
    rest = amount
    is_first = True
    while is_open.any():
        before = deserved[is_open]
        part = weights[is_open] / weights[is_open].sum()
        after = np.maximum(np.minimum(before + part[:, None] * rest, most[is_open]), least[is_open])
        deserved[is_open] = after
        is_met = (request[is_open] - after < NOTHING).all(axis=1)
        is_open[is_open] = ~is_met & (is_first | (after != before).any(axis=1))
        left = np.maximum(0.0, rest - (after - before).sum(axis=0))
        if (left < NOTHING)[counts].all() or (left == rest).all():
            break
        rest, is_first = left, False
    return deserved
