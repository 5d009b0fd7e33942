"""The pods of every row, most important first, as matrices padded to the fullest row: kept, and read again by row.

Importance is kube-scheduler's: higher priority first, then the earlier start; a pod that has not started is the newest.
"""

from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.budgets import Budgets
from mooring.model.pods import Pod
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodChanges, PodRecord

Matrix = NDArray[np.int64]

NOT_STARTED = np.iinfo(np.int64).max
"""Later than any start, as kube-scheduler takes now for the start of a pod that has none."""
NO_POD = np.iinfo(np.int64).max
"""The priority of padding: never below anybody's."""


@lru_cache(maxsize=1 << 16)
def _microseconds(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1_000_000)
    except ValueError:
        return NOT_STARTED


def start_of(pod: Pod) -> int:
    """When a pod started, in microseconds since 1970; NOT_STARTED if it has not."""
    text = pod.status.start_time
    return NOT_STARTED if text is None else _microseconds(text)


def importance(record: PodRecord) -> tuple[int, int, str]:
    """Sorts pods, the most important first; equal ones by name, so that the order in which they came is no matter."""
    return -record.priority, start_of(record.pod), record.key


class RunningPods:
    """All bound pods by row; `refresh` before reading."""

    WHAT = ("slots", "priorities", "starts", "shapes", "budget_sets")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.budgets = Budgets()
        self.counts = np.zeros(0, np.int64)
        """How many pods each row has; the matrices are (rows, most pods of any row)."""
        self.slots, self.priorities, self.starts, self.shapes, self.budget_sets = (
            np.zeros((0, 0), np.int64) for _ in self.WHAT
        )
        self._positions = (-1, -1)
        self._shapes_version = -1
        self._lowest = NO_POD
        self._lowest_positions = (-1, -1)

    def has_below(self, priority: int) -> bool:
        """Whether any pod may run with less than this priority; False is certain, and needs no refresh."""
        logs = (self.cluster.pod_changes, self.cluster.pod_updates)
        positions = (logs[0].position, logs[1].position)
        if positions != self._lowest_positions:
            rows = _changed_rows(logs, self._lowest_positions)
            known = NO_POD if rows is None else self._lowest
            read = list(self.cluster.pods.on_row) if rows is None else rows.tolist()
            found = (record.priority for row in read for record in self.cluster.pods.on(row))
            self._lowest = min(known, min(found, default=NO_POD))
            self._lowest_positions = positions
        return priority > self._lowest

    def refresh(self) -> None:
        """Read the rows again on which anything happened."""
        cluster = self.cluster
        matched_anew = self.budgets.refresh(cluster.related)
        logs = (cluster.pod_changes, cluster.pod_updates)
        positions = (logs[0].position, logs[1].position)
        rows = None
        if not matched_anew and self._shapes_version == cluster.shapes_version:
            if positions == self._positions:
                return
            rows = _changed_rows(logs, self._positions)
        self._positions, self._shapes_version = positions, cluster.shapes_version
        if rows is None or cluster.nodes.end > len(self.counts):
            self._make_room(cluster.nodes.capacity, 1)
        if rows is None:
            self.counts[:] = 0
            self.priorities[:] = NO_POD
            rows = np.array(list(cluster.pods.on_row), np.intp)
        for row in rows.tolist():
            self._read(row)

    def count_below(self, rows: NDArray[np.intp], priority: int) -> NDArray[np.int64]:
        """How many pods of less than this priority each of some rows has."""
        if not len(rows):
            return np.zeros(0, np.int64)
        count: NDArray[np.int64] = np.count_nonzero(self.priorities[rows] < priority, axis=1)
        return count

    def allowed_disruptions(self) -> NDArray[np.int64]:
        """How many more pods each budget lets go now."""
        return self.budgets.allowed(self._healthy_by_set, self._is_healthy)

    def _healthy_by_set(self) -> NDArray[np.int64]:
        is_pod = self.priorities != NO_POD
        leaving = np.array([shape.terminating for shape in self.cluster.shapes.all], np.bool_)
        sets = self.budget_sets[is_pod][~leaving[self.shapes[is_pod]]]
        return np.bincount(sets, minlength=len(self.budgets.sets))

    def _is_healthy(self, key: str) -> bool:
        record = self.cluster.pods.records.get(key)
        return record is not None and record.row != UNBOUND and not record.shape.terminating

    def _read(self, row: int) -> None:
        records = sorted(self.cluster.pods.on(row), key=importance)
        count = len(records)
        if count > self.slots.shape[1]:
            self._make_room(len(self.counts), count + count // 4)
        self.counts[row] = count
        self.priorities[row] = NO_POD
        if not records:
            return
        self.slots[row, :count] = [record.slot for record in records]
        self.priorities[row, :count] = [record.priority for record in records]
        self.starts[row, :count] = [start_of(record.pod) for record in records]
        self.shapes[row, :count] = [record.shape.id for record in records]
        if self.budgets:
            self.budget_sets[row, :count] = [self.budgets.set_of(record.pod) for record in records]
        else:
            self.budget_sets[row, :count] = 0

    def _make_room(self, rows: int, width: int) -> None:
        old_rows, old_width = self.slots.shape
        rows, width = max(rows, old_rows), max(width, old_width)
        if (rows, width) == (old_rows, old_width):
            return
        counts = np.zeros(rows, np.int64)
        counts[:old_rows] = self.counts
        self.counts = counts
        for what in self.WHAT:
            grown = np.full((rows, width), NO_POD if what == "priorities" else 0, np.int64)
            grown[:old_rows, :old_width] = getattr(self, what)
            setattr(self, what, grown)


def _changed_rows(logs: tuple[PodChanges, PodChanges], positions: tuple[int, int]) -> NDArray[np.intp] | None:
    """The rows that either log mentions since its position; None if that is no longer known."""
    found = []
    for log, position in zip(logs, positions, strict=True):
        changes = log.since(position) if position >= 0 else None
        if changes is None:
            return None
        found.append(changes[1])
    return np.unique(np.concatenate(found))
