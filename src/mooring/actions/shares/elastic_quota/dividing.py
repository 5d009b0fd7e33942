"""Koordinator's division of one resource of one quota among the quotas below it: minimums first, then by weight."""

from collections.abc import Sequence
from typing import NamedTuple


class Claim(NamedTuple):
    """What one quota brings to the division."""

    least: int
    """Its min, or what is left of that where there is too little."""
    asked: int
    """Its request, within its max."""
    weight: int
    lends: bool = True
    """Whether others may have of its min what it does not ask for."""


def share_out(total: int, claims: Sequence[Claim]) -> list[int]:
    """The runtime of each quota. Together they exceed the total only if their minimums do."""
    given = [claim.asked if claim.lends and claim.asked <= claim.least else claim.least for claim in claims]
    short = [index for index, claim in enumerate(claims) if claim.asked > claim.least]
    rest = total - sum(given)
    while rest > 0 and short:
        parts = _by_weight(rest, [claims[index].weight for index in short])
        returned, still_short = 0, []
        for index, part in zip(short, parts, strict=True):
            given[index] += part
            surplus = given[index] - claims[index].asked
            if surplus < 0:
                still_short.append(index)
            else:
                given[index] -= surplus
                returned += surplus
        rest, short = returned, still_short
    return given


def _by_weight(rest: int, weights: Sequence[int]) -> list[int]:
    """A rest in whole parts by weight: those with the largest remainders get one more, the first among equals."""
    together = sum(weights)
    if together <= 0:
        return [0] * len(weights)
    exact = [divmod(rest * weight, together) for weight in weights]
    parts = [whole for whole, _ in exact]
    by_remainder = sorted(range(len(weights)), key=lambda index: -exact[index][1])
    for index in by_remainder[: rest - sum(parts)]:
        parts[index] += 1
    return parts


def scaled_minimums(total: int, minimums: Sequence[int]) -> list[int]:
    """Minimums that fit a total that is less than all of them together, each in proportion."""
    together = sum(minimums)
    if total >= together:
        return list(minimums)
    if total <= 0:
        return [0] * len(minimums)
    return [int(float(total) * float(least) / float(together)) for least in minimums]
