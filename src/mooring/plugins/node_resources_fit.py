"""Enough of every resource, and how full a node should be afterwards."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers.usage import InOneGo, OffersInOneGo, UsageFilter, UsageScore
from mooring.engine.plugin import (
    SKIP,
    Change,
    Codes,
    Depends,
    Mask,
    PreFilter,
    PreScore,
    Scores,
    Skip,
)
from mooring.engine.shortcuts import CountedRoom, QuickMask
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.model.values.requests import CPU, MEMORY, is_extended, is_scalar
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.resource_scoring import (
    Asked,
    Numbers,
    Problem,
    ScoringStrategy,
    ShapeFunction,
    least_allocated,
    most_allocated,
    round_half_up,
)
from mooring.plugins.resources_in_one_go import ResourcesInOneGo
from mooring.state.nodes import PLACES
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

TOO_MANY_PODS = 1
"""Bit 0 of a code; then two bits a requested resource: insufficient, and more than the node has at all."""


class NodeResourcesFitArgs(KubeObject, forbid_unknown_fields=True):
    """NodeResourcesFitArgs of KubeSchedulerConfiguration."""

    api_version: str = ""
    kind: str = ""
    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []
    scoring_strategy: ScoringStrategy = msgspec.field(default_factory=ScoringStrategy)

    def validate(self) -> Iterator[Problem]:
        for index, group in enumerate(self.ignored_resource_groups):
            if "/" in group or not group:
                yield f"ignoredResourceGroups[{index}]", "a group such as example.com, without a slash", f'"{group}"'
        for index, name in enumerate(self.ignored_resources):
            if not name:
                yield f"ignoredResources[{index}]", "the name of a resource", '""'
        yield from self.scoring_strategy.validate("scoringStrategy")


class Checked(Asked):
    """What filtering checks for a pod."""

    def __init__(self, amounts: Mapping[str, int]) -> None:
        super().__init__(amounts)
        self.with_a_place = Asked({**amounts, PLACES: 1})
        """The same, and a place among the pods of a node."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much some resources weigh, as arrays."""

    each: NDArray[np.float64]
    total: NDArray[np.float64]
    is_plain_pair: bool
    """Two resources that weigh the same, as in the default."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What scoring counts for a pod, and how much each resource weighs."""

    asked: Asked
    weights: Weights


