"""Enough of every resource, and how full a node should be afterwards."""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import Change, Codes, Depends, Filter, Mask, Score, Scores
from mooring.engine.verdict import Rejection
from mooring.model.meta import KubeObject
from mooring.model.requests import CPU, MEMORY, is_extended, is_scalar
from mooring.plugins.resource_scoring import (
    Numbers,
    Problem,
    ScoringStrategy,
    ShapeFunction,
    least_allocated,
    most_allocated,
    round_half_up,
)
from mooring.state.rows import NodeRows, whole_quotient
from mooring.state.shapes import Shape

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


class NodeResourcesFit(Filter, Score):
    depends_on = Depends.NODE_USAGE | Depends.NODE
    helped_by = Change.NODE | Change.POD_GONE
    args_type = NodeResourcesFitArgs
    reads_pod_labels = False
    reads_pod_annotations = False

    def __init__(self, args: NodeResourcesFitArgs | None = None) -> None:
        super().__init__(args)
        self._ignored = frozenset(self.args.ignored_resources)
        self._ignored_groups = frozenset(self.args.ignored_resource_groups)
        strategy = self.args.scoring_strategy
        self._weights = {resource.name: resource.weight for resource in strategy.resources}
        self._score_all: Callable[[Shape, NodeRows], Scores]
        if strategy.type == "RequestedToCapacityRatio":
            assert strategy.requested_to_capacity_ratio is not None
            self._score_all = partial(self._ratio, ShapeFunction(strategy.requested_to_capacity_ratio.shape))
        else:
            rule = least_allocated if strategy.type == "LeastAllocated" else most_allocated
            self._score_all = partial(self._weighted, rule)

    # Filter.

    def _checked(self, pod: Shape) -> list[tuple[str, int]]:
        """The resources that count for this pod, in order, with what it asks of each."""
        return [(name, amount) for name, amount in pod.requests.items() if amount and not self._is_ignored(name)]

    def _is_ignored(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.partition("/")[0] in self._ignored_groups)

    def passes(self, pod: Shape, nodes: NodeRows) -> Mask:
        passed = nodes.pod_count < nodes.allowed_pods
        for name, amount in self._checked(pod):
            passed &= nodes.numbers("allocatable", name) - nodes.numbers("requested", name) >= amount
        return passed

    def filter(self, pod: Shape, nodes: NodeRows) -> Codes:
        full = nodes.pod_count >= nodes.allowed_pods
        codes = full.astype(np.int64)
        for index, (name, amount) in enumerate(self._checked(pod)):
            allocatable = nodes.allocatable(name)
            short = allocatable - nodes.requested(name) < amount
            if short.any():
                codes |= short * np.int64(2 << (2 * index))
                codes |= (short & (allocatable < amount)) * np.int64(4 << (2 * index))
        return codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        reasons = ["Too many pods"] if code & TOO_MANY_PODS else []
        unresolvable = False
        for index, (name, _) in enumerate(self._checked(pod)):
            if code & (2 << (2 * index)):
                reasons.append(f"Insufficient {name}")
            unresolvable |= bool(code & (4 << (2 * index)))
        return Rejection(tuple(reasons), unresolvable)

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: None) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """So much more of the one resource that is short; each amount opens the nodes that lack no more.

        Where the node has less than the pod asks for altogether, freeing does not help: it would have to be larger.
        """
        codes = self.filter(pod, nodes)
        positions = np.flatnonzero(codes == TOO_MANY_PODS)
        if len(positions):
            yield "allow one more pod on the node", positions
        for index, (name, amount) in enumerate(self._checked(pod)):
            positions = np.flatnonzero((codes & ~np.int64(4 << (2 * index))) == 2 << (2 * index))
            if not len(positions):
                continue
            lacking = (amount - nodes.free(name))[positions]
            too_small = nodes.allocatable(name)[positions] < amount
            yield from _steps(name, "free {} more {}", lacking[~too_small], positions[~too_small])
            yield from _steps(name, "give the node {} more {}", lacking[too_small], positions[too_small])

    # Score.

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        return self._score_all(pod, nodes)

    def _requested_and_capacity(self, pod: Shape, nodes: NodeRows) -> Iterator[tuple[str, int, Numbers, Numbers]]:
        for name, weight in self._weights.items():
            asked = pod.nonzero_incoming.get(name, 0)
            if not asked and is_scalar(name):
                continue
            yield name, weight, nodes.numbers("nonzero", name) + asked, nodes.numbers("allocatable", name)

    def _weighted(self, rule: Callable[[Numbers, Numbers], Numbers], pod: Shape, nodes: NodeRows) -> Scores:
        total: Numbers | int = 0
        weights: Numbers | int = 0
        for name, weight, requested, capacity in self._requested_and_capacity(pod, nodes):
            if nodes.table.has_everywhere(name):
                part, counted = rule(requested, capacity), weight
            else:
                has = capacity > 0
                part, counted = np.where(has, rule(requested, np.where(has, capacity, 1)), 0), weight * has
            total = total + (part if weight == 1 else weight * part)
            weights = weights + counted
        if isinstance(total, int):
            return np.zeros(len(nodes), np.int64)
        return whole_quotient(total, weights if isinstance(weights, int) else np.maximum(weights, 1))

    def _ratio(self, function: ShapeFunction, pod: Shape, nodes: NodeRows) -> Scores:
        total = np.zeros(len(nodes), np.int64)
        weights = np.zeros(len(nodes), np.int64)
        for _, weight, requested, capacity in self._requested_and_capacity(pod, nodes):
            score = np.where(capacity > 0, function.of_ratio(requested, capacity), 0)
            total += weight * score
            weights += weight * (score > 0)
        return round_half_up(total / np.maximum(weights, 1))


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
