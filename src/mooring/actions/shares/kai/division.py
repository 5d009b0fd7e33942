"""KAI's division of one resource among sibling queues: quotas first, then the rest by priority and over-quota weight.

1. Each queue gets what it asks for within its quota and its limit.
2. Priority by priority, what is left is offered in rounds. With W a queue's part of the weights of those that still
   want more, U its part of the cluster in the past and k a constant, it is offered by max(0, W + k * (W - U)). It takes
   what it wants, or else the whole part of its offer. There is another round while somebody took less than its offer.
3. What rounding left goes by single units, priority by priority, to those who lost most by it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NO_LIMIT = -1.0


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue may want of one resource."""

    name: str
    request: float
    quota: float = 0.0
    """NO_LIMIT: all there is."""
    limit: float = NO_LIMIT
    weight: float = 0.0
    """Over quota; 0: nothing beyond it."""
    priority: int = 0
    created: float = 0.0
    usage: float = 0.0
    """Past use, as a part of all there was."""

    @property
    def most(self) -> float:
        """What it asks for, as far as it may have it."""
        return self.request if self.limit == NO_LIMIT else min(self.request, self.limit)


def fair_shares(total: float, claims: Sequence[Claim], k_value: float = 1.0) -> dict[str, float]:
    """What each queue's fair share of a resource is.

    >>> fair_shares(10, [Claim("a", request=8, quota=2, weight=1), Claim("b", request=8, quota=2, weight=2)])
    {'a': 4.0, 'b': 6.0}
    """
    shares = {claim.name: min(total if claim.quota == NO_LIMIT else claim.quota, claim.most) for claim in claims}
    rest = total - sum(shares.values())
    if rest <= 0:
        return shares
    by_priority: dict[int, list[Claim]] = {}
    for claim in sorted(claims, key=lambda claim: -claim.priority):
        by_priority.setdefault(claim.priority, []).append(claim)
    lost_by_rounding = []
    for siblings in by_priority.values():
        rest, lost = _divide_rest(rest, siblings, shares, k_value)
        lost_by_rounding.append([(lost[claim.name], claim) for claim in siblings if claim.name in lost])
    for found in lost_by_rounding:
        for _, claim in sorted(found, key=lambda each: (-each[0], each[1].created, each[1].name)):
            given = min(1.0, rest)
            shares[claim.name] += given
            rest -= given
    return shares


def _divide_rest(
    rest: float, claims: Iterable[Claim], shares: dict[str, float], k_value: float
) -> tuple[float, dict[str, float]]:
    """Offer what is left in rounds; returns what nobody took, and what rounding cost whom."""
    lost: dict[str, float] = {}
    while rest:
        wanting = [claim for claim in claims if claim.most > shares[claim.name]]
        weights = _weights(wanting, k_value)
        in_all = sum(weights)
        if not in_all:
            break
        offered, goes_on = rest, False
        for claim, weight in zip(wanting, weights, strict=True):
            wanted, offer = claim.most - shares[claim.name], offered * (weight / in_all)
            if not claim.weight:
                continue
            if wanted <= offer:
                given = wanted
                lost.pop(claim.name, None)
            else:
                given = math.floor(offer)
                if offer > given:
                    lost[claim.name] = offer - given
            shares[claim.name] += given
            rest -= given
            goes_on |= given > 0 and wanted < offer
        if not goes_on:
            break
    return rest, lost


def _weights(wanting: Sequence[Claim], k_value: float) -> list[float]:
    in_all = sum(claim.weight for claim in wanting)
    if not in_all:
        return [0.0] * len(wanting)
    parts = [claim.weight / in_all for claim in wanting]
    return [max(0.0, part + k_value * (part - claim.usage)) for claim, part in zip(wanting, parts, strict=True)]
