"""Backtracking: places for members that greedy order cannot place, because they differ or want to be near each other.

Members are tried hardest first, each on the rows where it leaves the least behind; a choice that leads nowhere is taken
back. Rows that are alike for all members are tried once, and members of one group, being alike, never in two orders.
Whoever finds no place before others have theirs is tried after them. How far the search goes is bounded: a gang that
needs more waits, and is tried again when something has happened.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.colocation import Colocation
from mooring.actions.gangs.members import Group
from mooring.actions.gangs.room import RoomColumns
from mooring.engine.queue.queue import Entry
from mooring.state.cluster import Cluster
from mooring.state.nodes import MISSING, PLACES
from mooring.state.rows import Rows
from mooring.state.shapes import Shape

MOST_CHOICES = 2_000
MOST_ROWS_LOOKED_AT = 2_000_000
"""A choice asks every group about every row: the more there are of both, the fewer choices are affordable."""


@dataclass
class Step:
    """The next member to be placed: of one of these groups, on one of these rows."""

    groups: list[int]
    """Those to try after the present one."""
    banned: dict[int, NDArray[np.bool_]]
    """By group: the rows that were tried in vain for a member like it, with all before it where they are."""
    group: int = -1
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    kinds: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    """Which of the rows are alike."""
    left: list[int] = field(default_factory=list)
    """The kinds of rows to try, best first."""
    tried: int = -1


@dataclass
class PlacementSearch:
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
    colocations: Sequence[Colocation] = ()
    """Who has to share a domain with whom."""

    def __post_init__(self) -> None:
        self.groups = sorted(self.groups, key=self._hardness, reverse=True)
        members = sum(group.size for group in self.groups)
        affordable = min(MOST_CHOICES, MOST_ROWS_LOOKED_AT // max(1, self.cluster.nodes.end)) // len(self.groups)
        self.choices_left = min(self.choices_left, max(2 * members, affordable))
        self._counts = [0] * len(self.groups)
        self._bonds_of = [
            [colocation for colocation in self.colocations if group in colocation.groups] for group in self.groups
        ]
        self._domain_keys = sorted({key for group in self.groups for key in domain_keys(group.shape)})
        self._demand = {PLACES: members}
        for group in self.groups:
            for resource, amount in group.shape.requests.items():
                self._demand[resource] = self._demand.get(resource, 0) + amount * group.size

    def run(self) -> bool:
        """Find and assume a place for every member; tell whether there is one within the bounds."""
        members = sum(group.size for group in self.groups)
        with self.cluster.what_if() as trial:
            steps = [self._step({})]
            while steps:
                step = steps[-1]
                if step.tried >= 0:
                    self._take_back(step)
                if not self._try_next(step):
                    steps.pop()
                elif len(self.placed) == members:
                    trial.keep()
                    return True
                else:
                    steps.append(self._step(step.banned))
                if self.choices_left <= 0:
                    break
        self.placed.clear()
        return False

    def _step(self, banned: dict[int, NDArray[np.bool_]]) -> Step:
        open_groups = [index for index, group in enumerate(self.groups) if self._counts[index] < group.size]
        return Step(open_groups, {index: rows.copy() for index, rows in banned.items()})

    def _try_next(self, step: Step) -> bool:
        """Place a member on the next row, or one of another group; False if nothing is left to try."""
        while not step.left:
            if step.group >= 0 and not can_be_helped(self.groups[step.group].shape):
                return False  # it will not fit any better once others have their places
            if not step.groups:
                return False
            step.group = step.groups.pop(0)
            # What was ruled out holds as long as members of one group follow each other.
            step.banned = {step.group: step.banned[step.group]} if step.group in step.banned else {}
            self._find_rows(step)
        self.choices_left -= 1
        step.tried = step.left.pop(0)
        entry = self.groups[step.group].entries[self._counts[step.group]]
        row = int(step.rows[np.flatnonzero(step.kinds == step.tried)[0]])
        self.cluster.assume(entry.record.key, row)
        self._counts[step.group] += 1
        self.placed.append(entry)
        self.most_placed = max(self.most_placed, len(self.placed))
        return True

    def _take_back(self, step: Step) -> None:
        """The last choice led nowhere."""
        self.cluster.release(self.placed.pop().record.key)
        self._counts[step.group] -= 1
        banned = step.banned.setdefault(step.group, np.zeros(self.cluster.nodes.end, np.bool_))
        banned[step.rows[step.kinds == step.tried]] = True
        step.tried = -1

    def _find_rows(self, step: Step) -> None:
        """The rows for a member of the step's group as things stand, the tightest first, in kinds that are alike."""
        rows = self._feasible(step.group)
        if self.allowed is not None:
            rows = rows[self.allowed[rows]]
        rows = self._within_bonds(step.group, rows)
        if step.group in step.banned:
            rows = rows[~step.banned[step.group][rows]]
        step.rows, step.kinds, step.left = rows, np.zeros(0, np.intp), []
        if not len(rows):
            return
        # One number for all that tells rows apart. Should two that differ ever get the same, one is not tried.
        mark = np.zeros(len(rows), np.int64)
        for column in self._telling_apart(rows):
            mark = mark * np.int64(1_000_003) + column
        _, first, step.kinds = np.unique(mark, return_index=True, return_inverse=True)
        own = self._room(step.group)[rows[first]]
        step.left = np.lexsort((first, own)).tolist()

    def _within_bonds(self, index: int, rows: Rows) -> Rows:
        """The rows where a member of a group would be with those that it has to be with."""
        for colocation in self._bonds_of[index]:
            there = colocation.row if colocation.row is not None else self._first_row(colocation)
            domains = colocation.domain_of[rows]
            rows = rows[domains != MISSING if there is None else domains == colocation.domain_of[there]]
        return rows

    def _first_row(self, colocation: Colocation) -> int | None:
        """Where one of those that have to be together is, if any of them has a place."""
        begun = (group for group, count in zip(self.groups, self._counts, strict=True) if count)
        return next((group.entries[0].record.row for group in begun if group in colocation.groups), None)

    def _telling_apart(self, rows: Rows) -> list[NDArray[Any]]:
        """What matters of rows to any member: their free amounts up to the whole demand, who may go there, domains."""
        nodes = self.cluster.rows(rows)
        columns: list[NDArray[Any]] = [np.minimum(nodes.free(name), most) for name, most in self._demand.items()]
        for index, group in enumerate(self.groups):
            columns.append(np.minimum(self._room(index)[rows], group.size))
            if self._answers(index).domain_filters:
                is_open = np.zeros(self.cluster.nodes.end, np.bool_)
                is_open[self._feasible(index)] = True
                columns.append(is_open[rows])
        for group in self.groups:
            if group.shape.card_request is not None:
                columns += nodes.cards.telling_apart(group.shape.card_request)
        columns += [nodes.label_codes(key) for key in self._domain_keys]
        return columns + [
            codes[rows]
            for codes in {id(colocation.domain_of): colocation.domain_of for colocation in self.colocations}.values()
        ]

    def _answers(self, index: int) -> Any:
        group = self.groups[index]
        return self.rooms.of(group.profile, self.cluster, group.shape).answers

    def _room(self, index: int) -> NDArray[np.int64]:
        group = self.groups[index]
        return self.rooms.of(group.profile, self.cluster, group.shape).counts

    def _feasible(self, index: int) -> Rows:
        rows: Rows = self._answers(index).feasible_rows()
        return rows

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


def wants_others(shape: Shape) -> bool:
    """Whether a pod insists on being near others."""
    affinity = shape.affinity
    near = affinity.pod_affinity if affinity is not None else None
    return bool(near and near.required)


def can_be_helped(shape: Shape) -> bool:
    """Whether other pods, once they have their places, may open rows for a pod."""
    return wants_others(shape) or bool(shape.spec.topology_spread_constraints)


def domain_keys(shape: Shape) -> set[str]:
    """The labels whose domains decide where a pod may go, by what runs in them."""
    keys = {constraint.topology_key for constraint in shape.spec.topology_spread_constraints or ()}
    affinity = shape.affinity
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if terms is not None:
            keys |= {term.topology_key for term in terms.required or ()}
    return keys
