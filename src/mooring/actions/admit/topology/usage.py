"""What admitted workloads use of the domains that they were assigned, one number a domain and resource.

Flavors whose lowest level is the node share their nodes' numbers, as they may have nodes in common; the domains of any
other flavor are its own. Changes are logged, so that a what-if can be undone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.model.decisions import TopologyAssignment
from mooring.model.values.requests import PODS
from mooring.state.undo import Trial, UndoLog

HOSTNAME = "kubernetes.io/hostname"

DomainKey = tuple[str, ...]

MOST = 2**62
"""More than this of anything is this much: sums stay within their columns."""


@dataclass(frozen=True, slots=True)
class DomainUse:
    """So many pods of one kind in one domain."""

    domain: int
    per_pod: Mapping[str, int]
    """What each asks for, its place on a node included."""
    count: int


TopologyUse = tuple[DomainUse, ...]


def is_node_level(levels: tuple[str, ...]) -> bool:
    return bool(levels) and levels[-1] == HOSTNAME


def domain_key(flavor: str, levels: tuple[str, ...], values: tuple[str, ...]) -> DomainKey:
    """What a lowest domain is known by: a node by its hostname, any other by its flavor and its whole path."""
    return (values[-1],) if is_node_level(levels) else (flavor, *values)


class DomainUsage:
    """A column a resource, a place in it for every domain that was ever named."""

    def __init__(self, log: UndoLog) -> None:
        self._index: dict[DomainKey, int] = {}
        self._columns: dict[str, NDArray[np.int64]] = {}
        self.log = log
        """How to undo what is tried out."""
        self.position = 0
        """Rises with every change, undone or not."""

    def index(self, key: DomainKey) -> int:
        return self._index.setdefault(key, len(self._index))

    def column(self, resource: str) -> NDArray[np.int64]:
        """What is used of a resource, by domain."""
        found = self._columns.get(resource)
        if found is None or len(found) < len(self._index):
            wider = np.zeros(max(64, 2 * len(self._index)), np.int64)
            if found is not None:
                wider[: len(found)] = found
            found = self._columns[resource] = wider
        return found

    def use_of(self, flavor: str, assignment: TopologyAssignment, per_pod: Mapping[str, int]) -> TopologyUse:
        """What the pods of one pod set use where they were assigned."""
        return tuple(
            DomainUse(self.index(domain_key(flavor, assignment.levels, domain.values)), per_pod, domain.count)
            for domain in assignment.domains
        )

    def add(self, uses: Iterable[DomainUse], sign: int = 1) -> None:
        self.position += 1
        for use in uses:
            for resource, amount in use.per_pod.items():
                column = self.column(resource)
                before = int(column[use.domain])
                self.log.note(self._restore, resource, use.domain, before)
                column[use.domain] = max(-MOST, min(before + sign * amount * use.count, MOST))

    def remove(self, uses: Iterable[DomainUse]) -> None:
        self.add(uses, -1)

    def what_if(self) -> Trial:
        """Try something out: what is done inside is undone unless it is kept."""
        return Trial(self.log)

    def _restore(self, resource: str, domain: int, before: int) -> None:
        self.position += 1
        self._columns[resource][domain] = before

    def totals(self) -> dict[tuple[DomainKey, str], int]:
        """Everything that is used, in comparable form: what a rollback must restore."""
        return {
            (key, resource): int(column[index])
            for resource, column in self._columns.items()
            for key, index in self._index.items()
            if index < len(column) and column[index]
        }


def sum_up(uses: Iterable[DomainUse]) -> dict[int, dict[str, int]]:
    """By domain and resource, what some uses come to together."""
    total: dict[int, dict[str, int]] = {}
    for use in uses:
        found = total.setdefault(use.domain, {})
        for resource, amount in use.per_pod.items():
            found[resource] = found.get(resource, 0) + amount * use.count
    return total


def with_place(requests: Mapping[str, int]) -> dict[str, int]:
    """What one pod asks for, its place on a node included."""
    return {**requests, PODS: 1}
