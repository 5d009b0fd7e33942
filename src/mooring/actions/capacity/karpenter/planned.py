"""Nodes that are planned: a claim keeps every instance type on which all its pods still fit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.actions.capacity.karpenter.shapes import HostPort
from mooring.actions.capacity.karpenter.templates import Template
from mooring.actions.capacity.karpenter.type_columns import NO_PRICE, ResourceNames, Rows, Units
from mooring.model.api.pods import Pod
from mooring.model.capacity.instance_types import Offering
from mooring.model.capacity.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    REGISTERED,
    RESERVATION_ID,
    RESERVED,
)
from mooring.model.capacity.requirements import Requirement, Requirements

MOST_TYPES = 600
"""How many instance types are sent for launch, the cheapest ones."""


class PlannedNode:
    """A claim while pods are being added to it."""

    def __init__(self, template: Template, position: int, options: Rows) -> None:
        self.template = template
        self.position = position
        self.hostname = f"hostname-placeholder-{position:04d}"
        self.requirements = template.number
        self.options = options
        self.total: Units = np.zeros(template.room.shape[1], np.int64)
        self.pods: list[Pod] = []
        self.ports: list[HostPort] = []
        self.reservations: tuple[str, ...] = ()
        self.refused: set[int] = set()
        """Shapes that will never fit, by number."""


class Reservations:
    """How many nodes each reservation still has room for, and which planned nodes hold some of it."""

    def __init__(self, offerings: Iterable[Offering]) -> None:
        self._free: dict[str, int] = {}
        for offering in offerings:
            if offering.capacity_type == RESERVED:
                known = self._free.get(offering.reservation_id, offering.reservation_capacity)
                self._free[offering.reservation_id] = min(known, offering.reservation_capacity)

    def can_hold(self, node: PlannedNode, reservation: str) -> bool:
        return reservation in node.reservations or self._free[reservation] != 0

    def hold(self, node: PlannedNode, reservations: tuple[str, ...]) -> None:
        """Let a planned node hold these, and no others any more."""
        for reservation in reservations:
            if reservation not in node.reservations:
                self._free[reservation] -= 1
        for reservation in node.reservations:
            if reservation not in reservations:
                self._free[reservation] += 1
        node.reservations = reservations


@dataclass(frozen=True, slots=True, eq=False)
class NewNode:
    """A node to buy: what it may be, and for which pods."""

    template: Template
    requirements: Requirements
    options: Rows
    """Instance types, by row of the catalogue."""
    requests: dict[str, int]
    pods: tuple[Pod, ...]

    @property
    def pool(self) -> str:
        return self.template.name

    @property
    def instance_types(self) -> list[str]:
        return [self.template.columns.names[row] for row in self.options.tolist()]

    def offerings(self) -> list[tuple[str, Offering]]:
        """What the node can be launched as: instance types and offerings."""
        columns = self.template.columns
        is_option = np.zeros(len(columns.types), np.bool_)
        is_option[self.options] = True
        mask = columns.on_offer(self.requirements) & is_option[columns.offering_type]
        return [
            (columns.names[columns.offering_type[position]], columns.offerings[position])
            for position in np.flatnonzero(mask).tolist()
        ]

    @property
    def price(self) -> float:
        """The lowest price that it can be launched at."""
        return min((offering.price for _, offering in self.offerings()), default=NO_PRICE)

    def launch_requirements(self) -> Requirements:
        """What the NodeClaim requires, apart from its instance types."""
        kept = self.requirements.without(HOSTNAME, REGISTERED, INITIALIZED, INSTANCE_TYPE)
        capacity_types = {offering.capacity_type for _, offering in self.offerings()}
        if capacity_types:
            kept = kept.merged({CAPACITY_TYPE: Requirement(frozenset(capacity_types))})
        return kept


def finish(node: PlannedNode, requirements: Requirements, resources: ResourceNames) -> NewNode:
    """A claim to which no more pods are added: what it holds of reservations and what its daemons take is settled."""
    if node.reservations:
        requirements = requirements.replaced(CAPACITY_TYPE, Requirement(frozenset((RESERVED,))))
        requirements = requirements.merged({RESERVATION_ID: Requirement(frozenset(node.reservations))})
    elif node.template.columns.has_reservations:
        # It holds none, so it cannot be launched into one.
        requirements = requirements.merged({CAPACITY_TYPE: Requirement(frozenset((RESERVED,)), excludes=True)})
    total = node.total + _least_overhead(node)
    return NewNode(node.template, requirements, node.options, resources.amounts(total), tuple(node.pods))


def _least_overhead(node: PlannedNode) -> Units:
    present = [group.overhead for group in node.template.groups if group.types[node.options].any()]
    least: Units = np.min(present, axis=0)
    return least


def order_by_price(node: NewNode, rows: Rows) -> Rows:
    """Instance types, the cheapest first; equal ones in the order of the catalogue."""
    prices = node.template.columns.cheapest(node.requirements)[rows]
    return rows[np.argsort(prices, kind="stable")]


def launchable(nodes: Sequence[NewNode], strict: bool) -> tuple[list[NewNode], list[NewNode]]:
    """Keep the cheapest types of nodes that have too many; the second list has those that fall below minValues so."""
    kept, broken = [], []
    for node in nodes:
        if len(node.options) <= MOST_TYPES:
            kept.append(node)
            continue
        rows = np.sort(order_by_price(node, node.options)[:MOST_TYPES])
        if strict and node.template.columns.missing_values(rows, node.requirements):
            broken.append(node)
            continue
        kept.append(NewNode(node.template, node.requirements, rows, node.requests, node.pods))
    return kept, broken
