"""What a gang asks for, and how much of it rows would take without some of those who run there: by columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.gangs.pool import NOBODY, Numbers, Pool
from mooring.actions.preempt.pods.candidates import Amount, ShapeAmounts, SupposedRows, share_of
from mooring.actions.preempt.pods.reprieve import AskedFilter
from mooring.engine.asking import ask_passes
from mooring.engine.plugin import Mask
from mooring.engine.profile import Profile
from mooring.engine.shortcuts import ForeseenRoom, room_by
from mooring.state.pods import PodRecord
from mooring.state.remembered import Derived
from mooring.state.rows import NodeRows, Rows
from mooring.state.running import Matrix
from mooring.state.shapes import Shape

MOST = 1 << 40
"""More than any row takes: the answer of filters that have nothing to say."""


@dataclass(frozen=True)
class Want:
    """Members of one shape: so many places for them."""

    profile: Profile
    shape: Shape
    records: tuple[PodRecord, ...]
    by_usage: list[AskedFilter]
    elsewhere: list[AskedFilter]
    is_row: Mask
    """One truth a row of the table: no settled filter refuses it."""

    @property
    def count(self) -> int:
        return len(self.records)

    def room(self, nodes: NodeRows) -> Numbers:
        """How many of its pods each row takes at most, and never more than there are."""
        room = np.where(self.is_row[nodes.index], MOST, 0)
        for plugin, prepared in self.by_usage:
            found = room_by(plugin, self.shape, nodes, prepared)
            if found is None:
                found = np.where(ask_passes(plugin, self.shape, nodes, prepared), MOST, 0)
            room = np.minimum(room, found)
        return np.minimum(room, 1 if self.shape.host_ports else self.count)

    @property
    def is_exact(self) -> bool:
        """Whether rows are sure to take as many as `room` says."""
        return not self.elsewhere and all(isinstance(plugin, ForeseenRoom) for plugin, _ in self.by_usage)

    def takes(self, amount: Amount) -> int:
        """What each of its pods takes."""
        return share_of(*amount)(self.shape)


class Board:
    """Some rows, and what they would be like without some units of a pool and with some members of a gang."""

    def __init__(self, pool: Pool, shares: ShapeAmounts, rows: Rows, wants: Sequence[Want]) -> None:
        self.pool = pool
        self.rows = rows
        self.wants = wants
        self._shares = shares
        position_of = np.full(pool.running.cluster.nodes.capacity, -1, np.int64)
        position_of[rows] = np.arange(len(rows))
        positions = position_of[pool.rows]
        here = np.flatnonzero(positions >= 0)
        self.positions: Numbers = positions[here]
        """Of each pod of the pool on these rows."""
        self.units: Numbers = pool.unit[here]
        """Of each such pod: its unit."""
        self._shapes = pool.shapes[here]
        self._each: Derived[Amount, Numbers] = Derived()

    @cached_property
    def nodes(self) -> NodeRows:
        """The rows as they are."""
        return self.pool.running.cluster.rows(self.rows)

    def at(self, positions: NDArray[np.intp]) -> "Board":
        """Some of these rows."""
        return Board(self.pool, self._shares, self.rows[positions], self.wants)

    def each(self, amount: Amount) -> Numbers:
        """What each pod takes."""
        return self._each.of(amount, self._shares.of, amount, self._shapes)

    def given_back(self, gone: Mask, amount: Amount) -> Numbers:
        """How much of an amount each row gets back from some units, one truth each."""
        return self._given_back_by(gone)(amount)

    def _given_back_by(self, gone: Mask) -> Callable[[Amount], Numbers]:
        here = np.flatnonzero(gone[self.units])
        positions = self.positions[here]

        known: dict[Amount, Numbers] = {}  # each want asks for the same

        def given_back(amount: Amount) -> Numbers:
            back = known.get(amount)
            if back is None:
                back = known[amount] = np.zeros(len(self.rows), np.int64)
                np.add.at(back, positions, self.each(amount)[here])
            return back

        return given_back

    def supposed(self, gone: Mask, members: Sequence[Numbers] = ()) -> SupposedRows:
        """The rows without some units, and with so many members of each want."""
        return self.with_back(self._given_back_by(gone), members)

    def with_back(self, back: Callable[[Amount], Numbers], members: Sequence[Numbers] = ()) -> SupposedRows:
        """The rows with some amounts given back, and so many members of each want."""

        def given_back(amount: Amount) -> Numbers:
            found = back(amount)
            for want, counts in zip(self.wants, members, strict=False):  # wants that have no members yet come last
                found = found - counts * want.takes(amount)
            return found

        return SupposedRows(self.nodes, given_back)

    def is_enough(self, gone: Mask) -> bool:
        """Whether the rows may hold all members without some units; each want by itself."""
        nodes = self.supposed(gone)
        return all(int(want.room(nodes).sum()) >= want.count for want in self.wants)

    def closed(self, gone: Mask) -> Mask:
        """The same units, and the surplus of the gangs among them."""
        core = self.pool.core
        for _ in range(2):  # a surplus of a gang inside a gang follows both
            gone = gone | ((core != NOBODY) & gone[core])
        return gone


class CandidateLines:
    """Pods that go by themselves, as (lines, rows): line by line each row's, those with the lowest key first."""

    def __init__(self, board: Board, units: Mask, key: Numbers) -> None:
        here = np.flatnonzero(units[board.units])
        order = here[np.lexsort((key[board.units[here]], board.positions[here]))]
        counts = np.bincount(board.positions[here], minlength=len(board.rows))
        line = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._board = board
        self._pods = np.full((int(counts.max(initial=0)), len(board.rows)), NOBODY, np.int64)
        self._pods[line, board.positions[order]] = order
        self.units: Matrix = np.where(self._pods != NOBODY, board.units[self._pods], NOBODY)
        """NOBODY for padding."""
        self._each: Derived[Amount, Matrix] = Derived()
        self._back: Derived[Amount, Matrix] = Derived()

    def __len__(self) -> int:
        return len(self.units)

    def each(self, amount: Amount) -> Matrix:
        """What each pod takes."""
        found = self._each.get(amount)
        if found is None:
            found = self._each.put(amount, np.where(self._pods != NOBODY, self._board.each(amount)[self._pods], 0))
        return found

    def given_back(self, gone: Mask, line: int, amount: Amount) -> Numbers:
        """How much rows get back from units that are gone, always the same, and from all up to a line."""
        found = self._back.get(amount)
        if found is None:
            back = self._board.given_back(gone, amount) + np.cumsum(self.each(amount), axis=0)
            found = self._back.put(amount, back)
        so_far: Numbers = found[line]
        return so_far
