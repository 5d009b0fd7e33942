"""Rows in classes that change as pods are placed: for spreading over few domains and over nodes at the same time.

Under such a score two rows are alike if they are in the same few domains and have as many of the counted pods
themselves. There are few such classes, whatever the number of nodes: the score is asked for one row of each. Within a
class the row with the best key wins; a row that gets a pod moves on to another class.
"""

import heapq

import numpy as np
from numpy.typing import NDArray

from mooring.engine.ahead import Ahead
from mooring.engine.answers import NormalizedScore, ShapeAnswers
from mooring.engine.blocks import FEASIBLE_FROM, INFEASIBLE, Keys
from mooring.engine.evaluate import ask_score, normalized
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import NodeRows, Rows

Class = tuple[int, ...]
"""(group of rows in the same few domains, what is counted on the row itself)"""


def can_classify(answers: ShapeAnswers) -> bool:
    """Whether one score that follows pods, over few domains and over nodes, is all that moves besides usage."""
    if answers.domain_filters or len(answers.normalized_scores) != 1:
        return False
    counts = answers.normalized_scores[0].counts
    table = answers.cluster.nodes
    if counts is None or not counts.is_local or counts.own_counts(NodeRows(table, np.zeros(0, np.intp))) is None:
        return False
    few = [key for key in counts.topology_keys if not table.is_one_row_each(key)]
    return len(few) < len(counts.topology_keys) and answers.is_narrow_by(tuple(few))


class ClassRanking:
    """As Ranking, for shapes whose rows fall into classes."""

    def __init__(self, answers: ShapeAnswers, expected_pods: int) -> None:
        self._answers = answers
        self._score: NormalizedScore = answers.normalized_scores[0]
        counts = self._score.counts
        assert counts is not None
        self._counts = counts
        table = answers.cluster.nodes
        self._few = tuple(key for key in counts.topology_keys if not table.is_one_row_each(key))
        self._rows = np.flatnonzero(answers.keys >= FEASIBLE_FROM)
        self._keys = answers.keys[self._rows].tolist()
        self._taken = [0] * len(self._rows)
        self._touched = set[int]()
        self._moved = set[int]()
        """Positions that have got a pod: their first place in line is no longer theirs."""
        self._ahead = Ahead(answers, self._rows, self._taken, expected_pods, lambda: np.array(self._keys, np.int64))
        self._shape_ids = np.array([answers.shape.id], np.intp)
        self._one = np.ones(1, np.int64)
        self._classify()
        counts.refit(NodeRows(table, self._rows))

    def _classify(self) -> None:
        groups = self._answers.groups_by(self._few).of_row[self._rows]
        own = self._own_counts(self._rows)
        self._group_of = groups.tolist()
        self._class_of: list[Class] = list(zip(self._group_of, *own.tolist(), strict=True))
        self._waiting: dict[Class, list[int]] = {}
        """Positions by class, the best last; entries that have moved on are passed over."""
        self._moved_in: dict[Class, list[tuple[int, int]]] = {}
        """(-key, position) of rows that came into a class later, as a heap."""
        for position in np.argsort(np.array(self._keys, np.int64), kind="stable").tolist():
            self._waiting.setdefault(self._class_of[position], []).append(position)

    def _own_counts(self, rows: Rows) -> NDArray[np.int64]:
        own = self._counts.own_counts(NodeRows(self._answers.cluster.nodes, rows))
        assert own is not None
        return own

    def take(self) -> int:
        """The best row for one more pod, which then counts as placed; -1 if there is none."""
        heads = [head for head in map(self._head, [*self._waiting.keys() | self._moved_in.keys()]) if head >= 0]
        if not heads:
            return -1
        nodes = NodeRows(self._answers.cluster.nodes, self._rows[heads])
        raw = ask_score(self._score.plugin, self._answers.shape, nodes, self._score.prepared)
        worth = (self._score.weight * normalized(self._score.plugin, raw)) << TIE_BITS
        totals = [self._keys[position] + extra for position, extra in zip(heads, worth.tolist(), strict=True)]
        position = heads[totals.index(max(totals))]
        return self._place(position)

    def _head(self, found: Class) -> int:
        """The best feasible position of a class, or -1; what is no longer in it is dropped."""
        waiting, moved_in = self._waiting.get(found, []), self._moved_in.get(found, [])
        while waiting and not self._is_in(waiting[-1], found, fresh=True):
            waiting.pop()
        while moved_in and not (self._is_in(moved_in[0][1], found) and -moved_in[0][0] == self._keys[moved_in[0][1]]):
            heapq.heappop(moved_in)
        if not waiting and not moved_in:
            self._waiting.pop(found, None)
            self._moved_in.pop(found, None)
            return -1
        if not moved_in or (waiting and self._keys[waiting[-1]] >= -moved_in[0][0]):
            return waiting[-1]
        return moved_in[0][1]

    def _is_in(self, position: int, found: Class, *, fresh: bool = False) -> bool:
        return (
            self._class_of[position] == found
            and self._keys[position] >= FEASIBLE_FROM
            and not (fresh and position in self._moved)
        )

    def _place(self, position: int) -> int:
        row = int(self._rows[position])
        pods = self._taken[position] = self._taken[position] + 1
        self._touched.add(position)
        self._moved.add(position)
        self._keys[position] = self._ahead.key(position, pods)
        rows = np.array([row], np.intp)
        self._counts.update(self._shape_ids, rows, self._one)
        if self._keys[position] >= FEASIBLE_FROM:
            own = self._own_counts(rows)
            found = self._class_of[position] = (self._group_of[position], *own[:, 0].tolist())
            heapq.heappush(self._moved_in.setdefault(found, []), (-self._keys[position], position))
        else:
            self._keys[position] = INFEASIBLE
            self._refit()
        return row

    def _refit(self) -> None:
        """A row is full: what the score gathers from the feasible rows may have changed."""
        keys: Keys = np.array(self._keys, np.int64)
        feasible: NDArray[np.intp] = self._rows[keys >= FEASIBLE_FROM]
        if len(feasible):
            self._counts.refit(NodeRows(self._answers.cluster.nodes, feasible))

    def go_on(self, expected_pods: int) -> None:
        """The pods placed so far are assumed, and nothing else has happened: rank on from there."""
        self._ahead.rebase(self._touched)
        for position in self._touched:
            self._taken[position] = 0
        self._touched.clear()
        self._ahead.expect(expected_pods)
