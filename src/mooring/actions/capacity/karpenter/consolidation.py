"""Which nodes to give back: empty ones, several for one cheaper node, or one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mooring.actions.capacity.karpenter.balanced import can_pass, is_worth_it, pool_totals
from mooring.actions.capacity.karpenter.candidates import Candidate, budgets_left, candidates_for, find_candidates
from mooring.actions.capacity.karpenter.evictions import Evictions
from mooring.actions.capacity.karpenter.planned import NewNode, order_by_price
from mooring.actions.capacity.karpenter.provisioning import is_wanted
from mooring.actions.capacity.karpenter.simulation import Placed, Simulation
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.actions.capacity.karpenter.type_columns import NO_PRICE
from mooring.model.api.karpenter import EMPTY, UNDERUTILIZED
from mooring.model.api.pods import Pod
from mooring.model.capacity.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from mooring.model.capacity.requirements import from_labels, is_in

DELETE, REPLACE = "delete", "replace"
MOST_TOGETHER = 100
"""So many nodes at most are consolidated at a time."""
CHEAPER_SPOT_TYPES = 15
"""A spot node is replaced by spot only if so many types are cheaper: the cheapest ones are reclaimed most."""


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """Nodes that go, and what comes in their place."""

    candidates: tuple[Candidate, ...]
    placed: Placed | None = None
    """Where the pods go; unknown for nodes that are as good as empty."""
    replacement: NewNode | None = None

    @property
    def decision(self) -> str:
        return DELETE if self.replacement is None else REPLACE

    @property
    def savings(self) -> float:
        """Per hour, if the replacement is of its cheapest type."""
        price = sum(candidate.price for candidate in self.candidates)
        new = self.replacement
        if new is None or not len(new.options):
            return price
        cheapest = float(new.template.columns.cheapest(new.requirements)[new.options[0]])
        return price - (cheapest if cheapest != NO_PRICE else 0.0)


class Consolidation:
    """The methods of consolidation over one situation. Each answers as if it were asked first."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        situation = snapshot.situation
        self._evictions = Evictions(situation)
        self._pending = [pod for pod in situation.pending if is_wanted(pod)]
        self._of_deleting = [
            pod
            for machine in snapshot.machines
            if machine.is_deleting
            for pod in machine.pods
            if self._evictions.is_currently_reschedulable(pod)
        ]
        self.all_candidates = find_candidates(snapshot, self._evictions)
        self._totals = pool_totals(snapshot, self.all_candidates)
        self._budgets = budgets_left(snapshot, UNDERUTILIZED)

    def candidates(self, reason: str) -> list[Candidate]:
        """Those that the methods with this reason may take, the best first."""
        found = candidates_for(reason, self.all_candidates, self._snapshot.situation.now)
        return sorted(found, key=lambda each: -each.savings_ratio)

    def _within_budgets(self, reason: str) -> list[Candidate]:
        left = budgets_left(self._snapshot, reason)
        taken = []
        for candidate in self.candidates(reason):
            if left[candidate.pool.name]:
                left[candidate.pool.name] -= 1
                taken.append(candidate)
        return taken

    def emptiness(self) -> Command | None:
        """Delete nodes that no pod of any weight is on."""
        empty = self._within_budgets(EMPTY)
        return Command(tuple(empty)) if empty else None

    def multi(self) -> Command | None:
        """Delete as many of the best candidates as fit on the others and at most one new node, by halving."""
        candidates = self._within_budgets(UNDERUTILIZED)
        best: Command | None = None
        lowest, highest = 1, min(len(candidates) - 1, MOST_TOGETHER)
        while lowest <= highest:
            middle = (lowest + highest) // 2
            command = self._consolidate(candidates[: middle + 1])
            if command is not None and command.replacement is not None:
                command = self._without_same_type(command)
            if command is not None and not is_worth_it(command.candidates, command.savings, self._totals):
                command = None
            if command is not None:
                best, lowest = command, middle + 1
            else:
                highest = middle - 1
        return best

    def single(self) -> Command | None:
        """Delete or replace the first candidate for which that is possible, taking the pools in turn."""
        for candidate in _in_turn(self.candidates(UNDERUTILIZED)):
            if not self._budgets[candidate.pool.name] or not can_pass(candidate, self._totals):
                continue
            command = self._consolidate([candidate])
            if command is not None and is_worth_it(command.candidates, command.savings, self._totals):
                return command
        return None

    def why_not(self, candidate: Candidate) -> str:
        """Why a candidate is not taken by itself: what to change, if it should go."""
        if not self._budgets[candidate.pool.name]:
            return f"the budgets of NodePool {candidate.pool.name} let no more nodes go"
        if not can_pass(candidate, self._totals):
            return "it would save too little for what it disrupts (policy Balanced)"
        placed = self.simulate([candidate], avoids_new=True)
        if placed is None:
            return "its pods would find no place"
        if len(placed.new_nodes) > 1:
            return f"without it, its pods and those that wait would need {len(placed.new_nodes)} new nodes"
        command = self._command([candidate], placed)
        if command is None and candidate.capacity_type == SPOT and not self._snapshot.situation.settings.spot_to_spot:
            return "it would be replaced by another spot node, which is not enabled"
        if command is None:
            return "no node that its pods fit on is cheaper"
        if not is_worth_it(command.candidates, command.savings, self._totals):
            return "it would save too little for what it disrupts (policy Balanced)"
        return "another node goes first"

    def simulate(self, candidates: Sequence[Candidate], *, avoids_new: bool) -> Placed | None:
        """Where pods would go without these nodes; None if one of those that must move finds no place."""
        snapshot = self._snapshot
        moving = [pod for each in candidates for pod in each.pods if self._evictions.is_currently_reschedulable(pod)]
        pods = [*self._pending, *moving, *self._of_deleting]
        placed = Simulation(
            snapshot,
            pods,
            leaving=[candidate.row for candidate in candidates],
            is_strict=False,
            avoids_new=avoids_new,
        ).solve()
        waiting = {id(pod) for pod in self._pending}
        if any(pod not in waiting for pod in placed.errors):
            return None
        return None if self._relies_on_starting(placed, moving) else placed

    def _relies_on_starting(self, placed: Placed, moving: list[Pod]) -> bool:
        moved = {id(pod) for pod in moving}
        machines, index = self._snapshot.machines, self._snapshot.index
        return any(
            id(pod) in moved
            for name, pods in placed.existing.items()
            if not machines[index[name]].is_initialized
            for pod in pods
        )

    def _consolidate(self, candidates: Sequence[Candidate]) -> Command | None:
        placed = self.simulate(candidates, avoids_new=True)
        return None if placed is None else self._command(candidates, placed)

    def _command(self, candidates: Sequence[Candidate], placed: Placed) -> Command | None:
        """What to do with candidates, given where their pods would go; None if nothing is gained."""
        if len(placed.new_nodes) > 1:
            return None
        if not placed.new_nodes:
            return Command(tuple(candidates), placed)
        new = placed.new_nodes[0]
        new = replace(new, options=order_by_price(new, new.options))
        price = sum(candidate.price for candidate in candidates)
        allowed = new.requirements.allowed(CAPACITY_TYPE)
        if allowed.has(SPOT) and all(candidate.capacity_type == SPOT for candidate in candidates):
            cheaper = self._spot_to_spot(new, price, len(candidates))
        else:
            cheaper = _cheaper_than(new, price)
            if cheaper is not None and allowed.has(SPOT) and allowed.has(ON_DEMAND):
                # Otherwise an on-demand node could be launched that costs more than what it replaces.
                cheaper = replace(cheaper, requirements=cheaper.requirements.merged({CAPACITY_TYPE: is_in(SPOT)}))
        return None if cheaper is None else Command(tuple(candidates), placed, cheaper)

    def _spot_to_spot(self, new: NewNode, price: float, count: int) -> NewNode | None:
        if not self._snapshot.situation.settings.spot_to_spot:
            return None
        requirements = new.requirements.merged({CAPACITY_TYPE: is_in(SPOT)})
        columns = new.template.columns
        offered = np.zeros(len(columns.types), np.bool_)
        offered[columns.offering_type[columns.on_offer(requirements)]] = True
        new = replace(new, requirements=requirements, options=new.options[offered[new.options]])
        cheaper = _cheaper_than(new, price)
        if cheaper is None or count > 1:
            return cheaper
        if len(cheaper.options) < CHEAPER_SPOT_TYPES:
            return None
        most = max(CHEAPER_SPOT_TYPES, _types_needed(cheaper))
        return replace(cheaper, options=cheaper.options[:most])

    @staticmethod
    def _without_same_type(command: Command) -> Command | None:
        """If a type that goes could come back, keep only types that are cheaper than the cheapest of those."""
        new = command.replacement
        assert new is not None
        columns = new.template.columns
        prices: dict[str, float] = {}
        for candidate in command.candidates:
            assert candidate.instance_type is not None
            name = candidate.instance_type.name
            mask = columns.compatible_offerings(from_labels(dict(candidate.machine.labels)))
            mask &= columns.offering_type == columns.names.index(name)
            cheapest = float(columns.prices[mask].min()) if mask.any() else prices.get(name, 0.0)
            prices[name] = min(prices.get(name, cheapest), cheapest)
        limits = [prices[name] for name in new.instance_types if name in prices]
        cheaper = _cheaper_than(new, min(limits, default=NO_PRICE))
        return None if cheaper is None else replace(command, replacement=cheaper)


def _cheaper_than(new: NewNode, price: float) -> NewNode | None:
    """Keep the types that are cheaper even at their worst; None if there are too few."""
    worst = new.template.columns.worst_launch_price(new.requirements)[new.options]
    options = new.options[worst < price]
    if not len(options) or new.template.columns.missing_values(options, new.requirements):
        return None
    return replace(new, options=options)


def _types_needed(new: NewNode) -> int:
    """How many of the cheapest types it takes to reach minValues."""
    columns = new.template.columns
    if not new.requirements.with_min_values:
        return 0
    for count in range(1, len(new.options) + 1):
        if not columns.missing_values(new.options[:count], new.requirements):
            return count
    return len(new.options)


def _in_turn(candidates: list[Candidate]) -> list[Candidate]:
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    longest = max(map(len, by_pool.values()), default=0)
    return [by_pool[name][turn] for turn in range(longest) for name in sorted(by_pool) if turn < len(by_pool[name])]
