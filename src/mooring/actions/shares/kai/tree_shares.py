"""KAI's fair shares of a whole tree of queues: of each queue's share its children get theirs."""

from typing import TYPE_CHECKING

import numpy as np

from mooring.actions.shares.by_weight import Past
from mooring.actions.shares.division import Division
from mooring.actions.shares.kai.division import NO_LIMIT, Claim, fair_shares
from mooring.actions.shares.kai.order import KaiOrder
from mooring.actions.shares.kai.queues import SHARED
from mooring.actions.shares.kai.reclaim_rule import KaiRule
from mooring.actions.shares.order import QueueOrder
from mooring.actions.shares.reclaim_rules import ReclaimRule
from mooring.actions.shares.resources import UNLIMITED, Columns, Floats
from mooring.actions.shares.tree import ROOT_ROW, QueueTree

if TYPE_CHECKING:
    from mooring.actions.shares.cache import ShareCache


class KaiDivision(Division):
    """From quotas, then by over-quota weight."""

    name = "kai"
    limits_firm = True
    protects_starters = False

    def deserved(self, tree: QueueTree, demand: Columns, past: Past | None) -> Floats:
        return kai_shares(tree, demand, past)

    def make_order(self, cache: "ShareCache", *, moves_parents: bool) -> QueueOrder:
        return KaiOrder(cache.ledger, cache.shares, cache.next_amount)

    def make_rule(self, cache: "ShareCache") -> ReclaimRule:
        return KaiRule(cache.ledger, cache.shares, cache.checks)


KAI = KaiDivision()


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
