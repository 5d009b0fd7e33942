"""Numbers about each row that its pods and its last report make together, computed again only where those changed."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.state.load import RowLoad
from mooring.state.views import PodView

if TYPE_CHECKING:
    from mooring.state.cluster import Cluster

Compute = Callable[[Iterable[PodView], RowLoad], Sequence[int]]
"""From the pods on a row and what was reported of it to so many numbers.

Each number is a sum: what it is without pods, and what each pod adds to it, whichever others there are.
"""


_NO_SLOTS: set[int] = set()


class _Counted(NamedTuple):
    """What the numbers of a row were made of."""

    load: RowLoad
    without_pods: NDArray[np.int64]
    slots: set[int]
    """Of the pods that are counted."""

    def is_of(self, load: RowLoad) -> bool:
        return self.load.node is load.node and self.load.gpus is load.gpus


class RowFacts:
    """(width, rows): what `compute` makes of each row, up to date whenever it is asked for.

    What is tried out and undone shows as pods that come and go, so that it is right inside of a trial and after it.
    Where pods only came to a row, only these are counted.
    """

    def __init__(self, cluster: "Cluster", width: int, compute: Compute) -> None:
        self._cluster = cluster
        self._compute = compute
        self._values = np.zeros((width, 0), np.int64)
        self._is_known = np.zeros(0, np.bool_)
        self._counted: dict[int, _Counted] = {}
        self._positions = (0, 0)

    def at(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        self._catch_up()
        is_known = self._is_known[rows]
        if not is_known.all():
            unknown = rows[~is_known]
            for row in unknown.tolist():
                self._count(row)
            self._is_known[unknown] = True
        found: NDArray[np.int64] = self._values.take(rows, axis=1)
        return found

    def _count(self, row: int) -> None:
        """Bring the numbers of one row up to date."""
        pods, load = self._cluster.pods, self._cluster.nodes.load.reported(row)
        slots, counted = pods.on_row.get(row, _NO_SLOTS), self._counted.get(row)
        if counted is None or not counted.is_of(load) or not counted.slots <= slots:
            without = np.array(self._compute((), load), np.int64)
            counted = self._counted[row] = _Counted(load, without, set())
            self._values[:, row] = without
        more = slots - counted.slots
        if more:
            records = (record for slot in sorted(more) if (record := pods.by_slot[slot]) is not None)
            self._values[:, row] += self._compute(map(PodView.of, records), load) - counted.without_pods
            counted.slots.update(more)

    def _catch_up(self) -> None:
        capacity = self._cluster.nodes.capacity
        if len(self._is_known) < capacity:
            self._values = np.zeros((len(self._values), capacity), np.int64)
            self._is_known = np.zeros(capacity, np.bool_)
            self._counted.clear()
        logs = (self._cluster.pod_changes, self._cluster.pod_updates)
        positions = (logs[0].position, logs[1].position)
        if positions == self._positions:
            return
        changes = logs[0].since(self._positions[0])
        updated = logs[1].rows_since(self._positions[1])
        if changes is None or updated is None:
            self._is_known[:] = False
            self._counted.clear()
        else:
            _, rows, signs = changes
            self._is_known[rows] = False
            self._is_known[updated] = False
            # Only where nothing but pods came is what was counted still right: another pod may have taken the place of
            # one that went.
            for row in (*rows[signs <= 0].tolist(), *updated.tolist()):
                self._counted.pop(row, None)
        self._positions = positions
