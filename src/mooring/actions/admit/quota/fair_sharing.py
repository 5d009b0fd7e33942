"""Dominant resource shares: how much of what could be lent a queue or cohort has borrowed, by its weight.

For node n with parent p, over resources r:

    borrowed(r) = sum over flavors of max(0, usage - subtree)
    lendable(r) = sum over flavors of potential(p)
    share       = max over r of 1000 * borrowed(r) / lendable(r), divided by the weight

A node of weight 0 that borrows comes after all others. Shares are kept by node, and computed again only where usage
changed. KEP-1714.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mooring.state.quota_tree import NO_PARENT, QuotaTree


class DominantShare(NamedTuple):
    """Compares as it counts: lower is served first, higher is preempted first."""

    is_weightless: bool
    """Borrows with weight 0: infinitely much, and then by the bare ratio."""
    value: float
    present: float
    """The same by what is borrowed now; another than the value only where the past counts as well."""

    @property
    def is_zero(self) -> bool:
        """Tell whether nothing is borrowed."""
        return self.present == 0

    @property
    def by_present(self) -> tuple[bool, float]:
        """Compares as it would count without the past."""
        return self.is_weightless, self.present


NOTHING = DominantShare(False, 0.0, 0.0)
NO_MORE: Mapping[int, int] = {}


class Shares:
    """The share of every node, kept up to date with the tree."""

    looks_back = False
    """Whether the past counts."""

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self._shares = [NOTHING] * len(tree.nodes)
        names = sorted({column.resource for column in tree.columns})
        self._resource_of = [column.resource for column in tree.columns]
        self._lendable = [self._find_lendable(node, names) for node in range(len(tree.nodes))]

    def _find_lendable(self, node: int, names: list[str]) -> dict[str, int]:
        total = dict.fromkeys(names, 0)
        for column in self.tree.declared[self.tree.paths[node][-1]]:
            total[self._resource_of[column]] += self.tree.potential_of(node, column)
        return total

    def share(self, node: int) -> DominantShare:
        stale = self.tree.share_is_stale
        if stale[node]:
            self._shares[node] = self._compute(node)
            stale[node] = 0
        return self._shares[node]

    def share_with(self, node: int, more: Mapping[int, int]) -> DominantShare:
        """The share of a node, did it use so much more (or less), by column."""
        return self._compute(node, more)

    def _compute(self, node: int, more: Mapping[int, int] = NO_MORE) -> DominantShare:
        tree = self.tree
        if tree.parent[node] == NO_PARENT:
            return NOTHING
        by_column = tree.borrowed(node, more)
        if not by_column:
            return NOTHING
        borrowed: dict[str, int] = {}
        for column, beyond in by_column:
            resource = self._resource_of[column]
            borrowed[resource] = borrowed.get(resource, 0) + beyond
        ratio = self.ratio(node, borrowed)
        if ratio == 0:
            return NOTHING
        weight = tree.nodes[node].weight
        return (
            DominantShare(True, ratio, ratio) if weight == 0 else DominantShare(False, ratio / weight, ratio / weight)
        )

    def ratio(self, node: int, borrowed: Mapping[str, float]) -> float:
        """Of what could be lent to a node's siblings and itself, so much is what it borrowed: its dominant share."""
        parent = self.tree.parent[node]
        ratio = 0.0
        for resource, amount in borrowed.items() if parent != NO_PARENT else ():
            lendable = self._lendable[parent].get(resource, 0)
            if lendable > 0:
                ratio = max(ratio, float(amount) * 1000.0 / float(lendable))
        return ratio
