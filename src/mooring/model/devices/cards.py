"""Cards: the GPUs of a node, what each has, and how the node hands them out. No NumPy: `state/devices` has the columns.

A pod asks for shares of cards in one of several dialects (`dialects/`). What it asks for is the same everywhere: so
much compute and so much memory of each of so many cards, or instances that a card is cut into.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

GPU = "nvidia.com/gpu"
WHOLE = 1000
"""All of a card's compute, or of its memory, in thousandths."""
MOST_CARDS = 64
"""A node with more has them counted, not known one by one."""
MANY = 1 << 30
"""So many may share a card that nobody counts."""


class Sharing(enum.IntEnum):
    """How a node hands out its cards, which is how a request is read there."""

    NONE = 0
    """It has none, or too many to know them."""
    COUNTED = 1
    """Whole, by a plain device plugin: which card a pod gets is not known. Fractions share cards, as KAI does it."""
    HAMI = 2
    KOORDINATOR = 3
    GPU_MILLI = 4
    REPLICAS = 5
    """By a device plugin that offers each card several times: time-slicing or MPS."""
    MIG = 6
    """Cut into instances on demand."""


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU."""

    index: int
    uuid: str = ""
    model: str = ""
    memory: int = 0
    """MiB; 0 if that is not known."""
    slots: int = MANY
    """How many may share it."""
    is_healthy: bool = True
    island: int = -1
    """Cards of a node with the same number are linked to one another; -1: nothing is known of links."""


@dataclass(frozen=True, slots=True)
class NodeCards:
    """The cards of one node."""

    sharing: Sharing
    cards: tuple[Card, ...]
    resources: Mapping[str, int] = field(default_factory=dict)
    """What a device plugin or webhook adds to the node's allocatable where the node does not say it, by resource."""
    strategy: str = ""
    """Of replicas: `time-slicing` or `mps`."""
    most_replicas_a_pod: int = MANY
    """1 if the device plugin fails requests for more."""
    lacking: frozenset[str] = frozenset()
    """Resources of which the node's allocatable names an amount other than what the device plugin offers."""


NO_CARDS = NodeCards(Sharing.NONE, ())


@dataclass(frozen=True, slots=True)
class CardAsk:
    """What one container asks of cards."""

    count: int = 1
    milli: int = 0
    """Thousandths of each card's compute."""
    memory: int = 0
    """MiB of each card's memory."""
    memory_milli: int = 0
    """Thousandths of each card's memory, where it is not said in MiB."""
    profile: str = ""
    """A MIG instance of this profile instead, such as 1g.10gb."""
    is_distinct: bool = True
    """Whether each comes from a card of its own."""
    container: int = 0
    """Of the containers that ask, in order."""

    @property
    def is_exclusive(self) -> bool:
        """Whether nobody else may be on the card, before or after."""
        return self.milli >= WHOLE


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a pod asks of cards, by how a node hands them out; a node of another kind has nothing for it."""

    dialect: str
    asks: Mapping[int, tuple[CardAsk, ...]]
    """Nothing asked of a kind's cards, `()`: amounts in columns say it all there."""
    models: tuple[str, ...] = ()
    """Only cards whose model contains one of these, whatever the case."""
    other_models: tuple[str, ...] = ()
    """No such cards."""
    uuids: tuple[str, ...] = ()
    other_uuids: tuple[str, ...] = ()
    card_policy: str = ""
    """binpack, spread, topology-aware: which cards of a node; nothing: the profile's way, or the node's kind's."""
    node_policy: str = ""
    """binpack or spread: which nodes."""
    are_models_exact: bool = False
    """Whether models are named in full."""

    @property
    def is_choosy(self) -> bool:
        return bool(self.models or self.other_models or self.uuids or self.other_uuids)

    def suits(self, card: Card) -> bool:
        """Whether a card is one of those asked for."""
        model = card.model.lower()
        if self.are_models_exact and self.models:
            return card.model in self.models
        if self.models and not any(wanted.lower() in model for wanted in self.models):
            return False
        if any(unwanted.lower() in model for unwanted in self.other_models):
            return False
        if self.uuids and card.uuid not in self.uuids:
            return False
        return card.uuid not in self.other_uuids


class CardShare(NamedTuple):
    """What a pod has of one card."""

    card: int
    """Its position among the node's cards."""
    milli: int
    memory: int
    """MiB"""
    container: int = 0
    profile: str = ""
    start: int = -1
    """Of a MIG instance: the slice that it begins at."""


def same_cards(one: NodeCards, other: NodeCards) -> bool:
    """Whether two descriptions are of the same cards, handed out in the same way."""
    return one.sharing == other.sharing and [(card.index, card.uuid) for card in one.cards] == [
        (card.index, card.uuid) for card in other.cards
    ]
