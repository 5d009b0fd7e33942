"""KAI: a fraction of a card, or so much of its memory, as annotations of the pod; on any node with GPUs.

A card that is shared so is taken from the node's whole ones for as long as anybody is on it. KAI knows it by a group,
which is a label of the pods on it.
"""

import math
from collections.abc import Sequence

from mooring.model.api.pods import Pod
from mooring.model.devices.cards import GPU, WHOLE, Card, CardAsk, CardRequest, CardShare, NodeCards, Sharing
from mooring.model.devices.dialects.reading import BadShare, amounts_by_container

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
READ = (FRACTION, MEMORY, DEVICES)
GROUP = "runai-gpu-group"


def request(pod: Pod) -> CardRequest | None:
    annotations = pod.metadata.annotations or {}
    if FRACTION not in annotations and MEMORY not in annotations:
        if DEVICES in annotations:
            raise BadShare(DEVICES, f"{FRACTION} or {MEMORY} beside it", f'"{annotations[DEVICES]}" alone')
        return None
    if FRACTION in annotations and MEMORY in annotations:
        raise BadShare(MEMORY, f"none beside {FRACTION}", f'"{annotations[MEMORY]}"')
    if any(GPU in amounts for amounts in amounts_by_container(pod)):
        key = FRACTION if FRACTION in annotations else MEMORY
        raise BadShare(key, f"none beside limits of {GPU}", f'"{annotations[key]}"')
    count = _whole(annotations.get(DEVICES, "1"), DEVICES)
    if FRACTION in annotations:
        milli = _milli(annotations[FRACTION])
        ask = CardAsk(count, milli, 0, milli)
    else:
        ask = CardAsk(count, 0, _whole(annotations[MEMORY], MEMORY))
    kinds = (Sharing.COUNTED, Sharing.HAMI, Sharing.KOORDINATOR, Sharing.GPU_MILLI)
    return CardRequest("kai", dict.fromkeys(kinds, (ask,)))


def _milli(text: str) -> int:
    try:
        fraction = float(text)
    except ValueError:
        fraction = math.nan
    if not 0 < fraction < 1:
        raise BadShare(FRACTION, "more than 0 and less than 1; whole GPUs are limits of nvidia.com/gpu", f'"{text}"')
    return max(1, round(WHOLE * fraction))


def _whole(text: str, key: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 40:
        expected = "a number of cards, from 1 on" if key == DEVICES else "MiB of a card's memory, from 1 on"
        raise BadShare(key, expected, f'"{text}"')
    return int(text)


def group(node: str, card: Card) -> str:
    """What the pods on a card have in common."""
    name = card.uuid or f"{node}-gpu-{card.index}"
    return name if len(name) <= 63 else f"{name[:40]}.{name[-20:]}"


def labels(node: str, cards: NodeCards, shares: Sequence[CardShare]) -> dict[str, str]:
    groups = [group(node, cards.cards[share.card]) for share in shares]
    if len(groups) == 1:
        return {GROUP: groups[0]}
    return {f"{GROUP}/{name}": name for name in groups}


def held(pod: Pod, node: str, cards: NodeCards, ask: CardAsk) -> tuple[CardShare, ...] | None:
    found = {value for key, value in (pod.metadata.labels or {}).items() if key == GROUP or key.startswith(f"{GROUP}/")}
    if not found:
        return None
    shares = []
    for at, card in enumerate(cards.cards):
        if group(node, card) in found:
            shares.append(CardShare(at, ask.milli, ask.memory or ask.memory_milli * card.memory // WHOLE))
    return tuple(shares) if len(shares) == len(found) else None
