"""How many nodes of a group the pods that wait would need, and which of them would have a place then."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.actions.capacity.autoscaler.equivalence import PodGroup
from mooring.actions.capacity.autoscaler.fresh_nodes import FreshNodes
from mooring.actions.capacity.autoscaler.packing import pack
from mooring.actions.capacity.autoscaler.places import NOWHERE, Places
from mooring.actions.capacity.autoscaler.templates import Template
from mooring.model.api.meta import Resources
from mooring.model.api.pods import PodAffinityTerm
from mooring.model.keys import PodKey
from mooring.model.node_offer import HOSTNAME
from mooring.model.values.quantity import approximate_quantity, parse_quantity, to_millis, to_units
from mooring.model.values.requests import CPU, MEMORY
from mooring.model.values.selectors import compile_label_selector
from mooring.state.shapes import Shape

SPREAD_REASON = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many nodes got pods, and how many pods of each group have a place: the first so many."""

    nodes: int
    helped: tuple[tuple[PodGroup, int], ...]


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates for one cluster."""

    places: Places
    fresh: FreshNodes
    fastpath: bool = False
    counts_amounts: bool = True
    """Whether pods that ask for nothing but amounts are counted; else every pod is placed, which is the same."""

    def estimate(self, groups: Sequence[PodGroup], template: Template, most_nodes: int | None) -> Estimate:
        """Let no more than so many nodes be added; None for any number."""
        ordered = sorted(groups, key=lambda group: -_size(group, template))
        is_fast = False
        if self.fastpath:
            best = _best_for_fastpath(ordered, template)
            if best is not None:
                ordered.append(ordered.pop(best))
                is_fast = True
        if self.counts_amounts:
            found = [plain for group in ordered if (plain := self.places.plain(group.shape)) is not None]
            if len(found) == len(ordered):
                return self._by_amounts(ordered, template, [plain.asks for plain in found], most_nodes)
        with self.places.cluster.what_if():
            return _OnRows(self, template, most_nodes).run(ordered, is_fast)

    def _by_amounts(
        self, groups: Sequence[PodGroup], template: Template, asks: Sequence[Mapping[str, int]], most_nodes: int | None
    ) -> Estimate:
        names = tuple(sorted({name for ask in asks for name in ask}))
        columns = [np.array([ask.get(name, 0) for name in names], np.int64) for ask in asks]
        counts = [len(group.pods) for group in groups]
        packed = pack(self.fresh.free(template, names), columns, counts, most_nodes)
        helped = ((group, count) for group, count in zip(groups, packed.placed, strict=True) if count)
        return Estimate(packed.nodes, tuple(helped))


class _OnRows:
    """One estimate by placing pods on nodes that are opened one after the other."""

    def __init__(self, estimator: Estimator, template: Template, most_nodes: int | None) -> None:
        self._places, self._fresh = estimator.places, estimator.fresh
        self._cluster = estimator.places.cluster
        self._template = template
        self._most_nodes = most_nodes
        self._added: list[int] = []
        self._with_pods: set[int] = set()
        self._assumed = 0
        """Nodes that were counted without being opened."""

    def run(self, groups: Sequence[PodGroup], is_fast: bool) -> Estimate:
        helped = []
        may_add = True
        for index, group in enumerate(groups):
            placed = self._fill(group)
            if may_add:
                if is_fast and index == len(groups) - 1:
                    placed = self._multiply(group, placed)
                else:
                    placed, may_add = self._add_for(group, placed)
            if placed:
                helped.append((group, placed))
        return Estimate(len(self._with_pods) + self._assumed, tuple(helped))

    def _fill(self, group: PodGroup) -> int:
        """Let pods go to the nodes added so far, until one finds none; return how many did."""
        if not self._added:
            return 0
        added = self._places.only(self._added)
        for placed, pod in enumerate(group.pods):
            row = self._places.find(group.shape, added)
            if row == NOWHERE:
                return placed
            self._put(pod.key, row)
        return len(group.pods)

    def _add_for(self, group: PodGroup, placed: int) -> tuple[int, bool]:
        """Let each further pod go to the node added last, else to a new one; also, whether more may be added."""
        for index in range(placed, len(group.pods)):
            key = group.pods[index].key
            row = self._place_for_next(group.shape)
            if row == NOWHERE:
                if self._added and self._added[-1] not in self._with_pods:
                    return index, True  # it took nobody: another would not either
                if not self._open():
                    return index, False
                row = self._added[-1]
                if not self._places.fits(group.shape, row):
                    return index, True
            self._put(key, row)
        return len(group.pods), True

    def _place_for_next(self, shape: Shape) -> int:
        """The node added last, or any other where it is only spreading over hosts that keeps the pod from it."""
        if not self._added:
            return NOWHERE
        last = self._added[-1]
        if self._places.fits(shape, last):
            return last
        constraints = shape.spec.topology_spread_constraints or ()
        if not any(constraint.topology_key == HOSTNAME for constraint in constraints):
            return NOWHERE
        verdict = self._places.verdict(shape, last)
        if verdict is None or SPREAD_REASON not in verdict.reasons:
            return NOWHERE
        others = self._places.uncordoned()
        others[last] = False
        return self._places.find(shape, others)

    def _multiply(self, group: PodGroup, placed: int) -> int:
        """Fill one node, and count as many as it takes for the rest, each with as many pods."""
        if placed == len(group.pods) or not self._open():
            return placed
        row = self._added[-1]
        first = placed
        while placed < len(group.pods) and self._places.fits(group.shape, row):
            self._put(group.pods[placed].key, row)
            placed += 1
        each = placed - first
        while each and placed < len(group.pods) and self._may_add():
            self._assumed += 1
            placed = min(placed + each, len(group.pods))
        return placed

    def _open(self) -> bool:
        if not self._may_add():
            return False
        self._added.append(self._fresh.open(self._template, len(self._added)))
        return True

    def _may_add(self) -> bool:
        return self._most_nodes is None or len(self._added) + self._assumed < self._most_nodes

    def _put(self, key: PodKey, row: int) -> None:
        self._cluster.assume(key, row)
        self._with_pods.add(row)


def _amount(resources: Resources | None, name: str) -> int:
    """Nano-units."""
    return parse_quantity((resources or {}).get(name, 0))


def _size(group: PodGroup, template: Template) -> float:
    """The share of a node that a pod asks for, of CPU and of memory together: large pods come first."""
    allocatable = template.node.status.allocatable
    cpu, memory = to_millis(_amount(allocatable, CPU)), to_units(_amount(allocatable, MEMORY))
    size = 0.0
    if cpu > 0:
        size += group.cpu_millis / cpu
    if memory > 0:
        size += group.memory_bytes / memory
    return size


# The fast path: of one group, one node is filled and the others are counted.


def _best_for_fastpath(groups: Sequence[PodGroup], template: Template) -> int | None:
    """The group for which counting saves the most; the last of equals."""
    most, best = 0, None
    for index, group in enumerate(groups):
        count = len(group.pods)
        nodes = max(_hosts_apart(group), *_rough_nodes(group, template))
        saved = count - count // nodes if nodes > 0 else 0
        if saved >= most and _is_countable(group):
            most, best = saved, index
    return best


def _is_countable(group: PodGroup) -> bool:
    """Whether each further node takes as many pods as the first; not where they keep apart by more than hosts."""
    spec = group.sample.spec
    return spec.topology_spread_constraints is None and all(
        term.topology_key == HOSTNAME for term in _required_anti_affinity(group)
    )


def _required_anti_affinity(group: PodGroup) -> list[PodAffinityTerm]:
    affinity = group.sample.spec.affinity
    anti = affinity.pod_anti_affinity if affinity is not None else None
    return list(anti.required or ()) if anti is not None else []


def _hosts_apart(group: PodGroup) -> int:
    """How many nodes pods need that keep away from one another on hosts."""
    labels = group.sample.metadata.labels or {}
    for term in _required_anti_affinity(group):
        is_own = compile_label_selector(term.label_selector).matches(labels)
        if term.topology_key == HOSTNAME and is_own:
            return len(group.pods)
    return 0


def _rough_nodes(group: PodGroup, template: Template) -> tuple[int, int]:
    """How many nodes pods need by the CPU and by the memory of their first container."""
    containers = group.sample.spec.containers
    resources = containers[0].resources if containers else None
    requests = resources.requests if resources is not None else None
    if requests is None:
        return 0, 0
    capacity = template.node.status.capacity or {}
    by_cpu, by_memory = (_rough_count(len(group.pods), requests, capacity, name) for name in (CPU, MEMORY))
    return by_cpu, by_memory


def _rough_count(pods: int, requests: Resources, capacity: Resources, name: str) -> int:
    """Floats, rounded as the original rounds them: where the quotient is whole, the last digit decides."""
    has = approximate_quantity(capacity.get(name, 0))
    return math.ceil(pods * approximate_quantity(requests.get(name, 0)) / has) if has else 0
