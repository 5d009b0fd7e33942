"""The beta distribution: how likely a share of a whole is at most so much, given its mean and standard deviation."""

import math
from functools import lru_cache

TINY = 1e-300
"""In place of 0 in a divisor."""
PRECISE = 1e-15
MOST_STEPS = 10_000
"""Far more than are needed but for distributions that are as good as a point."""


def beta_parameters(mean: float, deviation: float) -> tuple[float, float] | None:
    """The parameters of the distribution with this mean and deviation; None if there is none."""
    variance = deviation * deviation
    if not 0 < mean < 1 or not 0 < variance < mean * (1 - mean):
        return None
    size = mean * (1 - mean) / variance - 1
    return mean * size, (1 - mean) * size


@lru_cache(maxsize=65536)
def beta_probability(alpha: float, beta: float, most: float) -> float:
    """How likely it is that a share is at most so much: the regularised incomplete beta function."""
    if most <= 0:
        return 0.0
    if most >= 1:
        return 1.0
    scale = alpha * math.log(most) + beta * math.log1p(-most)
    front = math.exp(scale + math.lgamma(alpha + beta) - math.lgamma(alpha) - math.lgamma(beta))
    if most < (alpha + 1) / (alpha + beta + 2):
        return front * _fraction(alpha, beta, most) / alpha
    return 1 - front * _fraction(beta, alpha, 1 - most) / beta


def _fraction(alpha: float, beta: float, most: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method (Numerical Recipes, 6.4)."""
    upper, lower = 1.0, 1 / _not_zero(1 - (alpha + beta) * most / (alpha + 1))
    value = lower
    for step in range(1, MOST_STEPS):
        twice = 2 * step
        even = step * (beta - step) * most / ((alpha + twice - 1) * (alpha + twice))
        odd = -(alpha + step) * (alpha + beta + step) * most / ((alpha + twice) * (alpha + twice + 1))
        for term in (even, odd):
            lower = 1 / _not_zero(1 + term * lower)
            upper = _not_zero(1 + term / upper)
            change = lower * upper
            value *= change
        if abs(change - 1) < PRECISE:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
