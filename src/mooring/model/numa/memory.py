"""The Memory Manager's static policy: memory and hugepages pinned to NUMA nodes, alone or in groups."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mooring.model.numa.hints import Hint, Hints
from mooring.model.numa.machine import Bits, Machine, members, narrower
from mooring.model.numa.settings import KubeletSettings
from mooring.model.values.requests import MEMORY


class NoMemory(Exception):
    """No NUMA nodes can give what is asked, within the rules."""


class Block(NamedTuple):
    """Memory of one type, somewhere on these nodes."""

    type: str
    numa: Bits
    size: int


@dataclass(slots=True)
class NodeMemory:
    """What is left on one NUMA node, and whom it serves: single allocations, or those of one group of nodes."""

    group: Bits
    assignments: int
    free: dict[str, int]
    pinned: dict[str, int]

    def copy(self) -> "NodeMemory":
        return NodeMemory(self.group, self.assignments, dict(self.free), dict(self.pinned))


MemoryState = dict[int, NodeMemory]
Reusable = dict[tuple[Bits, str], int]
"""What init containers of this pod leave to later ones: only an allocation on the same nodes can have it."""


class MemoryManager:
    """Answers for one machine and configuration; what is taken comes in as an argument."""

    def __init__(self, machine: Machine, settings: KubeletSettings) -> None:
        self._machine = machine
        self.allocatable: dict[int, dict[str, int]] = {}
        for node in machine.nodes:
            reserved = settings.reserved_memory.get(node.number, {})
            pages = sum(size for _, size in node.hugepages)
            amounts = {name: size - reserved.get(name, 0) for name, size in node.hugepages}
            amounts[MEMORY] = node.memory - pages - reserved.get(MEMORY, 0)
            self.allocatable[node.number] = amounts

    def at_start(self) -> MemoryState:
        return {
            number: NodeMemory(1 << number, 0, dict(amounts), dict.fromkeys(amounts, 0))
            for number, amounts in self.allocatable.items()
        }

    def hints(self, state: MemoryState, reusable: Reusable, wanted: dict[str, int]) -> list[Hints]:
        """A list for each type. Where no nodes will do there is none, which merges as if it did not matter."""
        found = self._found(state, reusable, wanted) if wanted else []
        return [found for _ in wanted] if found else [None]

    def _found(self, state: MemoryState, reusable: Reusable, wanted: dict[str, int]) -> list[Hint]:
        fewest = len(self._machine.nodes)
        found = []
        for numa in self._machine.masks:
            numbers = list(members(numa))
            if any(sum(self.allocatable[n].get(t, 0) for n in numbers) < size for t, size in wanted.items()):
                continue
            fewest = min(fewest, len(numbers))
            if _breaks_groups(state, numa) or (len(numbers) == 1 and state[numbers[0]].group.bit_count() > 1):
                continue
            if all(_free(state, numa, t) + reusable.get((numa, t), 0) >= size for t, size in wanted.items()):
                found.append(numa)
        return [Hint(numa, numa.bit_count() == fewest) for numa in found]

    def allocate(self, state: MemoryState, reusable: Reusable, wanted: dict[str, int], hint: Hint) -> list[Block]:
        """Pin what a container wants, taking it off `state`; the blocks that it holds then."""
        numa = self._nodes(state, reusable, wanted, hint)
        if _breaks_groups(state, numa):
            raise NoMemory("the nodes serve other allocations, alone or in another group")
        for type_, size in wanted.items():
            _pin(state, numa, type_, size - min(size, reusable.get((numa, type_), 0)))
        return [Block(type_, numa, size) for type_, size in wanted.items()]

    def _nodes(self, state: MemoryState, reusable: Reusable, wanted: dict[str, int], hint: Hint) -> Bits:
        numa, preferred = hint
        if numa is None:
            best = _best(self._found(state, reusable, wanted), "no NUMA nodes have enough memory")
            if preferred and not best.preferred:
                raise NoMemory("no preferred NUMA nodes have enough memory")
            numa, preferred = best.numa or 0, best.preferred
        if all(_free(state, numa, type_) >= size for type_, size in wanted.items()):
            return numa
        wider = [found for found in self._found(state, reusable, wanted) if (found.numa or 0) & numa == numa]
        best = _best(wider, "no NUMA nodes around the chosen ones have enough memory")
        if preferred and not best.preferred:
            raise NoMemory("only NUMA nodes that are not preferred have enough memory")
        return best.numa or 0


def leave_to_others(reusable: Reusable, blocks: list[Block]) -> None:
    """An init container's blocks serve later containers of its pod."""
    for block in blocks:
        key = block.numa, block.type
        reusable[key] = max(reusable.get(key, 0), block.size)


def use_up(reusable: Reusable, blocks: list[Block]) -> None:
    for block in blocks:
        key = block.numa, block.type
        if key in reusable:
            reusable[key] = max(0, reusable[key] - block.size)


def shrink(earlier: list[list[Block]], blocks: list[Block]) -> None:
    """Take off the blocks of earlier init containers what a later container has of them."""
    for block in blocks:
        left = block.size
        for held in earlier:
            for place, other in enumerate(held):
                if (other.type, other.numa) == (block.type, block.numa):
                    used = min(left, other.size)
                    held[place] = other._replace(size=other.size - used)
                    left -= used


def release(state: MemoryState, blocks: list[Block]) -> None:
    """Give back what a container held, node by node in ascending order, wherever it was taken."""
    for block in blocks:
        left = block.size
        for number in members(block.numa):
            node = state[number]
            node.assignments -= 1
            if node.assignments == 0:
                node.group = 1 << number
            given = min(left, node.pinned[block.type])
            node.pinned[block.type] -= given
            node.free[block.type] += given
            left -= given


def pin(state: MemoryState, blocks: Iterable[Block]) -> None:
    """Take off what a container holds, as when it was allocated."""
    for block in blocks:
        _pin(state, block.numa, block.type, block.size)


def _pin(state: MemoryState, numa: Bits, type_: str, size: int) -> None:
    for number in members(numa):
        node = state[number]
        node.assignments += 1
        node.group = numa
        taken = min(size, node.free[type_])
        node.free[type_] -= taken
        node.pinned[type_] += taken
        size -= taken


def _free(state: MemoryState, numa: Bits, type_: str) -> int:
    return sum(state[number].free.get(type_, 0) for number in members(numa))


def _breaks_groups(state: MemoryState, numa: Bits) -> bool:
    """A node that is in use serves either single allocations or those of one group."""
    if numa.bit_count() == 1:
        return False
    return any(state[number].assignments and state[number].group != numa for number in members(numa))


def _best(hints: list[Hint], otherwise: str) -> Hint:
    if not hints:
        raise NoMemory(otherwise)
    best = hints[0]
    for hint in hints[1:]:
        if hint.preferred != best.preferred:
            best = hint if hint.preferred else best
        elif narrower(hint.numa or 0, best.numa or 0):
            best = hint
    return best
