"""Why a pod goes where it goes, or what keeps it waiting: every filter asked about every node.

A decision needs only the first refusal of a node. An explanation asks all filters, and so knows where a single change
would do: on the nodes that exactly one plugin refuses.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mooring.engine.asking import ask_filter, ask_rejection, faults_of
from mooring.engine.evaluate import NARROWED, PASSED, Evaluation, evaluate
from mooring.engine.plugin import SKIP, Codes, FilterAnswers, Mask
from mooring.engine.profile import Profile
from mooring.engine.verdict import Remedy, Verdict
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape


@dataclass
class Explanation:
    """What every plugin says to one pod about every node; positions count the rows of the evaluation."""

    evaluation: Evaluation
    codes: dict[str, Codes] = field(default_factory=dict)
    """By filter: one code a row, 0 where the node will do; filters that had nothing to say are absent."""
    remedies: list[Remedy] = field(default_factory=list)
    """Single changes that open nodes, the one that opens most first."""

    @property
    def refusal_counts(self) -> NDArray[np.int64]:
        """How many filters refuse each row; a row that was ruled out beforehand counts one more."""
        counts: NDArray[np.int64] = (self.evaluation.failed_by == NARROWED).astype(np.int64)
        for codes in self.codes.values():
            counts += codes != 0
        return counts

    def verdicts(self, position: int) -> tuple[Verdict, ...]:
        """Every refusal of the row at this position, in the order in which the filters run."""
        found: list[Verdict] = []
        if self.evaluation.failed_by[position] == NARROWED:
            first = self.evaluation.verdict(position)
            assert first is not None
            found.append(first)
        for plugin in self.evaluation.profile.filters:
            code = int(self.codes[plugin.name][position]) if plugin.name in self.codes else 0
            if code:
                found.append(Verdict(plugin.name, ask_rejection(plugin, self.evaluation.shape, code)))
        return tuple(found)

    def passed_by(self, position: int) -> list[str]:
        """The filters that were asked about this row and had no objection."""
        return [name for name, codes in self.codes.items() if not codes[position]]

    @property
    def reason_counts(self) -> NDArray[np.int64]:
        """How many reasons each row is refused for: a plugin may give several at once."""
        counts: NDArray[np.int64] = (self.evaluation.failed_by == NARROWED).astype(np.int64)
        for plugin in self.evaluation.profile.filters:
            if plugin.name in self.codes:
                distinct, which = np.unique(self.codes[plugin.name], return_inverse=True)
                given = [
                    len(ask_rejection(plugin, self.evaluation.shape, int(c)).reasons) if c else 0 for c in distinct
                ]
                counts += np.array(given, np.int64)[which]
        return counts

    def ranked(self) -> list[int]:
        """All positions: feasible rows by total, the best first, then the others, those nearest to fitting first."""
        evaluation = self.evaluation
        if evaluation.refused is not None:
            return list(range(len(evaluation.rows)))
        passed = evaluation.failed_by == PASSED
        totals = np.zeros(len(evaluation.rows), np.int64)
        totals[passed] = evaluation.totals
        ties = np.where(passed, evaluation.cluster.nodes.tie.values[evaluation.rows], 0)
        order: list[int] = np.lexsort((-ties, -totals, self.reason_counts, self.refusal_counts)).tolist()
        return order


@dataclass(frozen=True, slots=True)
class Contest:
    """The node that won, the best of the others, and where the difference comes from."""

    winner: int
    runner_up: int | None
    """Positions among the feasible rows."""
    lead: int
    by_plugin: dict[str, int]
    """By how much each plugin's weighted score was in favour of the winner; those that saw no difference are absent."""
    equals: int
    """How many other nodes have the winner's total: between them, the seed decides."""


def explain(profile: Profile, cluster: Cluster, shape: Shape) -> Explanation:
    """Ask every filter about every node, score the feasible ones, find what single changes would open others."""
    evaluation = evaluate(profile, cluster, shape)
    explanation = Explanation(evaluation)
    if evaluation.refused is not None:
        return explanation
    nodes = cluster.rows(evaluation.rows)
    for plugin in profile.filters:
        prepared = evaluation.prepared.get(plugin.name)
        if prepared is not SKIP:
            explanation.codes[plugin.name] = ask_filter(plugin, shape, nodes, prepared)
    explanation.remedies = find_remedies(explanation)
    return explanation


def find_remedies(explanation: Explanation) -> list[Remedy]:
    """The single changes that open nodes: asked of each plugin about the rows that it alone refuses."""
    alone = explanation.refusal_counts == 1
    remedies = [
        remedy
        for plugin in explanation.evaluation.profile.filters
        if plugin.name in explanation.codes
        for remedy in _remedies_of(plugin, explanation, alone & (explanation.codes[plugin.name] != 0))
    ]
    remedies.sort(key=lambda remedy: -len(remedy.nodes))
    return remedies


def _remedies_of(plugin: FilterAnswers, explanation: Explanation, alone: Mask) -> Iterator[Remedy]:
    if not alone.any():
        return
    evaluation = explanation.evaluation
    nodes = evaluation.cluster.rows(evaluation.rows[alone])
    names = nodes.names
    with faults_of(plugin, "remedies"):
        found = list(plugin.remedies(evaluation.shape, nodes, evaluation.prepared.get(plugin.name)))
    for change, positions in found:
        yield Remedy(plugin.name, change, tuple(sorted(names[position] for position in positions.tolist())))


def contest(evaluation: Evaluation, row: int) -> Contest:
    """Compare the row that got the pod with the best of the others."""
    feasible = evaluation.feasible
    winner = int(np.flatnonzero(feasible == row)[0])
    others = np.flatnonzero(feasible != row)
    if not len(others):
        return Contest(winner, None, 0, {}, 0)
    totals = evaluation.totals
    ties = evaluation.cluster.nodes.tie.values[feasible]
    runner_up = int(others[np.lexsort((-ties[others], -totals[others]))[0]])
    differences = {name: int(scores[winner] - scores[runner_up]) for name, scores in evaluation.scores.items()}
    return Contest(
        winner,
        runner_up,
        int(totals[winner] - totals[runner_up]),
        {name: difference for name, difference in differences.items() if difference},
        int(np.count_nonzero(totals[others] == totals[winner])),
    )
