"""Histograms as columns give what one histogram after the other gives, sample by sample."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mooring.state.usage.containers import ContainerUsage
from mooring.state.usage.histograms import CPU_BUCKETS, EPSILON, MAX_EXPONENT, MEMORY_BUCKETS, Buckets, Histograms

DAY = 86400.0
YEAR_2026 = 1_767_225_600.0


class PlainHistogram:
    """One decaying histogram, in plain numbers."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets
        self.weights: dict[int, float] = {}
        self.reference: float | None = None

    def _weight(self, time: float) -> float:
        if self.reference is None or time > self.reference + MAX_EXPONENT * DAY:
            reference = math.floor(time / DAY + 0.5) * DAY
            if self.reference is not None:
                factor = math.exp2((self.reference - reference) / DAY)
                self.weights = {bucket: weight * factor for bucket, weight in self.weights.items()}
            self.reference = reference
        return math.exp2((time - self.reference) / DAY)

    def add(self, value: float, weight: float, time: float) -> None:
        bucket = int(self.buckets.find(np.array([value]))[0])
        self.weights[bucket] = self.weights.get(bucket, 0.0) + weight * self._weight(time)

    def percentile(self, fraction: float) -> float:
        full = sorted(bucket for bucket, weight in self.weights.items() if weight >= EPSILON)
        if not full:
            return 0.0
        total, partial = sum(self.weights.values()), 0.0
        bucket = full[0]
        for bucket in range(full[0], full[-1] + 1):
            partial += self.weights.get(bucket, 0.0)
            if partial >= fraction * total * (1 + 1e-12):
                break
        return float(self.buckets.starts()[min(bucket + 1, self.buckets.count - 1)])


samples = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([0.0, 0.004, 0.01, 0.07, 0.5, 3.0, 900.0, 5000.0]),
        st.integers(0, 300 * 24).map(lambda hours: YEAR_2026 + hours * 3600.0),
    ),
    max_size=40,
)


@given(samples, st.sampled_from([0.5, 0.9, 0.95]))
def test_columns_equal_plain_histograms(given_samples: list[tuple[int, float, float]], fraction: float) -> None:
    columns, plain = Histograms(CPU_BUCKETS), [PlainHistogram(CPU_BUCKETS) for _ in range(4)]
    columns.grow(4)
    for row, value, time in sorted(given_samples, key=lambda sample: sample[2]):
        columns.add(np.array([row]), np.array([value]), 0.1, np.array([time]))
        plain[row].add(value, 0.1, time)

    percentiles = columns.percentiles(np.arange(4), fraction)

    # Where the weight reaches the fraction to the last bit, the bucket before or behind may be found.
    starts = CPU_BUCKETS.starts().tolist()
    for row in range(4):
        expected = plain[row].percentile(fraction)
        near = abs(starts.index(percentiles[row]) - starts.index(expected))
        assert near == 0 or _is_tie(plain[row], fraction)


def _is_tie(histogram: PlainHistogram, fraction: float) -> bool:
    total = sum(histogram.weights.values())
    partial = 0.0
    for bucket in sorted(histogram.weights):
        partial += histogram.weights[bucket]
        if math.isclose(partial, fraction * total, rel_tol=1e-9):
            return True
    return False


@given(samples)
def test_what_is_added_and_taken_back_leaves_nothing(given_samples: list[tuple[int, float, float]]) -> None:
    columns = Histograms(MEMORY_BUCKETS)
    columns.grow(4)
    ordered = sorted(given_samples, key=lambda sample: sample[2])[:10]
    if not ordered:
        return
    latest = ordered[-1][2]
    for row, value, _ in ordered:
        columns.add(np.array([row]), np.array([value * 1e9]), 1.0, np.array([latest]))
    for row, value, _ in ordered:
        columns.subtract(np.array([row]), np.array([value * 1e9]), 1.0, np.array([latest]))

    assert columns.percentiles(np.arange(4), 0.9).tolist() == [0.0] * 4


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 200), st.integers(0, 4000), st.integers(0, 1 << 34)), max_size=30
    )
)
def test_a_batch_counts_as_its_samples_one_by_one(batch: list[tuple[int, int, int, int]]) -> None:
    together, alone = ContainerUsage(), ContainerUsage()
    for usage in (together, alone):
        aggregates = [usage.add_aggregate() for _ in range(3)]
        for container in range(6):
            usage.add_container(aggregates[container % 3])
    # A round has at most one sample of a container.
    rounds: list[dict[int, tuple[float, float, int]]] = []
    for container, hours, millis, memory in batch:
        turn = next((one for one in rounds if container not in one), None)
        if turn is None:
            rounds.append(turn := {})
        turn[container] = (YEAR_2026 + hours * 3600.0, millis / 1000.0, memory)
    for turn in rounds:
        rows = np.array(list(turn))
        times, cores, memory_bytes = (np.array(column) for column in zip(*turn.values(), strict=True))
        together.see_cpu(rows, times, cores)
        together.see_memory(rows, times, memory_bytes)
        for position in range(len(rows)):
            one = slice(position, position + 1)
            alone.see_cpu(rows[one], times[one], cores[one])
            alone.see_memory(rows[one], times[one], memory_bytes[one])

    three = np.arange(3)
    assert together.sample_counts[:3].tolist() == alone.sample_counts[:3].tolist()
    for fraction in (0.5, 0.9):
        assert together.cpu.percentiles(three, fraction).tolist() == alone.cpu.percentiles(three, fraction).tolist()
        assert (
            together.memory.percentiles(three, fraction).tolist() == alone.memory.percentiles(three, fraction).tolist()
        )
