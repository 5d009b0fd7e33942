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
    added, None for any number. Groups next to one another that ask for the same are packed in one go.
    """
    bins = _Bins(fresh)
    placed: list[int] = []
    begin = 0
    while begin < len(asks):
        end = begin + 1
        while end < len(asks) and (asks[end] is asks[begin] or (asks[end] == asks[begin]).all()):
            end += 1
        run = counts[begin:end]
        left = _pack_run(bins, asks[begin], run, most_nodes)
        for count in run:
            placed.append(min(count, left))
            left -= placed[-1]
        begin = end
    return Packed(bins.used, tuple(placed))


def _pack_run(bins: "_Bins", ask: Amounts, counts: Sequence[int], most_nodes: int | None) -> int:
    """Pack groups that ask for the same; return how many of their pods, the first ones, have a place."""
    total = sum(counts)
    filled = bins.fill(ask, total)
    left = total - filled
    if not left or bins.is_last_empty:
        return filled
    may_add = left if most_nodes is None else max(most_nodes - bins.count, 0)
    each = _room(bins.fresh[:, None], ask).item()
    if not each:
        bins.add(ask, 0, 0, min(may_add, 1))
        return filled
    added = min(-(-left // each), may_add)
    first = bins.count
    bins.add(ask, each, left, added)
    done = min(left, each * added)
    # A group that begins on a node with room left finds it by looking at all nodes: the next search goes on from there.
    start = total - filled
    for count in reversed(counts):
        start -= count
        if 0 < start < done and start % each:
            bins.found(first + start // each)
            break
    return filled + done


def _room(free: Amounts, ask: Amounts) -> Amounts:
    """How many pods that ask for this each node takes; `free` is (resources, nodes)."""
    asked = np.flatnonzero(ask)
    room: Amounts = (free[asked] // ask[asked, None]).min(axis=0)
    return np.maximum(room, 0, out=room)


class _Bins:
    """The nodes that were added: what each has free, (resources, nodes), and which have pods."""

    def __init__(self, fresh: Amounts) -> None:
        self.fresh = fresh
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

    def found(self, node: int) -> None:
        """A search ended at a node: the next one begins behind it."""
        self._last_found = node

    def fill(self, ask: Amounts, count: int) -> int:
        """Let pods take what there is room for, going round the nodes; return how many found a place."""
        if not self.count:
            return 0
        free = self._free[:, : self.count]
        if count == 1:
            return self._fill_one(free, ask)
        room = _room(free, ask)
        total = int(room.sum())
        if not total:
            return 0
        placed = min(count, total)
        taken = self._in_turn(room, placed)
        free -= ask[:, None] * taken
        self._has_pods[: self.count] |= taken > 0
        return placed

    def _fill_one(self, free: Amounts, ask: Amounts) -> int:
        asked = np.flatnonzero(ask)
        nodes = np.flatnonzero((free[asked] >= ask[asked, None]).all(axis=0))
        if not len(nodes):
            return 0
        at = int(nodes.searchsorted(self._last_found, side="right"))
        node = int(nodes[at if at < len(nodes) else 0])
        free[:, node] -= ask
        self._has_pods[node] = True
        self._last_found = node
        return 1

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
        self._free[:, added] = self.fresh[:, None] - ask[:, None] * taken
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
    low, high = 0, int(room.max())
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(room, middle).sum()) <= count:
            low = middle
        else:
            high = middle - 1
    return low
