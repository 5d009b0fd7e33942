"""What containers were seen to use, gathered by what they are replicas of: CPU samples, and a memory peak a day.

A container is a row; so is what it counts for (its *aggregate*: all containers of one name under one autoscaler).
Samples come in batches, a sample a container.
"""

import numpy as np
from numpy.typing import NDArray

from mooring.state.usage.histograms import CPU_BUCKETS, MEMORY_BUCKETS, Floats, Histograms, Rows

CPU_SAMPLE_WEIGHT = 0.1
MEMORY_SAMPLE_WEIGHT = 1.0
NEVER = -np.inf

Bytes = NDArray[np.int64]


class ContainerUsage:
    """Usage of containers, as columns."""

    def __init__(self, *, half_life_seconds: float = 86400.0, window_seconds: float = 86400.0) -> None:
        self.window_seconds = window_seconds
        """Memory counts by its peak in each such window."""
        self.cpu = Histograms(CPU_BUCKETS, half_life_seconds)
        self.memory = Histograms(MEMORY_BUCKETS, half_life_seconds)
        self.first_samples = np.zeros(0)
        """By aggregate, as all up to `sample_counts`: the time of the first CPU sample."""
        self.last_samples = np.zeros(0)
        self.sample_counts = np.zeros(0, np.int64)
        self._aggregates = np.zeros(0, np.intp)
        """By container, as all below: the aggregate that it counts for."""
        self._last_cpu = np.zeros(0)
        self._last_memory = np.zeros(0)
        self._window_ends = np.zeros(0)
        self._peaks = np.zeros(0, np.int64)
        """Of measured memory in the present window."""
        self._oom_peaks = np.zeros(0, np.int64)
        """Of memory that a container would have needed that was killed for want of it."""
        self._containers = self._aggregate_count = 0

    def add_aggregate(self) -> int:
        """Make a row for containers of one name."""
        row = self._aggregate_count
        self._aggregate_count += 1
        self.cpu.grow(self._aggregate_count)
        self.memory.grow(self._aggregate_count)
        if row == len(self.sample_counts):
            more = max(64, row)
            self.first_samples = np.append(self.first_samples, np.full(more, np.inf))
            self.last_samples = np.append(self.last_samples, np.full(more, NEVER))
            self.sample_counts = np.append(self.sample_counts, np.zeros(more, np.int64))
        return row

    def add_container(self, aggregate: int) -> int:
        """Make a row for a container that counts for an aggregate."""
        row = self._containers
        self._containers += 1
        if row == len(self._aggregates):
            more = max(64, row)
            self._aggregates = np.append(self._aggregates, np.zeros(more, np.intp))
            self._last_cpu = np.append(self._last_cpu, np.full(more, NEVER))
            self._last_memory = np.append(self._last_memory, np.full(more, NEVER))
            self._window_ends = np.append(self._window_ends, np.full(more, NEVER))
            self._peaks = np.append(self._peaks, np.zeros(more, np.int64))
            self._oom_peaks = np.append(self._oom_peaks, np.zeros(more, np.int64))
        self._aggregates[row] = aggregate
        return row

    def see_cpu(self, containers: Rows, times: Floats, cores: Floats) -> None:
        """Add CPU samples, at most one a container; samples that are not newer than the last one count for nothing."""
        counts = (cores >= 0) & (times > self._last_cpu[containers])
        containers, times, cores = containers[counts], times[counts], cores[counts]
        self._last_cpu[containers] = times
        aggregates = self._aggregates[containers]
        np.add.at(self.sample_counts, aggregates, 1)
        np.maximum.at(self.last_samples, aggregates, times)
        np.minimum.at(self.first_samples, aggregates, times)
        for part in _distinct(aggregates):
            self.cpu.add(aggregates[part], cores[part], CPU_SAMPLE_WEIGHT, times[part])

    def see_memory(self, containers: Rows, times: Floats, amounts: Bytes) -> None:
        """Add memory samples, at most one a container; samples older than the last one count for nothing."""
        counts = (amounts >= 0) & (times >= self._last_memory[containers])
        self._add_memory(containers[counts], times[counts], amounts[counts], self._peaks)

    def see_out_of_memory(
        self, container: int, time: float, requested: int, *, ratio: float = 1.2, at_least: int = 100 << 20
    ) -> bool:
        """Count a container that was killed for want of memory by what it would have needed; False if it is too old."""
        if time < self._last_memory[container] - self.window_seconds:
            return False
        used = max(requested, int(self._peaks[container]))
        needed = max(used + at_least, int(used * ratio))
        row = np.array([container])
        self._add_memory(row, np.array([time]), np.array([needed]), self._oom_peaks)
        return True

    def _add_memory(self, containers: Rows, times: Floats, amounts: Bytes, peaks: Bytes) -> None:
        self._last_memory[containers] = times
        ends = self._window_ends[containers]
        ends = np.where(ends == NEVER, times, ends)
        is_new = times >= ends
        old = np.maximum(self._peaks[containers], self._oom_peaks[containers])
        is_higher = ~is_new & (old != 0) & (amounts > old)
        length = self.window_seconds
        ends = np.where(is_new, ends + np.floor((times - ends) / length) * length + length, ends)
        self._window_ends[containers] = ends
        self._peaks[containers[is_new]] = 0
        self._oom_peaks[containers[is_new]] = 0
        aggregates = self._aggregates[containers]
        for part in _distinct(aggregates):
            replaced = part[is_higher[part]]
            if len(replaced):
                values = old[replaced].astype(np.float64)
                self.memory.subtract(aggregates[replaced], values, MEMORY_SAMPLE_WEIGHT, ends[replaced])
            added = part[(is_new | is_higher)[part]]
            if len(added):
                values = amounts[added].astype(np.float64)
                self.memory.add(aggregates[added], values, MEMORY_SAMPLE_WEIGHT, ends[added])
        counts = is_new | is_higher
        peaks[containers[counts]] = amounts[counts]


def _distinct(rows: Rows) -> list[NDArray[np.intp]]:
    """Positions in groups, such that no row stands twice in a group, and earlier ones stand in earlier groups."""
    if len(rows) == len(np.unique(rows)):
        return [np.arange(len(rows))]
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    lengths = np.diff(np.append(begins, len(rows)))
    occurrence = np.arange(len(rows)) - np.repeat(begins, lengths)
    return [np.sort(order[occurrence == turn]) for turn in range(int(lengths.max()))]
