"""All dialects together: which cards a node has, what a pod asks of cards, and what is written once it has them."""

from collections.abc import Sequence

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.devices.cards import NO_CARDS, CardRequest, CardShare, NodeCards, Sharing
from mooring.model.devices.dialects import device_plugin, gpu_milli, hami, kai, koordinator
from mooring.model.devices.dialects.reading import BadShare
from mooring.model.devices.sharing_config import SharingConfig

CARD_ANNOTATIONS = (*kai.READ, *gpu_milli.READ, *hami.READ)
"""The annotations of pods that say what is asked of cards."""
_DOMAINS = ("nvidia.com/", "koordinator.sh/gpu")


def cards_of(node: Node, device: koordinator.Device | None = None, config: SharingConfig | None = None) -> NodeCards:
    """The cards of a node: as HAMi, Koordinator, a trace or the device plugin has them, whoever comes first."""
    if device is not None:
        model = (node.metadata.labels or {}).get(device_plugin.PRODUCT, "")
        return koordinator.cards(device, model)
    return hami.cards(node) or gpu_milli.cards(node) or device_plugin.cards(node, config) or NO_CARDS


def check_card_request(pod: Pod) -> CardRequest | None:
    """What a pod asks of cards, None if nothing; BadShare if that cannot be."""
    if not _may_ask(pod):
        return None
    return (
        kai.request(pod)
        or gpu_milli.request(pod)
        or koordinator.request(pod)
        or hami.request(pod)
        or device_plugin.request(pod)
    )


def card_request(pod: Pod) -> CardRequest | None:
    """The same of a pod that was checked, or need not make sense any more because it runs."""
    try:
        return check_card_request(pod)
    except BadShare:
        return None


def _may_ask(pod: Pod) -> bool:
    """Whether it is worth a closer look: nearly all pods that ask for no GPU are known here."""
    annotations = pod.metadata.annotations
    if annotations and not annotations.keys().isdisjoint(CARD_ANNOTATIONS):
        return True
    containers = (*pod.spec.containers, *(pod.spec.init_containers or ()))
    return any(
        name.startswith(_DOMAINS)
        for container in containers
        if container.resources is not None
        for name in (*(container.resources.requests or ()), *(container.resources.limits or ()))
    )


def written_for(
    node: str, cards: NodeCards, request: CardRequest, shares: Sequence[CardShare]
) -> tuple[dict[str, str], dict[str, str]]:
    """(annotations, labels) that tell a pod's cards to whoever hands them out on the node."""
    if not shares:
        return {}, {}
    if request.dialect == "kai":
        return {}, kai.labels(node, cards, shares)
    match cards.sharing:
        case Sharing.HAMI:
            return hami.annotations(node, cards, shares), {}
        case Sharing.KOORDINATOR:
            return koordinator.annotations(cards, shares), {}
        case Sharing.GPU_MILLI:
            return gpu_milli.annotations(cards, shares), {}
    return {}, {}


def held_by(pod: Pod, node: str, cards: NodeCards, request: CardRequest) -> tuple[CardShare, ...] | None:
    """The cards that a pod that runs says it has; None if it does not say."""
    asks = request.asks.get(cards.sharing, ())
    if not asks:
        return None
    if request.dialect == "kai":
        return kai.held(pod, node, cards, asks[0])
    match cards.sharing:
        case Sharing.HAMI:
            return hami.held(pod, cards)
        case Sharing.KOORDINATOR:
            return koordinator.held(pod, cards)
        case Sharing.GPU_MILLI:
            return gpu_milli.held(pod, cards, asks[0])
    return None
