"""Looking at fewer nodes than there are, for those who ask for it."""

from dataclasses import dataclass

import numpy as np

from mooring.engine.profile import Profile
from mooring.state.cluster import Cluster
from mooring.state.rows import Rows

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
