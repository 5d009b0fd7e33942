"""Many pods of one shape at once: score all rows once, then take the best again and again, exactly.

What a placed pod changes is followed at the level where it happens: the chosen row's usage (`ahead`), scores that are
normalised over the rows (`row_scores`), and the worth of whole groups of rows that are in the same domains (`blocks`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.answers.moving import DomainFilter, NormalizedScore
from mooring.engine.asking import ask_passes, ask_score, normalized
from mooring.engine.plugin import Mask, PreScore, Scores
from mooring.engine.ranking.ahead import Ahead, largest
from mooring.engine.ranking.blocks import FEASIBLE_FROM, INFEASIBLE, Keys, arrange
from mooring.engine.ranking.row_scores import RowScore
from mooring.engine.shortcuts import Incremental
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import NodeRows


def can_rank(answers: ShapeAnswers) -> bool:
    """Whether this shape's answers change in ways that a ranking follows."""
    by_domain = [f for f in answers.domain_filters if not is_row_filter(answers, f)]
    if any(f.counts is None or not answers.is_narrow(f.counts) for f in by_domain):
        return False
    row_scores = [score for score in answers.normalized_scores if is_row_score(answers, score)]
    if not all(is_group_score(answers, s) for s in answers.normalized_scores if s not in row_scores):
        return False
    # Scores normalised over the feasible rows, while whole domains open and close: too much moves at once.
    return not (row_scores and by_domain)


def is_row_filter(answers: ShapeAnswers, domain: DomainFilter) -> bool:
    """A pod on one row changes this filter's answer for that row only."""
    return domain.counts is not None and domain.counts.is_local and answers.has_row_domains(domain.counts)


def is_row_score(answers: ShapeAnswers, score: NormalizedScore) -> bool:
    """Settled, or changed by a pod on its own row only."""
    counts = score.counts
    return score.raw is not None or (counts is not None and counts.is_local and answers.has_row_domains(counts))


def is_group_score(answers: ShapeAnswers, score: NormalizedScore) -> bool:
    """The same for all rows in the same few domains."""
    if score.counts is None or not answers.is_narrow(score.counts):
        return False
    reads_feasible = isinstance(score.plugin, PreScore) and score.plugin.reads_feasible
    return not (reads_feasible and score.counts.counts_rows)


class Opened(NamedTuple):
    """Which groups are open, and what follows from that as long as it stays so."""

    is_open: Mask
    as_bytes: bytes
    """The same, for comparing."""
    any: bool
    all: bool
    worth: Keys
    """0, or INFEASIBLE for groups that are not open."""

    @classmethod
    def of(cls, is_open: Mask) -> "Opened":
        count = int(np.count_nonzero(is_open))
        worth = np.where(is_open, 0, INFEASIBLE)
        return cls(is_open, is_open.tobytes(), count > 0, count == len(is_open), worth)


