"""Groups that are alike but for their place grow together, so that they stay about equally large."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.actions.capacity.autoscaler.situation import NodeGroup
from mooring.actions.capacity.autoscaler.templates import Template
from mooring.actions.capacity.autoscaler.totals import Amounts, Headroom
from mooring.config.autoscaler import ScaleUpSettings
from mooring.model.api.meta import Resources
from mooring.model.api.nodes import Node
from mooring.model.values.quantity import parse_quantity, to_millis
from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar, pod_requests

IGNORED_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
    )
)


def are_similar(one: Template, other: Template, settings: ScaleUpSettings) -> bool:
    """Whether nodes of two groups can stand in for one another."""
    first, second = (_quantities(each.node.status.capacity) for each in (one, other))
    if first.keys() != second.keys():
        return False
    for name, amount in first.items():
        if name == MEMORY:
            if not _are_near(amount, second[name], settings.max_capacity_memory_difference_ratio):
                return False
        elif amount != second[name]:
            return False
    allocatable, others_allocatable = (_quantities(each.node.status.allocatable) for each in (one, other))
    return (
        _all_near(allocatable, others_allocatable, settings.max_allocatable_difference_ratio)
        and _all_near(_free(one), _free(other), settings.max_free_difference_ratio)
        and _labels(one.node, settings) == _labels(other.node, settings)
    )


def _quantities(resources: Resources | None) -> dict[str, int]:
    return {name: parse_quantity(text) for name, text in (resources or {}).items()}


def _free(template: Template) -> dict[str, int]:
    """What is left beside the daemons, of the usual resources and of devices that daemons ask for."""
    allocatable = _quantities(template.node.status.allocatable)
    taken = dict.fromkeys((CPU, MEMORY, EPHEMERAL_STORAGE, PODS), 0)
    for pod in template.daemons:
        for name, amount in pod_requests(pod).items():
            if name in taken or is_scalar(name):
                taken[name] = taken.get(name, 0) + amount
    return {name: allocatable.get(name, 0) - amount for name, amount in taken.items()}


def _all_near(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    return one.keys() == other.keys() and all(_are_near(amount, other[name], ratio) for name, amount in one.items())


def _are_near(one: int, other: int, ratio: float) -> bool:
    larger, smaller = (float(to_millis(find(one, other))) for find in (max, min))
    return larger - smaller <= larger * ratio


def _labels(node: Node, settings: ScaleUpSettings) -> dict[str, str]:
    ignored = IGNORED_LABELS | settings.balancing_ignore_labels
    return {key: value for key, value in (node.metadata.labels or {}).items() if key not in ignored}


@dataclass(frozen=True, slots=True)
class Growth:
    """From which size to which a group grows."""

    group: NodeGroup
    size: int

    @property
    def nodes(self) -> int:
        return self.size - self.group.target


def balance(groups: Sequence[NodeGroup], nodes: int) -> list[Growth]:
    """Give nodes one by one to the smallest group that is not full, among equals to the one that was smaller at first.

    Return the groups that grow, the smallest at first in front; groups that are full stand before all others.
    """
    growing = [Growth(group, group.target) for group in groups if group.target != group.max_size]
    growing.sort(key=lambda growth: growth.size)
    nodes = min(nodes, sum(group.room for group in groups))
    start = current = 0
    while nodes > 0:
        growth = growing[current]
        if growth.size < growth.group.max_size:
            growing[current] = Growth(growth.group, growth.size + 1)
            nodes -= 1
        else:  # it is full: out of the way, to the front
            growing[start], growing[current] = growth, growing[start]
            start += 1
        has_smaller_next = current + 1 < len(growing) and growing[current].size > growing[current + 1].size
        current = current + 1 if has_smaller_next else start
    return [growth for growth in growing if growth.nodes]


def within(growths: Sequence[Growth], headroom: Headroom, by_group: Mapping[str, Amounts]) -> list[Growth]:
    """Cut each growth to what the totals still allow, in order; what is cut is not given to others."""
    found = []
    for growth in growths:
        amounts = by_group[growth.group.name]
        allowed = headroom.allowed(amounts, growth.nodes)
        headroom = headroom.without(amounts, allowed)
        if allowed:
            found.append(Growth(growth.group, growth.group.target + allowed))
    return found
