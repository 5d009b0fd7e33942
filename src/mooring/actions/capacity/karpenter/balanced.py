"""The policy Balanced: a move has to save enough for what it disrupts, measured by its pool as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.actions.capacity.karpenter.candidates import Candidate, disruption_cost, price_of
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.model.api.karpenter import BALANCED
from mooring.model.capacity.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE

_THRESHOLD = 1.0 / 2


@dataclass(frozen=True, slots=True)
class PoolTotals:
    """What all nodes of a pool cost, and what it would cost to disrupt them."""

    price: float
    disruption: float


def pool_totals(snapshot: Snapshot, candidates: Sequence[Candidate]) -> dict[str, PoolTotals]:
    """The totals of the pools that have candidates."""
    of_candidates: dict[str, float] = {}
    for candidate in candidates:
        of_candidates[candidate.pool.name] = of_candidates.get(candidate.pool.name, 0.0) + candidate.price
    prices = _prices_of_claims(snapshot)
    costs = {candidate.row: candidate.cost for candidate in candidates}
    disruption: dict[str, float] = {}
    for row, machine in enumerate(snapshot.machines):
        if machine.pool:
            cost = costs.get(row)
            cost = disruption_cost(machine) if cost is None else cost
            disruption[machine.pool] = disruption.get(machine.pool, 0.0) + cost
    return {
        name: PoolTotals(prices.get(name, 0.0) or price, disruption.get(name, 0.0))
        for name, price in of_candidates.items()
    }


def _prices_of_claims(snapshot: Snapshot) -> dict[str, float]:
    """By pool: what its claims cost, those without a node and those on their way out included."""
    types = {each.name: each for each in snapshot.columns.types}
    prices: dict[str, float] = {}
    for machine in snapshot.machines:
        labels = (machine.claim.metadata.labels or {}) if machine.claim is not None else {}
        if all(key in labels for key in (NODE_POOL, CAPACITY_TYPE, ZONE, INSTANCE_TYPE)):
            pool = labels[NODE_POOL]
            prices[pool] = prices.get(pool, 0.0) + price_of(labels, types.get(labels[INSTANCE_TYPE]))
    return prices


def is_worth_it(candidates: Sequence[Candidate], savings: float, totals: Mapping[str, PoolTotals]) -> bool:
    """Tell whether a move passes in every pool that has this policy; savings are shared out by price."""
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    price = sum(candidate.price for candidate in candidates)
    for name, found in by_pool.items():
        if found[0].pool.spec.disruption.consolidation_policy != BALANCED:
            continue
        share = savings
        if price > 0 and len(by_pool) > 1:
            share = savings * (sum(candidate.price for candidate in found) / price)
        if not _passes(share, sum(candidate.cost for candidate in found), totals.get(name)):
            return False
    return True


def can_pass(candidate: Candidate, totals: Mapping[str, PoolTotals]) -> bool:
    """Tell whether a candidate's plain deletion would pass: nothing saves more."""
    known = totals.get(candidate.pool.name)
    if candidate.pool.spec.disruption.consolidation_policy != BALANCED or known is None or known.price <= 0:
        return True
    return _passes(candidate.price, candidate.cost, known)


def _passes(savings: float, cost: float, totals: PoolTotals | None) -> bool:
    if totals is None or totals.price <= 0 or totals.disruption <= 0:
        return False
    saved, disrupted = savings / totals.price, cost / totals.disruption
    if saved <= 0:
        return False
    return disrupted == 0 or saved / disrupted >= _THRESHOLD
