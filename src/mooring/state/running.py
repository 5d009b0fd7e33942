"""The pods of every row, most important first, as matrices padded to the fullest row: kept, and read again by row.

Importance is kube-scheduler's: higher priority first, then the earlier start; a pod that has not started is the newest.
The pods of a gang have its priority.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.pods import Pod
from mooring.model.jobs.expansion import controller_of
from mooring.model.validation.checkpoints import LAST_CHECKPOINT
from mooring.state.columns import Interner
from mooring.state.gang_units import GangUnits
from mooring.state.pods import PodChanges, PodRecord

if TYPE_CHECKING:
    from mooring.state.cluster import Cluster

Matrix = NDArray[np.int64]

NOT_STARTED = np.iinfo(np.int64).max
"""Later than any start, as kube-scheduler takes now for the start of a pod that has none."""
NO_POD = np.iinfo(np.int64).max
"""The priority of padding: never below anybody's."""
MOST_WORKLOADS = 1 << 18
"""So many names of workloads are kept, including those that are gone, before they are collected anew."""


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


def last_saved(pod: Pod) -> int:
    """Since when a pod's work would be lost: its last checkpoint if it tells, else its start."""
    text = (pod.metadata.annotations or {}).get(LAST_CHECKPOINT)
    saved = NOT_STARTED if text is None else _microseconds(text)
    return start_of(pod) if saved == NOT_STARTED else saved


def importance(record: PodRecord) -> tuple[int, int, str]:
    """Sorts pods, the most important first; equal ones by name, so that the order in which they came is no matter."""
    return -record.priority, start_of(record.pod), record.key


def preemptor_priority(cluster: "Cluster", pod: Pod) -> int:
    """What a pod preempts with: its gang's own priority, if it is in one that has any."""
    part = cluster.gangs.of(pod.key)
    gang = None if part is None else cluster.gangs.root_of(part).gang
    return (pod.spec.priority or 0) if gang is None or gang.priority is None else gang.priority


