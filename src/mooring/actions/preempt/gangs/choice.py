"""Whom to let go so that a gang has room on some rows: cheaply, pods by themselves before whole gangs.

Everything here is a supposition in columns. It is exact for members of one shape whose filters look at usage alone;
for others it is a good guess, which is then tried in earnest.
"""

from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.gangs.demand import Board, CandidateLines, Want
from mooring.actions.preempt.gangs.pool import Numbers
from mooring.actions.preempt.pods.candidates import Amount, SupposedRows
from mooring.actions.preempt.pods.choice import LOWEST_PRIORITY
from mooring.engine.plugin import Mask
from mooring.state.gang_units import ALONE
from mooring.state.running import Matrix

Costs: TypeAlias = tuple[NDArray[np.float64], ...]
"""What the going of each unit costs, the first criterion first."""


class Choice(NamedTuple):
    """Units that have to go, and how many members of each want each row then gets."""

    gone: Mask
    members: list[Numbers]


class Chooser:
    """Chooses on some rows; `rank` has the most important units first."""

    def __init__(self, board: Board, rank: Numbers, *, by_lost_work: bool) -> None:
        self._board = board
        self._rank = rank
        self._costs = _unit_costs(board, by_lost_work=by_lost_work)

    def choose(self, may_go: Mask) -> Choice | None:
        """Make room at the expense of some units; None if even all of them are not enough."""
        board = self._board
        singles = may_go & (board.pool.codes == ALONE)
        gone = np.zeros(len(may_go), np.bool_)
        if not board.is_enough(singles):
            gangs = _fewest_gangs(board, singles, may_go & ~singles, self._costs)
            if gangs is None:
                return None
            gone = gangs
        choice = Choice(gone, [])
        for want in board.wants:
            room = want.room(board.supposed(choice.gone, choice.members))
            short = want.count - int(room.sum())
            if short > 0:
                opened = self._open_rows(want, choice, singles & ~choice.gone, short)
                if opened is None:
                    return None
                choice = Choice(choice.gone | opened, choice.members)
                room = want.room(board.supposed(choice.gone, choice.members))
            choice.members.append(_fill(board, room, want.count, choice.gone))
        return choice

    def _open_rows(self, want: Want, so_far: Choice, singles: Mask, short: int) -> Mask | None:
        """Pods that go by themselves so that so many more members find room, the cheapest for what they give."""
        board, gone = self._board, so_far.gone
        now = want.room(board.supposed(gone, so_far.members))
        best = want.room(board.supposed(gone | singles, so_far.members))
        useful = np.flatnonzero(best > now)
        if int((best - now)[useful].sum()) < short:
            return None
        some = board.at(useful)
        taken = [counts[useful] for counts in so_far.members]
        lines = CandidateLines(some, singles, -self._rank)  # the least important first
        rooms = [now[useful]]
        for number in range(len(lines)):
            nodes = some.with_back(partial(lines.given_back, gone, number), taken)
            rooms.append(np.maximum(rooms[-1], want.room(nodes)))
        gains = np.stack([after - before for before, after in pairwise(rooms)])
        opened = np.zeros(len(gone), np.bool_)
        opened[_cheapest_steps(some, lines, gains, short, self._costs)] = True
        return opened


def _unit_costs(board: Board, *, by_lost_work: bool) -> Costs:
    pool = board.pool
    total = pool.sizes * (pool.priorities + float(LOWEST_PRIORITY))
    return (pool.lost.astype(np.float64), total) if by_lost_work else (total,)


def _fill(board: Board, room: Numbers, count: int, gone: Mask) -> Numbers:
    """Spread so many members over rows: first where nobody has to go, then where there is most room."""
    is_opened = np.zeros(len(room), np.bool_)
    is_opened[board.positions[gone[board.units]]] = True
    order = np.lexsort((-room, is_opened))
    before = np.cumsum(room[order]) - room[order]
    filled = np.zeros(len(room), np.int64)
    filled[order] = np.clip(count - before, 0, room[order])
    return filled


# Whole gangs.


def _fewest_gangs(board: Board, singles: Mask, gangs: Mask, costs: Costs) -> Mask | None:
    """Those gangs whose going helps most for what it costs, as many as it takes besides all pods by themselves."""
    numbers = np.flatnonzero(gangs)
    gain, share = _worth(board, singles, numbers)
    price = np.maximum(costs[0][numbers], 1.0)
    order = numbers[np.lexsort((costs[-1][numbers], -share / price, -gain / price))]

    def without(count: int) -> Mask:
        gone = np.zeros(len(gangs), np.bool_)
        gone[order[:count]] = True
        return board.closed(gone)

    low, high = 0, len(order)
    if not board.is_enough(singles | without(high)):
        return None
    while low < high:
        middle = (low + high) // 2
        if board.is_enough(singles | without(middle)):
            high = middle
        else:
            low = middle + 1
    return without(high)


def _worth(board: Board, singles: Mask, gangs: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each gang: the part of the members that fit if it goes by itself, and how many of its pods are on the rows."""
    number_of = np.full(len(singles), -1, np.int64)
    number_of[gangs] = np.arange(len(gangs))
    here = np.flatnonzero(number_of[board.units] >= 0)
    keys, pair_of = np.unique(
        number_of[board.units[here]] * len(board.rows) + board.positions[here], return_inverse=True
    )
    pair_gang, pair_position = keys // max(1, len(board.rows)), keys % max(1, len(board.rows))
    nodes = board.pool.running.cluster.rows(board.rows[pair_position])

    def given_back(amount: Amount) -> Numbers:
        back: Numbers = board.given_back(singles, amount)[pair_position]
        np.add.at(back, pair_of, board.each(amount)[here])
        return back

    gain = np.zeros(len(gangs))
    for want in board.wants:
        before = want.room(board.supposed(singles))[pair_position]
        more = want.room(SupposedRows(nodes, given_back)) - before
        gain += np.bincount(pair_gang, more, len(gangs)) / want.count
    share = np.bincount(number_of[board.units[here]], minlength=len(gangs)).astype(np.float64)
    return gain, share


# Pods by themselves.


def _cheapest_steps(board: Board, lines: CandidateLines, gains: Matrix, short: int, costs: Costs) -> Numbers:
    """The units of the cheapest steps that gain enough; whoever stands before a step in its row goes with it."""
    line, position = np.nonzero(gains)
    gain = gains[line, position]
    ratios = []
    for cost in costs:
        total = np.cumsum(np.where(lines.units >= 0, cost[lines.units], 0.0), axis=0)
        at_gain = np.where(gains > 0, total, 0.0)
        before = np.vstack([np.zeros((1, total.shape[1])), np.maximum.accumulate(at_gain, axis=0)[:-1]])
        ratio = np.where(gains > 0, (total - before) / np.maximum(gains, 1), 0.0)
        # A row's steps are taken in order: a cheap one behind a dear one is as dear as that.
        ratios.append(np.maximum.accumulate(ratio, axis=0)[line, position])
    ties = ~board.pool.running.cluster.nodes.tie.values[board.rows[position]]
    order = np.lexsort((line, position, ties, *ratios[::-1]))
    taken = order[: int(np.searchsorted(np.cumsum(gain[order]), short)) + 1]
    last = np.full(len(board.rows), -1, np.int64)
    np.maximum.at(last, position[taken], line[taken])
    goes = (np.arange(len(lines))[:, np.newaxis] <= last) & (lines.units >= 0)
    return lines.units[goes]
