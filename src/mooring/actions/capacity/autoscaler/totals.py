"""Totals of the cluster: how much may be added until a maximum is reached, or taken away until a minimum is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mooring.actions.capacity.autoscaler.situation import GPU_RESOURCES, NodeGroup, Situation
from mooring.model.api.meta import Resources
from mooring.model.api.nodes import Node
from mooring.model.values.quantity import parse_quantity, to_units
from mooring.model.values.requests import CPU, MEMORY

Amounts = Mapping[str, int]
"""CPU in whole cores, memory in bytes, GPUs by their type."""

CLUSTER_WIDE = "cluster-wide"


@dataclass(frozen=True, slots=True)
class Headroom:
    """What is left of some totals; resources that are not limited are absent."""

    left: Amounts

    def allowed(self, amounts: Amounts, count: int) -> int:
        """How many of so many nodes there is room for."""
        limits = [self.left[name] // each for name, each in self._exceeded(amounts, count)]
        return min(limits, default=count)

    def exceeded(self, amounts: Amounts, count: int) -> tuple[str, ...]:
        """The resources of which so many nodes are too much, sorted."""
        return tuple(sorted(name for name, _ in self._exceeded(amounts, count)))

    def without(self, amounts: Amounts, count: int) -> "Headroom":
        """What is left once so many nodes are there, or gone."""
        return Headroom({name: max(left - amounts.get(name, 0) * count, 0) for name, left in self.left.items()})

    def _exceeded(self, amounts: Amounts, count: int) -> list[tuple[str, int]]:
        return [
            (name, each)
            for name, each in amounts.items()
            if each > 0 and name in self.left and self.left[name] < each * count
        ]


def node_amounts(node: Node, group: NodeGroup | None, gpu_label: str) -> Amounts:
    """What a node adds to the totals: its capacity, and its GPUs even if they cannot be used yet."""
    capacity = node.status.capacity or {}
    found = {CPU: _units(capacity, CPU), MEMORY: _units(capacity, MEMORY)}
    kind = (node.metadata.labels or {}).get(gpu_label)
    if kind:
        gpus = _gpus(node.status.allocatable or {})
        if not gpus and group is not None and group.template is not None:
            gpus = _gpus(group.template.status.capacity or {})
        if gpus:
            found[kind] = gpus
    return found


def _units(resources: Resources, name: str) -> int:
    return to_units(parse_quantity(resources.get(name, 0)))


def _gpus(resources: Resources) -> int:
    return next((count for name in GPU_RESOURCES if (count := _units(resources, name)) > 0), 0)


@dataclass(frozen=True, slots=True)
class Totals:
    """What is there, and what a node of each group adds: one node stands for all of its group."""

    sums: Amounts
    by_group: Mapping[str, Amounts]

    @classmethod
    def of(cls, situation: Situation, gpu_label: str, template: Callable[[str], Node | None]) -> "Totals":
        by_group: dict[str, Amounts] = {}
        sums: dict[str, int] = {}
        for node in situation.nodes:
            group = situation.group_of.get(node.name)
            if group is None:
                amounts = node_amounts(node, None, gpu_label)
            elif group.name in by_group:
                amounts = by_group[group.name]
            else:
                amounts = by_group[group.name] = node_amounts(node, group, gpu_label)
            for name, amount in amounts.items():
                sums[name] = sums.get(name, 0) + amount
        for group in situation.groups:
            fresh = template(group.name)
            if group.name not in by_group and fresh is not None:
                by_group[group.name] = node_amounts(fresh, group, gpu_label)
        return cls(sums, by_group)

    def below(self, most: Amounts) -> Headroom:
        """What may be added until the totals are these."""
        return Headroom({name: max(limit - self.sums.get(name, 0), 0) for name, limit in most.items()})

    def above(self, least: Amounts) -> Headroom:
        """What may be taken away until the totals are these."""
        return Headroom({name: max(self.sums.get(name, 0) - limit, 0) for name, limit in least.items()})
