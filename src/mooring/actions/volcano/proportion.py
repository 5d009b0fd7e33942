"""Divide by weight: each queue's deserved share follows from the weights and from what everybody asks for.

There are two ways. `deserved_in_rounds` is Volcano's: what is left is offered by weight again and again, to all who
have jobs and are not satisfied in everything yet; a queue gets no more than it asks for or can reach, and no less than
its guarantee, on top of which later rounds add. Shares are fractions, and large guarantees can make them exceed what
there is.

`deserved_by_weight` is ours. For one resource and the children of one queue, the shares are w * level, kept between

    low   the guarantee
    high  what the queue asks for, at most its real capability, at least its guarantee

with the one level at which they use up the amount. It is found in rounds: offer the amount by weight, settle those for
whom the offer is too low or too high (whichever errs more in sum), and offer the rest again to the others. Each round
settles somebody, and the last one fits all that are left. Amounts are whole; what rounding leaves goes by single units
to those whose offers lost most by it.

Weights may be corrected by past use: with W a queue's part of the weights of those not settled, U its part of the
cluster in the past, and k a constant, the weight becomes max(0, W + k * (W - U)).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mooring.actions.volcano.resources import UNLIMITED, Columns, Row
from mooring.actions.volcano.tree import ROOT_ROW, QueueTree
from mooring.model.values.requests import PODS

Floats = npt.NDArray[np.float64]

ROUNDING = {"cpu": 0.1, "memory": 0.1, PODS: 0.1}
ROUNDING_OF_OTHERS = 1e-4
"""Less than this is nothing: a tenth of the unit that Volcano counts in, which is a thousandth for what is not here."""


@dataclass(frozen=True, slots=True)
class Past:
    """What queues had of the cluster in the past, and how much that is to count."""

    used: Floats
    """Shape (queues, resources), as parts of all there was."""
    k_value: float


def deserved_in_rounds(tree: QueueTree, demand: Columns) -> Floats:
    """Divide the cluster among the queues below the root, each one's share among its children, and so on."""
    weights = np.array([spec.weight for spec in tree.specs])
    counts = np.array([name != PODS for name in tree.resources.names] or [True])
    rounding = np.array([ROUNDING.get(name, ROUNDING_OF_OTHERS) for name in tree.resources.names] or [0.1])
    deserved: Floats = tree.guarantee.astype(np.float64)
    deserved[ROOT_ROW] = tree.capability[ROOT_ROW]
    has_jobs = [any(asked) for asked in demand.tolist()]
    for row, children in enumerate(tree.children):
        below = np.array([child for child in children if has_jobs[child]], dtype=np.intp)
        if len(below):
            most = np.minimum(tree.real_capability[below], demand[below]).astype(np.float64)
            least = tree.guarantee[below].astype(np.float64)
            rounds = Rounds(weights[below], least, most, demand[below])
            deserved[below] = _in_rounds(deserved[row], rounds, counts, rounding)
    return deserved


class Rounds(NamedTuple):
    """Queues that divide something, shape (queues,) and (queues, resources)."""

    weights: Floats
    least: Floats
    most: Floats
    request: Columns


def _in_rounds(amount: Floats, queues: Rounds, counts: npt.NDArray[np.bool_], rounding: Floats) -> Floats:
    """Divide amounts (resources,) among queues; `counts` are the resources of which a rest is offered again."""
    weights, least, most, request = queues
    deserved = np.zeros_like(least)
    is_open = np.ones(len(weights), dtype=bool)
    rest = amount.astype(np.float64)
    while is_open.any():
        before = deserved[is_open]
        part = weights[is_open] / weights[is_open].sum()
        after = np.maximum(np.minimum(before + part[:, None] * rest, most[is_open]), least[is_open])
        deserved[is_open] = after
        is_open[is_open] = ~((request[is_open] <= after + rounding).all(axis=1) | (after == before).all(axis=1))
        left = np.maximum(0.0, rest - (after - before).sum(axis=0))
        if (left < rounding)[counts].all() or (left == rest).all():
            break
        rest = left
    return deserved


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
