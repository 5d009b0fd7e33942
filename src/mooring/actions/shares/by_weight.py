"""Divide by weight: each queue's deserved share follows from the weights and from what all queues request.

For one resource and the children of one queue, the shares are w * level, kept between

    low   the guarantee
    high  what the queue requests, at most its real capability, at least its guarantee

with the one level at which they use up the amount. It is found in rounds: offer the amount by weight, settle those for
which the offer is too low or too high (whichever errs more in sum), and offer the rest again to the others. Each round
settles a queue, and the last one fits all that are left. Amounts are whole; what rounding leaves goes by single units
to those whose offers lost most by it.

Weights may be corrected by past use: with W a queue's part of the weights of those not settled, U its part of the
cluster in the past, and k a constant, the weight becomes max(0, W + k * (W - U)).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mooring.actions.shares.resources import UNLIMITED, Columns, Floats, Row
from mooring.actions.shares.tree import ROOT_ROW, QueueTree


@dataclass(frozen=True, slots=True)
class Past:
    """What queues had of the cluster in the past, and how much that is to count."""

    used: Floats
    """Shape (queues, resources), as parts of all there was."""
    k_value: float


def deserved_by_weight(tree: QueueTree, demand: Columns, past: Past | None = None) -> Columns:
    """Divide the cluster among the queues below the root, each one's share among its children, and so on.

    No level gives more than it has: the shares of siblings add up to at most their parent's.
    """
    weights = np.array([spec.weight for spec in tree.specs])
    low = tree.guarantee
    high = np.maximum(low, np.minimum(tree.real_capability, demand))
    deserved = np.zeros_like(low)
    deserved[ROOT_ROW] = tree.capability[ROOT_ROW]
    for row, children in enumerate(tree.children):
        if children:
            below = slice(children.start, children.stop)
            used = None if past is None else Past(past.used[below], past.k_value)
            deserved[below] = divide(deserved[row], weights[below], low[below], high[below], used)
    return deserved


def divide(amount: Row, weights: Floats, low: Columns, high: Columns, past: Past | None = None) -> Columns:
    """Divide amounts (resources,) among queues with weights (queues,), within bounds (queues, resources).

    >>> one = lambda *values: np.array(values).reshape(-1, 1)
    >>> divide(np.array([10]), np.array([1.0, 1.0, 2.0]), one(0, 0, 0), one(1, 9, 9)).ravel().tolist()
    [1, 3, 6]
    """
    low = _within(amount, low)
    high = np.maximum(low, np.minimum(high, UNLIMITED))
    shares = np.zeros_like(low)
    is_open = np.ones(low.shape, dtype=bool)
    rest = amount.astype(np.int64)
    while is_open.any():
        offers = _offers(rest, weights, is_open, past)
        too_low, too_high = is_open & (offers < low), is_open & (offers > high)
        error = np.where(too_low, low - offers, 0.0).sum(axis=0) - np.where(too_high, offers - high, 0.0).sum(axis=0)
        settled = (too_low & (error > 0)) | (too_high & (error < 0))
        bound = np.where(too_low, low, high)
        # Both kinds of error may cancel out: then the bounds are right for all that erred.
        settled |= (too_low | too_high) & (error == 0)
        shares[settled] = bound[settled]
        is_last = ~settled.any(axis=0) & is_open.any(axis=0)
        for column in np.flatnonzero(is_last):
            chosen = is_open[:, column]
            shares[chosen, column] = _round(offers[chosen, column], int(rest[column]), high[chosen, column])
        rest = rest - np.where(settled, bound, 0).sum(axis=0)
        is_open &= ~settled & ~is_last
    return shares


def _within(amount: Row, low: Columns) -> Columns:
    """Guarantees as far as there is enough for all of them; else as large a part of each as there is of their sum."""
    sums = low.sum(axis=0, dtype=np.float64)
    short = sums > amount
    if not short.any():
        return low
    part = np.divide(amount, sums, out=np.ones_like(sums), where=short)
    scaled = np.floor(low * part).astype(np.int64)
    return np.where(short, scaled, low)


def _offers(rest: Row, weights: Floats, is_open: npt.NDArray[np.bool_], past: Past | None) -> Floats:
    open_weights = np.where(is_open, weights[:, None], 0.0)
    sums = open_weights.sum(axis=0)
    parts = np.divide(open_weights, sums, out=np.zeros_like(open_weights), where=sums > 0)
    if past is not None:
        corrected = np.where(is_open, np.maximum(0.0, parts + past.k_value * (parts - past.used)), 0.0)
        sums = corrected.sum(axis=0)
        # If all have had more than their part, the past tells nothing apart, and the weights alone count.
        parts = np.divide(corrected, sums, out=parts, where=sums > 0)
    offers: Floats = np.maximum(rest, 0) * parts
    return offers


def _round(offers: Floats, rest: int, high: Row) -> Row:
    """Whole shares from offers that are within bounds."""
    whole = np.minimum(np.floor(offers).astype(np.int64), high)
    left = rest - int(whole.sum())
    if left < 0:  # amounts beyond 2**53 are inexact as floats
        whole[np.argmax(whole)] += left
        return whole
    lost = offers - whole
    lost[whole >= high] = 0.0
    order = np.argsort(-lost, kind="stable")[:left]
    # Weights of 0 are offered nothing, so they lose nothing and get nothing.
    whole[order[lost[order] > 0]] += 1
    return whole
