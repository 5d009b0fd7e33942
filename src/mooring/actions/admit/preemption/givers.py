"""Queues that others may take from, by cohort, in the order in which they give: who borrows most is first.

The order is the same for everybody who looks for victims of the same kind, and a decision moves few queues in it. So it
is kept from search to search, and only queues in which something changed are put in their places anew.
"""

from bisect import bisect_left, insort
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from mooring.actions.admit.preemption.targets import Preemptor, candidate_order, candidates_in
from mooring.actions.admit.quota.fair_sharing import Shares
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.workload_info import AdmittedWorkload
from mooring.model.api.kueue import ANY, LOWER_PRIORITY, NEVER
from mooring.state.quota_tree import QuotaTree

Candidates = dict[int, list[AdmittedWorkload]]
"""By queue, who may have to go, in that order."""
Place = tuple[tuple[object, ...], int]
"""What a queue is ordered by, and its node."""
MOST_KEPT = 32
"""Kinds of searches in a tree of cohorts: by what is short, the policy, and for whom it matters the priority."""
NO_NODE = -1


class Givers:
    """Some queues with their candidates, in order."""

    def __init__(self, tree: QuotaTree, shares: Shares, candidates: Mapping[int, list[AdmittedWorkload]]) -> None:
        self._tree = tree
        self._shares = shares
        self.candidates: Candidates = {}
        self.cohorts: dict[int, int] = {}
        """How many such queues there are below each cohort."""
        self._place_of: dict[int, Place] = {}
        self._places: dict[int, list[Place]] = {}
        for node, found in candidates.items():
            self.put(node, found)

    def __bool__(self) -> bool:
        return bool(self.candidates)

    def put(self, node: int, candidates: list[AdmittedWorkload]) -> None:
        """A queue has these candidates now, or none."""
        above = self._tree.paths[node][1:]
        places = self._places.setdefault(above[0], []) if above else []
        before = self._place_of.pop(node, None)
        if before is not None:
            del places[bisect_left(places, before)]
            del self.candidates[node]
            self._count(above, -1)
        share = self._shares.share(node)
        if not candidates or share.is_zero:
            return
        order = candidate_order(candidates[0], NO_NODE)
        place = ((not share.is_weightless, -share.value, -share.present, *order), node)
        insort(places, place)
        self._place_of[node] = place
        self.candidates[node] = candidates
        self._count(above, 1)

    def _count(self, cohorts: Sequence[int], change: int) -> None:
        for cohort in cohorts:
            self.cohorts[cohort] = self.cohorts.get(cohort, 0) + change

    def first(self, cohort: int, without: Container[int]) -> int | None:
        """The queue right below a cohort that gives first, without some."""
        return next((node for _, node in self._places.get(cohort, ()) if node not in without), None)


Stamp = tuple[object, ...]
"""Of a queue: all that its place depends on."""


@dataclass(slots=True)
class _Kept:
    givers: Givers
    changed: set[int]
    """Where something has changed since the last search."""
    stamps: dict[int, Stamp] = field(default_factory=dict)
    """Queues as they were when they were put in their places: what-ifs that are over have left no trace."""


class KeptGivers:
    """The queues of other teams that somebody may take from."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._kept: dict[int, dict[tuple[object, ...], _Kept]] = {}
        """By root and kind of search."""

    def of(self, ledger: Ledger, preemptor: Preemptor) -> Givers:
        queue = preemptor.queue
        if not queue.has_cohort or queue.reclaim == NEVER:
            return Givers(ledger.tree, self._shares, {})
        depends_on_time = ledger.spares is not None or ledger.local_usage is not None or self._shares.looks_back
        if depends_on_time or queue.reclaim not in (ANY, LOWER_PRIORITY):
            nodes = ledger.tree.queues_below(queue.root)
            found = {node: _candidates(ledger, node, preemptor) for node in nodes if node != queue.node}
            return Givers(ledger.tree, self._shares, found)
        return self._followed(ledger, preemptor)

    def _followed(self, ledger: Ledger, preemptor: Preemptor) -> Givers:
        """As of the last search of this kind, with what has changed since: for good, or in what-ifs, open or over."""
        kept = self._find(ledger, preemptor)
        for node in kept.changed:
            stamp = _stamp(ledger, node)
            if kept.stamps.get(node) != stamp:
                kept.stamps[node] = stamp
                kept.givers.put(node, _candidates(ledger, node, preemptor))
        kept.changed.clear()
        return kept.givers

    def _find(self, ledger: Ledger, preemptor: Preemptor) -> _Kept:
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
            found = kinds[kind] = _Kept(Givers(ledger.tree, self._shares, {}), ledger.follow(root))
            found.changed.update(ledger.tree.queues_below(root))
        return found


def _stamp(ledger: Ledger, node: int) -> Stamp:
    return (ledger.version(node), ledger.tree.usage_row(node), ledger.away_from(node))


def _candidates(ledger: Ledger, node: int, preemptor: Preemptor) -> list[AdmittedWorkload]:
    """Who may have to go in a queue that uses what is not its own of what is short; nobody in any other."""
    if not any(ledger.tree.exceeds(node, column) for column in preemptor.short_columns):
        return []
    return candidates_in(ledger, node, preemptor, preemptor.queue.reclaim)
