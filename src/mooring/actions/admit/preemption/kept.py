"""The queues that a workload may take quota from, kept from search to search.

They are the same for all workloads that look for victims of one kind, and a decision changes few queues. So only the
queues in which something changed since the last search of that kind are read anew.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from mooring.actions.admit.preemption.targets import Preemptor, candidates_in
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.model.api.kueue import ANY, LOWER_PRIORITY

MOST_KEPT = 32
"""Kinds of searches in a tree of cohorts: by what is short, the policy, and where it matters the priority."""


class Collection(Protocol):
    """What the candidates of queues are collected in."""

    def put(self, node: int, candidates: list[AdmittedWorkload]) -> None:
        """A queue has these candidates now, or none."""


Collected = TypeVar("Collected", bound=Collection)

Stamp = tuple[object, ...]
"""Of a queue: all that its candidates and its share depend on."""


@dataclass(slots=True)
class _Kept(Generic[Collected]):
    collected: Collected
    changed: set[int]
    """The queues in which something changed since the last search."""
    stamps: dict[int, Stamp] = field(default_factory=dict)
    """The queues as they were when they were read: a what-if that is over has left no trace."""


class KeptCandidates(Generic[Collected]):
    """The candidates in the borrowing queues of a preemptor's tree of cohorts, perhaps with its own queue."""

    def __init__(self, make: Callable[[Ledger], Collected], *, moves_with_time: bool = False) -> None:
        """`make` makes an empty collection; `moves_with_time` says that its order changes though no usage does."""
        self._make = make
        self._moves_with_time = moves_with_time
        self._kept: dict[int, dict[tuple[object, ...], _Kept[Collected]]] = {}
        """By root and kind of search."""

    def of(self, ledger: Ledger, preemptor: Preemptor) -> Collected:
        """The candidates as things stand; not to be used any more when something has changed."""
        depends_on_time = ledger.spares is not None or ledger.local_usage is not None or self._moves_with_time
        if depends_on_time or preemptor.queue.reclaim not in (ANY, LOWER_PRIORITY):
            found = self._make(ledger)
            for node in ledger.tree.borrowing_queues(preemptor.queue.root, preemptor.short_columns):
                if node != preemptor.queue.node:
                    found.put(node, candidates_in(ledger, node, preemptor, preemptor.queue.reclaim))
            return found
        kept = self._find(ledger, preemptor)
        for node in kept.changed:
            stamp = _stamp(ledger, node)
            if kept.stamps.get(node) != stamp:
                kept.stamps[node] = stamp
                kept.collected.put(node, _candidates(ledger, node, preemptor))
        kept.changed.clear()
        return kept.collected

    def _find(self, ledger: Ledger, preemptor: Preemptor) -> _Kept[Collected]:
        queue = preemptor.queue
        root, priority = queue.root, 0 if queue.reclaim == ANY else preemptor.pending.priority
        kinds = self._kept.setdefault(root, {})
        kind = (preemptor.short_columns, queue.reclaim, priority)
        found = kinds.get(kind)
        if found is None:
            if len(kinds) >= MOST_KEPT:
                for kept in kinds.values():
                    ledger.unfollow(root, kept.changed)
                kinds.clear()
            found = kinds[kind] = _Kept(self._make(ledger), ledger.follow(root))
            found.changed.update(ledger.tree.queues_below(root))
        return found


def _stamp(ledger: Ledger, node: int) -> Stamp:
    return (ledger.version(node), ledger.tree.usage_row(node), ledger.away_from(node))


def _candidates(ledger: Ledger, node: int, preemptor: Preemptor) -> list[AdmittedWorkload]:
    """The candidates in a queue that uses more than is its own of what is short; none in any other."""
    if not any(ledger.tree.exceeds(node, column) for column in preemptor.short_columns):
        return []
    return candidates_in(ledger, node, preemptor, preemptor.queue.reclaim)
