"""Dominant resource shares: how much of what could be lent a queue or cohort has borrowed, by its weight.

For node n with parent p, over resources r:

    borrowed(r) = sum over flavors of max(0, usage - subtree)
    lendable(r) = sum over flavors of potential(p)
    share       = max over r of 1000 * borrowed(r) / lendable(r), divided by the weight

A node of weight 0 that borrows comes after all others. Shares are kept by node, and computed again only where usage
changed. KEP-1714.
"""

from typing import NamedTuple

from mooring.actions.admit.quota import NO_PARENT, QuotaTree


class Share(NamedTuple):
    """Compares as it counts: lower is served first, higher is preempted first."""

    is_weightless: bool
    """Borrows with weight 0: infinitely much, and then by the bare ratio."""
    value: float

    @property
    def is_zero(self) -> bool:
        return self.value == 0


NOTHING = Share(False, 0.0)


class Shares:
    """The share of every node, kept up to date with the tree."""

    def __init__(self, tree: QuotaTree) -> None:
        self._tree = tree
        self._shares = [NOTHING] * len(tree.nodes)
        names = sorted({column.resource for column in tree.columns})
        number = {name: index for index, name in enumerate(names)}
        self._resource_of = [number[column.resource] for column in tree.columns]
        self._lendable = [self._find_lendable(node, len(names)) for node in range(len(tree.nodes))]

    def _find_lendable(self, node: int, resources: int) -> tuple[int, ...]:
        total = [0] * resources
        for column in self._tree.declared[self._tree.paths[node][-1]]:
            total[self._resource_of[column]] += self._tree.potential_of(node, column)
        return tuple(total)

    def share(self, node: int) -> Share:
        stale = self._tree.share_is_stale
        if stale[node]:
            self._shares[node] = self._compute(node)
            stale[node] = 0
        return self._shares[node]

    def _compute(self, node: int) -> Share:
        tree = self._tree
        parent = tree.parent[node]
        if parent == NO_PARENT:
            return NOTHING
        borrowed: dict[int, int] = {}
        for column in tree.declared[node]:
            beyond = tree.usage_of(node, column) - tree.subtree_of(node, column)
            if beyond > 0:
                resource = self._resource_of[column]
                borrowed[resource] = borrowed.get(resource, 0) + beyond
        ratio = 0.0
        for resource, amount in borrowed.items():
            lendable = self._lendable[parent][resource]
            if lendable > 0:
                ratio = max(ratio, float(amount) * 1000.0 / float(lendable))
        if ratio == 0:
            return NOTHING
        weight = tree.nodes[node].weight
        return Share(True, ratio) if weight == 0 else Share(False, ratio / weight)
