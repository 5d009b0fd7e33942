"""Dominant shares: of all resources that somebody holds, the part of the cluster of the one that counts most.

    share = max over resources r of weight(r) * held(r) / total(r)

Without weights every resource counts by its part of the cluster, as in Ghodsi et al., "Dominant Resource Fairness"
(NSDI 2011). Weights make one dearer than another.
"""

from collections.abc import Iterable, Mapping

from mooring.actions.shares.resources import Amount, ResourceTable, Row


class DominantShares:
    """Shares of one cluster, by its totals and by the weights of its resources."""

    def __init__(self, resources: ResourceTable, total: Row, weights: Mapping[str, float] | None = None) -> None:
        found = weights or {}
        self._totals = [float(amount) for amount in total.tolist()]
        self._weights = [found.get(name, 1.0) for name in resources.names] or [1.0]

    def share(self, held: Amount) -> float:
        """The share of one who holds so much, by column."""
        return self.share_of(held.items())

    def share_of(self, held: Iterable[tuple[int, float]]) -> float:
        """The same for pairs of column and amount. Whoever holds what the cluster does not have holds all of it."""
        totals, weights = self._totals, self._weights
        highest = 0.0
        for column, amount in held:
            total = totals[column]
            part = weights[column] * (amount / total if total else 1.0 if amount else 0.0)
            if part > highest:
                highest = part
        return highest

    def dominant(self, held: Amount) -> int | None:
        """The column that makes the share; the first of several, None for those who hold nothing."""
        by_column = [(self.share({column: amount}), -column) for column, amount in held.items() if amount]
        return -max(by_column)[1] if by_column else None
