"""Numbers about each row that its pods and its last report make together, computed again only where those changed."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mooring.state.load import RowLoad
from mooring.state.views import PodView

if TYPE_CHECKING:
    from mooring.state.cluster import Cluster

Compute = Callable[[Iterable[PodView], RowLoad], Sequence[int]]
"""From the pods on a row and what was reported of it to so many numbers."""


class RowFacts:
    """(width, rows): what `compute` makes of each row, up to date whenever it is asked for.

    What is tried out and undone shows as pods that come and go, so that it is right inside of a trial and after it.
    """

    def __init__(self, cluster: "Cluster", width: int, compute: Compute) -> None:
        self._cluster = cluster
        self._compute = compute
        self._values = np.zeros((width, 0), np.int64)
        self._is_known = np.zeros(0, np.bool_)
        self._positions = (0, 0)

    def at(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        self._catch_up()
        unknown = rows[~self._is_known[rows]]
        for row in unknown.tolist():
            pods = map(PodView.of, self._cluster.pods.on(row))
            self._values[:, row] = self._compute(pods, self._cluster.nodes.load.reported(row))
        self._is_known[unknown] = True
        found: NDArray[np.int64] = self._values[:, rows]
        return found

    def _catch_up(self) -> None:
        capacity = self._cluster.nodes.capacity
        if len(self._is_known) < capacity:
            self._values = np.zeros((len(self._values), capacity), np.int64)
            self._is_known = np.zeros(capacity, np.bool_)
        logs = (self._cluster.pod_changes, self._cluster.pod_updates)
        positions = (logs[0].position, logs[1].position)
        if positions == self._positions:
            return
        for log, since in zip(logs, self._positions, strict=True):
            rows = log.rows_since(since)
            if rows is None:
                self._is_known[:] = False
            else:
                self._is_known[rows] = False
        self._positions = positions
