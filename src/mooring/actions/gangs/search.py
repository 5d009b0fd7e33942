"""Backtracking: places for members that greedy order cannot place, because they differ or want to be near each other.

Members are tried hardest first, each on the rows where it leaves the least behind; a choice that leads nowhere is taken
back. Rows that are alike for all members are tried once. How far the search goes is bounded: a gang that needs more
waits, and is tried again when something has happened.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.members import Group
from mooring.actions.gangs.room import RoomColumns
from mooring.engine.queue import Entry
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape

MOST_CHOICES = 2_000


@dataclass
class Search:
    """One search, on a cluster that is left as it was found unless all members have a place."""

    cluster: Cluster
    rooms: RoomColumns
    groups: Sequence[Group]
    allowed: NDArray[np.bool_] | None = None
    """Which rows may be taken, one a row of the table; None for all."""
    choices_left: int = MOST_CHOICES
    most_placed: int = 0
    """How many members had a place at once, at best."""
    placed: list[Entry] = field(default_factory=list)
    _domain_keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._domain_keys = sorted({key for group in self.groups for key in domain_keys(group.shape)})

    def run(self) -> bool:
        """Find and assume a place for every member; tell whether there is one within the bounds."""
        ordered = sorted(self.groups, key=self._hardness, reverse=True)
        members = [(group, entry) for group in ordered for entry in group.entries]
        checkpoint = self.cluster.checkpoint()
        stack: list[list[int]] = [self._candidates(members[0][0])]
        while stack:
            candidates = stack[-1]
            if not candidates or self.choices_left <= 0:
                stack.pop()
                if self.placed:
                    self.cluster.release(self.placed.pop().record.key)
                if self.choices_left <= 0:
                    break
                continue
            self.choices_left -= 1
            entry = members[len(stack) - 1][1]
            self.cluster.assume(entry.record.key, candidates.pop(0))
            self.placed.append(entry)
            self.most_placed = max(self.most_placed, len(self.placed))
            if len(self.placed) == len(members):
                self.cluster.commit(checkpoint)
                return True
            stack.append(self._candidates(members[len(stack)][0]))
        self.cluster.rollback(checkpoint)
        self.placed.clear()
        return False

    def _hardness(self, group: Group) -> tuple[bool, float]:
        """Those that others want to be near come first, then those that take most of what a row has."""
        return not wants_others(group.shape), self._share(group)

    def _share(self, group: Group) -> float:
        shares = [0.0]
        live = self.cluster.nodes.live_rows()
        for resource, amount in group.shape.requests.items():
            most = int(self.cluster.nodes.amounts("allocatable", resource)[live].max(initial=0))
            if most:
                shares.append(amount / most)
        return max(shares)

    def _candidates(self, group: Group) -> list[int]:
        """The rows for a member as things stand, the tightest first, one of each that are alike."""
        rows = self.rooms.of(group.profile, self.cluster, group.shape).answers.feasible_rows()
        if self.allowed is not None:
            rows = rows[self.allowed[rows]]
        if not len(rows):
            return []
        rooms = [self.rooms.of(found.profile, self.cluster, found.shape) for found in self.groups]
        columns: list[NDArray[Any]] = [room.counts[rows] for room in rooms]
        own = columns[self.groups.index(group)]
        columns += [self.cluster.nodes.label(key).codes[rows] for key in self._domain_keys]
        # One number for all that tells rows apart. Should two that differ ever get the same, one is not tried.
        mark = np.zeros(len(rows), np.int64)
        for column in columns:
            mark = mark * np.int64(1_000_003) + column
        _, first = np.unique(mark, return_index=True)
        found: list[int] = rows[first[np.argsort(own[first], kind="stable")]].tolist()
        return found


def wants_others(shape: Shape) -> bool:
    """Whether a pod insists on being near others."""
    affinity = shape.affinity
    near = affinity.pod_affinity if affinity is not None else None
    return bool(near and near.required)


def domain_keys(shape: Shape) -> set[str]:
    """The labels whose domains decide where a pod may go, by what runs in them."""
    keys = {constraint.topology_key for constraint in shape.spec.topology_spread_constraints or ()}
    affinity = shape.affinity
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if terms is not None:
            keys |= {term.topology_key for term in terms.required or ()}
    return keys
