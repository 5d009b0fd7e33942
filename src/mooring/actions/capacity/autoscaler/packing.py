"""How many nodes pods need that ask for nothing but amounts, in arithmetic on columns: no pod is placed one by one.

Pods are packed as on rows (`estimate.py`), with the same outcome: first onto the nodes added so far, one after the
other in turn, then onto new nodes, each filled before the next is added.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packed:
    """How many nodes got pods, and how many pods of each group have a place."""

    nodes: int
    placed: tuple[int, ...]


def pack(fresh: Amounts, asks: Sequence[Amounts], counts: Sequence[int], most_nodes: int | None) -> Packed:
    """Pack groups of equal pods, in order, onto equal nodes.

    `fresh` is what a new node has free, `asks` what each pod of a group takes, both (resources,); `most_nodes` may be
    added, None for any number.
    """
    bins = _Bins(fresh)
    may_add = True
    placed = []
    for ask, count in zip(asks, counts, strict=True):
        done = bins.fill(ask, count)
        left = count - done
        if left and may_add and not bins.is_last_empty:
            each = _room(fresh[:, None], ask).item()
            if each:
                needed = -(-left // each)
                added = needed if most_nodes is None else min(needed, most_nodes - bins.count)
                bins.add(ask, each, left, added)
                done += min(left, each * added)
                may_add = added == needed
            elif most_nodes is None or bins.count < most_nodes:
                bins.add(ask, 0, 0, 1)
            else:
                may_add = False
        placed.append(done)
    return Packed(bins.used, tuple(placed))


def _room(free: Amounts, ask: Amounts) -> Amounts:
    """How many pods that ask for this each node takes; `free` is (resources, nodes)."""
    asked = np.flatnonzero(ask)
    room: Amounts = (free[asked] // ask[asked, None]).min(axis=0)
    return np.maximum(room, 0, out=room)


class _Bins:
    """The nodes that were added: what each has free, (resources, nodes), and which have pods."""

    def __init__(self, fresh: Amounts) -> None:
        self._fresh = fresh
        self._free = np.zeros((len(fresh), 64), np.int64)
        self._has_pods = np.zeros(64, np.bool_)
        self._last_found = -1
        self.count = 0

    @property
    def used(self) -> int:
        return int(np.count_nonzero(self._has_pods[: self.count]))

    @property
    def is_last_empty(self) -> bool:
        """Whether the node that was added last took nobody: then another would take nobody either."""
        return self.count > 0 and not self._has_pods[self.count - 1]

    def fill(self, ask: Amounts, count: int) -> int:
        """Let pods take what there is room for, going round the nodes; return how many found a place."""
        if not self.count:
            return 0
        free = self._free[:, : self.count]
        room = _room(free, ask)
        total = int(room.sum())
        if not total:
            return 0
        placed = min(count, total)
        taken = self._in_turn(room, placed)
        free -= ask[:, None] * taken
        self._has_pods[: self.count] |= taken > 0
        return placed

    def _in_turn(self, room: Amounts, count: int) -> Amounts:
        """How many of so many pods each node gets, one at a time in turn from the one after the one found last."""
        rounds = _whole_rounds(room, count)
        taken: Amounts = np.minimum(room, rounds)
        rest = count - int(taken.sum())
        if rest:
            turn = self._turn(np.flatnonzero(room > rounds))[:rest]
            taken[turn] += 1
            self._last_found = int(turn[-1])
        else:
            self._last_found = int(self._turn(np.flatnonzero(room >= rounds))[-1])
        return taken

    def _turn(self, nodes: NDArray[np.intp]) -> NDArray[np.intp]:
        at = int(np.searchsorted(nodes, self._last_found, side="right"))
        return np.concatenate([nodes[at:], nodes[:at]])

    def add(self, ask: Amounts, each: int, count: int, nodes: int) -> None:
        """Add nodes, and let so many pods fill them one after the other."""
        if nodes <= 0:
            return
        self._reserve(self.count + nodes)
        taken = np.full(nodes, each, np.int64)
        taken[-1] = min(each, count - each * (nodes - 1)) if each else 0
        added = slice(self.count, self.count + nodes)
        self._free[:, added] = self._fresh[:, None] - ask[:, None] * taken
        self._has_pods[added] = taken > 0
        self.count += nodes

    def _reserve(self, count: int) -> None:
        width = self._free.shape[1]
        if count > width:
            more = max(count, 2 * width) - width
            self._free = np.pad(self._free, ((0, 0), (0, more)))
            self._has_pods = np.pad(self._has_pods, (0, more))


def _whole_rounds(room: Amounts, count: int) -> int:
    """The largest number of rounds in which no more than so many pods find a place."""
    if count == 1:
        return 0 if np.count_nonzero(room) > 1 else 1
    low, high = 0, int(room.max())
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(room, middle).sum()) <= count:
            low = middle
        else:
            high = middle - 1
    return low
