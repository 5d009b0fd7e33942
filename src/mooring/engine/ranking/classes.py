"""Rows in classes that change as pods are placed: for spreading over few domains and over nodes at the same time.

Under such a score two rows are alike if they are in the same few domains and have as many of the counted pods
themselves. There are few such classes, whatever the number of nodes: the score is asked for one row of each. Within a
class the row with the best key wins; a row that gets a pod moves on to another class.
"""

import heapq
from itertools import pairwise
from operator import neg

import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.answers.moving import NormalizedScore
from mooring.engine.asking import ask_score, normalized
from mooring.engine.ranking.ahead import Ahead, largest
from mooring.engine.ranking.blocks import FEASIBLE_FROM, INFEASIBLE, Keys
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import NodeRows, Rows

SMALL = 1 << 16
"""Numbers below this are sorted many times faster than others."""

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
        self._keys: Keys = answers.keys[self._rows]
        self._taken = [0] * len(self._rows)
        self._touched = set[int]()
        self._ahead = Ahead(answers, self._rows, self._taken, expected_pods)
        self._classify()
        counts.refit(NodeRows(table, self._rows))

    def _classify(self) -> None:
        self._group_of = self._answers.groups_by(self._few).of_row[self._rows]
        lines = np.vstack([self._group_of, self._own_counts(self._rows)])
        self._waiting: dict[Class, list[int]] = {}
        """The positions of each class that have not got a pod, the best last; those that have are passed over."""
        self._moved_in: dict[Class, list[tuple[int, int]]] = {}
        """(-key, position) of rows that came into a class later, as a heap."""
        self._class_of: dict[int, Class] = {}
        """Of the positions that have got a pod."""
        self._head_of: dict[Class, int] = {}
        """The best feasible position of each class that has one; those of changed classes are to be found anew."""
        order = self._worst_first()
        numbers = _numbers(lines)
        order = order[np.argsort(numbers[order], kind="stable")]
        ends = 1 + np.flatnonzero(np.diff(numbers[order]))
        for start, end in pairwise([0, *ends.tolist(), len(order)]):
            if start < end:
                self._waiting[tuple(lines[:, order[start]].tolist())] = order[start:end].tolist()
        self._changed = set(self._waiting)

    def _worst_first(self) -> NDArray[np.intp]:
        """All positions, worst first; of equal ones, the lowest is the best."""
        return np.argsort(-self._keys, kind="stable")[::-1]

    def _own_counts(self, rows: Rows) -> NDArray[np.int64]:
        own = self._counts.own_counts(NodeRows(self._answers.cluster.nodes, rows))
        assert own is not None
        return own

    def take(self) -> int:
        """The best row for one more pod, which then counts as placed; -1 if there is none."""
        for changed in self._changed:
            self._find_head(changed)
        self._changed.clear()
        if not self._head_of:
            return -1
        heads = list(self._head_of.values())
        nodes = NodeRows(self._answers.cluster.nodes, self._rows[heads])
        raw = ask_score(self._score.plugin, self._answers.shape, nodes, self._score.prepared)
        worth = (self._score.weight * normalized(self._score.plugin, raw)) << TIE_BITS
        worth += self._keys[heads]
        # Of equal ones, the lowest.
        _, before, found = max(zip(worth.tolist(), map(neg, heads), self._head_of, strict=True))
        self._changed.add(found)
        return self._place(-before)

    def _find_head(self, found: Class) -> None:
        """Find the best feasible position of a class, if it has one; what is no longer in it is dropped."""
        waiting, moved_in = self._waiting.get(found, []), self._moved_in.get(found, [])
        while waiting and waiting[-1] in self._class_of:
            waiting.pop()
        while moved_in and not self._is_in(found, *moved_in[0]):
            heapq.heappop(moved_in)
        if waiting and not (moved_in and moved_in[0] < (-self._keys.item(waiting[-1]), waiting[-1])):
            self._head_of[found] = waiting[-1]
        elif moved_in:
            self._head_of[found] = moved_in[0][1]
        else:
            self._head_of.pop(found, None)

    def _is_in(self, found: Class, negative_key: int, position: int) -> bool:
        return self._class_of[position] == found and self._keys.item(position) == -negative_key

    def _likely(self, count: int) -> Rows:
        return largest(self._keys, count)

    def _place(self, position: int) -> int:
        row = self._rows.item(position)
        pods = self._taken[position] = self._taken[position] + 1
        self._touched.add(position)
        key = self._ahead.key(position, pods, self._likely)
        self._counts.update_one(self._answers.shape.id, row, 1)
        own = self._own_counts(np.array([row], np.intp))
        found = self._class_of[position] = (self._group_of.item(position), *own[:, 0].tolist())
        self._changed.add(found)
        if key >= FEASIBLE_FROM:
            self._keys[position] = key
            heapq.heappush(self._moved_in.setdefault(found, []), (-key, position))
        else:
            self._keys[position] = INFEASIBLE
            self._refit()
        return row

    def _refit(self) -> None:
        """A row is full: what the score gathers from the feasible rows may have changed."""
        feasible: NDArray[np.intp] = self._rows[self._keys >= FEASIBLE_FROM]
        if len(feasible):
            self._counts.refit(NodeRows(self._answers.cluster.nodes, feasible))

    def go_on(self, expected_pods: int) -> None:
        """The pods placed so far are assumed, and nothing else has happened: rank on from there."""
        self._ahead.rebase(self._touched)
        for position in self._touched:
            self._taken[position] = 0
        self._touched.clear()
        self._ahead.expect(expected_pods)


def _numbers(lines: NDArray[np.int64]) -> NDArray[np.integer]:
    """A number for each column, different for different ones."""
    numbers: NDArray[np.integer] = lines[0]
    for line in lines[1:]:
        numbers = numbers * (int(line.max(initial=0)) + 2) + line + 1
        if numbers.max(initial=0) >= SMALL:  # numbered anew, so that the product of many lines cannot overflow
            _, numbers = np.unique(numbers, return_inverse=True)
    return numbers.astype(np.uint16) if numbers.max(initial=0) < SMALL else numbers
