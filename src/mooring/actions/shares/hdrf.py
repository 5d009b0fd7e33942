"""Hierarchical dominant shares: fairness between the parts of an organisation, then within each part.

After Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads" (SoCC 2013), as Volcano does it.
Jobs are the leaves. A leaf is saturated if it holds all that it asks for of some resource, or asks for something of
which nothing is left (of devices: if it holds any); a part is saturated if all its children are. For a part, over its
children that hold something:

    least   the smallest dominant share of a child that is not saturated, at most 1
    held    sum of what saturated children hold + sum of what each other child holds * least / its share
    share   dominant share of held

Scaling down to the least keeps a part from being set back because one of its children holds much of what no sibling
asks for. Of two queues that one comes first which, at the first difference on the ways from the root, is not saturated,
or has the smaller share by its weight.

A change is followed from the leaf to the root; only when a resource runs out or is back, everything is computed anew.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mooring.actions.shares.drf import DominantShares
from mooring.actions.shares.resources import Amount, Row, flat_floats
from mooring.model.api.volcano_queue import HierarchyStep

TOP = 0
INFINITE = float("inf")

Floats = npt.NDArray[np.float64]

Standing = tuple[bool, float]
"""Whether a part is saturated, and its share by its weight: lower is served first."""

ChildName = tuple[bool, str]
"""Whether it is a job, and its name; children stand by name, so that sums do not depend on who came first."""


class _LeafJob(NamedTuple):
    """What a job holds and asks for, by column."""

    queue: int
    held: Amount
    asked: Amount


class _Children(NamedTuple):
    """The children of a part as columns, each with a view for single values."""

    held: Floats
    bottoms: Floats
    """The share of a child that is scaled down, infinite for one that is not."""
    unscaled: Floats
    """1 for a child that is counted as it is, 0 for one that is scaled down."""
    held_flat: "memoryview[float]"
    bottoms_flat: "memoryview[float]"
    unscaled_flat: "memoryview[float]"

    @classmethod
    def of(cls, held: Floats, bottoms: Floats, unscaled: Floats) -> "_Children":
        return cls(held, bottoms, unscaled, flat_floats(held), flat_floats(bottoms), flat_floats(unscaled))

    def with_row(self, row: int) -> "_Children":
        """With one child more, which holds nothing."""
        held, bottoms, unscaled = self[:3]
        return self.of(
            np.insert(held, row, 0.0, axis=0), np.insert(bottoms, row, INFINITE), np.insert(unscaled, row, 1.0)
        )

    def without_row(self, row: int) -> "_Children":
        held, bottoms, unscaled = self[:3]
        return self.of(np.delete(held, row, axis=0), np.delete(bottoms, row), np.delete(unscaled, row))


class _Part:
    """A part of the organisation, with its children as columns."""

    def __init__(self, weight: float, width: int) -> None:
        self.weight = weight
        self.share = 0.0
        self.sum = [0.0] * width
        """What the children hold, scaled."""
        self.in_all = [0] * width
        """What they hold as it is."""
        self._width = width
        self._names: list[ChildName] = []
        self._unsaturated: set[ChildName] = set()
        self._children = _Children.of(np.zeros((0, width)), np.zeros(0), np.zeros(0))

    @property
    def is_saturated(self) -> bool:
        return not self._unsaturated

    def put(self, name: ChildName, held: Iterable[tuple[int, float]], share: float, is_saturated: bool) -> None:
        """Take in a child, or what has become of it."""
        row = bisect_left(self._names, name)
        if row == len(self._names) or self._names[row] != name:
            self._names.insert(row, name)
            self._children = self._children.with_row(row)
        children = self._children
        children.held[row] = 0.0
        for column, amount in held:
            children.held_flat[row * self._width + column] = amount
        is_scaled = share > 0 and not is_saturated
        children.bottoms_flat[row] = share if is_scaled else INFINITE
        children.unscaled_flat[row] = 0.0 if is_scaled else 1.0
        (self._unsaturated.discard if is_saturated else self._unsaturated.add)(name)

    def drop(self, name: ChildName) -> None:
        row = bisect_left(self._names, name)
        del self._names[row]
        self._unsaturated.discard(name)
        self._children = self._children.without_row(row)

    def compute(self, dominant: DominantShares) -> None:
        held, bottoms, unscaled = self._children[:3]
        least = float(bottoms.min(initial=INFINITE))
        if least == INFINITE:
            scales = unscaled
        else:
            scales = min(1.0, least) / bottoms
            scales += unscaled
        # Not a matrix product: that would add in an order which depends on the machine.
        self.sum = np.einsum("i,ij->j", scales, held).tolist()
        self.share = dominant.share_of(enumerate(self.sum))


class _Numbered(NamedTuple):
    number: int
    weight: float


def _names(path: Iterable[HierarchyStep]) -> tuple[str, ...]:
    return tuple(step.name for step in path)


def _numbered(paths: Iterable[Sequence[HierarchyStep]]) -> dict[tuple[str, ...], _Numbered]:
    """The parts that paths lead through, by the names on the way, in the order in which they are met first."""
    found: dict[tuple[str, ...], _Numbered] = {(): _Numbered(TOP, 1.0)}
    for path in paths:
        for length, step in enumerate(path, 1):
            found.setdefault(_names(path[:length]), _Numbered(len(found), step.weight))
    return found


class HierarchicalShares:
    """The tree of parts, with the jobs as its leaves."""

    def __init__(
        self,
        paths: Mapping[int, Sequence[HierarchyStep]],
        total: Row,
        dominant: DominantShares,
        always: Collection[int] = (),
    ) -> None:
        """`paths` gives for each leaf queue the way to it from below the root.

        Columns that are `always` looked at can saturate a job that holds nothing of them: CPU and memory in Volcano.
        """
        self._dominant = dominant
        self._always = always
        self._total: list[int] = total.tolist()
        steps = _numbered(paths.values())
        self.parent = [-1, *(steps[way[:-1]].number for way in steps if way)]
        """For each part the number of the one above it; parents come before their children."""
        self._names = [way[-1] if way else "" for way in steps]
        self._parts = [_Part(step.weight, len(total)) for step in steps.values()]
        self._jobs: dict[str, _LeafJob] = {}
        self.node_of_queue = {queue: steps[_names(path)].number for queue, path in paths.items()}
        self._ways = {queue: self._way_up(node) for queue, node in self.node_of_queue.items()}
        """For each queue the parts from its own up to the whole."""
        self._is_gone = [amount <= 0 for amount in self._total]

    def _way_up(self, node: int) -> tuple[int, ...]:
        return (node,) if node == TOP else (node, *self._way_up(self.parent[node]))

    # Jobs

    def put_job(self, key: str, queue: int, held: Amount, asked: Amount) -> bool:
        """Take in a job, or what has become of it. Tell whether more than its own way to the root has changed."""
        before = self._jobs.get(key)
        self._jobs[key] = job = _LeafJob(queue, held, asked)
        self._put(key, job)
        return self._follow(job, held, before.held if before else {})

    def drop_job(self, key: str) -> bool:
        job = self._jobs.pop(key)
        self._parts[self.node_of_queue[job.queue]].drop((True, key))
        return self._follow(job, {}, job.held)

    def _put(self, key: str, job: _LeafJob) -> None:
        looked_at = {*job.held, *self._always}
        is_saturated = any(
            job.held.get(column, 0) >= amount or self._is_gone[column]
            for column, amount in job.asked.items()
            if amount and column in looked_at
        )
        part = self._parts[self.node_of_queue[job.queue]]
        part.put((True, key), job.held.items(), self._dominant.share(job.held), is_saturated)

    def _follow(self, job: _LeafJob, after: Amount, before: Amount) -> bool:
        for column in {**after, **before}:
            change = after.get(column, 0) - before.get(column, 0)
            for node in self._ways[job.queue]:
                self._parts[node].in_all[column] += change
        is_gone = [held >= total for held, total in zip(self._parts[TOP].in_all, self._total, strict=True)]
        turned = is_gone != self._is_gone
        self._is_gone = is_gone
        if turned:
            self.recompute()
            return True
        for node in self._ways[job.queue]:
            self._compute(node)
        return False

    def recompute(self) -> None:
        """Everything from nothing: leaves first."""
        for key, job in self._jobs.items():
            self._put(key, job)
        for node in reversed(range(len(self._parts))):
            self._compute(node)

    def _compute(self, node: int) -> None:
        part = self._parts[node]
        part.compute(self._dominant)
        if node != TOP:
            above = self._parts[self.parent[node]]
            above.put((False, self._names[node]), enumerate(part.sum), part.share, part.is_saturated)

    # Answers

    def standing(self, node: int) -> Standing:
        part = self._parts[node]
        return part.is_saturated, part.share / part.weight

    def standings(self, queue: int) -> list[Standing]:
        """The standings on a queue's way from below the root."""
        return [self.standing(node) for node in reversed(self._ways[queue][:-1])]

    def holds_less(self, queue: int, other: int) -> bool:
        """Whether, where the ways to two queues part, the first one's side holds less by weight, nothing scaled."""
        for mine, theirs in zip(reversed(self._ways[queue]), reversed(self._ways[other]), strict=False):
            if mine != theirs:
                return self._plain_share(mine) < self._plain_share(theirs)
        return False

    def _plain_share(self, node: int) -> float:
        part = self._parts[node]
        return self._dominant.share_of(enumerate(part.in_all)) / part.weight

    def comes_first(self, queue: int, other: int) -> bool:
        """Whether a queue stands strictly better than another at the first difference between them."""
        for mine, theirs in zip(self.standings(queue), self.standings(other), strict=False):
            if mine != theirs:
                return mine < theirs
        return False
