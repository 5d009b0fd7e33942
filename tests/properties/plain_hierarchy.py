"""Volcano's session with hierarchical dominant shares, written again: the whole tree is computed for every question."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from plain_volcano import CPU, MEMORY, Amounts, Job, Queue, Session, Waiting, World

Way = list[tuple[str, int]]
"""The parts from below the root to a queue, each with its weight."""


@dataclass
class Part:
    """A part of the organisation, or a job."""

    weight: int = 1
    children: dict[str, "Part"] = field(default_factory=dict)
    held: Amounts = field(default_factory=dict)
    is_saturated: bool = True


class Smallest:
    """Queues of which the one with the smallest key comes next, by what the keys are at that moment."""

    def __init__(self, key: Callable[[Queue], Any]) -> None:
        self._queues: list[Queue] = []
        self._key = key

    def __len__(self) -> int:
        return len(self._queues)

    def push(self, queue: Queue) -> None:
        self._queues.append(queue)

    def pop(self) -> Queue:
        best = min(self._queues, key=self._key)
        self._queues.remove(best)
        return best


class HierarchicalSession(Session):
    """Queues by hierarchical dominant shares; nothing else limits them."""

    def __init__(self, world: World, ways: dict[str, Way]) -> None:
        self._ways = ways
        super().__init__(world)

    def waiting_queues(self) -> Waiting:
        return Smallest(lambda queue: (self._standings(queue), queue.created))

    def _standings(self, queue: Queue) -> list[tuple[bool, float]]:
        part, standings = self._tree(), []
        for name, _ in self._ways[queue.name]:
            part = part.children[name]
            standings.append((part.is_saturated, self._share(part) / part.weight))
        return standings

    def _tree(self) -> Part:
        root = Part()
        for job in self.world.jobs:
            part = root
            for name, weight in self._ways[job.queue]:
                part = part.children.setdefault(name, Part(weight))
            part.children[f"job {job.name}"] = self._leaf(job)
        self._add_up(root)
        return root

    def _leaf(self, job: Job) -> Part:
        asked, held = dict[str, float](), dict[str, float]()
        for task in job.tasks:
            for name, amount in task.request.items():
                asked[name] = asked.get(name, 0) + amount
                if task.has_place:
                    held[name] = held.get(name, 0) + amount
        is_saturated = any(
            held.get(name, 0) >= asked[name] or self.node[name] >= self.world.total[name]
            for name in {*held, CPU, MEMORY}
            if asked.get(name)
        )
        return Part(held=held, is_saturated=is_saturated)

    def _add_up(self, part: Part) -> None:
        """Children that want more count as if each had no more than the one that has least."""
        for child in part.children.values():
            if child.children:
                self._add_up(child)
        part.is_saturated = all(child.is_saturated for child in part.children.values())
        holding = [child for child in part.children.values() if self._share(child)]
        least = min([1.0, *(self._share(child) for child in holding if not child.is_saturated)])
        for child in holding:
            scale = 1.0 if child.is_saturated else least / self._share(child)
            for name, amount in child.held.items():
                part.held[name] = part.held.get(name, 0) + amount * scale

    def _share(self, part: Part) -> float:
        return max((amount / self.world.total[name] for name, amount in part.held.items()), default=0.0)
