"""How many pods, and how many whole slices of them, each domain of a topology has room for.

The lowest domains are counted from what is free there; each level above sums up the one below. With a leader, a pod of
another kind that goes with the workers, every count is kept twice: as it is, and with the leader placed there too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.state.topology import TopologyTree

Numbers = NDArray[np.int64]
MANY = 2**62


class LevelCounts(NamedTuple):
    """The domains of one level, one number each."""

    pods: Numbers
    slices: Numbers
    pods_with_leader: Numbers
    slices_with_leader: Numbers
    leaders: Numbers
    """1 where the leader has room; 0 everywhere without a leader."""


@dataclass(frozen=True, slots=True)
class Slicing:
    """How pods are cut into slices: so many to a domain of one depth, and smaller units further down."""

    size: int
    depth: int
    inner: Mapping[int, int] = field(default_factory=dict)
    """By depth below that of the slices: the unit in which pods come to the domains there; 1 where none is named."""


def count_leaves(
    tree: TopologyTree, pods: Numbers, pods_with_leader: Numbers, leaders: Numbers, slicing: Slicing
) -> LevelCounts:
    """The lowest level; slices are counted there only if that is where they are kept together."""
    if slicing.depth == tree.leaf:
        return LevelCounts(pods, pods // slicing.size, pods_with_leader, pods_with_leader // slicing.size, leaders)
    none = np.zeros_like(pods)
    return LevelCounts(pods, none, pods_with_leader, none, leaders)


def count_up(tree: TopologyTree, leaves: LevelCounts, slicing: Slicing, *, with_leader: bool) -> list[LevelCounts]:
    """The counts of every level by depth; depth 0, the whole, is there only to make places and depths agree."""
    found = [leaves]
    for depth in range(tree.leaf - 1, -1, -1):
        found.append(_count_level(tree, depth, found[-1], slicing, with_leader=with_leader))
    return found[::-1]


def _count_level(
    tree: TopologyTree, depth: int, below: LevelCounts, slicing: Slicing, *, with_leader: bool
) -> LevelCounts:
    unit = slicing.inner.get(depth + 1, 1)
    given = below.pods // unit * unit
    pods, slices = tree.sum_up(depth, given), tree.sum_up(depth, below.slices)
    if depth == slicing.depth:
        slices = pods // slicing.size
    if not with_leader:
        return LevelCounts(pods, slices, pods, slices, np.zeros_like(pods))
    leaders = tree.most(depth, below.leaders, 0)
    # The leader goes where it costs least, of the domains that can take it.
    takes_it, can = below.leaders > 0, leaders > 0
    lost_pods = np.where(takes_it, given - below.pods_with_leader // unit * unit, MANY)
    pods_with_leader = np.where(can, pods - tree.least(depth, lost_pods, 0), 0)
    if depth == slicing.depth:
        return LevelCounts(pods, slices, pods_with_leader, pods_with_leader // slicing.size, leaders)
    lost_slices = np.where(takes_it, below.slices - below.slices_with_leader, MANY)
    slices_with_leader = np.where(can, slices - tree.least(depth, lost_slices, 0), 0)
    return LevelCounts(pods, slices, pods_with_leader, slices_with_leader, leaders)


def in_order(level: LevelCounts, domains: NDArray[np.intp], *, least_first: bool) -> NDArray[np.intp]:
    """Those with most whole slices first, or with fewest; then those with few pods besides, then by name."""
    slices = level.slices[domains]
    return domains[np.lexsort((domains, level.pods[domains], slices if least_first else -slices))]


def in_order_with_leader(level: LevelCounts, domains: NDArray[np.intp], *, least_first: bool) -> NDArray[np.intp]:
    """The same with the leader in it, those that can take it first."""
    slices = level.slices_with_leader[domains]
    keys = (domains, level.pods_with_leader[domains], slices if least_first else -slices, -level.leaders[domains])
    return domains[np.lexsort(keys)]
