"""Where pods find a place: the first node that takes a pod, after the one that was found last, by the real filters."""

from dataclasses import replace

import numpy as np

from mooring.engine.answers.kept import KeptAnswers
from mooring.engine.evaluate import Evaluation, prepare_filters, run_filters
from mooring.engine.plugin import Mask
from mooring.engine.profile import Profile
from mooring.engine.verdict import Verdict
from mooring.state.cluster import Cluster
from mooring.state.rows import Rows
from mooring.state.shapes import Shape

NOWHERE = -1


class Places:
    """Looks for places in one cluster, for the time of one decision."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self.cluster = cluster
        self.profile = replace(profile, scores=())  # the first node will do: none is better than another
        self._answers = KeptAnswers()
        self._last = NOWHERE

    def find(self, shape: Shape, acceptable: Mask) -> int:
        """The row of the first acceptable node that takes such a pod, after the one found last; NOWHERE without any."""
        rows = self._feasible(shape)
        rows = rows[acceptable[rows]]
        if not len(rows):
            return NOWHERE
        at = int(np.searchsorted(rows, self._last, side="right"))
        self._last = int(rows[at if at < len(rows) else 0])
        return self._last

    def fits(self, shape: Shape, row: int) -> bool:
        """Whether one node takes such a pod."""
        rows = self._feasible(shape)
        at = int(np.searchsorted(rows, row))
        return at < len(rows) and int(rows[at]) == row

    def _feasible(self, shape: Shape) -> Rows:
        return self._answers.fresh(self.profile, self.cluster, shape).feasible_rows()

    def verdict(self, shape: Shape, row: int) -> Verdict | None:
        """Why one node does not take such a pod; None if it does."""
        answer = Evaluation(shape, self.cluster, self.profile, np.array([row], np.intp))
        allowed = prepare_filters(answer)
        if answer.refused is not None:
            return answer.refused
        run_filters(answer, allowed)
        return answer.verdict(0)

    def rows_where(self, is_acceptable: bool = True) -> Mask:
        """All nodes that are not cordoned; or none, as a mask to be filled in."""
        nodes = self.cluster.nodes
        if not is_acceptable:
            return np.zeros(nodes.end, np.bool_)
        found: Mask = nodes.alive.values[: nodes.end] & ~nodes.unschedulable.values[: nodes.end]
        return found
