"""Scores that are normalised over all feasible rows, row by row: settled ones, and those a pod changes on its row only.

As long as the lowest and the highest raw score stay what they are, one row's change is one row's work.
"""

import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.answers.moving import NormalizedScore
from mooring.engine.asking import ask_score, normalized_between
from mooring.engine.plugin import IGNORED, PreScore, Scores
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import NodeRows, Rows


class RowScore:
    """One such score over the rows of a ranking."""

    def __init__(self, answers: ShapeAnswers, score: NormalizedScore, rows: Rows) -> None:
        self._answers = answers
        self._score = score
        self._rows = rows
        self._feasible = np.arange(len(rows))
        self.part = np.zeros(len(rows), np.int64)
        """What the score adds to each position's key."""
        self._raw: Scores = np.full(len(rows), IGNORED, np.int64)
        self.start()

    def start(self) -> None:
        """Ask about all feasible rows, and normalise over them."""
        rows = self._rows[self._feasible]
        if self._score.raw is not None:
            self._raw[self._feasible] = self._score.raw[rows]
        elif len(rows):
            nodes = NodeRows(self._answers.cluster.nodes, rows)
            if self._score.counts is not None:
                self._score.counts.refit(nodes)
            self._raw[self._feasible] = self._ask(nodes)
        self._normalize()

    def _ask(self, nodes: NodeRows) -> Scores:
        return ask_score(self._score.plugin, self._answers.shape, nodes, self._score.prepared)

    def _normalize(self) -> None:
        raw = self._raw[self._feasible]
        counted = raw[raw != IGNORED]
        self._lowest, self._highest = (int(counted.min()), int(counted.max())) if len(counted) else (0, 0)
        self._part_of: dict[int, int] = {}
        """What raw scores of single rows add to their keys, as long as the lowest and the highest stay as they are."""
        self._at_lowest = int(np.count_nonzero(counted == self._lowest))
        self._at_highest = int(np.count_nonzero(counted == self._highest))
        self.part = np.zeros(len(self._rows), np.int64)
        self.part[self._feasible] = self._weighted(raw)

    def _weighted(self, raw: Scores) -> NDArray[np.int64]:
        final = normalized_between(self._score.plugin, raw, self._lowest, self._highest)
        return (self._score.weight * final) << TIE_BITS

    def follow(self, position: int, row: NodeRows) -> bool:
        """A pod came to a row, which stays feasible; tell whether every position's part has changed."""
        if self._score.raw is not None:
            return False
        new = int(self._ask(row)[0])
        old = int(self._raw[position])
        if new == old:
            return False
        self._raw[position] = new
        if not self._still_between(old, new):
            self._normalize()
            return True
        part = self._part_of.get(new)
        if part is None:
            part = self._part_of[new] = int(self._weighted(self._raw[position : position + 1])[0])
        self.part[position] = part
        return False

    def _still_between(self, old: int, new: int) -> bool:
        if IGNORED in (old, new) or not self._lowest <= new <= self._highest:
            return False
        self._at_lowest += (new == self._lowest) - (old == self._lowest)
        self._at_highest += (new == self._highest) - (old == self._highest)
        return self._at_lowest > 0 and self._at_highest > 0

    def leave(self, position: int, feasible: NDArray[np.intp]) -> bool:
        """A row is no longer feasible; tell whether every position's part has changed."""
        self._feasible = feasible
        plugin = self._score.plugin
        if self._score.raw is None and isinstance(plugin, PreScore) and plugin.reads_feasible:
            self.start()
            return True
        old = int(self._raw[position])
        self._at_lowest -= old == self._lowest
        self._at_highest -= old == self._highest
        if old != IGNORED and (not self._at_lowest or not self._at_highest):
            self._normalize()
            return True
        return False
