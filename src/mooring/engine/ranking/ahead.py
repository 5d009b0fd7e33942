"""The keys of rows after one and more further pods of a shape, computed ahead of their need."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers.answers import ShapeAnswers
from mooring.state.rows import NodeRows, Rows

STEPS = 8
"""How many more pods on a single row are computed at once where the table does not reach."""
MISSES = 8
"""So many rows by themselves cost about as much as a table for thousands."""
MOST_STEPS = 64
LARGEST_TABLE = 100_000
Likely = Callable[[int], NDArray[np.intp]]
"""Which positions may be the next to get a pod. So many are asked for; a few more or fewer will do."""


class Ahead:
    """Answers what a row's key will be: by a table for the rows that are likely to be taken next, else row by row."""

    def __init__(self, answers: ShapeAnswers, rows: Rows, taken: list[int], expected_pods: int) -> None:
        """`taken` says how many pods each position has got so far."""
        self._answers = answers
        self._rows = rows
        self._taken = taken
        self._expected = expected_pods
        self._misses = MISSES - 1 if expected_pods >= MISSES else 0  # the first miss is worth a table, if many follow
        self._steps = 1
        self._table: list[list[int]] = []
        """A line for one, two and more pods beyond `_base_of`, a column for each row that it covers."""
        self._column_of: dict[int, int] = {}
        """By position."""
        self._base_of: list[int] = []
        self._single: dict[int, tuple[int, list[int]]] = {}

    def expect(self, pods: int) -> None:
        """So many further pods are to come."""
        self._expected = pods

    def rebase(self, positions: Iterable[int]) -> None:
        """The pods taken so far run on their rows now: count from there. Call it before `taken` is set back."""
        self._single.clear()
        for position in positions:
            column = self._column_of.get(position)
            if column is not None:
                self._base_of[column] -= self._taken[position]

    def key(self, position: int, pods: int, likely: Likely) -> int:
        """The key of the row at a position once so many further pods run there.

        Whoever asks is not kept: it has us, and the two would stay in memory until somebody looks for such rings.
        """
        found = self._in_table(position, pods)
        if found is None:
            self._misses += 1
            if self._misses >= MISSES and self._expected >= MISSES:
                self._misses = 0
                self._make_table(likely)
                found = self._in_table(position, pods)
        return self._one_row(position, pods) if found is None else found

    def _in_table(self, position: int, pods: int) -> int | None:
        column = self._column_of.get(position)
        if column is None:
            return None
        line = pods - self._base_of[column] - 1
        return self._table[line][column] if 0 <= line < len(self._table) else None

    def _make_table(self, likely: Likely) -> None:
        """Cover the best rows as things stand, each from the pods that it has got; further each time."""
        positions = likely(min(2 * self._expected, LARGEST_TABLE))
        width = len(positions)
        columns = positions.tolist()
        # The position that is being asked about counts as taken already: its line starts one pod earlier.
        base = np.maximum(np.array([self._taken[position] for position in columns], np.int64) - 1, 0)
        steps = max(1, min(self._steps + 1, MOST_STEPS, LARGEST_TABLE // width))
        pods = base + np.arange(1, steps + 1)[:, np.newaxis]
        keys = self._keys(np.tile(self._rows[positions], steps), pods.reshape(-1))
        self._table = keys.reshape(steps, width).tolist()
        self._column_of = dict(zip(columns, range(width), strict=True))
        self._base_of = base.tolist()
        self._steps = 2 * steps

    def _one_row(self, position: int, pods: int) -> int:
        known = self._single.get(position)
        if known is None or not known[0] <= pods < known[0] + len(known[1]):
            steps = np.arange(pods, pods + STEPS, dtype=np.int64)
            keys = self._keys(np.full(STEPS, self._rows[position], np.intp), steps)
            known = self._single[position] = (pods, keys.tolist())
        return known[1][pods - known[0]]

    def _keys(self, rows: Rows, pods: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._answers.usage_keys(NodeRows(self._answers.cluster.nodes, rows, pods, self._answers.shape))


def largest(keys: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    """The positions of the largest keys, in any order."""
    if count >= len(keys):
        return np.arange(len(keys))
    found: NDArray[np.intp] = np.argpartition(keys, len(keys) - count)[len(keys) - count :]
    return found
