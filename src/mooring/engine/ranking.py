"""Many pods of one shape at once: score all rows once, then take the best again and again, exactly.

Rows stand in blocks, each block within one group of rows that are in the same domains. A block knows its best key; a
group knows what its domains are worth now. Choosing is one argmax over blocks and one within a block; after a choice
only the chosen row's key, its block's best and the groups' worth change. Keys after one, two, three more pods on a row
are computed ahead, for all rows at a time.
"""

import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers import FEASIBLE_FROM, INFEASIBLE, DomainFilter, Keys, ShapeAnswers
from mooring.engine.evaluate import ask_filter, ask_score, extremes, normalized
from mooring.engine.plugin import PreScore
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import NodeRows, Rows

BLOCK = 128
"""Rows a block: about the square root of the largest clusters we expect, so that both argmaxes are short."""
STEPS_AHEAD = 8
"""How many more pods on a single row are computed at once when the table for all rows is used up."""
MOST_AHEAD = 200_000
"""The largest table of keys computed ahead, in entries."""


def can_rank(answers: ShapeAnswers) -> bool:
    """Whether this shape's answers change in ways that a ranking follows."""
    filters = answers.domain_filters
    if any(f.counts is None for f in filters):
        return False
    moving = [score for score in answers.normalized_scores if score.raw is None]
    for score in moving:
        # What is gathered anew for every set of feasible rows cannot be followed row by row.
        reads_feasible = isinstance(score.plugin, PreScore) and score.plugin.reads_feasible
        if score.counts is None or reads_feasible or not answers.is_narrow(score.counts):
            return False
    by_domain = [f for f in filters if not answers.is_row_local(f)]
    if any(f.counts is not None and not answers.is_narrow(f.counts) for f in by_domain):
        return False
    # Scores normalised over the feasible rows, while whole domains open and close: too much moves at once.
    has_settled = len(moving) < len(answers.normalized_scores)
    return not (has_settled and by_domain)