class NodeResourcesFit(PreFilter, PreScore, QuickMask, CountedRoom, OffersInOneGo):
    depends_on = Depends.NODE_USAGE | Depends.NODE
    helped_by = Change.NODE | Change.POD_GONE
    args_type = NodeResourcesFitArgs
    skip_is_settled = True

    def __init__(self, args: NodeResourcesFitArgs | None = None) -> None:
        super().__init__(args)
        self._ignored = frozenset(self.args.ignored_resources)
        self._ignored_groups = frozenset(self.args.ignored_resource_groups)
        strategy = self.args.scoring_strategy
        self._weights = {resource.name: resource.weight for resource in strategy.resources}
        self._known_weights: dict[tuple[str, ...], Weights] = {}
        self._ratio: ShapeFunction | None = None
        self._rule = least_allocated if strategy.type == "LeastAllocated" else most_allocated
        if strategy.type == "RequestedToCapacityRatio":
            assert strategy.requested_to_capacity_ratio is not None
            self._ratio = ShapeFunction(strategy.requested_to_capacity_ratio.shape)

    # Filter.

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Checked:
        """The resources that count for this pod, in order, with what it asks of each."""
        return Checked({name: n for name, n in pod.requests.items() if n and not self._is_ignored(name)})

    def _is_ignored(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.partition("/")[0] in self._ignored_groups)

    def passes(self, pod: Shape, nodes: NodeRows, prepared: Checked) -> Mask:
        asked = prepared.with_a_place
        free = nodes.stacked("free", asked.names)
        passed: Mask = np.logical_and.reduce(free >= asked.like(free))
        return passed

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Checked) -> Codes:
        full = nodes.pod_count >= nodes.allowed_pods
        codes = full.astype(np.int64)
        for index, (name, amount) in enumerate(zip(prepared.names, prepared.amounts.flat, strict=True)):
            allocatable = nodes.allocatable(name)
            short = allocatable - nodes.requested(name) < amount
            codes |= short * np.int64(2 << (2 * index))
            codes |= (short & (allocatable < amount)) * np.int64(4 << (2 * index))
        return codes

    def asks_for(self, pod: Shape, prepared: Checked) -> Mapping[str, int]:
        asked = prepared.with_a_place
        return dict(zip(asked.names, asked.amounts.ravel().tolist(), strict=True))

    def room(self, pod: Shape, nodes: NodeRows, prepared: Checked) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = nodes.allowed_pods - nodes.pod_count
        for name, amount in zip(prepared.names, prepared.amounts.flat, strict=True):
            counts = np.minimum(counts, nodes.free(name) // amount)
        return np.maximum(counts, 0, out=counts)

    def rejection(self, pod: Shape, code: int) -> Rejection:
        reasons = ["Too many pods"] if code & TOO_MANY_PODS else []
        unresolvable = False
        checked = [name for name, amount in pod.requests.items() if amount and not self._is_ignored(name)]
        for index, name in enumerate(checked):
            if code & (2 << (2 * index)):
                reasons.append(f"Insufficient {name}")
            unresolvable |= bool(code & (4 << (2 * index)))
        return Rejection(tuple(reasons), unresolvable)

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: Checked) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """So much more of the one resource that is short; each amount opens the nodes that lack no more.

        Where the node has less than the pod asks for altogether, freeing does not help: it would have to be larger.
        """
        codes = self.filter(pod, nodes, prepared)
        positions = np.flatnonzero(codes == TOO_MANY_PODS)
        if len(positions):
            yield "allow one more pod on the node", positions
        for index, (name, amount) in enumerate(zip(prepared.names, prepared.amounts.flat, strict=True)):
            positions = np.flatnonzero((codes & ~np.int64(4 << (2 * index))) == 2 << (2 * index))
            if not len(positions):
                continue
            lacking = (amount - nodes.free(name))[positions]
            too_small = nodes.allocatable(name)[positions] < amount
            yield from _steps(name, "free {} more {}", lacking[~too_small], positions[~too_small])
            yield from _steps(name, "give the node {} more {}", lacking[too_small], positions[too_small])

    # Score.

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> Scored | Skip:
        """The resources that count: all configured ones but devices that the pod does not ask for."""
        counted = {name: pod.nonzero_incoming.get(name, 0) for name in self._weights}
        counted = {name: amount for name, amount in counted.items() if amount or not is_scalar(name)}
        if not counted:
            return SKIP
        return Scored(Asked(counted), self._weights_of(tuple(counted)))

    def _weights_of(self, names: tuple[str, ...]) -> Weights:
        known = self._known_weights.get(names)
        if known is None:
            each = [self._weights[name] for name in names]
            arrays = np.array(each, np.float64), np.array(float(sum(each)))
            known = self._known_weights[names] = Weights(*arrays, is_plain_pair=each == [1, 1])
        return known

    def score(self, pod: Shape, nodes: NodeRows, prepared: Scored) -> Scores:
        names = prepared.asked.names
        spare = nodes.stacked("spare", names)
        spare = spare - prepared.asked.like(spare)
        capacity = nodes.stacked("allocatable", names)
        weights = prepared.weights
        if self._ratio is not None:
            return self._ratio_score(self._ratio, spare, capacity, weights.each)
        if nodes.has_all_everywhere(names):
            # Sums of whole numbers up to 100 times a weight: exact in floats, and never negative.
            parts = self._rule(spare, capacity)
            total: Numbers = parts[0] + parts[1] if weights.is_plain_pair else weights.each @ parts
            total = total / weights.total
            return total.astype(np.int64)
        has = capacity > 0
        parts = np.where(has, self._rule(spare, np.where(has, capacity, 1)), 0)
        return (weights.each @ parts / np.maximum(weights.each @ has, 1)).astype(np.int64)

    together = frozenset(("NodeResourcesFit", "NodeResourcesBalancedAllocation"))

    def in_one_go(self, filters: Sequence[UsageFilter], scores: Sequence[UsageScore]) -> InOneGo | None:
        """Answer for NodeResourcesBalancedAllocation too, where both score the same two resources."""
        if len(filters) != 1 or len(scores) != 2:
            return None
        first, checked = filters[0]
        second, fit_weight, scored = scores[0]
        third, balance_weight, balanced = scores[1]
        is_default = first is self and second is self and type(third) is NodeResourcesBalancedAllocation
        if not is_default or self._ratio is not None or not scored.weights.is_plain_pair:
            return None
        asked, names = checked.with_a_place, scored.asked.names
        if names != balanced.names or not set(names) <= set(asked.names):
            return None
        return ResourcesInOneGo(
            asked,
            scored.asked,
            balanced,
            prefers_full=self._rule is most_allocated,
            fit_weight=fit_weight,
            balance_weight=balance_weight,
        )

    @staticmethod
    def _ratio_score(
        function: ShapeFunction, spare: Numbers, capacity: Numbers, weights: NDArray[np.float64]
    ) -> Scores:
        scores = np.where(capacity > 0, function.of_ratio(capacity - spare, capacity), 0)
        return round_half_up(weights @ scores / np.maximum(weights @ (scores > 0), 1))


def _steps(
    name: str, change: str, lacking: NDArray[np.int64], positions: NDArray[np.intp]
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """The least that opens any node, what opens half of them, and what opens all."""
    steps = np.unique(lacking)
    if len(steps):
        for step in dict.fromkeys((steps[0], steps[(len(steps) - 1) // 2], steps[-1])):
            yield change.format(describe_amount(name, int(step)), name), positions[lacking <= step]


def describe_amount(name: str, amount: int) -> str:
    """An amount in column units as people write it."""
    if name == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if name == MEMORY or name == "ephemeral-storage" or name.startswith("hugepages-"):
        for suffix, power in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
            if amount >= 1 << power:
                return f"{-(-amount * 10 >> power) / 10:g}{suffix}"
    return str(amount)
