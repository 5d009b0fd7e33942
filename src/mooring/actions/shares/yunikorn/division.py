"""YuniKorn's: what is guaranteed by the specs, its order of queues, and applications."""

from typing import TYPE_CHECKING

from mooring.actions.shares.division import BySpec
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.order import QueueOrder
from mooring.actions.shares.yunikorn.applications import Applications
from mooring.actions.shares.yunikorn.order import YuniKornOrder

if TYPE_CHECKING:
    from mooring.actions.shares.cache import ShareCache


class Guaranteed(BySpec):
    """The division."""

    name = "guaranteed"

    def make_grouping(self, ledger: Ledger) -> Applications:
        return Applications(ledger)

    def make_order(self, cache: "ShareCache", *, moves_parents: bool) -> QueueOrder:
        return YuniKornOrder(cache.ledger, cache.heaps)


GUARANTEED = Guaranteed()
