"""Who may stay after all, when a gang has room: whoever leaves its members enough, in order."""

from collections.abc import Callable, Sequence

import numpy as np

from mooring.actions.preempt.gangs.choice import Choice
from mooring.actions.preempt.gangs.demand import Board, CandidateLines, Want
from mooring.actions.preempt.gangs.pool import NOBODY, Numbers
from mooring.actions.preempt.pods.candidates import Amount, SupposedRows
from mooring.engine.plugin import Mask
from mooring.state.gang_units import ALONE

Back = Callable[[Amount], Numbers]
"""How much of an amount each row gets back."""


def spare(board: Board, choice: Choice, order: Numbers) -> Mask:
    """Who of those that are gone has to, with so many members on each row; `order` has the first to stay first."""
    hosts = np.flatnonzero(np.sum(choice.members, axis=0))
    some = board.at(hosts)
    members = [counts[hosts] for counts in choice.members]
    is_on_hosts = np.zeros(len(choice.gone), np.bool_)
    is_on_hosts[some.units] = True
    gone = choice.gone & is_on_hosts
    core = board.pool.core
    for gang in in_order(gone & (board.pool.codes != ALONE), order):
        if core[gang] != NOBODY and gone[core[gang]]:
            continue
        gone[gang] = False
        if not _holds(some, lambda amount: some.given_back(gone, amount), members).all():
            gone[gang] = True
    _spare_singles(some, gone, members, order)
    return board.closed(gone)


def in_order(units: Mask, order: Numbers) -> list[int]:
    numbers = np.flatnonzero(units)
    found: list[int] = numbers[np.argsort(order[numbers], kind="stable")].tolist()
    return found


def _holds(board: Board, back: Back, members: Sequence[Numbers]) -> Mask:
    """Which rows have room for their members of every want, besides those of the others."""
    holds = np.ones(len(board.rows), np.bool_)
    for number, (want, counts) in enumerate(zip(board.wants, members, strict=True)):
        others = [np.zeros_like(counts) if i == number else other for i, other in enumerate(members)]
        holds &= want.room(board.with_back(back, others)) >= counts
    return holds


def _spare_singles(board: Board, gone: Mask, members: Sequence[Numbers], order: Numbers) -> None:
    """Bring back, on all rows at once, the first of each, then the second, and so on; surplus only after its core."""
    core = board.pool.core
    lines = CandidateLines(board, gone & (board.pool.codes == ALONE), order)
    back: dict[Amount, Numbers] = {}
    for number, units in enumerate(lines.units):
        may_stay = (units != NOBODY) & ((core[units] == NOBODY) | ~gone[core[units]])

        def without(amount: Amount, number: int = number, may_stay: Mask = may_stay) -> Numbers:
            if amount not in back:
                back[amount] = board.given_back(gone, amount)
            left: Numbers = back[amount] - lines.each(amount)[number] * may_stay
            return left

        stays = may_stay & _holds(board, without, members)
        gone[units[stays]] = False
        for amount, found in back.items():
            found -= lines.each(amount)[number] * stays


def spare_by_total(board: Board, want: Want, gone: Mask, order: Numbers) -> Mask:
    """Who of those that are gone has to, wherever members of the one want then run, as long as there is room for all.

    For members whose room is exact: afterwards nobody can be spared without leaving too little room.
    """
    gone = gone.copy()
    slack = int(want.room(board.supposed(gone)).sum()) - want.count
    is_gone = gone[board.units]
    some = board.at(np.unique(board.positions[is_gone]))
    while slack > 0 and gone.any():
        loss = _loss_of_each(some, want, gone)
        core = board.pool.core
        may_stay = gone & (loss <= slack) & ((core == NOBODY) | ~gone[core])
        first = in_order(may_stay, order)[:1]
        if not first:
            break
        gone[first] = False
        slack -= int(loss[first[0]])
    return gone


def _loss_of_each(board: Board, want: Want, gone: Mask) -> Numbers:
    """How many places fewer there are if a unit that is gone is back, each by itself."""
    pods = np.flatnonzero(gone[board.units])
    keys, pair_of = np.unique(board.units[pods] * len(board.rows) + board.positions[pods], return_inverse=True)
    units, positions = keys // max(1, len(board.rows)), keys % max(1, len(board.rows))

    def given_back(amount: Amount) -> Numbers:
        back: Numbers = board.given_back(gone, amount)[positions]
        np.subtract.at(back, pair_of, board.each(amount)[pods])
        return back

    nodes = board.pool.running.cluster.rows(board.rows[positions])
    lost = want.room(board.supposed(gone))[positions] - want.room(SupposedRows(nodes, given_back))
    total = np.zeros(len(gone), np.int64)
    np.add.at(total, units, lost)
    return total
