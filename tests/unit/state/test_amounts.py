"""Amounts by resource and row: what is gathered is what was put, in the order asked for."""

import itertools

import numpy as np
import pytest

from mooring.state.amounts import LARGEST, AmountMatrix


def matrix(inexact: set[int] | None = None) -> AmountMatrix:
    made = AmountMatrix(3, set() if inexact is None else inexact)
    for code in range(4):
        for row in range(3):
            made.put(code, row, 10 * code + row)
    return made


@pytest.mark.parametrize("codes", [c for n in (1, 2, 3) for c in itertools.permutations(range(4), n)])
def test_resources_are_gathered_in_the_order_asked_for(codes: tuple[int, ...]) -> None:
    gathered = matrix().gather(codes, np.array([2, 0]))

    assert gathered.tolist() == [[10 * code + 2, 10 * code] for code in codes]


def test_amounts_too_large_for_exact_floats_are_gathered_as_integers() -> None:
    amounts = matrix()
    assert amounts.gather((0, 1), np.array([0])).dtype == np.float64

    amounts.put(1, 0, LARGEST + 1)

    assert amounts.gather((0, 1), np.array([0])).tolist() == [[0], [LARGEST + 1]]
    assert amounts.gather((0, 1), np.array([0])).dtype == np.int64
    assert amounts.gather((2, 3), np.array([0])).dtype == np.float64
