"""Cards as columns: what is free of each card of each node, one matrix a fact, (rows, cards).

Pods take shares of cards when they come to a row, and give them back when they go: who has which is in
`card_holders.py`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mooring.model.devices.cards import (
    NO_CARDS,
    WHOLE,
    CardAsk,
    CardRequest,
    CardShare,
    NodeCards,
    Sharing,
)
from mooring.model.devices.mig import Geometry, geometry_of

if TYPE_CHECKING:
    from mooring.state.devices.card_policies import CardPolicy

Matrix = NDArray[np.int64]
"""(rows, cards)"""

FACTS = ("milli_free", "memory_free", "users", "slots_free", "mask", "memory", "geometry", "usable", "island")
"""What is known of a card: free compute in thousandths and memory in MiB, how many are on it and how many more may be,
the slices of it that are cut off, and, as it is described, its memory, geometry, whether it may be used, its links."""
MILLI, MEMORY, USERS, SLOTS, MASK, MEMORY_SIZE, GEOMETRY, USABLE, ISLAND = range(len(FACTS))
SIZES = 10
"""Pods are told apart by how many cards they have, up to one less than this."""


class CardTable:
    """The cards of all nodes; only the cluster writes to it."""

    def __init__(self, capacity: int) -> None:
        self.facts = np.zeros((len(FACTS), capacity, 1), np.int64)
        self.sharing = np.zeros(capacity, np.int64)
        """One a row: how the node hands out its cards."""
        self.most_replicas = np.zeros(capacity, np.int64)
        self.pod_sizes = np.zeros((capacity, SIZES), np.int64)
        """(rows, sizes): how many pods have a part of a card, one card, two cards and so on."""
        self.models = np.full(capacity, "", object)
        """One a row: the model of the node's cards."""
        self.of_row: dict[int, NodeCards] = {}
        self.kinds: dict[int, int] = {}
        """How many rows there are of each kind."""
        self.geometries: list[Geometry | None] = [None]
        self.policies: dict[str, CardPolicy] = {}
        """By scheduler's name: which cards of a node its pods get, where neither they nor the node's kind says."""
        self._suiting: dict[tuple[Any, ...], Matrix] = {}
        self._instances: dict[tuple[int, int], Counter[int]] = {}
        """By row and card: the instances that are cut, as slices. Somebody may be promised what another still has."""
        self.version = 0

    @property
    def width(self) -> int:
        return int(self.facts.shape[2])

    def grow(self, capacity: int) -> None:
        self._resize(capacity, self.width)

    def _resize(self, capacity: int, width: int) -> None:
        grown = np.zeros((len(FACTS), capacity, width), np.int64)
        _, rows, cards = self.facts.shape
        grown[:, :rows, :cards] = self.facts
        self.facts = grown
        self.sharing = np.concatenate([self.sharing, np.zeros(capacity - len(self.sharing), np.int64)])
        self.pod_sizes = np.concatenate([self.pod_sizes, np.zeros((capacity - len(self.pod_sizes), SIZES), np.int64)])
        self.models = np.concatenate([self.models, np.full(capacity - len(self.models), "", object)])
        self.most_replicas = np.concatenate(
            [self.most_replicas, np.zeros(capacity - len(self.most_replicas), np.int64)]
        )

    def choose_by(self, scheduler: str, policy: "CardPolicy") -> None:
        """Which cards of a node the pods of a scheduler get, where neither they nor the node's kind says."""
        self.policies[scheduler] = policy

    def cards(self, row: int) -> NodeCards:
        return self.of_row.get(row, NO_CARDS)

    # Nodes come, change and go.

    def put(self, row: int, found: NodeCards, held: Iterable[Sequence[CardShare]] = ()) -> None:
        """A node has these cards, and pods on it have these shares of them."""
        self.version += 1
        self._suiting.clear()
        if row in self.of_row:
            self._count(self.of_row[row].sharing, -1)
        if len(found.cards) > self.width:
            self._resize(self.facts.shape[1], max(len(found.cards), 2 * self.width))
        facts = self.facts[:, row]
        facts[:] = 0
        for position in range(self.width):
            self._instances.pop((row, position), None)
        facts[ISLAND] = -1
        for at, card in enumerate(found.cards):
            geometry = self._geometry_code(geometry_of(card.model, card.memory))
            described = (WHOLE, card.memory, 0, card.slots, 0, card.memory, geometry, card.is_healthy, card.island)
            facts[:, at] = described
        self.sharing[row] = found.sharing
        self.models[row] = found.cards[0].model if found.cards else ""
        self.most_replicas[row] = found.most_replicas_a_pod
        self.pod_sizes[row] = 0
        if found is NO_CARDS:
            self.of_row.pop(row, None)
        else:
            self.of_row[row] = found
            self._count(found.sharing, 1)
        for shares in held:
            self._move(row, shares, 1)

    def put_many(self, rows: list[int], found: NodeCards) -> None:
        """Nodes on which no pod is have these cards each."""
        self.put(rows[0], found)
        first, at = rows[0], rows[1:]
        if not at:
            return
        self.facts[:, at] = self.facts[:, first][:, np.newaxis]
        self.sharing[at], self.models[at] = self.sharing[first], self.models[first]
        self.most_replicas[at], self.pod_sizes[at] = self.most_replicas[first], 0
        self.of_row.update(dict.fromkeys(rows, found))
        self._count(found.sharing, len(rows) - 1)

    def clear(self, rows: list[int]) -> None:
        """There are no nodes on these rows any more, nor pods."""
        there = self.of_row
        found = [there.pop(row) for row in rows if row in there] if there else []
        if found:
            self.version += 1
            self._suiting.clear()
            for sharing, count in Counter(each.sharing for each in found).items():
                self._count(sharing, -count)
            self.facts[:, rows] = 0
            self.sharing[rows], self.models[rows], self.most_replicas[rows], self.pod_sizes[rows] = 0, "", 0, 0
            gone = set(rows)
            self._instances = {key: cut for key, cut in self._instances.items() if key[0] not in gone}

    def _count(self, kind: int, change: int) -> None:
        """So many more rows hand out their cards in this way."""
        left = self.kinds.pop(kind, 0) + change
        if left:
            self.kinds[kind] = left

    def _geometry_code(self, geometry: Geometry | None) -> int:
        if geometry not in self.geometries:
            self.geometries.append(geometry)
        return self.geometries.index(geometry)

    # Pods come and go.

    def move(self, row: int, shares: Sequence[CardShare], sign: int) -> int:
        """A pod takes shares of a row's cards (sign 1), or gives them back (sign -1).

        Say how many cards nobody else is on.
        """
        users = self.facts[USERS, row]
        cards = {share.card for share in shares}
        if sign > 0:
            alone = sum(not users[card] for card in cards)
        self._move(row, shares, sign)
        is_part = any(share.milli < WHOLE for share in shares)
        self.pod_sizes[row, 0 if is_part else min(len(cards), SIZES - 1)] += sign
        return alone if sign > 0 else sum(not users[card] for card in cards)

    def _move(self, row: int, shares: Sequence[CardShare], sign: int) -> None:
        facts = self.facts
        for share in shares:
            card = share.card
            facts[MILLI, row, card] -= sign * share.milli
            facts[MEMORY, row, card] -= sign * share.memory
            facts[USERS, row, card] += sign
            facts[SLOTS, row, card] -= sign
            if share.profile:
                facts[MASK, row, card] = self._cut(row, share, sign)

    def _cut(self, row: int, share: CardShare, sign: int) -> int:
        """The slices of a card that are taken, once an instance is cut or given back."""
        cut = self._instances.setdefault((row, share.card), Counter())
        cut[self.bits(row, share)] += sign
        taken = 0
        for bits, count in cut.items():
            taken |= bits if count > 0 else 0
        return taken

    def bits(self, row: int, share: CardShare) -> int:
        """The slices of a share, if it is an instance."""
        if not share.profile:
            return 0
        geometry = self.geometries[int(self.facts[GEOMETRY, row, share.card])]
        profile = geometry.by_name.get(share.profile) if geometry is not None else None
        return 0 if profile is None else ((1 << profile.slices) - 1) << share.start

    # Reading.

    def suiting(self, request: CardRequest) -> Matrix | None:
        """Which cards are of the kinds that a pod wants, (all rows, cards); None if it wants any."""
        if not request.is_choosy:
            return None
        key = (request.models, request.other_models, request.uuids, request.other_uuids, request.are_models_exact)
        found = self._suiting.get(key)
        if found is None:
            found = np.zeros(self.facts.shape[1:], np.int64)
            for row, node in self.of_row.items():
                for at, card in enumerate(node.cards):
                    found[row, at] = request.suits(card)
            self._suiting[key] = found
        return found

    def concerns(self, request: CardRequest) -> bool:
        """Whether there is a row whose cards such a pod asks anything of, or that has nothing for it."""
        return any(request.asks.get(kind) != () for kind in (*self.kinds, Sharing.NONE))

    def gives_to(self, request: CardRequest) -> bool:
        """Whether there is a row whose cards such a pod takes shares of."""
        return any(request.asks.get(kind) for kind in self.kinds)

    def fingerprint(self) -> Mapping[str, Any]:
        return {
            name: {row: self.facts[at, row, : len(found.cards)].tolist() for row, found in self.of_row.items()}
            for at, name in enumerate(FACTS)
        }


def memory_of(ask: CardAsk, size: Matrix) -> Matrix | int:
    """MiB that an ask takes of cards of some size."""
    if ask.memory or not ask.memory_milli:
        return ask.memory
    return ask.memory_milli * size // WHOLE
