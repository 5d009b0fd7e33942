"""Nodes for pods of one shape, found and assumed: from kept answers, or each from nothing."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mooring.config.batching import BatchingArgs
from mooring.engine.answers.answers import ShapeAnswers, to_keys
from mooring.engine.answers.kept import MOST_BYTES, KeptAnswers
from mooring.engine.binding import needs_steps, take_steps
from mooring.engine.evaluate import NodeLimit, evaluate
from mooring.engine.permits import PermitHold
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry
from mooring.engine.ranking.classes import ClassRanking, can_classify
from mooring.engine.ranking.ranking import Ranking, can_rank
from mooring.engine.shortcuts import BesidesAmounts
from mooring.engine.verdict import Verdict
from mooring.state.cluster import Cluster
from mooring.state.remembered import Derived
from mooring.state.shapes import Shape

FEWEST_RANKED = 4
"""Fewer pods than this are placed one by one: a ranking costs about as much as two choices."""


DEFAULT_BATCHING = BatchingArgs()


class Outcome(NamedTuple):
    """What became of a batch."""

    placed: list[Entry]
    refused: list[Entry]
    untried: list[Entry]
    rejected: Sequence[tuple[Entry, Verdict]] = ()
    """Those that a node would take, and that a plugin refused once it was chosen."""
    hold: PermitHold | None = None
    """The last of these, if a permit plugin lets it wait."""


class LastRanking(NamedTuple):
    """The latest ranking, and the moment it stands for."""

    ranking: Ranking | ClassRanking
    answers: ShapeAnswers
    position: int
    description: tuple[int, ...]


class Batches:
    """Places batches. With `cached=False` every pod is evaluated from nothing: slow, and a measure of the other way."""

    def __init__(
        self,
        batching: Mapping[str, BatchingArgs],
        *,
        cached: bool = True,
        clock: Callable[[], float] | None = None,
        most_bytes_kept: int = MOST_BYTES,
    ) -> None:
        self.cached = cached
        self.kept = KeptAnswers(most_bytes_kept)
        self._batching = batching
        self._clock = clock or (lambda: 0.0)
        self._last_ranking: Derived[None, LastRanking] = Derived(1)

    def place(self, cluster: Cluster, batch: list[Entry], *, all_at_once: bool = False) -> Outcome:
        """Find nodes for pods of one shape, in order, and assume them; `all_at_once`: however long that takes."""
        profile, shape = batch[0].profile, batch[0].record.shape
        deadline = None if all_at_once else self._deadline(profile)
        limit = NodeLimit.of(profile)
        if not self.cached:
            has_steps = needs_steps(profile, shape)
            choose_plainly = partial(choose_uncached, profile, cluster, shape, limit)
            return self._one_by_one(cluster, batch, choose_plainly, has_steps, deadline)
        answers = self.kept.fresh(profile, cluster, shape)
        if len(batch) >= FEWEST_RANKED and limit is None and not answers.has_steps and ranking_kind(answers):
            return self._ranked(cluster, batch, answers, deadline)
        if len(batch) == 1 and not answers.has_steps:
            row = answers.choose(limit)
            if row < 0:
                return Outcome([], batch, [])
            cluster.assume(batch[0].record.key, row)
            return Outcome(batch, [], [])

        def choose() -> int:
            answers.refresh()
            return answers.choose(limit)

        return self._one_by_one(cluster, batch, choose, answers.has_steps, deadline)

    def place_on(self, cluster: Cluster, entry: Entry, row: int) -> Outcome | None:
        """Assume one pod on a certain row, if that will do."""
        profile, shape = entry.profile, entry.record.shape
        if row not in self.answers(cluster, profile, shape).feasible_rows():
            return None
        return self._one_by_one(cluster, [entry], lambda: row, needs_steps(profile, shape), None)

    def answers(self, cluster: Cluster, profile: Profile, shape: Shape) -> ShapeAnswers:
        """What all nodes say to a shape now."""
        kept = self.kept if self.cached else KeptAnswers()
        return kept.fresh(profile, cluster, shape)

    def choose(self, cluster: Cluster, profile: Profile, shape: Shape) -> int:
        """The best row for one pod as things stand, or -1; nothing is assumed."""
        if self.cached:
            return self.kept.fresh(profile, cluster, shape).choose(NodeLimit.of(profile))
        return choose_uncached(profile, cluster, shape, NodeLimit.of(profile))

    def rehearse(self, cluster: Cluster, batch: list[Entry]) -> int:
        """Assume places for pods of one shape as far as there are any, without the steps that follow; say how many."""
        profile, shape = batch[0].profile, batch[0].record.shape
        if not needs_steps(profile, shape):
            return len(self.place(cluster, batch, all_at_once=True).placed)
        for index, entry in enumerate(batch):
            row = self.choose(cluster, profile, shape)
            if row < 0:
                return index
            cluster.assume(entry.record.key, row)
        return len(batch)

    def _ranked(self, cluster: Cluster, batch: list[Entry], answers: ShapeAnswers, deadline: float | None) -> Outcome:
        try:
            ranking, rows, late = self._take_rows(batch, answers, deadline)
        except Exception:
            self._last_ranking.forget()
            answers.forget()
            raise
        cluster.assume_many([entry.record for entry in batch[: len(rows)]], np.array(rows, np.intp))
        answers.settle(rows)
        self._last_ranking.put(None, LastRanking(ranking, answers, answers.position, answers.description))
        return Outcome(batch[: len(rows)], *_split(batch[len(rows) :], late))

    def _take_rows(
        self, batch: list[Entry], answers: ShapeAnswers, deadline: float | None
    ) -> tuple[Ranking | ClassRanking, list[int], bool]:
        """The best rows, one for each pod as far as there are any, and whether time was up before that."""
        ranking = self._ranking_of(answers, len(batch))
        rows = list[int]()
        for _ in batch:
            row = ranking.take()
            if row < 0:
                break
            rows.append(row)
            if deadline is not None and not len(rows) % 64 and self._is_late(deadline):
                return ranking, rows, True
        return ranking, rows, False

    def _ranking_of(self, answers: ShapeAnswers, expected_pods: int) -> Ranking | ClassRanking:
        """The ranking of the batch before, if that was of this shape and nothing has happened since; else a new one."""
        last = self._last_ranking.get(None)
        if (
            last is not None
            and last.answers is answers
            and last.position == answers.position
            and last.description == answers.description
        ):
            last.ranking.go_on(expected_pods)
            return last.ranking
        kind = ranking_kind(answers)
        assert kind is not None
        return kind(answers, expected_pods)

    def _one_by_one(
        self,
        cluster: Cluster,
        batch: list[Entry],
        choose: Callable[[], int],
        has_steps: bool,
        deadline: float | None,
    ) -> Outcome:
        profile = batch[0].profile
        placed, rejected = list[Entry](), list[tuple[Entry, Verdict]]()
        for index, entry in enumerate(batch):
            row = choose()
            if row < 0:
                return Outcome(placed, batch[index:], [], rejected)
            verdict = None
            if not has_steps:
                cluster.assume(entry.record.key, row)
            else:
                with cluster.what_if() as trial:
                    cluster.assume(entry.record.key, row)
                    verdict = take_steps(profile, cluster, entry.record)
                    if verdict is None:
                        trial.keep()
            if verdict is None:
                placed.append(entry)
            else:
                rejected.append((entry, verdict))
                if verdict.hold_seconds is not None:  # the others are to see that its room is held
                    return Outcome(placed, [], batch[index + 1 :], rejected, PermitHold((entry,), (row,), verdict))
            if deadline is not None and self._is_late(deadline):
                return Outcome(placed, [], batch[index + 1 :], rejected)
        return Outcome(placed, [], [], rejected)

    def _deadline(self, profile: Profile) -> float | None:
        args = self._batching.get(profile.name, DEFAULT_BATCHING)
        if args.mode != "Time":
            return None
        return self._clock() + args.milliseconds / 1000

    def _is_late(self, deadline: float) -> bool:
        return self._clock() >= deadline


def ranking_kind(answers: ShapeAnswers) -> type[Ranking] | type[ClassRanking] | None:
    """The kind of ranking that can follow how this shape's answers change; None if none can.

    What a row's cards are like after some more pods takes so long to suppose that pods are placed sooner one by one.
    """
    if any(isinstance(plugin, BesidesAmounts) and not plugin.foresees for plugin, _ in answers.usage_filters):
        return None
    if can_rank(answers):
        return Ranking
    return ClassRanking if can_classify(answers) else None


def _split(rest: list[Entry], late: bool) -> tuple[list[Entry], list[Entry]]:
    """(refused, not tried)"""
    return ([], rest) if late else (rest, [])


def choose_uncached(profile: Profile, cluster: Cluster, shape: Shape, limit: NodeLimit | None) -> int:
    """The best row for one pod, from a full evaluation."""
    evaluation = evaluate(profile, cluster, shape, limit)
    rows = evaluation.scored
    if not len(rows):
        return -1
    return int(rows[to_keys(evaluation.totals, cluster.nodes.tie.values[rows]).argmax()])