class Ranking:
    """The rows of one shape in order of preference, kept in order while pods are placed."""

    def __init__(self, answers: ShapeAnswers, expected_pods: int) -> None:
        self._answers = answers
        self._expected = expected_pods
        self._row_filters = [f for f in answers.domain_filters if is_row_filter(answers, f)]
        self._group_filters = [f for f in answers.domain_filters if not is_row_filter(answers, f)]
        by_row = [score for score in answers.normalized_scores if is_row_score(answers, score)]
        by_group = [score for score in answers.normalized_scores if not is_row_score(answers, score)]
        self._group_scores = [(score, np.array(score.weight << TIE_BITS, np.int64)) for score in by_group]
        """Each with what one point of it adds to a key."""
        self._counts = _distinct_counts(answers)

        rows = np.flatnonzero(answers.keys >= FEASIBLE_FROM)
        for domain in self._row_filters:
            if len(rows):
                rows = rows[self._passes(domain, NodeRows(answers.cluster.nodes, rows))]
        self._rows = rows
        self._taken = [0] * len(rows)
        self._touched = set[int]()
        self._usage_keys = answers.keys[rows]
        self._ahead = Ahead(answers, rows, self._taken, expected_pods)
        self._row_scores = [RowScore(answers, score, rows) for score in by_row]
        self._arrange()

    def _arrange(self) -> None:
        answers = self._answers
        self._worth: Keys | None = None
        group_of, groups = np.zeros(len(self._rows), np.intp), 1
        grouped = [f.counts for f in self._group_filters] + [s.counts for s, _ in self._group_scores]
        if grouped:
            found = answers.groups(grouped)
            group_of, groups = found.of_row[self._rows], len(found.representatives)
            self._representatives = found.representatives
            self._asked = NodeRows(answers.cluster.nodes, found.representatives)
        self._group_of, self._groups = group_of, groups
        self._blocks = arrange(self._all_keys(), group_of, groups, self._expected)
        if grouped:
            self._opened = self._accepted = Opened.of(self._blocks.open_groups())
            self._fitted: dict[int, bytes] = {}
            self._worth = self._group_worth()

    def _all_keys(self) -> Keys:
        keys = self._usage_keys
        if not self._row_scores:
            return keys
        for score in self._row_scores:
            keys = keys + score.part
        return np.where(self._usage_keys >= FEASIBLE_FROM, keys, INFEASIBLE)

    def _likely(self, count: int) -> NDArray[np.intp]:
        """The best positions, and those that are the best whatever their groups are worth, because that changes."""
        keys = self._all_keys()
        if self._worth is None:
            return largest(keys, count)
        totals = keys + self._worth[self._group_of]
        return np.union1d(largest(totals, count), largest(keys, count))

    def _group_worth(self) -> Keys:
        """What each group's domains are worth now; INFEASIBLE where a filter refuses them."""
        opened = self._opened
        if self._group_filters:
            is_open = opened.is_open
            for domain in self._group_filters:
                is_open = is_open & self._passes(domain, self._asked)
            if is_open.tobytes() != self._accepted.as_bytes:
                self._accepted = Opened.of(is_open)
            opened = self._accepted
        if not self._group_scores or not opened.any:
            return opened.worth
        worth = opened.worth
        for score, point in self._group_scores:
            raw = self._ask_group_score(score, opened)
            if opened.all:
                worth = worth + normalized(score.plugin, raw) * point
            else:
                worth = worth.copy()
                worth[opened.is_open] += normalized(score.plugin, raw[opened.is_open]) * point
        return worth

    def _ask_group_score(self, score: NormalizedScore, opened: Opened) -> Scores:
        if isinstance(score.plugin, PreScore) and score.plugin.reads_feasible:
            assert score.counts is not None
            if opened.as_bytes != self._fitted.get(id(score)):
                self._fitted[id(score)] = opened.as_bytes
                score.counts.refit(NodeRows(self._answers.cluster.nodes, self._representatives[opened.is_open]))
        return ask_score(score.plugin, self._answers.shape, self._asked, score.prepared)

    def _passes(self, domain: DomainFilter, nodes: NodeRows) -> Mask:
        return ask_passes(domain.plugin, self._answers.shape, nodes, domain.prepared)

    def take(self) -> int:
        """The best row for one more pod, which then counts as placed; -1 if there is none."""
        position = self._blocks.best(self._worth)
        if position < 0:
            return -1
        row = self._rows.item(position)
        pods = self._taken[position] = self._taken[position] + 1
        self._touched.add(position)
        key = self._ahead.key(position, pods, self._likely)
        if self._counts:
            key = self._follow(row, key)
        self._usage_keys[position] = key
        if self._row_scores:
            key = self._follow_scores(position, row, key)
        self._blocks.put(position, key)
        if self._worth is not None:
            if key < FEASIBLE_FROM:
                self._opened = Opened.of(self._blocks.open_groups())
            self._worth = self._group_worth()
        return row

    def go_on(self, expected_pods: int) -> None:
        """The pods placed so far are assumed, and nothing else has happened: rank on from there."""
        self._ahead.rebase(self._touched)
        for position in self._touched:
            self._taken[position] = 0
        self._touched.clear()
        self._ahead.expect(expected_pods)
        if expected_pods > 2 * self._expected:
            self._expected = expected_pods
            self._blocks = arrange(self._all_keys(), self._group_of, self._groups, expected_pods)

    def _follow(self, row: int, key: int) -> int:
        """Count the pod where pods are counted; a filter may now refuse its row."""
        for counts in self._counts:
            counts.update_one(self._answers.shape.id, row, 1)
        if self._row_filters and key >= FEASIBLE_FROM:
            nodes = NodeRows(self._answers.cluster.nodes, np.array([row], np.intp))
            if not all(self._passes(domain, nodes)[0] for domain in self._row_filters):
                return INFEASIBLE
        return key

    def _follow_scores(self, position: int, row: int, key: int) -> int:
        if key >= FEASIBLE_FROM:
            nodes = NodeRows(self._answers.cluster.nodes, np.array([row], np.intp))
            moved = [score.follow(position, nodes) for score in self._row_scores]
        else:
            feasible = np.flatnonzero(self._usage_keys >= FEASIBLE_FROM)
            moved = [score.leave(position, feasible) for score in self._row_scores]
        if any(moved):
            keys = self._all_keys()
            self._blocks.put_all(keys)
            return int(keys[position])
        if key < FEASIBLE_FROM:
            return INFEASIBLE
        return key + sum(int(score.part[position]) for score in self._row_scores)


def _distinct_counts(answers: ShapeAnswers) -> list[Incremental]:
    counts = [*(f.counts for f in answers.domain_filters), *(s.counts for s in answers.normalized_scores)]
    return list({id(count): count for count in counts if count is not None}.values())
