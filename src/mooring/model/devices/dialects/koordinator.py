"""Koordinator's DeviceShare: a Device object a node, shares in hundredths of a card or in bytes of its memory."""

from collections.abc import Mapping, Sequence

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources
from mooring.model.api.pods import Pod
from mooring.model.devices.cards import GPU, MANY, WHOLE, Card, CardAsk, CardRequest, CardShare, NodeCards, Sharing
from mooring.model.devices.dialects.reading import Asked, BadShare, amounts_by_container, counts_of
from mooring.model.values.quantity import QuantityError, parse_quantity, to_units

WHOLE_OR_PART, SHARED = "koordinator.sh/gpu", "koordinator.sh/gpu.shared"
CORE, MEMORY, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio"
NAMES = (WHOLE_OR_PART, CORE, MEMORY, RATIO)
ALLOCATED = "scheduling.koordinator.sh/device-allocated"
MIB = 1 << 20


class DeviceTopology(KubeObject):
    socket_id: int = msgspec.field(default=-1, name="socketID")
    node_id: int = msgspec.field(default=-1, name="nodeID")
    pcie_id: str | int = msgspec.field(default="", name="pcieID")
    bus_id: str = msgspec.field(default="", name="busID")


class DeviceInfo(KubeObject):
    type: str = ""
    id: str = ""
    minor: int | None = None
    module_id: int | None = msgspec.field(default=None, name="moduleID")
    health: bool = False
    resources: Resources | None = None
    topology: DeviceTopology | None = None


class DeviceSpec(KubeObject):
    devices: list[DeviceInfo] = []


class Device(KubeObject):
    """The devices of the node of the same name."""

    api_version: str = "scheduling.koordinator.sh/v1alpha1"
    kind: str = "Device"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeviceSpec = msgspec.field(default_factory=DeviceSpec)


def cards(device: Device, model: str = "") -> NodeCards:
    """The GPUs of a Device object; those on one PCIe switch are linked."""
    gpus = [found for found in device.spec.devices if found.type == "gpu"]
    switches = {str(found.topology.pcie_id) for found in gpus if found.topology and found.topology.pcie_id != ""}
    island = {name: number for number, name in enumerate(sorted(switches))}
    found = tuple(
        Card(
            at if gpu.minor is None else gpu.minor,
            gpu.id,
            model,
            _memory(gpu.resources),
            is_healthy=gpu.health,
            island=island.get(str(gpu.topology.pcie_id), -1) if gpu.topology else -1,
        )
        for at, gpu in enumerate(gpus)
    )
    usable = [card for card in found if card.is_healthy]
    hundred = 100 * len(usable)
    memory = MIB * sum(card.memory for card in usable)
    offered = {WHOLE_OR_PART: hundred, CORE: hundred, RATIO: hundred, MEMORY: memory, SHARED: hundred, GPU: len(usable)}
    return NodeCards(Sharing.KOORDINATOR, found, offered)


def _memory(resources: Resources | None) -> int:
    try:
        return min(max(0, to_units(parse_quantity((resources or {}).get(MEMORY, 0))) // MIB), MANY)
    except QuantityError:
        return 0


def request(pod: Pod) -> CardRequest | None:
    containers = amounts_by_container(pod)
    if not any(name in amounts for amounts in containers for name in NAMES):
        return None
    return CardRequest("koordinator", {Sharing.KOORDINATOR: counts_of(containers, _ask)})


def _ask(asked: Asked) -> CardAsk | None:
    """Up to a hundred is a share of one card; several hundred are so many whole cards."""
    if not any(name in asked for name in NAMES):
        return None
    core = asked.get(CORE, asked.get(WHOLE_OR_PART, 0))
    ratio = 0 if MEMORY in asked else asked.get(RATIO, asked.get(WHOLE_OR_PART, 0))
    for name in (WHOLE_OR_PART, CORE, RATIO):
        if asked.get(name, 0) > 100 and asked[name] % 100 and SHARED not in asked:
            raise BadShare(name, "at most 100, percent of a GPU, or a multiple of it", str(asked[name]))
    largest = max(core, ratio)
    count = asked.get(SHARED, 0) or (largest // 100 if largest > 100 else 1)
    memory = -(-asked.get(MEMORY, 0) // MIB)
    return CardAsk(count, 10 * core // count, memory // count, 10 * ratio // count)


def annotations(cards: NodeCards, shares: Sequence[CardShare]) -> dict[str, str]:
    written = []
    for share in shares:
        card = cards.cards[share.card]
        ratio = WHOLE if not card.memory else WHOLE * share.memory // card.memory
        resources = {CORE: str(share.milli // 10), MEMORY: f"{share.memory}Mi", RATIO: str(ratio // 10)}
        written.append({"minor": card.index, "resources": resources})
    return {ALLOCATED: msgspec.json.encode({"gpu": written}).decode()}


def held(pod: Pod, cards: NodeCards) -> tuple[CardShare, ...] | None:
    text = (pod.metadata.annotations or {}).get(ALLOCATED)
    if not text:
        return None
    position = {card.index: at for at, card in enumerate(cards.cards)}
    try:
        written = msgspec.json.decode(text, type=dict[str, list[dict[str, object]]]).get("gpu", [])
        return tuple(_share(entry, position) for entry in written) or None
    except (msgspec.MsgspecError, QuantityError, KeyError, TypeError):
        return None


def _share(entry: Mapping[str, object], position: Mapping[int, int]) -> CardShare:
    resources, minor = entry["resources"], entry["minor"]
    if not isinstance(resources, dict) or not isinstance(minor, int):
        raise TypeError
    core, memory = (to_units(parse_quantity(resources.get(name, 0))) for name in (CORE, MEMORY))
    return CardShare(position[minor], 10 * core, memory // MIB)
