"""Which pods to move so that others have room, on amounts alone: the fewest first.

All sets of pods are tried in the order of their size, and for each it is searched for a place for everything. Where
there are too many sets, nodes are freed where the fewest pods leave for each pod that comes. What comes of it is to be
rehearsed: amounts are necessary, not sufficient.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Amounts = tuple[int, ...]
"""One number a resource, in the same order everywhere."""

MOST_MOVES = 16
MOST_STEPS = 50_000
"""So many sets of pods, and places for a pod, are looked at in one search."""


@dataclass(frozen=True, slots=True)
class Movable:
    """A pod that may be moved."""

    key: str
    row: int
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on a row, and who may leave it."""

    row: int
    free: Amounts
    pods: tuple[Movable, ...] = ()


@dataclass(frozen=True, slots=True)
class Rearranged:
    """Where those that wait would go, and those that run."""

    hosts: tuple[int, ...]
    """A row for each that waits."""
    targets: Mapping[str, int]
    """By the key of each pod that moves."""


class OutOfSteps(Exception):
    """The search has looked at as much as it may."""


class _Steps:
    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OutOfSteps


def rearrangements(
    rooms: Sequence[Room], ask: Amounts, count: int, *, most_moves: int = MOST_MOVES, most_steps: int = MOST_STEPS
) -> Iterator[Rearranged]:
    """Yield ways to give `count` pods that ask for so much their room, with the fewest moves first."""
    steps = _Steps(most_steps)
    fitting = {room.row: _times(room.free, ask) for room in rooms}
    try:
        for moves in range(1, most_moves + 1):
            yield from _with_moves(rooms, ask, count, moves, fitting, steps)
    except OutOfSteps:
        found = _greedy(rooms, ask, count, most_moves, fitting)
        if found is not None:
            yield found


def _with_moves(
    rooms: Sequence[Room], ask: Amounts, count: int, moves: int, fitting: Mapping[int, int], steps: _Steps
) -> Iterator[Rearranged]:
    pods = [pod for room in rooms for pod in room.pods]
    seen = set[tuple[tuple[int, Amounts], ...]]()
    by_row = {room.row: room for room in rooms}
    total = sum(fitting.values())
    for leaving in combinations(pods, moves):
        steps.take()
        alike = tuple(sorted((pod.row, pod.amounts) for pod in leaving))
        if alike in seen:
            continue
        seen.add(alike)
        free = _without(by_row, leaving)
        gained = sum(_times(amounts, ask) - fitting[row] for row, amounts in free.items())
        if total + gained < count:
            continue
        found = _placed({room.row: free.get(room.row, room.free) for room in rooms}, ask, count, leaving, steps)
        if found is not None:
            yield found


def _greedy(
    rooms: Sequence[Room], ask: Amounts, count: int, most_moves: int, fitting: Mapping[int, int]
) -> Rearranged | None:
    """Free nodes where the fewest pods leave for each that comes, and the smallest of those."""
    offers: list[tuple[float, int, int, tuple[Movable, ...], int]] = []
    for room in rooms:
        pods = sorted(room.pods, key=lambda pod: (pod.amounts, pod.key))
        for size in range(1, min(len(pods), most_moves) + 1):
            leaving = tuple(pods[:size])
            gained = _times(_sum(room.free, *(pod.amounts for pod in leaving)), ask) - fitting[room.row]
            if gained > 0:
                offers.append((size / gained, size, room.row, leaving, gained))
                break
    short = count - sum(fitting.values())
    chosen: list[Movable] = []
    for _, size, _, leaving, gained in sorted(offers, key=lambda offer: offer[:3]):
        if short <= 0 or len(chosen) + size > most_moves:
            break
        chosen += leaving
        short -= gained
    if short > 0 or not chosen:
        return None
    by_row = {room.row: room for room in rooms}
    free = {**{room.row: room.free for room in rooms}, **_without(by_row, chosen)}
    try:
        return _placed(free, ask, count, chosen, _Steps(MOST_STEPS))
    except OutOfSteps:
        return None


def _placed(
    free: Mapping[int, Amounts], ask: Amounts, count: int, leaving: Sequence[Movable], steps: _Steps
) -> Rearranged | None:
    """Find a row for everything: the largest first, on the fullest rows first."""
    items: list[tuple[Amounts, Movable | None]] = [(ask, None)] * count
    items += [(pod.amounts, pod) for pod in leaving]
    items.sort(key=lambda item: (item[0], item[1] is None), reverse=True)
    left = dict(free)
    order = sorted(free, key=lambda row: (free[row], row))
    sources = {pod.row for pod in leaving}
    places: list[int] = []

    def rows_for(index: int) -> Iterator[int]:
        """The rows worth trying: those that wait are alike, and so are rows with as much left that no pod leaves."""
        pod = items[index][1]
        if pod is None:
            first = order.index(places[-1]) if index and items[index - 1][1] is None else 0
            yield from order[first:]
            return
        tried = set[Amounts]()
        for row in sorted(order, key=lambda row: (left[row], row)):
            if row == pod.row or (row not in sources and left[row] in tried):
                continue
            if row not in sources:
                tried.add(left[row])
            yield row

    def place(index: int) -> bool:
        if index == len(items):
            return True
        for row in list(rows_for(index)):
            steps.take()
            rest = tuple(has - wants for has, wants in zip(left[row], items[index][0], strict=True))
            if min(rest) < 0:
                continue
            before, left[row] = left[row], rest
            places.append(row)
            if place(index + 1):
                return True
            places.pop()
            left[row] = before
        return False

    if not place(0):
        return None
    hosts = tuple(row for (_, pod), row in zip(items, places, strict=True) if pod is None)
    return Rearranged(hosts, {pod.key: row for (_, pod), row in zip(items, places, strict=True) if pod is not None})


def _without(rooms: Mapping[int, Room], leaving: Sequence[Movable]) -> dict[int, Amounts]:
    """What is free on the rows that pods leave."""
    free: dict[int, Amounts] = {}
    for pod in leaving:
        free[pod.row] = _sum(free.get(pod.row, rooms[pod.row].free), pod.amounts)
    return free


def _sum(*amounts: Amounts) -> Amounts:
    return tuple(map(sum, zip(*amounts, strict=True)))


def _times(free: Amounts, ask: Amounts) -> int:
    """How many that ask for so much fit."""
    return max(0, min((has // wants for has, wants in zip(free, ask, strict=True) if wants), default=0))
