"""Looking at fewer nodes than there are, for those who ask for it."""

import numpy as np

from mooring.state.cluster import Cluster
from mooring.state.rows import Rows


class NodeLimit:
    """kube-scheduler's percentageOfNodesToScore: stop at so many feasible nodes, and start where the last one ended."""

    MIN_NODES = 100

    def __init__(self, percentage: int) -> None:
        self.percentage = percentage
        self.start = 0

    def apply(self, rows: Rows, cluster: Cluster) -> Rows:
        total = len(cluster.nodes)
        wanted = max(self.MIN_NODES, total * self.percentage // 100) if total >= self.MIN_NODES else total
        ordered = np.concatenate([rows[rows >= self.start], rows[rows < self.start]])
        if len(ordered) > wanted:
            self.start = int(ordered[wanted])  # the first one not looked at
        return np.sort(ordered[:wanted])
