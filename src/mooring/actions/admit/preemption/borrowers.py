"""Queues that others may take from, by cohort, in the order in which they give: who borrows most is first."""

from bisect import bisect_left, insort
from collections.abc import Container, Mapping, Sequence

from mooring.actions.admit.preemption.targets import candidate_order
from mooring.actions.admit.quota.fair_sharing import Shares
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.state.quota_tree import QuotaTree

Candidates = dict[int, list[AdmittedWorkload]]
"""By queue, who may have to go, in that order."""
Place = tuple[tuple[object, ...], int]
"""What a queue is ordered by, and its node."""
NO_NODE = -1


class Borrowers:
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
