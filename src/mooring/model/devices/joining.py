"""One GPU, published twice: as a device for claims, and as a card for everybody who asks in another way.

A device is a card of its node, or is cut from it, if it names the card's uuid. Where the node knows its cards by number
only, as with a plain device plugin, NVIDIA's driver for claims says which number a device has.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from mooring.model.devices.cards import WHOLE, Card, CardShare, NodeCards
from mooring.model.devices.device import Device
from mooring.model.values.quantity import NANO, Nanos

NVIDIA = "gpu.nvidia.com"
UUIDS, INDEXES = ("uuid", "parentUUID"), ("index", "parentIndex")
"""Attributes that say which card a device is, or which it is cut from."""
MEMORY, COMPUTE = "memory", ("cores", "compute", "multiprocessors")
"""What a device's capacities are called that are a card's memory and its compute."""
MIB = 1 << 20
Amounts: TypeAlias = tuple[tuple[str, Nanos], ...]
_NAME = re.compile(r"gpu-(\d+)(-mig-.*)?")


def cards_of_devices(devices: Sequence[Device], cards: NodeCards) -> tuple[int, ...]:
    """By device, the position of the card that it is or is cut from; -1 if it is none of the node's cards."""
    by_uuid = {card.uuid: at for at, card in enumerate(cards.cards) if card.uuid}
    by_index = {card.index: at for at, card in enumerate(cards.cards) if not card.uuid}
    return tuple(_card_of(device, by_uuid, by_index) for device in devices)


def _card_of(device: Device, by_uuid: dict[str, int], by_index: dict[int, int]) -> int:
    for name in UUIDS:
        found = device.attribute(f"{device.driver}/{name}")
        if found is not None and found[1] in by_uuid:
            return by_uuid[str(found[1])]
    return by_index.get(_index_of(device), -1) if by_index and device.driver == NVIDIA else -1


def _index_of(device: Device) -> int:
    for name in INDEXES:
        found = device.attribute(f"{device.driver}/{name}")
        if found is not None and found[0] == "int":
            return int(found[1])
    named = _NAME.fullmatch(device.name)
    return int(named[1]) if named else -1


def claimed_share(position: int, card: Card, held: Iterable[tuple[Device, Amounts | None]]) -> CardShare:
    """What claims have of a card, all together: all of it, unless they have amounts of it only."""
    milli = memory = 0
    for device, amounts in held:
        found = None if amounts is None else _amounts_of_card(device, dict(amounts))
        if found is None:
            return CardShare(position, WHOLE, card.memory)
        milli, memory = milli + found[0], memory + found[1]
    return CardShare(position, min(milli, WHOLE), min(memory, card.memory))


def _amounts_of_card(device: Device, amounts: dict[str, Nanos]) -> tuple[int, int] | None:
    """Thousandths of compute, and MiB; None if a device's capacities do not tell."""
    named = {name.rpartition("/")[2]: name for name in amounts}
    compute = next((named[name] for name in COMPUTE if name in named), None)
    if MEMORY not in named and compute is None:
        return None
    memory = -(-amounts[named[MEMORY]] // (NANO * MIB)) if MEMORY in named else 0
    total = device.capacity[compute].value if compute is not None else 0
    milli = -(-WHOLE * amounts[compute] // total) if compute is not None and total else 0
    return milli, memory
