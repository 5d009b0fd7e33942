"""Rows by the domains they are in: those of one group get the same answers from whoever reads nothing but domains."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.state.nodes import ROW, NodeTable
from mooring.state.rows import Rows


@dataclass(frozen=True)
class Groups:
    """Rows by the domains they are in, and one row to ask for each group."""

    of_row: NDArray[np.intp]
    representatives: Rows


def group_rows(table: NodeTable, keys: Sequence[str]) -> Groups:
    """Group the rows of a table by their values of some labels."""
    live = table.live_rows()
    inverse = np.zeros(len(live), np.int64)
    first = np.zeros(min(1, len(live)), np.intp)
    for key in keys:
        if key == ROW:
            first, inverse = np.arange(len(live)), np.arange(len(live))
            break
        label = table.label(key)
        # Numbered anew after each key, so that the product of many keys cannot overflow.
        codes = inverse * (len(label.interner) + 1) + label.codes[live] + 1
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    of_row = np.zeros(table.end, np.intp)
    of_row[live] = inverse
    return Groups(of_row, live[first])
