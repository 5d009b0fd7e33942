"""A job while shares are decided: how many of its members have a place, and what it is offered or gives back next."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mooring.actions.shares.demands import LARGEST_DEMAND, JobDemand
from mooring.actions.shares.resources import Amount, ResourceTable
from mooring.state.remembered import Derived

Members = tuple[int, ...]
"""How many members, by role."""

MOST_AMOUNTS = 64
"""A gang is asked about by few sizes; a long scan must not pile up."""

NOBODY_LIMITED: Mapping[int, int] = MappingProxyType({})


class Job:
    """What a job holds, role by role, and amounts for any number of its members."""

    def __init__(self, demand: JobDemand, leaf: int, resources: ResourceTable) -> None:
        self.demand = demand
        self.key = demand.key
        self.leaf = leaf
        self.held = [role.held for role in demand.roles]
        self._kinds = _kinds_of(demand)
        self.turns = list(demand.turns)
        """The roles of members that wait, in the order in which they are tried; empty where that is role by role."""
        self.most_held: dict[int, int] = {}
        """By role, how many members find a node in this cycle, where not all do."""
        self.share = 0.0
        self.is_enqueued = demand.is_enqueued
        self.started = demand.started
        self.heap_key: tuple[Any, ...] | None = None
        """Its place in its queue's line; None while it is not in line."""
        self.refusal = ""
        """Why its last try failed."""
        given = demand.min_resources
        self._min_resources = None if given is None else resources.amount(given)
        self._requests = [resources.amount(role.request) for role in demand.roles]
        self._amounts: Derived[Members, Amount] = Derived(MOST_AMOUNTS)
        self._wanted: Members | None = None
        self.is_whole = False
        """Whether enough members have their place for the job to run."""
        self.has_enough = False
        """The same by their number alone, whatever their roles."""
        self.spare = 0
        """How many members it holds beyond those in all that it needs."""
        nothing = [0] * len(self.held)
        self.minimum = tuple(nothing) if self._is_whole(nothing) else self._next_members(nothing)
        self.asked = self.amount(tuple(role.members for role in demand.roles))
        self.in_demand = dict(self.asked)
        """What its queue asks for with it: also for members that are being evicted."""
        for column, value in resources.amount(demand.leaving).items():
            self.in_demand[column] = self.in_demand.get(column, 0) + value
        self._count()

    # Amounts

    def amount(self, members: Members) -> Amount:
        """What so many members ask for."""
        known = self._amounts.get(members)
        if known is None:
            known = {}
            for request, count in zip(self._requests, members, strict=True):
                for column, value in request.items() if count else ():
                    known[column] = known.get(column, 0) + value * count
            self._amounts.put(members, known)
        return known

    @property
    def held_amount(self) -> Amount:
        return self.amount(tuple(self.held))

    @property
    def minimum_amount(self) -> Amount:
        """What it takes to be whole."""
        return self.amount(self.minimum) if self._min_resources is None else self._min_resources

    # Members

    @property
    def held_members(self) -> int:
        return sum(self.held)

    def _present(self, held: Sequence[int]) -> list[int]:
        """How many members of each role count: of those that are backfilled all, as they wait for nobody."""
        roles = self.demand.roles
        return [role.members if role.is_best_effort else count for role, count in zip(roles, held, strict=True)]

    def _is_whole(self, held: Sequence[int]) -> bool:
        return self._are_enough(self._present(held))

    def _are_enough(self, present: Sequence[int]) -> bool:
        return sum(present) >= self.demand.min_members and all(
            sum(present[index] for index in indices) >= minimum for indices, minimum in self._kinds
        )

    @property
    def wanted(self) -> Members:
        """What to place next: all that is missing for the job to be whole, then one member at a time."""
        if self._wanted is None:
            self._wanted = self._first_turns() if self.turns else self._next_members(self.held)
        return self._wanted

    def next_members(self, may: Callable[[Amount], bool] | None = None) -> Members:
        """What to place in this turn: as wanted, but without members that find no node, or for whom `may` says no.

        None at all if the job would not be whole with the others.
        """
        if may is None and not self.most_held:
            return self.wanted
        return self._first_turns(self.most_held, may)

    def _first_turns(
        self, most_held: Mapping[int, int] = NOBODY_LIMITED, may: Callable[[Amount], bool] | None = None
    ) -> Members:
        """Those that come first in order until the job is whole; one, if it is."""
        present, more = self._present(self.held), [0] * len(self.held)
        is_whole = self._are_enough(present)
        for index in self.turns:
            if present[index] >= most_held.get(index, present[index] + 1):
                continue
            more[index] += 1
            if may is not None and not may(self.amount(tuple(more))):
                more[index] -= 1
                continue
            present[index] += 1
            if is_whole or self._are_enough(present):
                return tuple(more)
        return (0,) * len(more)

    def _next_members(self, held: Sequence[int]) -> Members:
        roles = self.demand.roles
        more = [0] * len(roles)
        is_whole, held = self._is_whole(held), self._present(held)
        if is_whole:
            for index, role in enumerate(roles):
                if held[index] < role.members:
                    more[index] = 1
                    break
            return tuple(more)
        for indices, minimum in self._kinds:
            lacking = minimum - sum(held[index] for index in indices)
            for index in indices:
                more[index] = max(0, min(lacking, roles[index].members - held[index]))
                lacking -= more[index]
        missing = self.demand.min_members - sum(held) - sum(more)
        for index, role in enumerate(roles):
            extra = max(0, min(missing, role.members - held[index] - more[index]))
            more[index] += extra
            missing -= extra
        return tuple(more)

    @property
    def wants_more(self) -> bool:
        return any(self.wanted)

    def add(self, members: Members, sign: int = 1) -> None:
        for index, count in enumerate(members):
            self.held[index] += sign * count
            if sign < 0 and self.demand.turns:
                self.turns += [index] * count
            for _ in range(min(count, self.turns.count(index)) if sign > 0 else 0):
                self.turns.remove(index)
        self._count()

    def _count(self) -> None:
        self._wanted = None
        present = self._present(self.held)
        self.is_whole, self.has_enough = self._are_enough(present), sum(present) >= self.demand.min_members
        self.spare = sum(self.held) - self.demand.min_members if self.is_whole else 0

    def surplus(self, held: Sequence[int]) -> list[Members]:
        """Of so many members those it can do without, one by one in the order in which they go: the last role first."""
        if not self._is_whole(held):
            return []
        roles = self.demand.roles
        spare = sum(held) - self.demand.min_members
        kind_of = {index: indices for indices, _ in self._kinds for index in indices}
        left = {indices: sum(held[index] for index in indices) - minimum for indices, minimum in self._kinds}
        found: list[Members] = []
        for index in reversed(range(len(roles))):
            count = max(0, min(held[index], left.get(kind_of.get(index, ()), spare), spare - len(found)))
            if index in kind_of:
                left[kind_of[index]] -= count
            one = tuple(int(index == other) for other in range(len(roles)))
            found += [one] * count
        return found


def _kinds_of(demand: JobDemand) -> list[tuple[tuple[int, ...], int]]:
    """The roles that have a minimum together, and that minimum."""
    by_kind: dict[str | int, list[int]] = {}
    for index, role in enumerate(demand.roles):
        by_kind.setdefault(role.kind or index, []).append(index)
    minimums = {kind: sum(demand.roles[index].minimum for index in found) for kind, found in by_kind.items()}
    return [(tuple(found), minimums[kind]) for kind, found in by_kind.items() if minimums[kind]]


def refuse_demand(demand: JobDemand) -> str:
    """Why a job can never be placed, whatever happens; empty if it may."""
    if demand.min_members > demand.members:
        return f"{demand.min_members} members must start together, and it has {demand.members}"
    for role in demand.roles:
        for name, amount in role.request.items():
            if amount * demand.members > LARGEST_DEMAND:
                return f"its members ask for more {name} than can be counted"
    return ""
