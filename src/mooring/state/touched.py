"""The rows that pods came to or went from, in order, with their amounts side by side.

Each shape's answers are asked again, at the shape's turn, for the rows that changed since the turn before. With many
shapes in turn these are the same rows again and again. So a row's amounts are copied here once, when it has changed,
and everybody who reads on from some position finds them next to one another: nobody gathers them again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.state.amounts import KINDS
from mooring.state.nodes import NodeTable
from mooring.state.pods import PodChanges
from mooring.state.rows import NodeRows, Rows

SUPERSEDED = -1
"""Instead of a row: it changed again later, and what stands here is not how it is now."""


class TouchedSlice(NodeRows):
    """Some of these rows, as plugins see them. What they say about a row that changed again later is of no use."""

    __slots__ = ("_copies", "targets")

    def __init__(self, table: NodeTable, rows: Rows, targets: Rows, copies: NDArray[np.float64]) -> None:
        super().__init__(table, rows)
        self.targets = targets
        """The same rows, SUPERSEDED where the row changed again later."""
        self._copies = copies

    def count_superseded(self) -> int:
        return int(np.count_nonzero(self.targets == SUPERSEDED))

    def stacked(self, what: str, resources: tuple[str, ...]) -> NDArray[Any]:
        lines = self._table.lines_of(resources)
        if not self._table.cube.is_exact(lines):
            return super().stacked(what, resources)
        copied: NDArray[Any] = self._copies[KINDS[what], lines.at]
        return copied


class TouchedRows:
    """What changed, in the order and with the positions of the log of changes; kept as far back as it is of use."""

    def __init__(self, table: NodeTable, changes: PodChanges, least_room: int = 1024) -> None:
        """As many changes are kept as there is room for rows, and no fewer than `least_room`."""
        self._least_room = least_room
        self._table = table
        self._changes = changes
        self._start_anew()

    def since(self, position: int) -> TouchedSlice | None:
        """The rows that changed since a position; None if they are so many that all rows are better looked at."""
        self.catch_up()
        first, end = position - self._start, self._end - self._start
        if first < 0:
            return None
        return TouchedSlice(self._table, self._rows[first:end], self._targets[first:end], self._copies[:, :, first:end])

    def catch_up(self) -> None:
        """Take in what changed. Whoever asks about all rows now calls this, so as to be able to read on from here."""
        if self._source is not self._table.cube.floats or self._version != self._table.version:
            self._start_anew()
        if self._end != self._changes.position:
            self._take_in()

    def _start_anew(self) -> None:
        """Forget everything: nodes are described anew, or there are more resources or rows than there were."""
        self._version = self._table.version
        self._source = self._table.cube.floats
        kinds, lines, capacity = self._source.shape
        self._room = max(self._least_room, min(capacity, self._table.end))
        self._copies = np.empty((kinds, lines, self._room))
        self._flat_copies = self._copies.reshape(-1, self._room)
        self._flat_source = self._source.reshape(-1, capacity)
        self._rows = np.empty(self._room, np.intp)
        self._targets = np.empty(self._room, np.intp)
        self._read_from(self._changes.position)

    def _read_from(self, position: int) -> None:
        self._start = self._end = position
        self._last: dict[int, int] = {}
        """Each row's latest position."""

    def _take_in(self) -> None:
        """Copy the rows of the changes since the last time, as many as half of the room holds."""
        rows = self._changes.rows_since(self._end)
        if rows is None or len(rows) > self._room // 2:
            self._read_from(max(self._changes.start, self._changes.position - self._room // 2))
            rows = self._changes.rows_since(self._end)
            assert rows is not None
        if self._end - self._start + len(rows) > self._room:
            self._forget_first_half()
        at = self._end - self._start
        end = at + len(rows)
        if len(rows) == 1:
            self._flat_copies[:, at] = self._flat_source[:, rows.item()]
        else:
            self._flat_copies[:, at:end] = self._flat_source.take(rows, axis=1)
        self._rows[at:end] = self._targets[at:end] = rows
        last, start = self._last, self._start
        for position, row in enumerate(rows.tolist(), self._end):
            before = last.get(row, -1)
            if before >= start:
                self._targets[before - start] = SUPERSEDED
            last[row] = position
        self._end += len(rows)

    def _forget_first_half(self) -> None:
        half, end = self._room // 2, self._end - self._start
        for kept in (self._flat_copies, self._rows, self._targets):
            kept[..., : end - half] = kept[..., half:end].copy()
        self._start += half
