"""Amounts by resource and row: what is gathered is what was put, in the order asked for."""

import itertools

import numpy as np
import pytest

from mooring.state.amounts import ALLOCATABLE, FREE, LARGEST, NONZERO, REQUESTED, SPARE, Amounts, ResourceColumns, Taken

FIRST = np.array([0], np.intp)


def made() -> Amounts:
    amounts = Amounts(3)
    for row in range(3):
        amounts.put_allocatable(row, {code: 10 * code + row for code in range(4)})
    return amounts


def taken(*amounts: int, scored: tuple[int, ...] = ()) -> Taken:
    return Taken(dict(enumerate(amounts)), dict(enumerate(scored or amounts)), 4)


def gathered(amounts: Amounts, kind: int, *codes: int) -> list[list[int]]:
    found: list[list[int]] = amounts.gather(kind, ResourceColumns(codes), 3).tolist()
    return found


@pytest.mark.parametrize("codes", [c for n in (1, 2, 3) for c in itertools.permutations(range(4), n)])
def test_resources_are_gathered_in_the_order_asked_for(codes: tuple[int, ...]) -> None:
    lines = ResourceColumns(codes)

    assert made().gather(ALLOCATABLE, lines, np.array([2, 0])).tolist() == [[10 * c + 2, 10 * c] for c in codes]
    assert made().gather(ALLOCATABLE, lines, 2).tolist() == [[10 * c, 10 * c + 1] for c in codes]


def test_what_is_gathered_without_copying_cannot_be_written() -> None:
    everything = made().gather(ALLOCATABLE, ResourceColumns((0, 1)), 3)

    with pytest.raises(ValueError, match="read-only"):
        everything[0, 0] = 1


def test_pods_take_and_give_back() -> None:
    amounts = made()
    amounts.take(1, taken(3, 5, scored=(4, 5)))
    amounts.take_many(np.array([1, 2]), np.array([1, 2]), taken(10))
    amounts.give_back(1, taken(1, 1))

    assert gathered(amounts, REQUESTED, 0, 1, 2) == [[0, 12, 20], [0, 4, 0], [0, 0, 0]]
    assert gathered(amounts, NONZERO, 0, 1, 2) == [[0, 13, 20], [0, 4, 0], [0, 0, 0]]
    assert gathered(amounts, FREE, 0, 1, 2) == [[0, -11, -18], [10, 7, 12], [20, 21, 22]]
    assert gathered(amounts, SPARE, 0, 1, 2) == [[0, -12, -18], [10, 7, 12], [20, 21, 22]]
    assert amounts.integers.tolist() == amounts.floats[: len(amounts.integers)].tolist()


def test_a_node_that_is_described_anew_keeps_its_pods() -> None:
    amounts = made()
    amounts.take(1, taken(3, 5, scored=(4, 5)))
    amounts.put_allocatable(1, {0: 100})

    assert gathered(amounts, REQUESTED, 0, 1) == [[0, 3, 0], [0, 5, 0]]
    assert gathered(amounts, FREE, 0, 1) == [[0, 97, 2], [10, -5, 12]]
    assert gathered(amounts, SPARE, 0, 1) == [[0, 96, 2], [10, -5, 12]]


def test_amounts_stay_as_they_are_when_room_is_made() -> None:
    amounts = made()
    amounts.take(2, taken(7))
    amounts.reserve(9, 50)

    assert amounts.gather(ALLOCATABLE, ResourceColumns((3,)), 4).tolist() == [[30, 31, 32, 0]]
    assert amounts.gather(REQUESTED, ResourceColumns((0, 8)), 4).tolist() == [[0, 0, 7, 0], [0, 0, 0, 0]]
    assert amounts.gather(FREE, ResourceColumns((0, 8)), 4).tolist() == [[0, 1, -5, 0], [0, 0, 0, 0]]


def test_amounts_too_large_for_exact_floats_are_gathered_as_integers() -> None:
    amounts = made()
    amounts.take(0, taken(1, 2))
    assert amounts.gather(ALLOCATABLE, ResourceColumns((0, 1)), FIRST).dtype == np.float64

    amounts.put_allocatable(0, {0: 5, 1: LARGEST + 1})

    assert amounts.gather(ALLOCATABLE, ResourceColumns((0, 1)), FIRST).tolist() == [[5], [LARGEST + 1]]
    for kind, expected in ((REQUESTED, [[1], [2]]), (FREE, [[4], [LARGEST - 1]]), (SPARE, [[4], [LARGEST - 1]])):
        found = amounts.gather(kind, ResourceColumns((0, 1)), FIRST)
        assert found.dtype == np.int64
        assert found.tolist() == expected
    assert amounts.gather(ALLOCATABLE, ResourceColumns((2, 3)), FIRST).dtype == np.float64


def test_pods_that_add_up_to_more_than_exact_floats_hold_are_noticed_at_once() -> None:
    amounts = made()
    half = LARGEST // 2
    for _ in range(3):  # coming and going, they never add up to that
        amounts.take(0, taken(1, half))
        amounts.give_back(0, taken(1, half))
    amounts.take(0, taken(1, half))
    amounts.take(1, taken(1, half))
    amounts.take(0, taken(1, half))
    assert amounts.gather(REQUESTED, ResourceColumns((1,)), FIRST).dtype == np.float64

    amounts.take(0, taken(1, 1))

    assert amounts.gather(REQUESTED, ResourceColumns((1,)), FIRST).tolist() == [[2 * half + 1]]
    assert amounts.gather(REQUESTED, ResourceColumns((1,)), FIRST).dtype == np.int64
    assert amounts.gather(REQUESTED, ResourceColumns((0,)), FIRST).dtype == np.float64


def test_many_pods_at_once_that_add_up_to_too_much_are_noticed() -> None:
    amounts = made()
    amounts.take_many(np.array([0, 2]), np.array([1, 3]), taken(LARGEST // 2))

    assert amounts.gather(REQUESTED, ResourceColumns((0,)), FIRST).dtype == np.int64
