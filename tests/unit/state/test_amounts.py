"""Amounts by resource and row: what is gathered is what was put, in the order asked for."""

import itertools

import numpy as np
import pytest

from mooring.state.amounts import ALLOCATABLE, LARGEST, NONZERO, REQUESTED, Amounts, Lines, Taken

FIRST = np.array([0], np.intp)


def made() -> Amounts:
    amounts = Amounts(3)
    for code in range(4):
        for row in range(3):
            amounts.put_allocatable(code, row, 10 * code + row)
    return amounts


def taken(*amounts: int, scored: tuple[int, ...] = ()) -> Taken:
    return Taken(np.array([amounts, scored or amounts], np.int64))


@pytest.mark.parametrize("codes", [c for n in (1, 2, 3) for c in itertools.permutations(range(4), n)])
def test_resources_are_gathered_in_the_order_asked_for(codes: tuple[int, ...]) -> None:
    lines = Lines(codes)

    assert made().gather(ALLOCATABLE, lines, np.array([2, 0])).tolist() == [[10 * c + 2, 10 * c] for c in codes]
    assert made().gather(ALLOCATABLE, lines, 2).tolist() == [[10 * c, 10 * c + 1] for c in codes]


def test_what_is_gathered_without_copying_cannot_be_written() -> None:
    everything = made().gather(ALLOCATABLE, Lines((0, 1)), 3)

    with pytest.raises(ValueError, match="read-only"):
        everything[0, 0] = 1


def test_pods_take_and_give_back() -> None:
    amounts = made()
    amounts.take(1, taken(3, 5, scored=(4, 5)))
    amounts.take_many(np.array([1, 2]), np.array([1, 2]), taken(10))
    amounts.give_back(1, taken(1, 1))

    assert amounts.gather(REQUESTED, Lines((0, 1, 2)), 3).tolist() == [[0, 12, 20], [0, 4, 0], [0, 0, 0]]
    assert amounts.gather(NONZERO, Lines((0, 1, 2)), 3).tolist() == [[0, 13, 20], [0, 4, 0], [0, 0, 0]]
    assert amounts.integers[:, :, :3].tolist() == amounts.floats[:, :, :3].tolist()


def test_amounts_stay_as_they_are_when_room_is_made() -> None:
    amounts = made()
    amounts.take(2, taken(7))
    amounts.reserve(9, 50)

    assert amounts.gather(ALLOCATABLE, Lines((3,)), 4).tolist() == [[30, 31, 32, 0]]
    assert amounts.gather(REQUESTED, Lines((0, 8)), 4).tolist() == [[0, 0, 7, 0], [0, 0, 0, 0]]


def test_amounts_too_large_for_exact_floats_are_gathered_as_integers() -> None:
    amounts = made()
    assert amounts.gather(ALLOCATABLE, Lines((0, 1)), FIRST).dtype == np.float64

    amounts.put_allocatable(1, 0, LARGEST + 1)

    assert amounts.gather(ALLOCATABLE, Lines((0, 1)), FIRST).tolist() == [[0], [LARGEST + 1]]
    assert amounts.gather(REQUESTED, Lines((0, 1)), FIRST).dtype == np.int64
    assert amounts.gather(ALLOCATABLE, Lines((2, 3)), FIRST).dtype == np.float64


def test_pods_that_add_up_to_more_than_exact_floats_hold_are_noticed_at_once() -> None:
    amounts = made()
    half = LARGEST // 2
    for _ in range(3):  # coming and going, they never add up to that
        amounts.take(0, taken(1, half))
        amounts.give_back(0, taken(1, half))
    amounts.take(0, taken(1, half))
    amounts.take(1, taken(1, half))
    amounts.take(0, taken(1, half))
    assert amounts.gather(REQUESTED, Lines((1,)), FIRST).dtype == np.float64

    amounts.take(0, taken(1, 1))

    assert amounts.gather(REQUESTED, Lines((1,)), FIRST).tolist() == [[2 * half + 1]]
    assert amounts.gather(REQUESTED, Lines((1,)), FIRST).dtype == np.int64
    assert amounts.gather(REQUESTED, Lines((0,)), FIRST).dtype == np.float64


def test_many_pods_at_once_that_add_up_to_too_much_are_noticed() -> None:
    amounts = made()
    amounts.take_many(np.array([0, 2]), np.array([1, 3]), taken(LARGEST // 2))

    assert amounts.gather(REQUESTED, Lines((0,)), FIRST).dtype == np.int64