class RunningPods:
    """All bound pods by row; `refresh` before reading."""

    ALWAYS = ("slots", "priorities", "starts", "shapes", "budget_sets")
    FOR_COSTS = ("saved", "workloads", "classes")

    def __init__(self, cluster: "Cluster", *, with_costs: bool = False) -> None:
        """`with_costs` reads of each pod what policies about the cost of preemption ask for."""
        self.cluster = cluster
        self.budgets = cluster.budgets
        self.gangs = GangUnits(cluster)
        self.counts = np.zeros(0, np.int64)
        """How many pods each row has; the matrices are (rows, most pods of any row)."""
        self.slots, self.priorities, self.starts, self.shapes, self.budget_sets = (
            np.zeros((0, 0), np.int64) for _ in self.ALWAYS
        )
        self.with_costs = with_costs
        self.saved, self.workloads, self.classes = (np.zeros((0, 0), np.int64) for _ in self.FOR_COSTS)
        self.workload_names = Interner()
        self.class_names = Interner()
        self._positions = (-1, -1)
        self._versions = (-1, -1)
        """Of shapes, and of gangs."""
        self._budgets_version = -1
        self._lowest = NO_POD
        self._lowest_positions = (-1, -1)

    @property
    def _what(self) -> tuple[str, ...]:
        return self.ALWAYS + self.FOR_COSTS if self.with_costs else self.ALWAYS

    def has_below(self, priority: int) -> bool:
        """Whether any pod may run with less than this priority; False is certain, and needs no refresh."""
        if self.cluster.gangs:
            return True  # a gang may count for less than its pods
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
        self.budgets.refresh()
        matched_anew = self.budgets.matching_version != self._budgets_version
        self._budgets_version = self.budgets.matching_version
        matched_anew |= len(self.workload_names) > MOST_WORKLOADS
        logs = (cluster.pod_changes, cluster.pod_updates)
        positions = (logs[0].position, logs[1].position)
        versions = (cluster.shapes_version, cluster.gangs.version)
        if not matched_anew and (positions, versions) == (self._positions, self._versions):
            return
        rows = None if matched_anew else _changed_rows(logs, self._positions)
        has_other_shapes = versions[0] != self._versions[0]
        self._positions, self._versions = positions, versions
        if rows is None or cluster.nodes.end > len(self.counts):
            self._make_room(cluster.nodes.capacity, 1)
        if rows is None:
            self.counts[:] = 0
            self.priorities[:] = NO_POD
            self.workload_names = Interner()
        changed = list(cluster.pods.on_row) if rows is None else rows.tolist()
        also = self.gangs.refresh(None if rows is None else changed)
        for row in changed if rows is None or not also else {*changed, *also}:
            self._read(row)
        if has_other_shapes and rows is not None:
            self.shapes = cluster.pods.shape.values[self.slots].astype(np.int64)  # the rest of a pod is as it was

    @contextmanager
    def supposing(self) -> Iterator[None]:
        """Let pods come and go, and undo it all: nothing has to be read again for it.

        What happened before and was not read is still to be read after it.
        """
        is_read = self._positions[0] == self.cluster.pod_changes.position
        try:
            with self.cluster.what_if():
                yield
        finally:
            if is_read:
                self._positions = (self.cluster.pod_changes.position, self._positions[1])

    def count_below(self, rows: NDArray[np.intp], priority: int) -> NDArray[np.int64]:
        """How many pods of less than this priority each of some rows has."""
        if not len(rows):
            return np.zeros(0, np.int64)
        count: NDArray[np.int64] = np.count_nonzero(self.priorities[rows] < priority, axis=1)
        return count

    def allowed_disruptions(self) -> NDArray[np.int64]:
        """How many more pods each budget lets go now."""
        return self.budgets.allowed()

    def _read(self, row: int) -> None:
        priority_of = self.gangs.priority_of
        # As `importance` sorts, but by what a pod counts for as a victim.
        ranked = sorted(
            (-priority_of(record), start_of(record.pod), record.key, record) for record in self.cluster.pods.on(row)
        )
        count = len(ranked)
        if count > self.slots.shape[1]:
            self._make_room(len(self.counts), count + count // 4)
        self.counts[row] = count
        self.priorities[row] = NO_POD
        if not ranked:
            return
        records = [found[3] for found in ranked]
        self.slots[row, :count] = [record.slot for record in records]
        self.priorities[row, :count] = [-found[0] for found in ranked]
        self.starts[row, :count] = [found[1] for found in ranked]
        self.shapes[row, :count] = [record.shape.id for record in records]
        if self.budgets:
            self.budget_sets[row, :count] = [self.budgets.set_of(record.pod) for record in records]
        else:
            self.budget_sets[row, :count] = 0
        if self.with_costs:
            self.saved[row, :count] = [last_saved(record.pod) for record in records]
            self.workloads[row, :count] = [self.workload_names.code(self.workload_of(record)) for record in records]
            names = self.class_names
            self.classes[row, :count] = [names.code(record.pod.spec.priority_class_name) for record in records]

    def workload_of(self, record: PodRecord) -> str:
        """What is hit when a pod is evicted: its gang, its controller, or it alone."""
        gangs = self.cluster.gangs
        key = gangs.of_pod.get(record.key)
        if key is not None:
            return gangs.root_of(gangs.records[key]).key
        owner = controller_of(record.pod.metadata)
        return record.key if owner is None else f"{owner.kind}/{record.pod.metadata.namespace}/{owner.name}"

    def _make_room(self, rows: int, width: int) -> None:
        old_rows, old_width = self.slots.shape
        rows, width = max(rows, old_rows), max(width, old_width)
        if (rows, width) == (old_rows, old_width):
            return
        counts = np.zeros(rows, np.int64)
        counts[:old_rows] = self.counts
        self.counts = counts
        for what in self._what:
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
