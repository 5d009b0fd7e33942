"""The arithmetic of `resources_in_one_go` for a handful of rows, in Python's own numbers.

When shapes take turns, each has the one or two rows to ask about that the others have touched since. NumPy needs as
long for one row as for a hundred, most of it for being called at all: for so few, plain numbers are sooner done. They
are the same IEEE doubles, in the same order of operations; what is rounded to a whole number goes on as an integer.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE
from mooring.engine.ranking.blocks import INFEASIBLE, Keys
from mooring.state.amounts import ALLOCATABLE, FREE, REQUESTED, SPARE
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import Rows

FEW_ROWS = 12
"""Up to as many, this is faster than NumPy."""

_MAX, _HALF = float(MAX_SCORE), 0.5 * MAX_SCORE
_EVEN = 3 * MAX_SCORE // 2


def set_keys(
    floats: NDArray[np.float64],
    rows: Rows,
    is_row: NDArray[np.bool_] | None,
    settled: Keys,
    keys: Keys,
    codes: Sequence[int],
    numbers: Sequence[int],
) -> None:
    """See `Kernel` in `resources_compiled`: the same, with codes and numbers as they are; no mask means every row."""
    prefers_full, fit_weight, balance_weight, scored_one, scored_two, added_one, added_two, *needed = numbers
    one, two, *checked = codes
    needs = list(zip(checked, needed, strict=True))
    for row in dict.fromkeys(rows.tolist()):
        if is_row is not None and not is_row[row]:
            continue
        amounts = floats[:, :, row].tolist()
        free = amounts[FREE]
        for code, least in needs:
            if free[code] < least:
                keys[row] = INFEASIBLE
                break
        else:
            has, had, spare = amounts[ALLOCATABLE], amounts[REQUESTED], amounts[SPARE]
            has_one, has_two, had_one, had_two = has[one], has[two], had[one], had[two]
            left_one, left_two = spare[one] - scored_one, spare[two] - scored_two
            if prefers_full:
                left_one, left_two = has_one - max(left_one, 0.0), has_two - max(left_two, 0.0)
            # To cut off is to round down, but below 0, which counts as 0.
            full_one, full_two = int(left_one * _MAX / has_one), int(left_two * _MAX / has_two)
            fullness = ((full_one if full_one > 0 else 0) + (full_two if full_two > 0 else 0)) // 2
            before = int((2.0 - abs(had_one / has_one - had_two / has_two)) * _HALF)
            apart = abs((had_one + added_one) / has_one - (had_two + added_two) / has_two)
            balance = (int((2.0 - apart) * _HALF) - before + _EVEN) // 2
            keys[row] = settled.item(row) + ((fullness * fit_weight + balance * balance_weight) << TIE_BITS)
