"""A gang as units inside units: members that share a place, in groups that share one of their own inside it."""

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.actions.gangs.members import Group
from mooring.model.gangs import Gang
from mooring.model.topology import TopologyWish
from mooring.state.gangs import GangRecord, GangTable

ANYWHERE = TopologyWish()


@dataclass(frozen=True)
class Unit:
    """Members that want one place together: one group, or several units."""

    wish: TopologyWish
    groups: tuple[Group, ...]
    parts: tuple["Unit", ...] = ()
    """Empty for a single group."""

    @property
    def size(self) -> int:
        return sum(group.size for group in self.groups)


def unit_of(root: GangRecord, groups: Sequence[Group], table: GangTable) -> Unit:
    """The whole gang as one unit."""
    assert root.gang is not None
    parts: list[Unit] = []
    for part in table.parts_of(root):
        own = [group for group in groups if group.part is part]
        if own and part.gang is not None:
            parts.append(_unit_of_part(part.gang, own))
    if len(parts) == 1 and root.gang.key == groups[0].part.key:
        return parts[0]
    return Unit(root.gang.wish or ANYWHERE, tuple(groups), tuple(parts))


def _unit_of_part(gang: Gang, groups: Sequence[Group]) -> Unit:
    wish = gang.wish or ANYWHERE
    # Slices are of ranks, and ranks are counted within a role: each group has its own.
    sliced = TopologyWish(slice_size=wish.slice_size, slice_level=wish.slice_level, topology=wish.topology)
    wish_of = {role.name: role.wish for role in gang.roles}
    leaves = [Unit(wish_of.get(group.role) or sliced, (group,)) for group in groups]
    for role_group in gang.role_groups:
        inside = [leaf for leaf in leaves if leaf.groups[0].role in role_group.roles]
        if inside:
            leaves = [leaf for leaf in leaves if leaf not in inside]
            leaves.append(Unit(role_group.wish, tuple(leaf.groups[0] for leaf in inside), tuple(inside)))
    if len(leaves) == 1 and not leaves[0].parts and leaves[0].wish in (sliced, ANYWHERE):
        return Unit(wish, leaves[0].groups)
    return Unit(wish, tuple(groups), tuple(leaves))
