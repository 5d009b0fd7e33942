"""YuniKorn's order of queues: at every level the one that holds least of its guarantee, or of the most it may have."""

from collections.abc import Sequence

from mooring.actions.volcano.ledger import Ledger
from mooring.actions.volcano.resources import UNLIMITED
from mooring.actions.volcano.standings import Key, Tournament
from mooring.actions.yunikorn.fair_order import queue_share


class YuniKornOrder:
    """The order of the leaf queues that take part."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        tree = self._tree = ledger.tree
        names = tree.resources.names
        self._fair_max = [
            {name: float(most) for name, most in zip(names, row, strict=False) if most < UNLIMITED}
            for row in tree.capability.tolist()
        ]
        self._tournament = Tournament(tree.parent, self._key)
        self.rebuild, self.update, self.best = (
            self._tournament.rebuild,
            self._tournament.update,
            self._tournament.best,
        )

    def _key(self, row: int, best: Key | None) -> Key:
        return (self._share(row), self._tree.specs[row].created, self._tree.name(row))

    def _share(self, row: int) -> float:
        width, names = self._ledger.width, self._tree.resources.names
        held = self._ledger.allocated_flat[row * width : (row + 1) * width]
        amounts = {name: float(amount) for name, amount in zip(names, held, strict=False)}
        guaranteed = {name: float(amount) for name, amount in self._tree.specs[row].deserved.items()}
        return queue_share(amounts, guaranteed, self._fair_max[row])

    def victim_key(self, leaf: int, way: Sequence[int]) -> Key:
        """Who gives back first is smallest: those that hold most of their guarantee."""
        spec = self._tree.specs[leaf]
        return (tuple(-self._share(row) for row in reversed(way)), -spec.created, spec.name)
