"""The CPU Manager's static policy: where whole CPUs could come from, and which ones a container gets."""

import math
from collections.abc import Callable, Iterable, Iterator

from mooring.model.numa.hints import Hint, Hints
from mooring.model.numa.machine import Bits, Machine, bits, lowest, members
from mooring.model.numa.settings import CpuOptions, KubeletSettings

PACKED = CpuOptions()


class SmtAlignmentError(Exception):
    """Whole cores only, and they do not come out even or are not there."""


class NotEnoughCpus(Exception):
    """No set of free CPUs is that large."""


class CpuManager:
    """Answers for one machine and configuration; what is free comes in as an argument."""

    def __init__(self, machine: Machine, settings: KubeletSettings) -> None:
        self._machine = machine
        self._options = settings.cpu_options
        self.reserved = settings.reserved_cpus or self._take(machine.cpus, settings.reserved_cpu_count)
        cores = {machine.core_of_cpu[cpu] for cpu in members(self.reserved)}
        self._reserved_cores = bits(cpu for core in cores for cpu in members(core.cpus))
        self.shared_at_start = machine.cpus & ~self.reserved if self._options.strict_reservation else machine.cpus

    def hints(self, shared: Bits, reusable: Bits, wanted: int) -> Hints:
        """Masks with enough free CPUs; preferred are those as small as an empty machine would allow."""
        if not wanted:
            return None
        machine, free = self._machine, shared & ~self.reserved
        fewest = len(machine.nodes)
        found = []
        for numa in machine.masks:
            inside = machine.cpus_in(numa)
            if numa.bit_count() < fewest and inside.bit_count() >= wanted:
                fewest = numa.bit_count()
            if not reusable & ~inside and ((free & inside).bit_count() + reusable.bit_count()) >= wanted:
                found.append(numa)
        return [Hint(numa, numa.bit_count() == fewest or self._is_socket_aligned(numa, fewest)) for numa in found]

    def _is_socket_aligned(self, numa: Bits, fewest: int) -> bool:
        if not self._options.align_by_socket:
            return False
        per_socket = len(self._machine.nodes) // len(self._machine.cpus_of_socket)
        return per_socket > 0 and len(self._machine.sockets_in(numa)) == -(-fewest // per_socket)

    def allocate(self, shared: Bits, reusable: Bits, wanted: int, numa: Bits | None) -> Bits:
        """CPUs within the affinity as far as they go, the rest from anywhere."""
        self._check_alignment(shared, wanted)
        free = shared & ~self.reserved | reusable
        taken = 0
        if numa is not None:
            aligned = free & self._aligned(numa)
            taken = self._take(aligned, min(wanted, aligned.bit_count()))
        return taken | self._take(free & ~taken, wanted - taken.bit_count())

    def _check_alignment(self, shared: Bits, wanted: int) -> None:
        if not self._options.full_pcpus_only:
            return
        if wanted % self._machine.cpus_per_core:
            raise SmtAlignmentError(f"{wanted} CPUs are no whole cores of {self._machine.cpus_per_core}")
        whole = (shared & ~self._reserved_cores).bit_count()
        if wanted > whole:
            raise SmtAlignmentError(f"{wanted} CPUs wanted, {whole} free on cores without a reserved CPU")

    def _aligned(self, numa: Bits) -> Bits:
        if not self._options.align_by_socket:
            return self._machine.cpus_in(numa)
        sockets = self._machine.sockets_in(numa)
        return bits(cpu for socket in sockets for cpu in members(self._machine.cpus_of_socket[socket]))

    def _take(self, free: Bits, wanted: int) -> Bits:
        if wanted > free.bit_count():
            raise NotEnoughCpus(f"{wanted} CPUs wanted, {free.bit_count()} free")
        group = self._machine.cpus_per_core if self._options.full_pcpus_only else 1
        if self._options.distribute_across_numa and wanted and wanted % group == 0:
            distributed = take_distributed(self._machine, free, wanted, group, self._options.align_by_socket)
            if distributed is not None:
                return distributed
        return take_packed(self._machine, free, wanted, self._options)


def take_packed(machine: Machine, free: Bits, wanted: int, options: CpuOptions) -> Bits:
    """Whole NUMA nodes and sockets while they fit, caches if so asked, whole cores, then single CPUs."""
    return _Packing(machine, free, wanted, options).result()


class _Packing:
    """One search: what is free, what has been taken, and what is still wanted."""

    def __init__(self, machine: Machine, free: Bits, wanted: int, options: CpuOptions) -> None:
        self._machine = machine
        self._free = free
        self._wanted = wanted
        self._taken = 0
        self._spread = options.distribute_across_cores
        self._by_cache = options.prefer_align_by_cache and not options.distribute_across_numa
        self._numa_first = len(machine.cpus_of_socket) >= len(machine.nodes)

    def result(self) -> Bits:
        machine = self._machine
        whole_numa = (self.numa_order, machine.cpus_of_numa, lambda n: machine.cpus_of_numa[n].bit_count())
        whole_sockets = (self._socket_order, machine.cpus_of_socket, lambda n: machine.cpus_per_socket)
        for order, cpus_of, size in (whole_numa, whole_sockets) if self._numa_first else (whole_sockets, whole_numa):
            self._take_whole(order(), cpus_of, size)
        if self._by_cache:
            self._take_caches()
        if not self._spread:
            self._take_whole(self._core_order(), machine.cpus_of_core, lambda n: machine.cpus_per_core)
        for cpu in self._cpu_order():
            if not self._wanted:
                break
            self._take(1 << cpu)
        return self._taken

    def _take(self, cpus: Bits) -> None:
        self._taken |= cpus
        self._free &= ~cpus
        self._wanted -= cpus.bit_count()

    def _take_whole(self, order: list[int], cpus_of: dict[int, Bits], size: Callable[[int], int]) -> None:
        """Every unit that is free to its full size, as long as it is not more than still wanted."""
        untouched = [unit for unit in order if (self._free & cpus_of[unit]).bit_count() == size(unit)]
        for unit in untouched:
            if self._wanted and cpus_of[unit].bit_count() <= self._wanted:
                self._take(cpus_of[unit])

    def _take_caches(self) -> None:
        machine = self._machine
        for cache in self._cache_order():
            if not self._wanted:
                return
            if self._wanted >= machine.cpus_per_cache:
                whole = machine.cpus_of_cache
                self._take_whole(self._cache_order(), whole, lambda n: machine.cpus_of_cache[n].bit_count())
            if self._wanted:
                self._take_part_of_cache(cache)

    def _take_part_of_cache(self, cache: int) -> None:
        """All that is still wanted from one cache, or nothing."""
        machine, per_core = self._machine, self._machine.cpus_per_core
        here = self._free & machine.cpus_of_cache[cache]
        cores = sorted({machine.core_of_cpu[cpu].number for cpu in members(here)})[: -(-self._wanted // per_core)]
        cpus = bits(cpu for core in cores for cpu in members(self._free & machine.cpus_of_core[core]))
        if self._wanted % 2 and per_core > 1 and cpus.bit_count() > self._wanted:
            cpus = lowest(cpus, cpus.bit_count() - 1)
        if cpus.bit_count() == self._wanted:
            self._take(cpus)

    # Orders: the fullest first, so that large pieces stay whole; of equally full ones the lowest number.

    def _by_free(self, units: Iterable[int], cpus_of: dict[int, Bits]) -> list[int]:
        free = {unit: (self._free & cpus_of[unit]).bit_count() for unit in units}
        return sorted((unit for unit in free if free[unit]), key=lambda unit: (free[unit], unit))

    def numa_order(self) -> list[int]:
        machine = self._machine
        if self._numa_first:
            return self._by_free(machine.cpus_of_numa, machine.cpus_of_numa)
        return [
            numa
            for socket in self._socket_order()
            for numa in self._by_free(_inside(machine.cpus_of_numa, self._free_in(socket)), machine.cpus_of_numa)
        ]

    def _socket_order(self) -> list[int]:
        machine = self._machine
        if not self._numa_first:
            return self._by_free(machine.cpus_of_socket, machine.cpus_of_socket)
        return [
            socket
            for numa in self.numa_order()
            for socket in self._by_free(
                _inside(machine.cpus_of_socket, self._free & machine.cpus_of_numa[numa]), machine.cpus_of_socket
            )
        ]

    def _free_in(self, socket: int) -> Bits:
        return self._free & self._machine.cpus_of_socket[socket]

    def _core_order(self) -> list[int]:
        machine = self._machine
        if self._numa_first:
            above = [self._free_in(socket) for socket in self._socket_order()]
        else:
            above = [self._free & machine.cpus_of_numa[numa] for numa in self.numa_order()]
        return [
            core
            for cpus in above
            for core in self._by_free({machine.core_of_cpu[c].number for c in members(cpus)}, machine.cpus_of_core)
        ]

    def _cache_order(self) -> list[int]:
        machine = self._machine
        return [
            cache
            for numa in self.numa_order()
            for cache in self._by_free(
                _inside(machine.cpus_of_cache, self._free & machine.cpus_of_numa[numa]), machine.cpus_of_cache
            )
        ]

    def _cpu_order(self) -> list[int]:
        machine = self._machine
        if self._spread:
            return [cpu for socket in self._socket_order() for cpu in members(self._free_in(socket))]
        return [cpu for core in self._core_order() for cpu in members(self._free & machine.cpus_of_core[core])]


def _inside(cpus_of: dict[int, Bits], cpus: Bits) -> list[int]:
    return [unit for unit, own in cpus_of.items() if own & cpus]


class _Slice:
    """A list whose end may be overwritten by a sibling that grew from the same beginning.

    The kubelet keeps the best combination as such a slice, and combinations tried later change the end of it. Where
    that decides, its CPUs are the ones that pods get, so it is done alike here.
    """

    def __init__(self, storage: list[int], length: int) -> None:
        self._storage, self._length = storage, length

    def with_one_more(self, value: int) -> "_Slice":
        storage, length = self._storage, self._length
        if length == len(storage):
            storage = storage[:length] + [0] * max(length, 1)
        storage[length] = value
        return _Slice(storage, length + 1)

    def values(self) -> list[int]:
        return self._storage[: self._length]


def _combinations(numbers: list[int], size: int, begun: _Slice, start: int = 0) -> Iterator[_Slice]:
    if size == 0:
        yield begun
        return
    for place in range(start, len(numbers) - size + 1):
        yield from _combinations(numbers, size - 1, begun.with_one_more(numbers[place]), place + 1)


def take_distributed(machine: Machine, free: Bits, wanted: int, group: int, by_socket: bool) -> Bits | None:
    """Evenly from as few NUMA nodes as will do; None if it comes out even nowhere (KEP-2902)."""
    order = _Packing(machine, free, wanted, PACKED).numa_order()
    left = {numa: (free & machine.cpus_of_numa[numa]).bit_count() for numa in order}
    groups_per_node = ((machine.cpus.bit_count() - 1) // group) // len(machine.nodes) + 1
    groups_wanted = (wanted - 1) // group + 1
    for size in range((groups_wanted - 1) // groups_per_node + 1, min(groups_wanted, len(order)) + 1):
        best = _most_even(machine, order, left, wanted, group, by_socket, size)
        if best is not None:
            return _stripe(machine, free, wanted, group, *best)
    return None


def _most_even(
    machine: Machine, order: list[int], left: dict[int, int], wanted: int, group: int, by_socket: bool, size: int
) -> tuple[list[int], list[int]] | None:
    """The combination of so many nodes that leaves the machine most even, and who of it gives the remainder."""
    best: tuple[_Slice, _Slice | None] | None = None
    best_balance, best_in_socket = math.inf, False
    for slice_ in _combinations(order, size, _Slice([], 0)):
        if best_balance == 0 and (not by_socket or best_in_socket):
            break
        nodes = slice_.values()
        if sum(left[numa] // group for numa in nodes) * group < wanted:
            continue
        share = wanted // size // group * group
        if by_socket:
            share = min(share, *(left[numa] // group * group for numa in nodes))
        if any(left[numa] < share for numa in nodes):
            continue
        balance, remainder = _balance(left, nodes, share, wanted - share * size, group)
        in_socket = by_socket and len(machine.sockets_in(bits(nodes))) <= 1
        better = in_socket if in_socket != best_in_socket else balance < best_balance
        if better:
            best, best_balance, best_in_socket = (slice_, remainder), balance, in_socket
    if best is None:
        return None
    return best[0].values(), best[1].values() if best[1] else []


def _balance(left: dict[int, int], nodes: list[int], share: int, over: int, group: int) -> tuple[float, _Slice | None]:
    after = left | {numa: left[numa] - share for numa in nodes}
    if over == 0:
        return _deviation(after.values()), None
    can_give = [numa for numa in nodes if after[numa] >= group]
    best, chosen = math.inf, None
    for size in range(len(can_give), 0, -1):
        for slice_ in _combinations(can_give, size, _Slice([], 0)):
            subset = slice_.values()
            if sum(after[numa] for numa in subset) < over:
                continue
            balance = _deviation(_striped(after, subset, over, group).values())
            if balance < best:
                best, chosen = balance, slice_
    return best, chosen


def _striped(after: dict[int, int], subset: list[int], over: int, group: int) -> dict[int, int]:
    rest = dict(after)
    while over > 0 and any(rest[numa] >= group for numa in subset):
        for numa in subset:
            if over > 0 and rest[numa] >= group:
                rest[numa] -= group
                over -= group
    return rest


def _stripe(machine: Machine, free: Bits, wanted: int, group: int, nodes: list[int], remainder: list[int]) -> Bits:
    def part(numa: int, count: int) -> Bits:
        return take_packed(machine, free & ~taken & machine.cpus_of_numa[numa], count, PACKED)

    available = [(free & machine.cpus_of_numa[numa]).bit_count() // group * group for numa in nodes]
    share = min(wanted // len(nodes) // group * group, *available)
    taken = 0
    for numa in nodes:
        taken |= part(numa, share)
    while taken.bit_count() < wanted:
        givers = [n for n in remainder if (free & ~taken & machine.cpus_of_numa[n]).bit_count() >= group]
        if not givers:
            raise NotEnoughCpus(f"{wanted} CPUs wanted, {taken.bit_count()} distributed")
        for numa in givers:
            if taken.bit_count() < wanted:
                taken |= part(numa, group)
    return taken


def _deviation(values: Iterable[int]) -> float:
    """Rounded to thousandths twice, as the kubelet does it."""
    values = list(values)
    mean = _thousandths(sum(values) / len(values))
    return _thousandths(math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)))


def _thousandths(value: float) -> float:
    return math.floor(value * 1000 + 0.5) / 1000
