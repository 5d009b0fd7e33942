"""How much of what it deserves each queue holds: what queues are ordered by.

    share = max over resources of allocated / deserved

A resource that a queue does not deserve at all does not count, as in Volcano; where shares are whole numbers by weight,
a queue that holds some of it holds all (1). If shares come from specs, a queue that deserves nothing has a share of 1:
it comes after all that hold less than they deserve. Places for pods alone are nothing.
"""

import numpy as np
import numpy.typing as npt

from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.resources import flat_floats
from mooring.actions.shares.settings import ShareSettings
from mooring.model.values.requests import PODS

Floats = npt.NDArray[np.float64]


class QueueShares:
    """The share of every queue, kept up to date where it changes: at leaves, and above them if those move."""

    def __init__(self, ledger: Ledger, settings: ShareSettings) -> None:
        self._ledger = ledger
        self._counts_undeserved = settings.division.counts_undeserved
        self._without_is_full = not settings.division.is_by_weight
        self._moves_parents = settings.moves_parent_shares
        self.set_deserved(np.zeros(ledger.allocated.shape))

    def set_deserved(self, deserved: Floats) -> None:
        self.deserved = deserved
        self.deserved_flat = flat_floats(deserved)
        counted = np.array([name != PODS for name in self._ledger.tree.resources.names] or [True])
        self.has_deserved = [any(amounts) for amounts in deserved[:, counted].tolist()]
        self.shares = self.compute()
        self._flat = flat_floats(self.shares)

    def compute(self) -> Floats:
        """All shares from nothing."""
        held, deserved = self._ledger.allocated.astype(np.float64), self.deserved
        undeserved = (held > 0).astype(np.float64) if self._counts_undeserved else np.zeros_like(held)
        parts = np.divide(held, deserved, out=undeserved, where=deserved > 0)
        highest: Floats = parts.max(axis=1, initial=0.0)
        if self._without_is_full:
            highest[~np.array(self.has_deserved)] = 1.0
        return highest

    def __getitem__(self, row: int) -> float:
        return self._flat[row]

    def update(self, leaf: int) -> None:
        """What the leaf holds has changed."""
        width, held, deserved = self._ledger.width, self._ledger.allocated_flat, self.deserved_flat
        path = self._ledger.tree.paths[leaf]
        for row in path if self._moves_parents else path[:1]:
            if not self.has_deserved[row] and self._without_is_full:
                continue
            highest = 0.0
            for at in range(row * width, row * width + width):
                amount, part = held[at], deserved[at]
                if part:
                    share = float(amount) / part  # as floats: exactly what the columns would give
                    if share > highest:
                        highest = share
                elif amount and self._counts_undeserved and highest < 1.0:
                    highest = 1.0
            self._flat[row] = highest

    def settle(self) -> None:
        """Bring the shares above the leaves up to date."""
        self.shares[:] = self.compute()

    def deserves(self, row: int, column: int) -> float:
        return self.deserved_flat[row * self._ledger.width + column]
