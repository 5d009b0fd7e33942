"""One pod against all nodes, computed from nothing: filters in order, scores, totals.

This is the plain path: what `explain` and the conformance runner show, and what the cached path must equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.engine.asking import (
    ask_filter,
    ask_narrow,
    ask_pre_filter,
    ask_pre_score,
    ask_rejection,
    ask_score,
    normalized,
)
from mooring.engine.plugin import SKIP, Codes, Mask, PreFilter, Scores
from mooring.engine.profile import Profile
from mooring.engine.verdict import Rejection, Verdict, fit_message
from mooring.state.cluster import Cluster
from mooring.state.rows import Rows
from mooring.state.shapes import Shape

MIN_NODES = 100
"""Never fewer than this, if there are as many."""


@dataclass(frozen=True, slots=True)
class NodeLimit:
    """kube-scheduler's percentageOfNodesToScore: stop at so many feasible nodes, and start where the last one ended."""

    profile: str
    percentage: int

    @classmethod
    def of(cls, profile: Profile) -> "NodeLimit | None":
        percentage = profile.percentage_of_nodes_to_score
        return None if percentage >= 100 else cls(profile.name, percentage)

    def apply(self, rows: Rows, cluster: Cluster) -> Rows:
        total = len(cluster.nodes)
        wanted = max(MIN_NODES, total * self.percentage // 100) if total >= MIN_NODES else total
        start = cluster.sample_starts.get(self.profile, 0)
        ordered = np.concatenate([rows[rows >= start], rows[rows < start]])
        if len(ordered) > wanted:
            cluster.move_sample_start(self.profile, int(ordered[wanted]))  # the first one not looked at
        return np.sort(ordered[:wanted])


PASSED = -1
NARROWED = -2
"""Instead of a filter's index: the row was ruled out before filtering, by a plugin that named other nodes."""


@dataclass
class Evaluation:
    """What every node says to one pod."""

    shape: Shape
    cluster: Cluster
    profile: Profile
    rows: NDArray[np.intp]
    prepared: dict[str, Any] = field(default_factory=dict)
    refused: Verdict | None = None
    """Set if a plugin refused the pod before any node was looked at."""
    narrowed_by: tuple[str, ...] = ()
    failed_by: NDArray[np.int16] = field(default_factory=lambda: np.zeros(0, np.int16))
    """The index of the first filter that refused each row, or PASSED, or NARROWED."""
    codes: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: dict[str, Scores] = field(default_factory=dict)
    """Weighted, normalised, one a scored row, by plugin; plugins that had nothing to say are absent."""
    totals: Scores = field(default_factory=lambda: np.zeros(0, np.int64))
    scored: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    """The rows that were scored: all feasible ones, unless the profile asks for fewer."""

    @property
    def feasible(self) -> NDArray[np.intp]:
        """The rows that passed every filter."""
        return self.rows[:0] if self.refused else self.rows[self.failed_by == PASSED]

    def verdict(self, position: int) -> Verdict | None:
        """Why the row at this position was refused."""
        index = int(self.failed_by[position])
        if index == PASSED:
            return None
        if index == NARROWED:
            return Verdict("PreFilterResult", self._narrowed_rejection())
        plugin = self.profile.filters[index]
        return Verdict(plugin.name, ask_rejection(plugin, self.shape, int(self.codes[position])))

    def _narrowed_rejection(self) -> Rejection:
        return Rejection((f"node(s) didn't satisfy plugin(s) [{' '.join(self.narrowed_by)}]",), unresolvable=True)

    @cached_property
    def refusals(self) -> list[tuple[Verdict, int]]:
        """Each different verdict with the number of nodes that gave it, once all filters have been asked."""
        return list(self._refusals())

    def _refusals(self) -> Iterator[tuple[Verdict, int]]:
        refused = np.flatnonzero(self.failed_by != PASSED)
        filters, codes = self.failed_by[refused], self.codes[refused]
        for filter_index in np.unique(filters).tolist():  # code by code of one filter: much faster than by pairs
            of_filter = refused[filters == filter_index]
            _, first, counts = np.unique(codes[filters == filter_index], return_index=True, return_counts=True)
            for position, count in zip(of_filter[first].tolist(), counts.tolist(), strict=True):
                verdict = self.verdict(position)
                assert verdict is not None, filter_index
                yield verdict, count

    def message(self) -> str:
        """Why the pod waits, in kube-scheduler's words."""
        if not len(self.rows):
            return "no nodes available to schedule pods"
        if self.refused is not None:
            return f"0/{len(self.rows)} nodes are available: {', '.join(self.refused.reasons)}."
        return fit_message(len(self.rows), ((verdict.rejection, count) for verdict, count in self.refusals))

    def refusing_plugins(self) -> tuple[str, ...]:
        if self.refused is not None:
            return (self.refused.plugin,)
        return tuple(sorted({verdict.plugin for verdict, _ in self.refusals}))


def evaluate(profile: Profile, cluster: Cluster, shape: Shape, limit: NodeLimit | None = None) -> Evaluation:
    """Ask every plugin about one pod and all nodes; with a limit, score no more nodes than that."""
    answer = Evaluation(shape, cluster, profile, cluster.nodes.live_rows())
    # 1. Gather; a plugin may refuse the pod outright, or name the only nodes worth looking at.
    allowed = prepare_filters(answer)
    if answer.refused is not None:
        return answer
    # 2. Filter: the first plugin that refuses a row gives its reason.
    run_filters(answer, allowed)
    # 3. Score what is left.
    answer.scored = answer.feasible if limit is None else limit.apply(answer.feasible, cluster)
    if len(answer.scored):
        run_scores(answer)
    return answer


def prepare_filters(answer: Evaluation) -> Mask | None:
    """Run every pre_filter; return which rows they leave, None for all."""
    shape, cluster = answer.shape, answer.cluster
    names: frozenset[str] | None = None
    for plugin in answer.profile.filters:
        if not isinstance(plugin, PreFilter):
            continue
        narrowed = ask_narrow(plugin, shape)
        prepared = narrowed if isinstance(narrowed, Rejection) else ask_pre_filter(plugin, shape, cluster)
        if isinstance(prepared, Rejection):
            if answer.refused is None:
                answer.refused = Verdict(plugin.name, prepared)
            if prepared.unresolvable:
                return None  # nothing later can help; an ordinary refusal lets the others speak first
            continue
        answer.prepared[plugin.name] = prepared
        if isinstance(narrowed, frozenset):
            names = narrowed if names is None else names & narrowed
            answer.narrowed_by += (plugin.name,)
    if names is None or answer.refused is not None:
        return None
    return _rows_named(answer, names)


def _rows_named(answer: Evaluation, names: frozenset[str]) -> Mask | None:
    if not names:
        by = answer.narrowed_by
        who = f"plugin {by[0]}" if len(by) == 1 else f"plugin(s) [{' '.join(by)}] simultaneously"
        answer.refused = Verdict(by[-1], Rejection((f"node(s) didn't satisfy {who}",), unresolvable=True))
        return None
    return rows_named(answer.cluster, answer.rows, names)


def rows_named(cluster: Cluster, rows: NDArray[np.intp], names: frozenset[str]) -> Mask:
    """Which of some rows are the nodes of these names."""
    row_of = cluster.nodes.row_of
    return np.isin(rows, [row_of[name] for name in names if name in row_of])


def run_filters(answer: Evaluation, allowed: Mask | None) -> None:
    count = len(answer.rows)
    answer.failed_by = np.full(count, PASSED, np.int16)
    answer.codes = np.zeros(count, np.int64)
    if allowed is not None:
        answer.failed_by[~allowed] = NARROWED
    for index, plugin in enumerate(answer.profile.filters):
        if answer.prepared.get(plugin.name) is SKIP:
            continue
        left = np.flatnonzero(answer.failed_by == PASSED)
        if not len(left):
            return
        nodes = answer.cluster.rows(answer.rows[left])
        codes = ask_filter(plugin, answer.shape, nodes, answer.prepared.get(plugin.name))
        failed = codes != 0
        answer.failed_by[left[failed]] = index
        answer.codes[left[failed]] = codes[failed]


def run_scores(answer: Evaluation) -> None:
    feasible = answer.cluster.rows(answer.scored)
    answer.totals = np.zeros(len(feasible), np.int64)
    for plugin, weight in answer.profile.scores:
        prepared = ask_pre_score(plugin, answer.shape, answer.cluster, feasible)
        if prepared is SKIP:
            continue
        raw = ask_score(plugin, answer.shape, feasible, prepared)
        weighted = weight * normalized(plugin, raw)
        answer.scores[plugin.name] = weighted
        answer.totals += weighted
