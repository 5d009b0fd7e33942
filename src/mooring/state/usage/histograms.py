"""Decaying histograms as columns: one row a histogram, newer samples count for more.

A sample's weight doubles with each half-life after the reference time of its row. The reference moves forward before
weights grow too large; all weights of the row are scaled with it, which changes no percentile.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATIO = 1.05
"""Each bucket is larger than the one before by this factor."""
EPSILON = 0.001 * 0.1
"""A bucket with less weight is empty."""
MAX_EXPONENT = 100
"""Half-lives after which the reference time of a row moves forward."""
AT_ONCE = 4096
"""Rows whose percentiles are found at a time: more need more memory and no less time."""
YEAR_ONE = -62_135_596_800.0
"""Seconds from 1970 to the time from which reference times are counted in half-lives."""

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Exponentially growing buckets that reach from zero to at least `largest`."""

    first: float
    """The size of the first bucket."""
    largest: float

    @property
    def count(self) -> int:
        return math.ceil(math.log(self.largest * (RATIO - 1) / self.first + 1) / math.log(RATIO)) + 1

    def starts(self) -> Floats:
        """Where each bucket starts."""
        return np.array([self.first * (_power(RATIO, n) - 1) / (RATIO - 1) if n else 0.0 for n in range(self.count)])

    def find(self, values: Floats) -> NDArray[np.intp]:
        """The bucket of each value."""
        scaled = (values * (RATIO - 1) / self.first + 1).tolist()
        # NumPy's logarithm of many numbers at once is off in the last bit at times, which moves 10m to another bucket.
        logarithms = np.fromiter(map(math.log, scaled), np.float64, len(scaled))
        found = (logarithms / math.log(RATIO)).astype(np.intp)
        found[values < self.first] = 0
        return np.minimum(found, self.count - 1)


CPU_BUCKETS = Buckets(first=0.01, largest=1000.0)
"""In cores."""
MEMORY_BUCKETS = Buckets(first=1e7, largest=1e12)
"""In bytes."""


class Histograms:
    """Histograms of one kind of buckets, one a row."""

    def __init__(self, buckets: Buckets, half_life_seconds: float = 86400.0) -> None:
        self.buckets = buckets
        self.half_life_seconds = half_life_seconds
        self._starts = buckets.starts()
        self._weights = np.zeros((0, buckets.count))
        self._totals = np.zeros(0)
        self._references = np.zeros(0)
        self._firsts = np.zeros(0, np.int16)
        """The first bucket that is not empty; the last bucket where all are."""
        self._lasts = np.zeros(0, np.int16)

    def grow(self, rows: int) -> None:
        """Have at least so many rows."""
        more = rows - len(self._totals)
        if more <= 0:
            return
        more = max(more, len(self._totals))
        self._weights = np.vstack([self._weights, np.zeros((more, self.buckets.count))])
        self._totals = np.append(self._totals, np.zeros(more))
        self._references = np.append(self._references, np.full(more, -np.inf))
        self._firsts = np.append(self._firsts, np.full(more, self.buckets.count - 1, np.int16))
        self._lasts = np.append(self._lasts, np.zeros(more, np.int16))

    def add(self, rows: Rows, values: Floats, weight: float, times: Floats) -> None:
        """Add one sample to each row; no row stands twice."""
        weights = weight * self._decay(rows, times)
        found = self.buckets.find(values)
        new = self._weights[rows, found] + weights
        self._weights[rows, found] = new
        self._totals[rows] += weights
        counts = new >= EPSILON
        rows, found = rows[counts], found[counts].astype(np.int16)
        self._firsts[rows] = np.minimum(self._firsts[rows], found)
        self._lasts[rows] = np.maximum(self._lasts[rows], found)

    def subtract(self, rows: Rows, values: Floats, weight: float, times: Floats) -> None:
        """Take back one sample of each row, as it was added; no row stands twice."""
        weights = weight * self._decay(rows, times)
        found = self.buckets.find(values)
        there = self._weights[rows, found]
        weights = np.where(weights > there - EPSILON, there, weights)
        self._totals[rows] -= weights
        self._weights[rows, found] = there - weights
        self._find_ends(rows)

    def percentiles(self, rows: Rows, fraction: float) -> Floats:
        """The value below which that fraction of each row's weight is; 0 for rows without samples."""
        parts = [self._percentiles(rows[at : at + AT_ONCE], fraction) for at in range(0, len(rows), AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _percentiles(self, rows: Rows, fraction: float) -> Floats:
        columns = np.arange(self.buckets.count)
        firsts, lasts = self._firsts[rows], self._lasts[rows]
        weights = self._weights[rows]
        is_empty = weights[np.arange(len(rows)), firsts] < EPSILON
        weights[columns < firsts[:, None]] = 0.0
        reached = np.cumsum(weights, axis=1) >= (fraction * self._totals[rows])[:, None]
        reached &= columns >= firsts[:, None]
        reached |= columns >= lasts[:, None]
        found = np.argmax(reached, axis=1)
        found = np.minimum(np.maximum(found, firsts) + 1, self.buckets.count - 1)
        return np.where(is_empty, 0.0, self._starts[found])

    def _decay(self, rows: Rows, times: Floats) -> Floats:
        """By what a sample of this time counts more than one of the row's reference time."""
        late = times > self._references[rows] + self.half_life_seconds * MAX_EXPONENT
        if late.any():
            self._move_references(rows[late], times[late])
        decay: Floats = np.exp2((times - self._references[rows]) / self.half_life_seconds)
        return decay

    def _move_references(self, rows: Rows, times: Floats) -> None:
        half_life = self.half_life_seconds
        references = YEAR_ONE + np.floor((times - YEAR_ONE) / half_life + 0.5) * half_life
        exponents = np.floor((self._references[rows] - references) / half_life + 0.5)
        factors = np.exp2(np.maximum(exponents, -2000.0))
        self._weights[rows] *= factors[:, None]
        self._totals[rows] *= factors
        self._references[rows] = references
        self._find_ends(rows)

    def _find_ends(self, rows: Rows) -> None:
        """Find the first and the last bucket that is not empty, after weights became smaller."""
        is_full = self._weights[rows] >= EPSILON
        columns = np.arange(self.buckets.count)
        inside = is_full & (columns >= self._firsts[rows][:, None]) & (columns <= self._lasts[rows][:, None])
        has_any = inside.any(axis=1)
        last = self.buckets.count - 1
        self._firsts[rows] = np.where(has_any, np.argmax(inside, axis=1), last)
        self._lasts[rows] = np.where(has_any, last - np.argmax(inside[:, ::-1], axis=1), 0)


def _power(base: float, exponent: int) -> float:
    """A power by squaring the binary fraction: where it decides about a whole byte, this is how Go multiplies."""
    result, result_exponent = 1.0, 0
    fraction, binary_exponent = math.frexp(base)
    while exponent:
        if exponent & 1:
            result *= fraction
            result_exponent += binary_exponent
        fraction *= fraction
        binary_exponent <<= 1
        if fraction < 0.5:
            fraction += fraction
            binary_exponent -= 1
        exponent >>= 1
    return math.ldexp(result, result_exponent)
