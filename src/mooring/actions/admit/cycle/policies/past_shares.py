"""Shares that remember: one of our own policies (usageHalfLifeSeconds), for queues that share by weight.

For a queue or cohort, what counts is no longer only what it borrows now, but also what it has borrowed:

    effective share = 0.1 * present share + 0.9 * past share

The past share is made like the present one (`fair_sharing.py`), from averages over time of what was borrowed
(`decayed.py`). Whoever borrowed much lately comes later and gives first, until the shares are even over time. That is
what weights mean where not everybody can have a part at every moment, such as with workloads as large as all that can
be lent.
"""

from collections.abc import Mapping, MutableMapping

from mooring.actions.admit.cycle.policies.decayed import DecayedAverages
from mooring.actions.admit.quota.fair_sharing import DominantShare, Shares
from mooring.model.memory import QueueUse
from mooring.state.quota_tree import NO_PARENT, QuotaTree
from mooring.state.remembered import Derived
from mooring.state.workloads import Average

PAST_WEIGHT = 0.9
"""How much the past counts. The rest counts for the present, and is what keeps two queues from taking the same quota
from each other all the time: who has just taken it has the higher present share, and the past must first make up for
that. With more of a past, turns are nearer to the weights, and shorter. At this value, with workloads that never end
and one of which runs at a time, a turn of equals lasts about a third of a half-life, and a queue of three times the
weight of another runs for 80 % of the time instead of 75 %."""


QUEUE, COHORT = "ClusterQueue", "Cohort"


class PastBorrowing:
    """What every queue and cohort has borrowed over time, by resource."""

    def __init__(
        self, half_life_seconds: float, borrowed: MutableMapping[tuple[bool, str], Average] | None = None
    ) -> None:
        """`borrowed` is where the averages are kept."""
        self.half_life_seconds = half_life_seconds
        self.now = 0.0
        self._averages: DecayedAverages[tuple[bool, str]] = DecayedAverages(half_life_seconds, borrowed)
        self._tree: QuotaTree | None = None

    def attach(self, tree: QuotaTree) -> None:
        """Go on with another tree, in which nobody uses anything yet; queues are known by their names."""
        self._tree = tree
        self._averages.clear(self.now)

    def remembered(self) -> dict[str, QueueUse]:
        found = self._averages.remembered()
        return dict(sorted((f"{QUEUE if is_queue else COHORT}/{name}", use) for (is_queue, name), use in found))

    def recall(self, borrowed: Mapping[str, QueueUse]) -> None:
        """Go on from what was borrowed before a restart: before any tree is attached."""
        for key, use in borrowed.items():
            kind, _, name = key.partition("/")
            self._averages.recall((kind == QUEUE, name), use)

    def note_change(self, queue: int) -> None:
        """The usage of a queue (by node) changed just now."""
        tree = self._tree
        assert tree is not None
        for node in tree.paths[queue]:
            if tree.parent[node] != NO_PARENT:
                borrowed: dict[str, float] = {}
                for column in tree.declared[node]:
                    beyond = tree.usage_of(node, column) - tree.subtree_of(node, column)
                    if beyond > 0:
                        resource = tree.columns[column].resource
                        borrowed[resource] = borrowed.get(resource, 0.0) + beyond
                self._averages.set(self._key(tree, node), borrowed, self.now)

    def averages(self, node: int) -> dict[str, float]:
        """By resource, what a node has borrowed on average, as of now."""
        assert self._tree is not None
        return self._averages.at(self._key(self._tree, node), self.now)

    @staticmethod
    def _key(tree: QuotaTree, node: int) -> tuple[bool, str]:
        return tree.nodes[node].is_queue, tree.nodes[node].name


class SharesWithPast(Shares):
    """Shares as they count with the past; `present` is as it would be without."""

    looks_back = True

    def __init__(self, tree: QuotaTree, past: PastBorrowing) -> None:
        super().__init__(tree)
        self._past = past
        self._past_shares: Derived[int, float] = Derived()

    def share(self, node: int) -> DominantShare:
        return self._with_past(node, super().share(node))

    def share_with(self, node: int, more: Mapping[int, int]) -> DominantShare:
        return self._with_past(node, super().share_with(node, more))

    def _with_past(self, node: int, present: DominantShare) -> DominantShare:
        value = PAST_WEIGHT * self._past_share(node) + (1.0 - PAST_WEIGHT) * present.value
        return DominantShare(present.is_weightless, value, present.present)

    def _past_share(self, node: int) -> float:
        """The past moves with time, and not with what-ifs: within one moment it is worked out once."""
        return self._past_shares.at(self._past.now).of(node, self._find_past_share, node)

    def _find_past_share(self, node: int) -> float:
        ratio = self.ratio(node, self._past.averages(node))
        weight = self.tree.nodes[node].weight
        return ratio if weight == 0 else ratio / weight
