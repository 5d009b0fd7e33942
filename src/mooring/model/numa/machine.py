"""A machine as the kubelet sees it: CPUs in cores, caches, sockets and NUMA nodes; memory and devices by NUMA node.

Sets of CPUs, of NUMA nodes and of devices are integers with a bit for each member, so that union, intersection and
size are single operations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

Bits = int


def bits(members: Iterable[int]) -> Bits:
    """The set of these numbers."""
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


def members(mask: Bits) -> Iterator[int]:
    """The numbers of a set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def lowest(mask: Bits, count: int) -> Bits:
    """The lowest so many members of a set."""
    taken = 0
    for _ in range(count):
        lowest_bit = mask & -mask
        taken |= lowest_bit
        mask ^= lowest_bit
    return taken


def parse_cpu_set(text: str) -> Bits:
    """A list of CPUs as Linux writes it.

    >>> bin(parse_cpu_set("0-2,5"))
    '0b100111'
    """
    cpus = 0
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        cpus |= bits(range(int(low), int(high or low) + 1))
    return cpus


def cpu_set(cpus: Bits) -> str:
    """
    >>> cpu_set(0b100111)
    '0-2,5'
    """
    parts, number = [], 0
    while cpus >> number:
        if cpus >> number & 1:
            first = number
            while cpus >> (number + 1) & 1:
                number += 1
            parts.append(str(first) if first == number else f"{first}-{number}")
        number += 1
    return ",".join(parts)


@dataclass(frozen=True, slots=True)
class Core:
    """One physical core: its logical CPUs, its socket and the cache it shares."""

    cpus: Bits
    socket: int
    numa: int
    cache: int

    @property
    def number(self) -> int:
        """A core is known by its lowest CPU; what the hardware calls it repeats from socket to socket."""
        return (self.cpus & -self.cpus).bit_length() - 1


@dataclass(frozen=True, slots=True)
class NumaNode:
    number: int
    memory: int
    hugepages: tuple[tuple[str, int], ...] = ()  # resource name, bytes
    distances: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a device plugin; without NUMA nodes its place is unknown."""

    id: str
    numa: Bits = 0
    healthy: bool = True


@dataclass(frozen=True, eq=False)
class Machine:
    """Two machines are the same if they are one object: thousands of nodes share one."""

    nodes: tuple[NumaNode, ...]
    cores: tuple[Core, ...]
    devices: dict[str, tuple[Device, ...]] = field(default_factory=dict)

    @cached_property
    def numa(self) -> Bits:
        return bits(node.number for node in self.nodes)

    @cached_property
    def cpus(self) -> Bits:
        return _union(core.cpus for core in self.cores)

    @cached_property
    def cpus_of_numa(self) -> dict[int, Bits]:
        return {n.number: _union(core.cpus for core in self.cores if core.numa == n.number) for n in self.nodes}

    @cached_property
    def cpus_of_socket(self) -> dict[int, Bits]:
        sockets = sorted({core.socket for core in self.cores})
        return {socket: _union(core.cpus for core in self.cores if core.socket == socket) for socket in sockets}

    @cached_property
    def cpus_of_cache(self) -> dict[int, Bits]:
        caches = sorted({core.cache for core in self.cores})
        return {cache: _union(core.cpus for core in self.cores if core.cache == cache) for cache in caches}

    @cached_property
    def cpus_of_core(self) -> dict[int, Bits]:
        return {core.number: core.cpus for core in self.cores}

    @cached_property
    def core_of_cpu(self) -> dict[int, Core]:
        return {cpu: core for core in self.cores for cpu in members(core.cpus)}

    @cached_property
    def cpus_per_core(self) -> int:
        # Averages over the machine, rounded down: uneven machines are taken for even ones.
        return self.cpus.bit_count() // len(self.cores) if self.cores else 0

    @cached_property
    def cpus_per_socket(self) -> int:
        return self.cpus.bit_count() // len(self.cpus_of_socket) if self.cores else 0

    @cached_property
    def cpus_per_cache(self) -> int:
        return self.cpus.bit_count() // len(self.cpus_of_cache) if self.cores else 0

    @cached_property
    def masks(self) -> tuple[Bits, ...]:
        """All sets of NUMA nodes, the small ones first, those of one size in lexicographic order."""
        return masks_of(self.numa)

    def cpus_in(self, numa: Bits) -> Bits:
        return _union(self.cpus_of_numa[number] for number in members(numa))

    def sockets_in(self, numa: Bits) -> set[int]:
        return {core.socket for core in self.cores if numa >> core.numa & 1}

    def average_distance(self, numa: Bits) -> float:
        """Over all ordered pairs of nodes, each with itself too."""
        by_number = {node.number: node.distances for node in self.nodes}
        chosen = list(members(numa))
        return sum(by_number[one][other] for one in chosen for other in chosen) / len(chosen) ** 2


def masks_of(numa: Bits) -> tuple[Bits, ...]:
    numbers = list(members(numa))
    return tuple(bits(chosen) for size in range(1, len(numbers) + 1) for chosen in combinations(numbers, size))


def narrower(one: Bits, other: Bits) -> bool:
    """Fewer nodes, then the smaller number."""
    return (one.bit_count(), one) < (other.bit_count(), other)


def _union(sets: Iterable[Bits]) -> Bits:
    united = 0
    for each in sets:
        united |= each
    return united
