"""Members that have to share a domain inside their gang's, as a search sees them: slices, and units inside units."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.members import Group, Unit
from mooring.state.topology import TopologyTree


@dataclass(frozen=True, eq=False)
class Colocation:
    """Groups whose members all have to be in one domain."""

    groups: Sequence[Group]
    domain_of: NDArray[np.int32]
    """By row of the table."""
    row: int | None = None
    """Where one of them runs already, if any does."""


@dataclass(frozen=True)
class ColocatedGroups:
    """A unit, taken apart: its groups, each slice being one by itself, and who of them have to stay together."""

    groups: list[Group]
    colocations: list[Colocation]


def colocations_inside(tree: TopologyTree, unit: Unit) -> ColocatedGroups | None:
    """What holds inside a unit; None if somebody asks for a level that there is not."""
    topology_request = unit.topology_request
    if not unit.parts:
        groups = sliced(unit) if topology_request.has_slices else list(unit.groups)
        if not topology_request.has_slices:
            return ColocatedGroups(groups, [])
        if tree.depth_of(topology_request.slice_level or "") is None:
            return None
        codes = tree.codes(topology_request.slice_level or "")
        return ColocatedGroups(groups, [Colocation([group], codes) for group in groups])
    found = ColocatedGroups([], [])
    for part in unit.parts:
        inside = colocations_inside(tree, part)
        required = part.topology_request.required
        if inside is None or (required and tree.depth_of(required) is None):
            return None
        found.groups.extend(inside.groups)
        found.colocations.extend(inside.colocations)
        if required:
            row = part.running[0].row if part.running else None
            found.colocations.append(Colocation(inside.groups, tree.codes(required), row))
    return found


def sliced(unit: Unit) -> list[Group]:
    """The slices of a unit of one group, in order of rank."""
    group, size = unit.groups[0], unit.topology_request.slice_size
    return [replace(group, entries=group.entries[first : first + size]) for first in range(0, group.size, size)]
