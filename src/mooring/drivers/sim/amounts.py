"""What pods ask for and nodes have, as simulations count it: whole numbers, so that sums are exact.

CPUs, GPUs (however they are asked for) and other extended resources are in thousandths, memory is in bytes.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.devices.card_dialects import card_request, cards_of
from mooring.model.devices.cards import WHOLE
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import CPU, MEMORY, is_extended, pod_requests

MILLI = 1000
NANOS_PER_MILLI = 10**6
NANOS = 10**9
PARTS_OF_GPUS = ("/gpu", "/gpu-milli", "/gpu-count", "/gpu-core", "/gpu-memory", "/gpu-memory-ratio", "/gpu.shared")
"""How the names of resources end that are GPUs or parts of them: all of these count as GPUs."""
HAMI_PARTS = ("gpumem", "gpucores", "gpumem-percentage")


class Asked(NamedTuple):
    """Of one pod."""

    cpu: int
    memory: int
    gpu: int
    others: Mapping[str, int]
    """Other extended resources, by name."""


class Held(NamedTuple):
    """Of one node."""

    cpu: int
    memory: int
    gpu: int
    gpu_model: str
    others: Mapping[str, int]


def is_gpu(name: str) -> bool:
    return name.endswith(PARTS_OF_GPUS) or "/mig-" in name or name.rpartition("/")[2] in HAMI_PARTS


def asked_by(pod: Pod) -> Asked:
    return Asked(*_counted(pod_requests(pod), _cards_asked(pod)))


def held_by(node: Node) -> Held:
    cards = cards_of(node)
    amounts = {name: parse_quantity(text) for name, text in (node.status.allocatable or {}).items()}
    cpu, memory, gpu, others = _counted(amounts, len(cards.cards) * WHOLE)
    return Held(cpu, memory, gpu, next((card.model for card in cards.cards if card.model), ""), others)


def _counted(nanos: Mapping[str, int], of_cards: int) -> tuple[int, int, int, dict[str, int]]:
    others = {
        name: amount // NANOS_PER_MILLI for name, amount in nanos.items() if is_extended(name) and not is_gpu(name)
    }
    whole = sum(amount for name, amount in nanos.items() if name.endswith("/gpu")) // NANOS_PER_MILLI
    return nanos.get(CPU, 0) // NANOS_PER_MILLI, nanos.get(MEMORY, 0) // NANOS, of_cards or whole, others


def _cards_asked(pod: Pod) -> int:
    """Thousandths of GPUs that a pod asks for as parts of cards, in whichever dialect says most."""
    request = card_request(pod)
    if request is None:
        return 0
    return max((sum(each.milli * each.count for each in asks) for asks in request.asks.values()), default=0)
