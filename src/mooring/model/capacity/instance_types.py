"""Instance types and their offerings: which kinds of node a provider has, where, and at which price."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mooring.model.api.meta import Resources
from mooring.model.capacity.labels import CAPACITY_TYPE, RESERVATION_ID, ZONE
from mooring.model.capacity.requirements import Requirement, Requirements, is_in
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import MEMORY, to_column_units

Amounts = Mapping[str, int]
"""By resource name: CPU in thousandths, everything else in whole units."""


def amounts_of(resources: Resources | None) -> dict[str, int]:
    """A list of quantities as amounts."""
    return {name: to_column_units(name, parse_quantity(text)) for name, text in (resources or {}).items()}


def add_amounts(lists: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


@dataclass(frozen=True, slots=True)
class Offering:
    """One way to launch an instance type."""

    zone: str
    capacity_type: str
    price: float
    """Per hour, in whatever currency the catalogue uses throughout."""
    available: bool = True
    reservation_id: str = ""
    reservation_capacity: int = 0
    """How many nodes still fit the reservation."""

    @property
    def requirements(self) -> Requirements:
        found: dict[str, Requirement] = {ZONE: is_in(self.zone), CAPACITY_TYPE: is_in(self.capacity_type)}
        if self.reservation_id:
            found[RESERVATION_ID] = is_in(self.reservation_id)
        return Requirements(found)


@dataclass(frozen=True, slots=True, eq=False)
class InstanceType:
    """A kind of node that a provider launches."""

    name: str
    requirements: Requirements
    """The labels that such a node can have."""
    capacity: Amounts
    overhead: Amounts = field(default_factory=dict)
    """What the system keeps for itself."""
    offerings: tuple[Offering, ...] = ()

    @property
    def allocatable(self) -> dict[str, int]:
        """What is left for pods. Huge pages come out of memory."""
        left = {name: amount - self.overhead.get(name, 0) for name, amount in self.capacity.items()}
        for name, amount in self.capacity.items():
            if name.startswith("hugepages-"):
                left[MEMORY] = max(left.get(MEMORY, 0) - amount, 0)
        return left

    def price(self, zone: str, capacity_type: str) -> float | None:
        """The price of a node that exists, whether or not there are more to be had."""
        for offering in self.offerings:
            if offering.zone == zone and offering.capacity_type == capacity_type:
                return offering.price
        return None
