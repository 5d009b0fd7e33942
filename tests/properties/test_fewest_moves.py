"""Room for those that wait for whole GPUs is made with as few moves as any search through everything finds."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.actions.rebalance.defragment.search import Movable, Room, rearrangements

SIZE = 4
"""GPUs of a node."""


def fewest_by_brute_force(sizes: list[list[int]], ask: int, count: int) -> int | None:
    """The smallest number of pods that have to change their node so that all fit, by trying every assignment."""
    pods = [(row, size) for row, of_row in enumerate(sizes) for size in of_row]
    best = None
    for targets in product(range(len(sizes)), repeat=len(pods)):
        used = [0] * len(sizes)
        for (_, size), row in zip(pods, targets, strict=True):
            used[row] += size
        if any(total > SIZE for total in used) or sum((SIZE - total) // ask for total in used) < count:
            continue
        moves = sum(row != before for (before, _), row in zip(pods, targets, strict=True))
        best = moves if best is None else min(best, moves)
    return best


@st.composite
def clusters(draw: st.DrawFn) -> list[list[int]]:
    """Nodes of four GPUs with pods of one to three, not too many in all."""
    nodes = draw(st.integers(2, 4))
    sizes: list[list[int]] = []
    for _ in range(nodes):
        of_row: list[int] = []
        for size in draw(st.lists(st.integers(1, 3), max_size=3)):
            if sum(of_row) + size <= SIZE:
                of_row.append(size)
        sizes.append(of_row)
    while sum(map(len, sizes)) > 6:
        max(sizes, key=len).pop()
    return sizes


def rooms_of(sizes: list[list[int]]) -> list[Room]:
    return [
        Room(
            row,
            (SIZE - sum(of_row),),
            tuple(Movable(f"{row}-{index}", row, (size,)) for index, size in enumerate(of_row)),
        )
        for row, of_row in enumerate(sizes)
    ]


@examples(500)
@given(clusters(), st.integers(1, SIZE), st.integers(1, 3))
def test_the_fewest_moves_are_found(sizes: list[list[int]], ask: int, count: int) -> None:
    best = fewest_by_brute_force(sizes, ask, count)

    found = next(rearrangements(rooms_of(sizes), (ask,), count), None)

    if best is None or best == 0:
        assert best == 0 or found is None
        return
    assert found is not None
    assert len(found.targets) == best
    # Everything has its room.
    used = [sum(of_row) for of_row in sizes]
    size_of = {f"{row}-{index}": size for row, of_row in enumerate(sizes) for index, size in enumerate(of_row)}
    for key, row in found.targets.items():
        used[int(key.partition("-")[0])] -= size_of[key]
        used[row] += size_of[key]
    for row in found.hosts:
        used[row] += ask
    assert len(found.hosts) == count
    assert all(total <= SIZE for total in used)


def test_a_cluster_that_is_too_large_for_a_full_search_gets_room_too() -> None:
    # A hundred nodes of eight GPUs with seven pods of one each: two nodes are wanted whole.
    rooms = [Room(row, (1,), tuple(Movable(f"{row}-{n}", row, (1,)) for n in range(7))) for row in range(100)]

    found = next(rearrangements(rooms, (8,), 2, most_moves=16, most_steps=2000), None)

    assert found is not None
    assert len(found.hosts) == 2
    assert len(found.targets) == 14
    assert not set(found.hosts) & set(found.targets.values())


def test_every_answer_of_one_size_is_a_set_of_that_many_pods() -> None:
    rooms = rooms_of([[1], [1], [1]])

    sizes = [len(found.targets) for found in rearrangements(rooms, (4,), 1, most_moves=3)]

    assert sizes == sorted(sizes)
    assert sizes[0] == 1
