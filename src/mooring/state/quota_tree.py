"""The tree of quotas as integer columns: a row per queue or cohort, a column per (flavor, resource).

For every node n and column c:

    subtree   what the node and everything below it may use by right: its nominal quota plus what its children lend
    local     the part of subtree that is never lent upward: max(0, subtree - lending limit), 0 without a limit
    usage     of a queue: what its workloads hold; of a cohort: the sum of what its children use beyond their local part
    potential the most that could ever be had there with the whole tree idle

Usage changes along one path, queue to root, and stops where a local part absorbs it. What is tried out is undone by the
one log (`undo.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mooring.errors import InvariantBroken
from mooring.state.undo import Trial, UndoLog

UNLIMITED = 2**63 - 1
NO_PARENT = -1

Columns = npt.NDArray[np.int64]
"""Shape (nodes, flavor-resources)."""


class Quota(NamedTuple):
    """What one node may use of one flavor's resource, in column units."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One queue or cohort as given; parents come before their children."""

    name: str
    parent: int = NO_PARENT
    is_queue: bool = False
    weight: float = 1.0
    quotas: Mapping[int, Quota] = field(default_factory=dict)


class FlavorResource(NamedTuple):
    """What a column stands for."""

    flavor: str
    resource: str


class QuotaTree:
    """All queues and cohorts with their quotas and usage; `usage` is the only thing that changes."""

    def __init__(self, nodes: Sequence[TreeNode], columns: Sequence[FlavorResource], log: UndoLog) -> None:
        self.nodes = tuple(nodes)
        self.columns = tuple(columns)
        self.width = max(1, len(columns))
        self.parent = [node.parent for node in nodes]
        self.child_queues: list[list[int]] = [[] for _ in nodes]
        self.child_cohorts: list[list[int]] = [[] for _ in nodes]
        for index, node in enumerate(nodes):
            if node.parent != NO_PARENT:
                (self.child_queues if node.is_queue else self.child_cohorts)[node.parent].append(index)
        self._queues_below: dict[int, tuple[int, ...]] = {}
        self.paths = [self._path(index) for index in range(len(nodes))]
        """For each node: itself, its parent, ..., its root."""
        self.heights = self._find_heights()
        self.declared = self._find_declared()
        """For each node: the columns that it or anything below it has a quota for."""
        self._fill_quotas()
        self.usage: Columns = np.zeros((len(nodes), self.width), dtype=np.int64)
        # Scalars are read and written through views of the same memory, several times faster than through NumPy.
        self._usage = _flat(self.usage)
        self._borrowing = self._make_borrowing()
        """By place (node and column) the children of the node's parent, itself included, that use more of the column
        than is theirs by right: one set for all children of a parent."""
        self.log = log
        self.share_is_stale = bytearray(b"\x01" * len(nodes))
        """Which nodes' usage changed since someone last looked at their share and cleared the flag."""

    # Building

    def _path(self, index: int) -> tuple[int, ...]:
        path = [index]
        while self.parent[path[-1]] != NO_PARENT:
            path.append(self.parent[path[-1]])
        return tuple(path)

    def _find_heights(self) -> list[int]:
        heights = [0] * len(self.nodes)
        for index in reversed(range(len(self.nodes))):
            parent = self.parent[index]
            if parent != NO_PARENT:
                heights[parent] = max(heights[parent], heights[index] + 1)
        return heights

    def _find_declared(self) -> list[tuple[int, ...]]:
        declared = [set(node.quotas) for node in self.nodes]
        for index in reversed(range(len(self.nodes))):
            if self.parent[index] != NO_PARENT:
                declared[self.parent[index]] |= declared[index]
        return [tuple(sorted(columns)) for columns in declared]

    def _fill_quotas(self) -> None:
        shape = (len(self.nodes), self.width)
        self.nominal: Columns = np.zeros(shape, dtype=np.int64)
        self.subtree: Columns = np.zeros(shape, dtype=np.int64)
        self.local: Columns = np.zeros(shape, dtype=np.int64)
        self.borrowing_limit: Columns = np.full(shape, UNLIMITED, dtype=np.int64)
        self.potential: Columns = np.zeros(shape, dtype=np.int64)
        for index in reversed(range(len(self.nodes))):
            self._fill_node(index)
        for index, node in enumerate(self.nodes):
            for column in range(len(self.columns)):
                self.potential[index, column] = self._find_potential(index, node.parent, column)
        self._nominal, self._subtree, self._local = _flat(self.nominal), _flat(self.subtree), _flat(self.local)
        self._borrowing_limit, self._potential = _flat(self.borrowing_limit), _flat(self.potential)

    def _fill_node(self, index: int) -> None:
        node = self.nodes[index]
        for column, quota in node.quotas.items():
            self.nominal[index, column] = quota.nominal
            self.subtree[index, column] = _sum(int(self.subtree[index, column]), quota.nominal)
            # Without a parent there is nobody to borrow from or to lend to.
            if quota.borrowing_limit is not None and node.parent != NO_PARENT:
                self.borrowing_limit[index, column] = quota.borrowing_limit
            if quota.lending_limit is not None and node.parent != NO_PARENT:
                self.local[index, column] = max(0, int(self.subtree[index, column]) - quota.lending_limit)
        if node.parent == NO_PARENT:
            return
        for column in self.declared[index]:
            lent = int(self.subtree[index, column]) - int(self.local[index, column])
            self.subtree[node.parent, column] = _sum(int(self.subtree[node.parent, column]), lent)

    def _find_potential(self, index: int, parent: int, column: int) -> int:
        subtree = int(self.subtree[index, column])
        if parent == NO_PARENT:
            return subtree
        limit = int(self.borrowing_limit[index, column])
        most = _sum(int(self.local[index, column]), int(self.potential[parent, column]))
        return most if limit == UNLIMITED else min(_sum(subtree, limit), most)

    def _make_borrowing(self) -> list[set[int]]:
        by_parent: dict[tuple[int, int], set[int]] = {}
        return [
            by_parent.setdefault((parent if parent != NO_PARENT else ~node, column), set())
            for node, parent in enumerate(self.parent)
            for column in range(self.width)
        ]

    # Questions

    def borrowing_children(self, cohort: int, columns: Iterable[int]) -> list[int]:
        """The queues and cohorts right below a cohort that use more than is theirs by right in one of the columns."""
        children = self.child_queues[cohort] or self.child_cohorts[cohort]
        if not children:
            return []
        base = children[0] * self.width
        found = [self._borrowing[base + column] for column in columns]
        return sorted(found[0] if len(found) == 1 else set().union(*found))

    def queues_below(self, cohort: int) -> tuple[int, ...]:
        """All queues of a cohort and of the cohorts in it, those of the latter first."""
        known = self._queues_below.get(cohort)
        if known is None:
            deeper = (queue for child in self.child_cohorts[cohort] for queue in self.queues_below(child))
            known = self._queues_below[cohort] = (*deeper, *self.child_queues[cohort])
        return known

    def nominal_of(self, node: int, column: int) -> int:
        return self._nominal[node * self.width + column]

    def subtree_of(self, node: int, column: int) -> int:
        return self._subtree[node * self.width + column]

    def usage_of(self, node: int, column: int) -> int:
        return self._usage[node * self.width + column]

    def usage_row(self, node: int) -> bytes:
        """All that a node uses, to be compared with what it used at another time."""
        return self._usage[node * self.width : (node + 1) * self.width].tobytes()

    def potential_of(self, node: int, column: int) -> int:
        return self._potential[node * self.width + column]

    def borrowing_limit_of(self, node: int, column: int) -> int | None:
        limit = self._borrowing_limit[node * self.width + column]
        return None if limit == UNLIMITED else limit

    def exceeds(self, node: int, column: int, more: int = 0) -> bool:
        """Tell whether the node, with so much more, uses what is not its own by right."""
        at = node * self.width + column
        return self._subtree[at] < self._usage[at] + more

    def borrowing_queues(self, cohort: int, columns: Iterable[int]) -> list[int]:
        """The queues below a cohort that use more than is theirs by right in one of the columns, in the order of
        `queues_below`."""
        deeper = [queue for child in self.child_cohorts[cohort] for queue in self.borrowing_queues(child, columns)]
        return deeper + [child for child in self.borrowing_children(cohort, columns) if self.nodes[child].is_queue]

    def borrowed(self, node: int, more: Mapping[int, int]) -> list[tuple[int, int]]:
        """By column, what a node uses beyond what is its own by right, did it use so much more."""
        usage, subtree, base = self._usage, self._subtree, node * self.width
        found = []
        for column in self.declared[node]:
            beyond = usage[base + column] - subtree[base + column]
            if more:
                beyond += more.get(column, 0)
            if beyond > 0:
                found.append((column, beyond))
        return found

    def local_available(self, node: int, column: int) -> int:
        at = node * self.width + column
        free = self._local[at] - self._usage[at]
        return free if free > 0 else 0

    def available(self, node: int, column: int) -> int:
        """How much more the node can have right now; at least 0."""
        width, usage, local = self.width, self._usage, self._local
        subtree, limits = self._subtree, self._borrowing_limit
        path = self.paths[node]
        at = path[-1] * width + column
        room = subtree[at] - usage[at]
        for index in reversed(path[:-1]):
            at = index * width + column
            own, used = local[at], usage[at]
            limit = limits[at]
            if limit != UNLIMITED:
                beyond = used - own
                borrowable = subtree[at] - own - (beyond if beyond > 0 else 0) + limit
                if borrowable < room:
                    room = borrowable
            if own > used:
                room += own - used
        return room if room > 0 else 0

    def borrow_height(self, queue: int, column: int, amount: int) -> tuple[int, bool]:
        """Height of the lowest subtree that has the amount by right, 0 if the queue itself has; whether more is above.

        If no subtree has, the height of the whole tree.
        """
        path = self.paths[queue]
        if len(path) == 1 or not self.exceeds(queue, column, amount):
            return 0, len(path) > 1
        rest = amount - self.local_available(queue, column)
        for node in path[1:]:
            if not self.exceeds(node, column, rest):
                return self.heights[node], self.parent[node] != NO_PARENT
            rest -= self.local_available(node, column)
        return self.heights[path[-1]], False

    def added_at(self, node: int, queue: int, usage: Mapping[int, int]) -> Mapping[int, int]:
        """By column, what a node would use more, did a queue at or below it use so much more."""
        width, used, local = self.width, self._usage, self._local
        for below in self.paths[queue]:
            if below == node:
                return usage
            passed_on = {}
            for column, amount in usage.items():
                at = below * width + column
                absorbed = local[at] - used[at]
                passed_on[column] = amount if absorbed <= 0 else max(0, amount - absorbed)
            usage = passed_on
        raise InvariantBroken(f"node {node} is not above queue {queue}")

    def is_within_nominal(self, node: int, columns: Iterable[int]) -> bool:
        width, usage, subtree = self.width, self._usage, self._subtree
        base = node * width
        return all(subtree[base + column] >= usage[base + column] for column in columns)

    # Changes

    def add(self, queue: int, column: int, amount: int) -> None:
        width, usage, local, stale = self.width, self._usage, self._local, self.share_is_stale
        steps, restore, subtree, borrowing = self.log.steps, self._restore, self._subtree, self._borrowing
        for node in self.paths[queue]:
            at = node * width + column
            before = usage[at]
            if steps is not None:
                steps.append((restore, (at, before)))
            usage[at] = before + amount
            if before <= subtree[at] < before + amount:
                borrowing[at].add(node)
            stale[node] = 1
            absorbed = local[at] - before
            if absorbed > 0:
                amount -= absorbed
                if amount <= 0:
                    return

    def remove(self, queue: int, column: int, amount: int) -> None:
        width, usage, local, stale = self.width, self._usage, self._local, self.share_is_stale
        steps, restore, subtree, borrowing = self.log.steps, self._restore, self._subtree, self._borrowing
        for node in self.paths[queue]:
            at = node * width + column
            before = usage[at]
            if steps is not None:
                steps.append((restore, (at, before)))
            usage[at] = before - amount
            if before - amount <= subtree[at] < before:
                borrowing[at].discard(node)
            stale[node] = 1
            beyond = before - local[at]
            if beyond <= 0:
                return
            if beyond < amount:
                amount = beyond

    def what_if(self) -> Trial:
        """Try something out: what is done inside is undone unless it is kept."""
        return Trial(self.log)

    def _restore(self, at: int, before: int) -> None:
        node = at // self.width
        if (self._usage[at] > self._subtree[at]) != (before > self._subtree[at]):
            (self._borrowing[at].add if before > self._subtree[at] else self._borrowing[at].discard)(node)
        self._usage[at] = before
        self.share_is_stale[node] = 1


def _flat(columns: Columns) -> "memoryview[int]":
    return memoryview(columns.reshape(-1).data)


def _sum(first: int, second: int) -> int:
    """Add; what is unlimited stays so."""
    return min(first + second, UNLIMITED)
