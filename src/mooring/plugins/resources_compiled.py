"""The arithmetic of `resources_in_one_go`, compiled: row by row in one pass, straight into the keys.

Numba is optional (`pip install mooring[fast]`): where it is not installed, or not loaded, NumPy does the same work with
the same results. To load it takes a third of a second, and once on a machine half a second more to compile: the result
is kept on disk. So it is loaded where there is enough to decide, not for ten pods.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE
from mooring.engine.ranking.blocks import INFEASIBLE
from mooring.state.amounts import ALLOCATABLE, FREE, REQUESTED, SPARE
from mooring.state.cluster import Cluster
from mooring.state.nodes import TIE_BITS


class Kernel(Protocol):
    """Sets the keys of those of some rows that no settled filter refuses."""

    def __call__(
        self,
        floats: NDArray[np.float64],
        rows: NDArray[np.intp],
        is_row: NDArray[np.bool_],
        settled: NDArray[np.int64],
        keys: NDArray[np.int64],
        lines: NDArray[np.intp],
        numbers: NDArray[np.float64],
    ) -> None: ...


WORTHWHILE = 2_000_000
"""Shapes times nodes from which loading pays: about what NumPy needs a third of a second for."""

_loaded: list[Kernel] = []


def kernel() -> Kernel | None:
    """The compiled way, if it is loaded."""
    return _loaded[0] if _loaded else None


def load() -> bool:
    """Load the compiled way, if Numba is installed; tell whether it is there."""
    if not _loaded:
        try:
            import numba
            from numba import types
        except ImportError:
            return False
        floats = types.Array(types.float64, 3, "C", readonly=True)
        rows = types.Array(types.intp, 1, "C", readonly=True)
        is_row = types.Array(types.boolean, 1, "C", readonly=True)
        settled = types.Array(types.int64, 1, "C", readonly=True)
        numbers = types.Array(types.float64, 1, "C", readonly=True)
        signature = types.void(floats, rows, is_row, settled, types.int64[::1], rows, numbers)
        # The divisors are never 0: `error_model` saves the check. Nothing else departs from IEEE arithmetic.
        try:
            compiled = numba.njit(signature, cache=True, error_model="numpy")(set_keys)
        except RuntimeError:  # there is no folder to keep the result in
            compiled = numba.njit(signature, error_model="numpy")(set_keys)
        _loaded.append(compiled)
    return True


def load_if_worthwhile(cluster: Cluster) -> bool:
    """Load the compiled way if there is enough to decide; tell whether it is there."""
    return bool(_loaded) or (len(cluster.shapes) * len(cluster.nodes) >= WORTHWHILE and load())


def unload() -> None:
    """Go on with NumPy: for comparing the two."""
    _loaded.clear()


def set_keys(
    floats: NDArray[np.float64],
    rows: NDArray[np.intp],
    is_row: NDArray[np.bool_],
    settled: NDArray[np.int64],
    keys: NDArray[np.int64],
    lines: NDArray[np.intp],
    numbers: NDArray[np.float64],
) -> None:
    """See `Kernel`. `lines`: the two resources that are scored, then those checked; `numbers`: ResourcesInOneGo's."""
    capacity_one, capacity_two = floats[ALLOCATABLE, lines[0]], floats[ALLOCATABLE, lines[1]]
    spare_one, spare_two = floats[SPARE, lines[0]], floats[SPARE, lines[1]]
    taken_one, taken_two = floats[REQUESTED, lines[0]], floats[REQUESTED, lines[1]]
    prefers_full = numbers[0] != 0.0
    fit_weight, balance_weight = numbers[1], numbers[2]
    scored_one, scored_two, added_one, added_two = numbers[3], numbers[4], numbers[5], numbers[6]
    for row in rows:
        if not is_row[row]:
            continue
        has_one, has_two = capacity_one[row], capacity_two[row]
        left_one, left_two = spare_one[row] - scored_one, spare_two[row] - scored_two
        if prefers_full:
            left_one, left_two = has_one - max(left_one, 0.0), has_two - max(left_two, 0.0)
        full_one = max(np.floor(left_one * MAX_SCORE / has_one), 0.0)
        full_two = max(np.floor(left_two * MAX_SCORE / has_two), 0.0)
        fullness = np.floor((full_one + full_two) * 0.5)
        had_one, had_two = taken_one[row], taken_two[row]
        before = np.trunc((2.0 - abs(had_one / has_one - had_two / has_two)) * (0.5 * MAX_SCORE))
        apart = abs((had_one + added_one) / has_one - (had_two + added_two) / has_two)
        after = np.trunc((2.0 - apart) * (0.5 * MAX_SCORE))
        balance = np.floor((after - before + 1.5 * MAX_SCORE) * 0.5)
        keys[row] = settled[row] + (np.int64(fullness * fit_weight + balance * balance_weight) << TIE_BITS)
    for at in range(2, len(lines)):
        free, needed = floats[FREE, lines[at]], numbers[5 + at]
        for row in rows:
            if free[row] < needed:
                keys[row] = INFEASIBLE
