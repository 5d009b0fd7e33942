"""NodeResourcesFit and NodeResourcesBalancedAllocation as they are by default, worked out in one go.

Their answers are asked for again and again about the rows that changed, and what that costs is the number of calls to
NumPy, hardly the number of rows. Asked one by one, the two look up the same amounts, convert to whole numbers and back,
and hand over arrays in between. Here the same arithmetic runs through once, for pods that ask for both resources that
are scored. Whatever is not the default, such as a third resource, other weights of resources, or amounts that floats do
not hold exactly, is left to the plugins. Rows that do not pass get some score or other.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers.settled import Settled
from mooring.engine.plugin import MAX_SCORE, Mask, Scores
from mooring.engine.ranking.blocks import Keys
from mooring.plugins import resources_row_by_row
from mooring.plugins.resource_scoring import Asked
from mooring.plugins.resources_compiled import kernel
from mooring.state.nodes import NodeTable
from mooring.state.rows import NodeRows, Rows

# Arrays of one number each: NumPy would convert a plain number at every call.
_NOTHING, _TWO, _HALVED = np.array(0.0), np.array(2.0), np.array(0.5)
_MAX, _HALF, _THREE_HALVES = np.array(1.0 * MAX_SCORE), np.array(0.5 * MAX_SCORE), np.array(1.5 * MAX_SCORE)


@dataclass(frozen=True)
class ResourcesInOneGo:
    """What one shape asks for, in columns, and what the two scores weigh."""

    checked: Asked
    """What a row must have free."""
    scored: Asked
    """Of the two resources that are scored: what counts for fullness, and for balance."""
    balanced: Asked
    prefers_full: bool
    """MostAllocated instead of LeastAllocated."""
    fit_weight: int
    balance_weight: int

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return (*self.scored.names, *self.checked.names)

    @cached_property
    def _plain_numbers(self) -> tuple[int, ...]:
        """All of this as one list."""
        weights = (self.prefers_full, self.fit_weight, self.balance_weight)
        return (*weights, *self.scored.quantities, *self.balanced.quantities, *self.checked.quantities)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The same as the compiled way reads it."""
        return np.array(self._plain_numbers, np.float64)

    def __call__(self, nodes: NodeRows) -> tuple[Mask | None, Scores] | None:
        names = self.scored.names
        free = nodes.stacked("free", self.checked.names)
        capacity = nodes.stacked("allocatable", names)
        if free.dtype != np.float64 or not nodes.has_all_everywhere(names):
            return None
        totals = self._fullness(nodes.stacked("spare", names) - self.scored.floats, capacity)
        if self.fit_weight != 1:
            totals *= self.fit_weight
        requested = nodes.stacked("requested", names)
        balance = _evenness(requested + self.balanced.floats, capacity)
        balance -= _evenness(requested, capacity)
        # 50 + (50 + change) // 2; the sum is never negative.
        balance += _THREE_HALVES
        balance *= _HALVED
        np.floor(balance, out=balance)
        if self.balance_weight != 1:
            balance *= self.balance_weight
        totals += balance
        enough = free >= self.checked.floats
        passed = None if np.count_nonzero(enough) == enough.size else np.logical_and.reduce(enough)
        return passed, totals.astype(np.int64)

    def set_keys(self, table: NodeTable, rows: Rows, settled: Settled, keys: Keys) -> bool:
        compiled = kernel()
        if compiled is None and len(rows) > resources_row_by_row.FEW_ROWS:
            return False
        lines = table.lines_of(self._names)
        if not table.has_all_everywhere(self.scored.names) or not table.cube.is_exact(lines):
            return False
        floats = table.cube.floats
        if compiled is not None:
            compiled(floats, rows, settled.is_row, settled.keys, keys, lines.array, self.numbers)
        else:
            is_row = None if settled.is_everywhere else settled.is_row
            resources_row_by_row.set_keys(floats, rows, is_row, settled.keys, keys, lines.codes, self._plain_numbers)
        return True

    def _fullness(self, spare: NDArray[np.float64], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
        """How full the node should be: the mean of two whole percentages, rounded down."""
        if self.prefers_full:
            np.maximum(spare, _NOTHING, out=spare)
            np.subtract(capacity, spare, out=spare)
        spare *= _MAX
        spare /= capacity
        np.floor(spare, out=spare)
        if not self.prefers_full:
            np.maximum(spare, _NOTHING, out=spare)
        mean: NDArray[np.float64] = spare[0]
        mean += spare[1]
        mean *= _HALVED
        return np.floor(mean, out=mean)


def _evenness(requested: NDArray[np.float64], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """See `node_resources_balanced_allocation.even_where_all`, for two resources.

    A row that is fuller than full is refused to pods that ask for both: what it would score is no matter.
    """
    fractions: NDArray[np.float64] = requested / capacity
    even: NDArray[np.float64] = fractions[0]
    even -= fractions[1]
    np.abs(even, out=even)
    np.subtract(_TWO, even, out=even)
    even *= _HALF
    return np.trunc(even, out=even)
