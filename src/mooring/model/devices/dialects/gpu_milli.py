"""gpu-milli, as in Alibaba's traces: so many thousandths of each of so many cards, as annotations of the pod.

Nodes say how many cards they have in `alibabacloud.com/gpu-count`, and their model in a label.
"""

from collections.abc import Sequence

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.devices.cards import MOST_CARDS, WHOLE, Card, CardAsk, CardRequest, CardShare, NodeCards, Sharing
from mooring.model.devices.dialects.reading import BadShare
from mooring.model.values.quantity import QuantityError, parse_quantity, to_units

MILLI, COUNT = "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-count"
MODEL, INDEX = "alibabacloud.com/gpu-card-model", "alibabacloud.com/gpu-index"
READ = (MILLI, COUNT, MODEL)


def cards(node: Node) -> NodeCards | None:
    written = (node.status.allocatable or node.status.capacity or {}).get(COUNT)
    if written is None:
        return None
    try:
        count = to_units(parse_quantity(written))
    except QuantityError:
        return None
    if not 0 < count <= MOST_CARDS:
        return None
    model = (node.metadata.labels or {}).get(MODEL, "")
    return NodeCards(Sharing.GPU_MILLI, tuple(Card(index, model=model) for index in range(count)))


def request(pod: Pod) -> CardRequest | None:
    annotations = pod.metadata.annotations or {}
    if MILLI not in annotations and COUNT not in annotations:
        return None
    milli = _number(annotations, MILLI, WHOLE, WHOLE)
    count = _number(annotations, COUNT, 1, MOST_CARDS)
    if not milli or not count:
        if milli != count:
            raise BadShare(MILLI, f"from 1 to {WHOLE}, thousandths of a GPU", f'"{annotations.get(MILLI, "")}"')
        return None  # both are nothing, as traces write it for pods without GPUs
    models = tuple(name for name in annotations.get(MODEL, "").split("|") if name)
    return CardRequest("gpu-milli", {Sharing.GPU_MILLI: (CardAsk(count, milli),)}, models, are_models_exact=True)


def _number(annotations: dict[str, str], key: str, default: int, most: int) -> int:
    text = annotations.get(key)
    if text is None:
        return default
    if not text.isdecimal() or int(text) > most:
        unit = "thousandths of a GPU" if key == MILLI else "GPUs"
        raise BadShare(key, f"from 1 to {most}, {unit}", f'"{text}"')
    return int(text)


def annotations(cards: NodeCards, shares: Sequence[CardShare]) -> dict[str, str]:
    return {INDEX: "-".join(str(cards.cards[share.card].index) for share in shares)}


def held(pod: Pod, cards: NodeCards, ask: CardAsk) -> tuple[CardShare, ...] | None:
    text = (pod.metadata.annotations or {}).get(INDEX, "")
    position = {str(card.index): at for at, card in enumerate(cards.cards)}
    found = [position.get(index, -1) for index in text.split("-")]
    return tuple(CardShare(at, ask.milli, 0) for at in found) if text and min(found) >= 0 else None