class Ranking:
    """The rows of one shape in order of preference, kept in order while pods are placed."""

    def __init__(self, answers: ShapeAnswers, expected_pods: int) -> None:
        self._answers = answers
        self._expected = expected_pods
        self._row_local = [f for f in answers.domain_filters if answers.is_row_local(f)]
        self._by_group = [f for f in answers.domain_filters if not answers.is_row_local(f)]
        self._moving = [score for score in answers.normalized_scores if score.raw is None]
        self._settled = [score for score in answers.normalized_scores if score.raw is not None]
        self._shape_array = np.array([answers.shape.id], np.intp)
        self._one = np.ones(1, np.int64)
        self._build()

    def _build(self) -> None:
        answers = self._answers
        rows = np.flatnonzero(answers.keys >= FEASIBLE_FROM)
        for domain in self._row_local:
            if len(rows):
                rows = rows[_ask(answers, domain, rows) == 0]
        self._rows = rows
        self._taken = np.zeros(len(rows), np.int64)
        self._rows_ahead: dict[int, tuple[int, list[int]]] = {}
        self._extremes = [extremes(score.raw[rows]) for score in self._settled if score.raw is not None]
        self._extra = self._settled_part(rows)
        self._ahead = (answers.keys[rows] + self._extra)[np.newaxis]
        self._arrange(self._ahead[0])
        self._offsets: Keys | None = None
        if self._by_group or self._moving:
            self._offsets = self._group_offsets()

    def _settled_part(self, rows: Rows) -> Keys | int:
        """What settled scores add to keys, normalised over the rows that are feasible now."""
        part: Keys | int = 0
        for score in self._settled:
            part = part + (self._answers.normalized(score, rows) << TIE_BITS)
        return part

    # Blocks and groups.

    def _arrange(self, keys: Keys) -> None:
        answers, count = self._answers, len(self._rows)
        if self._by_group or self._moving:
            self._groups = answers.groups([f.counts for f in self._by_group] + [s.counts for s in self._moving])
            group_of = self._groups.of_row[self._rows]
        else:
            group_of = np.zeros(count, np.intp)
        order = np.argsort(group_of, kind="stable")
        sizes = np.bincount(group_of, minlength=1)
        blocks = -(-sizes // BLOCK)
        first_block = np.concatenate([[0], np.cumsum(blocks)[:-1]])
        first_position = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        in_group = np.arange(count) - first_position[group_of[order]]
        self._slot = np.empty(count, np.intp)
        self._slot[order] = first_block[group_of[order]] * BLOCK + in_group
        total = int(blocks.sum())
        self._group_of_block = np.repeat(np.arange(len(sizes)), blocks)
        flat = np.full(total * BLOCK, INFEASIBLE, np.int64)
        flat[self._slot] = keys
        self._position_of_slot = np.zeros(total * BLOCK, np.intp)
        self._position_of_slot[self._slot] = np.arange(count)
        self._keys = flat.reshape(total, BLOCK)
        self._best = self._keys.max(axis=1) if total else np.zeros(0, np.int64)

    def _group_offsets(self) -> Keys:
        """What each group's domains are worth now; INFEASIBLE where a filter refuses them."""
        answers, groups = self._answers, self._groups
        count = len(groups.representatives)
        feasible = np.zeros(count, np.bool_)
        feasible[self._group_of_block[self._best >= FEASIBLE_FROM]] = True
        nodes = NodeRows(answers.cluster.nodes, groups.representatives)
        for domain in self._by_group:
            feasible &= ask_filter(domain.plugin, answers.shape, nodes, domain.prepared) == 0
        offsets = np.where(feasible, 0, INFEASIBLE)
        if self._moving and feasible.any():
            at = np.flatnonzero(feasible)
            for score in self._moving:
                raw = ask_score(score.plugin, answers.shape, nodes, score.prepared)[at]
                offsets[at] += (score.weight * normalized(score.plugin, raw)) << TIE_BITS
        return offsets

    # Choosing.

    def take(self) -> int:
        """The best row for one more pod, which then counts as placed; -1 if there is none."""
        best = self._best
        if not len(best):
            return -1
        if self._offsets is None:
            block = int(best.argmax())
            value = best[block]
        else:
            worth = best + self._offsets[self._group_of_block]
            block = int(worth.argmax())
            value = worth[block]
        if value < FEASIBLE_FROM:
            return -1
        keys = self._keys[block]
        slot = int(keys.argmax())
        position = int(self._position_of_slot[block * BLOCK + slot])
        row = int(self._rows[position])
        self._place(position, row, block, slot)
        return row

    def _place(self, position: int, row: int, block: int, slot: int) -> None:
        key = self._key_after(position)
        if self._row_local or self._offsets is not None:
            key = self._follow(row, key)
        keys = self._keys[block]
        keys[slot] = key
        self._best[block] = keys[keys.argmax()]
        if self._offsets is not None:
            self._offsets = self._group_offsets()
        if key < FEASIBLE_FROM and self._settled:
            self._check_extremes()

    def _follow(self, row: int, key: int) -> int:
        rows = np.array([row], np.intp)
        counted = {id(f.prepared): f.counts for f in (*self._row_local, *self._by_group)}
        counted |= {id(s.prepared): s.counts for s in self._moving}
        for counts in counted.values():
            assert counts is not None
            counts.update(self._shape_array, rows, self._one)
        for domain in self._row_local:
            if key >= FEASIBLE_FROM and _ask(self._answers, domain, rows)[0] != 0:
                key = INFEASIBLE
        return key

    def _key_after(self, position: int) -> int:
        """The row's key once one more pod runs there."""
        self._taken[position] += 1
        taken = int(self._taken[position])
        if taken >= len(self._ahead) and len(self._ahead) == 1:
            self._look_ahead()
        if taken < len(self._ahead):
            return int(self._ahead[taken, position])
        return self._row_ahead(position, taken)

    def _look_ahead(self) -> None:
        """Compute the keys of all rows after one and more pods, as far as the batch may need them."""
        count = len(self._rows)
        steps = min(1 + 2 * self._expected // count, MOST_AHEAD // count, 64)
        if self._expected < BLOCK or steps < 1:
            return
        ahead = [self._ahead[0]]
        for step in range(1, steps + 1):
            ahead.append(self._supposed(self._rows, np.full(count, step, np.int64), self._extra))
        self._ahead = np.stack(ahead)

    def _supposed(self, rows: Rows, extra_pods: NDArray[np.int64], extra: Keys | int) -> Keys:
        answers = self._answers
        keys = answers.usage_keys(NodeRows(answers.cluster.nodes, rows, extra_pods, answers.shape))
        return np.where(keys >= FEASIBLE_FROM, keys + extra, INFEASIBLE)

    def _row_ahead(self, position: int, taken: int) -> int:
        known = self._rows_ahead.get(position)
        if known is None or taken >= known[0] + len(known[1]):
            steps = np.arange(taken, taken + STEPS_AHEAD, dtype=np.int64)
            extra = self._extra if isinstance(self._extra, int) else int(self._extra[position])
            keys = self._supposed(np.full(len(steps), self._rows[position], np.intp), steps, extra)
            known = self._rows_ahead[position] = (taken, keys.tolist())
        return known[1][taken - known[0]]

    def _check_extremes(self) -> None:
        """A row has become infeasible: if that moves a settled score's extremes, all keys change."""
        feasible = self._keys.reshape(-1)[self._slot] >= FEASIBLE_FROM
        rows = self._rows[feasible]
        if not len(rows):
            return
        now = [extremes(score.raw[rows]) for score in self._settled if score.raw is not None]
        if now == self._extremes:
            return
        extra = np.zeros(len(self._rows), np.int64)
        extra[feasible] = self._settled_part(rows)
        self._extremes, self._extra = now, extra
        self._ahead = self._ahead[:1]
        self._rows_ahead.clear()
        keys = np.full(len(self._rows), INFEASIBLE, np.int64)
        at = np.flatnonzero(feasible)
        keys[at] = self._supposed(rows, self._taken[at], extra[at])
        flat = self._keys.reshape(-1)
        flat[self._slot] = keys
        self._best = self._keys.max(axis=1)


def _ask(answers: ShapeAnswers, domain: DomainFilter, rows: Rows) -> NDArray[np.int64]:
    return ask_filter(domain.plugin, answers.shape, NodeRows(answers.cluster.nodes, rows), domain.prepared)


