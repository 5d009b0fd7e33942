"""Counting how many nodes pods need comes to the same as placing them one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.actions.capacity.autoscaler.packing import Packed, pack

Group = tuple[int, int, int]
"""What a pod asks for of two resources, and how many pods there are."""


def pack_one_by_one(fresh: tuple[int, int], groups: list[Group], most_nodes: int | None) -> Packed:
    """First the nodes that there are, in turn from the one found last; then the last one, else a new one."""
    free: list[list[int]] = []
    pods: list[int] = []
    last, may_add, placed = -1, True, []

    def fits(node: int, ask: tuple[int, int]) -> bool:
        return all(have >= want for have, want in zip(free[node], ask, strict=True) if want)

    def put(node: int, ask: tuple[int, int]) -> None:
        free[node] = [have - want for have, want in zip(free[node], ask, strict=True)]
        pods[node] += 1

    for first, second, count in groups:
        ask, done = (first, second), 0
        while done < count:
            turn = [*range(last + 1, len(free)), *range(last + 1)]
            found = next((node for node in turn if fits(node, ask)), None)
            if found is None:
                break
            put(found, ask)
            last, done = found, done + 1
        while done < count and may_add:
            if not free or not fits(len(free) - 1, ask):
                if free and not pods[-1]:
                    break
                if most_nodes is not None and len(free) >= most_nodes:
                    may_add = False
                    break
                free.append(list(fresh))
                pods.append(0)
                if not fits(len(free) - 1, ask):
                    break
            put(len(free) - 1, ask)
            done += 1
        placed.append(done)
    return Packed(sum(count > 0 for count in pods), tuple(placed))


GROUPS = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=8)


@examples(400)
@given(
    fresh=st.tuples(st.integers(-2, 12), st.integers(0, 12)),
    groups=GROUPS,
    most_nodes=st.none() | st.integers(0, 12),
    twice=st.booleans(),
)
def test_packing_by_amounts_is_placing_one_by_one(
    fresh: tuple[int, int], groups: list[Group], most_nodes: int | None, twice: bool
) -> None:
    groups = [group for group in groups for _ in range(1 + twice)]
    asks = [np.array(group[:2], np.int64) for group in groups]

    packed = pack(np.array(fresh, np.int64), asks, [group[2] for group in groups], most_nodes)

    assert packed == pack_one_by_one(fresh, groups, most_nodes)
