"""CPU and memory together, in thousandths of a CPU and of a byte: what the sums of colocation are made of."""

from collections.abc import Mapping
from typing import NamedTuple

from mooring.model.api.meta import Resources
from mooring.model.values.quantity import parse_quantity, to_millis
from mooring.model.values.requests import CPU, MEMORY

THOUSAND = 1000


class Amount(NamedTuple):
    cpu: int = 0
    memory: int = 0

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.cpu + other.cpu, self.memory + other.memory)

    def minus(self, other: "Amount") -> "Amount":
        return Amount(self.cpu - other.cpu, self.memory - other.memory)

    def most(self, other: "Amount") -> "Amount":
        return Amount(max(self.cpu, other.cpu), max(self.memory, other.memory))

    def least(self, other: "Amount") -> "Amount":
        return Amount(min(self.cpu, other.cpu), min(self.memory, other.memory))

    def part(self, of_cpu: float, of_memory: float) -> "Amount":
        """These parts of it, down to a whole thousandth of a CPU and to a whole byte."""
        return Amount(int(self.cpu * of_cpu), int(-(-self.memory // THOUSAND) * of_memory) * THOUSAND)

    def divided(self, count: int) -> "Amount":
        """One of so many equal parts, each rounded up."""
        return Amount(-(-self.cpu // count), -(-self.memory // count))


NOTHING = Amount()


def amount_of(resources: Resources | None) -> Amount:
    """CPU and memory of a list of resources; nothing of what it lacks."""
    found = {name: parse_quantity(text) for name, text in (resources or {}).items() if name in (CPU, MEMORY)}
    return amount_of_nanos(found)


def amount_of_nanos(nanos: Mapping[str, int]) -> Amount:
    return Amount(to_millis(nanos.get(CPU, 0)), to_millis(nanos.get(MEMORY, 0)))
