"""Devices that are cards: what claims have of a GPU nobody gets by another way of asking, and the reverse.

Who has a device is in the device table, who has shares of a card is with the card holders. On rows where devices are
cards, each is told what the other has given out: claims hold a card as if a pod had it, and a device of whose card pods
have something is withheld from claims. Both follow from who holds what: what is undone there is undone here.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from mooring.model.devices.cards import GPU, CardShare, NodeCards, Sharing
from mooring.model.devices.device import Device
from mooring.model.devices.joining import cards_of_devices, claimed_share
from mooring.state.devices.card_holders import CardHolders
from mooring.state.devices.cards import USERS
from mooring.state.devices.table import Amounts, DeviceShare, DeviceTable, Holder, NodeDevices
from mooring.state.nodes import NodeTable
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape


@dataclass(frozen=True, slots=True)
class _Join:
    devices: NodeDevices
    cards: NodeCards
    card_of: tuple[int, ...]
    """By the position of a device, that of its card; nothing if no device is a card."""


class Claims(Protocol):
    """What is asked of claims."""

    def serve_lacking(self, row: int) -> None:
        """Devices became free on a row."""

    def used_only_by(self, pods: Sequence[PodRecord]) -> Set[Holder]:
        """The claims that nobody but these pods uses."""

    def restoring(self, row: int) -> AbstractContextManager[None]:
        """While a pod comes back to a row."""


class JoinedCards:
    """Keeps the two in step, row by row."""

    def __init__(self, nodes: NodeTable, devices: DeviceTable, holders: CardHolders) -> None:
        self._nodes = nodes
        self._devices = devices
        self._holders = holders
        self._joins: dict[int, _Join] = {}
        self.joined_rows: set[int] = set()
        """Rows with devices that are cards."""
        self._counted: set[int] = set()
        """Joined rows that hand out whole GPUs by count."""
        self._is_busy = False
        self._claims: Claims | None = None
        devices.watch(self.refresh)
        holders.watch(self)

    def refresh(self, row: int) -> None:
        """Something changed on a row: who holds what, or what there is."""
        cards = self._nodes.cards.of_row.get(row)
        if (cards is None and row not in self._joins) or self._is_busy:
            return
        join = self._join(row, cards)
        self._is_busy = True  # what is told to either of them is no news here
        try:
            self._holders.claim(row, () if join is None else self._claimed(join))
            is_freed = self._devices.withhold(row, 0 if join is None else self._withheld(row, join))
        finally:
            self._is_busy = False
        if is_freed and self._claims is not None:
            self._claims.serve_lacking(row)

    def tell(self, claims: Claims) -> None:
        """These claims get devices back that pods had."""
        self._claims = claims

    def restoring(self, row: int) -> AbstractContextManager[None]:
        """While a pod comes back to a row in a trial, whichever way it has its devices."""
        return nullcontext() if self._claims is None else self._claims.restoring(row)

    # Whole GPUs that are handed out by count have no holder of cards: their pods are noted here (`taking.py`).

    def concerns(self, shape: Shape) -> bool:
        return bool(self._counted) and shape.request(GPU) > 0

    def take(self, record: PodRecord, row: int) -> None:
        self.refresh(row)

    def give_back(self, record: PodRecord, row: int) -> None:
        self.refresh(row)

    def held_by(self, record: PodRecord) -> None:
        return None

    def restore(self, record: PodRecord, row: int, held: None) -> None:
        self.refresh(row)

    # What is what.

    def _join(self, row: int, cards: NodeCards | None) -> _Join | None:
        """How a row's devices and cards belong together; None if none of them do."""
        devices = self._devices.on_row.get(row)
        known = self._joins.get(row)
        if cards is None or devices is None:
            self._joins.pop(row, None)
            self.joined_rows.discard(row)
            self._counted.discard(row)
            return None
        if known is None or known.devices is not devices or known.cards is not cards:
            found = cards_of_devices(devices.inventory.devices, cards) if self._gives_out(row, cards) else ()
            known = self._joins[row] = _Join(devices, cards, found if any(at >= 0 for at in found) else ())
            (self.joined_rows.add if known.card_of else self.joined_rows.discard)(row)
            is_counted = bool(known.card_of) and cards.sharing == Sharing.COUNTED
            (self._counted.add if is_counted else self._counted.discard)(row)
        return known if known.card_of else None

    def shares_of_claims(self, row: int) -> Iterator[tuple[Holder, CardShare]]:
        """What each claim has of each of a row's cards."""
        join = self._joins.get(row)
        for position, card in enumerate(join.card_of if join is not None else ()):
            if join is not None and card >= 0:
                for holder, share in self._holders_at(join, position).items():
                    device = join.devices.inventory.devices[position]
                    yield holder, claimed_share(card, join.cards.cards[card], [(device, share.amounts)])

    def _holders_at(self, join: _Join, position: int) -> Mapping[Holder, DeviceShare]:
        return self._devices.holders_at(join.devices.inventory, join.devices.pool_names, position)

    def _gives_out(self, row: int, cards: NodeCards) -> bool:
        """Whether a node has cards for others than claims. One that counts none has them for claims alone, and a class
        may serve them as a resource."""
        status = self._nodes.node(row).status
        return cards.sharing != Sharing.COUNTED or GPU in (status.allocatable or status.capacity or {})

    def claimed_without(self, row: int, pods: Sequence[PodRecord]) -> tuple[CardShare, ...]:
        """What claims would have of a row's cards if these pods were gone."""
        join = self._joins.get(row)
        if join is None or self._claims is None:
            return ()
        return self._claimed(join, self._claims.used_only_by(pods))

    def _claimed(self, join: _Join, without: Set[Holder] = frozenset()) -> tuple[CardShare, ...]:
        """What claims have of each card."""
        devices = join.devices.inventory.devices
        held: dict[int, list[tuple[Device, Amounts | None]]] = {}
        for position, card in enumerate(join.card_of):
            if card >= 0:
                for holder, share in self._holders_at(join, position).items():
                    if holder not in without:
                        held.setdefault(card, []).append((devices[position], share.amounts))
        return tuple(claimed_share(card, join.cards.cards[card], of_card) for card, of_card in sorted(held.items()))

    def _withheld(self, row: int, join: _Join) -> int:
        """One bit for each device of whose card pods have something."""
        cards = self._holders.cards_with_pods(row)
        if join.cards.sharing == Sharing.COUNTED:
            # Which cards whole GPUs are is not known: as many of the last that nobody shares as are handed out.
            users = self._nodes.cards.facts[USERS, row]
            unshared = [at for at in range(len(join.cards.cards)) if not users[at]]
            opened = len(join.cards.cards) - len(unshared)
            whole = int(self._nodes.requested(GPU)[row]) - opened
            cards |= set(unshared[len(unshared) - whole :] if whole > 0 else ())
        return sum(1 << position for position, card in enumerate(join.card_of) if card in cards)
