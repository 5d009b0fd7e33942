"""How the node that another scheduler chose compares with ours, by the scores and filters of one moment."""

from dataclasses import dataclass, field

import numpy as np

from mooring.engine.cycle import Scheduler
from mooring.engine.evaluate import Evaluation, evaluate
from mooring.model.keys import PodKey
from mooring.observe.shadow_log import Outcome
from mooring.state.pods import UNBOUND, PodRecord


@dataclass(frozen=True, slots=True)
class Judgement:
    """The other scheduler's node as our plugins see it."""

    outcome: Outcome
    """SAME, TIE or OTHER."""
    difference: int | None = None
    """By how much our node's total exceeds the other's; None where a filter refuses the other, or nothing is known."""
    plugins: dict[str, int] = field(default_factory=dict)
    refused_by: list[str] = field(default_factory=list)


def evaluate_without(scheduler: Scheduler, record: PodRecord, *others: PodKey) -> Evaluation:
    """Ask all plugins about a pod as if it had no node, and neither had these other pods."""
    cluster = scheduler.cluster
    profile = scheduler.profiles[record.pod.spec.scheduler_name]
    with cluster.what_if():
        for key in (record.key, *others):
            if cluster.pods.records[key].row != UNBOUND:
                cluster.release(key)
        evaluation = evaluate(profile, cluster, record.shape)
    evaluation.prepared = {}  # what plugins gathered may be large, and is of no use later
    return evaluation


def best_row(evaluation: Evaluation) -> int | None:
    """The row that a pod on its own would get; None if no node passes the filters."""
    if evaluation.refused is not None or not len(evaluation.scored):
        return None
    ties = evaluation.cluster.nodes.tie.values[evaluation.scored]
    return int(evaluation.scored[np.lexsort((-ties, -evaluation.totals))[0]])


def judge(evaluation: Evaluation, ours: int | None, theirs: int | None) -> Judgement:
    """Compare two rows by an evaluation; `theirs` is None for a node that is not known."""
    if ours is not None and ours == theirs:
        return Judgement(Outcome.SAME, 0)
    other = _position(evaluation, theirs)
    if other is None:
        return Judgement(Outcome.OTHER, refused_by=_refusals(evaluation, theirs))
    own = _position(evaluation, ours)
    if own is None:  # of a gang: its place was chosen by more than scores
        return Judgement(Outcome.OTHER)
    difference = int(evaluation.totals[own] - evaluation.totals[other])
    plugins = {name: int(scores[own] - scores[other]) for name, scores in evaluation.scores.items()}
    plugins = {name: part for name, part in plugins.items() if part}
    return Judgement(Outcome.OTHER if difference else Outcome.TIE, difference, plugins)


def is_among_the_best(evaluation: Evaluation, row: int | None) -> bool:
    """Whether no node scores higher than this one."""
    position = _position(evaluation, row)
    return position is not None and bool(evaluation.totals[position] == evaluation.totals.max())


def _position(evaluation: Evaluation, row: int | None) -> int | None:
    """The position of a row among those that were scored."""
    if row is None or evaluation.refused is not None:
        return None
    positions = np.flatnonzero(evaluation.scored == row)
    return int(positions[0]) if len(positions) else None


def _refusals(evaluation: Evaluation, row: int | None) -> list[str]:
    if evaluation.refused is not None:
        return [f"{evaluation.refused.plugin}: {', '.join(evaluation.refused.reasons)}"]
    positions = np.flatnonzero(evaluation.rows == row) if row is not None else evaluation.rows[:0]
    if not len(positions):
        return ["the node is not known"]
    verdict = evaluation.verdict(int(positions[0]))
    return [] if verdict is None else [f"{verdict.plugin}: {', '.join(verdict.reasons)}"]
