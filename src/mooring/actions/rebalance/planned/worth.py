"""What a move is worth and what it costs, both in points: a node that becomes empty is worth 100."""

from dataclasses import dataclass

import numpy as np

from mooring.config.rebalance_policy import RebalancePolicy
from mooring.engine.evaluate import Evaluation, evaluate
from mooring.engine.profile import Profile
from mooring.model.api.meta import timestamp_seconds
from mooring.model.jobs.expansion import controller_of
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape

WHOLE = 100.0
"""The points of a broken rule that is mended, or of a node that becomes empty."""
HOUR = 3600.0
GO_ON = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))
"""The controllers whose pods lose nothing but the time of a restart; all others start their work over."""


def cost_of(record: PodRecord, policy: RebalancePolicy, now: float) -> float:
    """Return what it costs to restart a pod: the restart, and the work that is done again."""
    owner = controller_of(record.pod.metadata)
    started = timestamp_seconds(record.pod.status.start_time)
    if started is None or (owner is not None and owner.kind in GO_ON):
        return policy.restart_cost
    return policy.restart_cost + policy.start_over_cost_per_hour * max(0.0, now - started) / HOUR


@dataclass(frozen=True, slots=True)
class Judged:
    """What the scheduler would say of the node that a pod is on, were it to place the pod now."""

    row: int
    refusal: str
    """Why it would refuse the node; empty if it would not."""
    evaluation: Evaluation

    def gain(self, target: int) -> float:
        """Return how many points of 100 the scores of a target are above those of the present node; a node that the
        scheduler would refuse breaks a rule."""
        if self.refusal:
            return WHOLE
        weights = sum(weight for _, weight in self.evaluation.profile.scores)
        here, there = self._total(self.row), self._total(target)
        return (there - here) / weights if weights and here is not None and there is not None else 0.0

    def _total(self, row: int) -> int | None:
        position = np.flatnonzero(self.evaluation.scored == row)
        return int(self.evaluation.totals[position[0]]) if len(position) else None


def judge(profile: Profile, cluster: Cluster, shape: Shape, row: int) -> Judged:
    """Ask all plugins of a profile about a pod that is on no row."""
    found = evaluate(profile, cluster, shape)
    if found.refused is not None:
        return Judged(row, ", ".join(found.refused.reasons), found)
    position = np.flatnonzero(found.rows == row)
    verdict = found.verdict(int(position[0])) if len(position) else None
    return Judged(row, "" if verdict is None else ", ".join(verdict.reasons), found)
