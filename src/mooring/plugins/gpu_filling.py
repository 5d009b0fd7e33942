"""How much of a node's GPUs pods would fill that come in given orders.

One order after the other, compiled, or all of them at once, by NumPy: both count in whole numbers and find the same.
Numba is optional (`pip install mooring[fast]`), and loaded where there is enough to do.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Loops = TypeVar("Loops", bound=Callable[..., Any])
WORTHWHILE = 200
"""States of nodes from which loading the compiled way pays: NumPy takes some milliseconds for each."""


class Fill(Protocol):
    """By state of a node: thousandths of GPUs that are filled, added up over all orders."""

    def __call__(self, cpu: Ints, left: Ints, kinds: Ints, pods: Ints, access: Ints, orders: Ints) -> Ints:
        """`left` is (states, cards), those with the most left first; `kinds` says by which line of `access`, (kinds,
        classes), a state goes. A line of `pods` is a class: millis of CPU, thousandths of each GPU, GPUs. `orders`
        is (orders, arrivals)."""


def fill_at_once(cpu: Ints, left: Ints, kinds: Ints, pods: Ints, access: Ints, orders: Ints) -> Ints:
    """By NumPy: each pod that comes goes to all states in all orders at once."""
    shape = len(cpu), len(orders)
    cpu_left = np.repeat(cpu[:, np.newaxis], shape[1], axis=1)
    cards = np.repeat(np.maximum(left, 0)[:, np.newaxis, :], shape[1], axis=1)
    filled = np.zeros(shape, np.int64)
    for coming in orders.T:
        asked, milli, count = pods[coming].T
        fits = cards >= milli[:, np.newaxis]
        takes = (cpu_left >= asked) & (access[kinds][:, coming] > 0) & (fits.sum(axis=2) >= count)
        # Of the cards that fit, those with the least left: the last ones, for they stand with the fullest at the end.
        rank = np.cumsum(fits[:, :, ::-1], axis=2)[:, :, ::-1]
        taken = fits & (rank <= count[:, np.newaxis]) & takes[:, :, np.newaxis]
        cards = np.sort(cards - np.where(taken, milli[:, np.newaxis], 0), axis=2)[:, :, ::-1]
        cpu_left -= np.where(takes, asked, 0)
        filled += np.where(takes, milli * count, 0)
    total: Ints = filled.sum(axis=1)
    return total


def fill_one_by_one(cpu: Ints, left: Ints, kinds: Ints, pods: Ints, access: Ints, orders: Ints) -> Ints:
    """As loops, which Numba compiles."""
    found = np.zeros(len(cpu), np.int64)
    width = left.shape[1]
    cards = np.zeros(width, np.int64)
    fits = np.zeros(len(pods), np.bool_)
    for state in range(len(cpu)):
        # Who does not fit at first never will, and with less than this nobody fits any more.
        least_cpu, least_milli = cpu[state] + 1, left[state, 0] + 1
        for pod in range(len(pods)):
            asked, milli, count = pods[pod, 0], pods[pod, 1], pods[pod, 2]
            fits[pod] = access[kinds[state], pod] > 0 and asked <= cpu[state] and 0 < count <= width
            fits[pod] = fits[pod] and milli <= left[state, count - 1]
            if fits[pod]:
                least_cpu, least_milli = min(least_cpu, asked), min(least_milli, milli)
        for order in range(len(orders)):
            cpu_left = cpu[state]
            for card in range(width):
                cards[card] = max(left[state, card], 0)
            for at in range(orders.shape[1]):
                if cpu_left < least_cpu or cards[0] < least_milli:
                    break
                pod = orders[order, at]
                if not fits[pod]:
                    continue
                asked, milli, count = pods[pod, 0], pods[pod, 1], pods[pod, 2]
                # They stand with the fullest at the end: those that fit are the first ones.
                if cpu_left < asked or cards[count - 1] < milli:
                    continue
                last = count - 1
                while last + 1 < width and cards[last + 1] >= milli:
                    last += 1
                for card in range(last, last - count, -1):
                    amount = cards[card] - milli
                    place = card
                    while place + 1 < width and cards[place + 1] > amount:
                        cards[place] = cards[place + 1]
                        place += 1
                    cards[place] = amount
                cpu_left -= asked
                found[state] += milli * count
    return found


_compiled: dict[str, Any] = {}


def fill(worthwhile: bool) -> Fill:
    """The compiled way, if it pays and Numba is installed; else NumPy's."""
    return (compiled(fill_one_by_one) or fill_at_once) if worthwhile else fill_at_once


def compiled(loops: Loops) -> Loops | None:
    """A function of loops, compiled once; None without Numba."""
    name = loops.__qualname__
    if name not in _compiled:
        try:
            import numba
        except ImportError:
            return None
        try:
            _compiled[name] = numba.njit(cache=True)(loops)
        except RuntimeError:  # there is no folder to keep the result in
            _compiled[name] = numba.njit()(loops)
    found: Loops = _compiled[name]
    return found
