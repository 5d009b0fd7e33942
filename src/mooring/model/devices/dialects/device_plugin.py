"""NVIDIA's device plugin: whole GPUs, replicas of them (time-slicing, MPS), and MIG instances, as resources.

The kubelet hands out whole GPUs and replicas: which card a pod gets is its choice. With replicas it takes the card that
is shared least, which is what is supposed here.
"""

from collections.abc import Mapping
from dataclasses import replace

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.devices.cards import GPU, MANY, MOST_CARDS, WHOLE, Card, CardAsk, CardRequest, NodeCards, Sharing
from mooring.model.devices.dialects import hami
from mooring.model.devices.dialects.reading import Asked, amounts_by_container, counts_of
from mooring.model.devices.mig import PREFIX, geometry_of, profile_of
from mooring.model.devices.sharing_config import Replicated, SharingConfig
from mooring.model.values.quantity import QuantityError, parse_quantity, to_units

GPU_SHARED = "nvidia.com/gpu.shared"
PRODUCT, COUNT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory"
REPLICAS, STRATEGY = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"
PARTITIONING = "nos.nebuly.com/gpu-partitioning"
"""The label by which nos, and we, know nodes whose GPUs are cut on demand: its value is mig."""
SPEC = "nos.nebuly.com/spec-gpu"
"""The annotations of a node in which its agent is told how many instances of each profile each GPU is to have."""


def cards(node: Node, config: SharingConfig | None = None) -> NodeCards | None:
    """The GPUs that a node says it has, in its allocatable and in the labels of GPU feature discovery."""
    labels = node.metadata.labels or {}
    written = node.status.allocatable or node.status.capacity or {}
    offered = {name: _number(text) for name, text in written.items() if name.startswith(GPU)}
    total = offered.get(GPU, 0) + offered.get(GPU_SHARED, 0)
    if not total and COUNT not in labels:
        return None
    replicas = max(1, _number(labels.get(REPLICAS, "1")))
    count = _number(labels.get(COUNT, "")) or -(-total // replicas)
    if not 0 < count <= MOST_CARDS:
        return None
    found = _cards(count, labels)
    if labels.get(PARTITIONING, "").startswith("mig"):
        return _cut_on_demand(found)
    if replicas > 1:
        shared = tuple(replace(card, slots=replicas) for card in found)
        replicated = config.replicated(GPU) if config is not None else None
        most = 1 if replicated is not None and replicated.fails_above_one else MANY
        return NodeCards(Sharing.REPLICAS, shared, {}, labels.get(STRATEGY, "") or "time-slicing", most)
    replicated = config.replicated(GPU) if config is not None else None
    if replicated is not None:
        return _replicated(found, replicated)
    return NodeCards(Sharing.COUNTED, found)


def _cards(count: int, labels: Mapping[str, str]) -> tuple[Card, ...]:
    model, memory = labels.get(PRODUCT, ""), _number(labels.get(MEMORY, ""))
    bare = model.removesuffix("-SHARED")
    return tuple(Card(index, "", bare, memory, island=_island(bare, index)) for index in range(count))


def _island(model: str, index: int) -> int:
    """By model: all GPUs of a board with NVSwitch are linked; PCIe cards with a bridge by pairs; of others none."""
    words = model.upper()
    if "SXM" in words or "HGX" in words or "GB200" in words or "B200" in words:
        return 0
    if ("PCIE" in words and any(name in words for name in ("A100", "A30", "H100", "A800", "H800"))) or "NVL" in words:
        return index // 2
    return -1


def _cut_on_demand(found: tuple[Card, ...]) -> NodeCards | None:
    geometry = geometry_of(found[0].model, found[0].memory)
    if geometry is None:
        return NodeCards(Sharing.COUNTED, found)
    most = {PREFIX + profile.name: len(found) * len(profile.starts) for profile in geometry.profiles}
    offered = {**most, GPU: len(found)}
    # What the node offers is how its GPUs are cut now, not how they could be.
    return NodeCards(Sharing.MIG, found, offered, lacking=frozenset(offered))


def _replicated(found: tuple[Card, ...], how: Replicated) -> NodeCards:
    """What the device plugin will offer instead of whole GPUs, once it reads its configuration."""
    shared = tuple(replace(card, slots=how.replicas) if how.covers(card.index) else card for card in found)
    total = sum(how.replicas if how.covers(card.index) else 1 for card in found)
    most = 1 if how.fails_above_one else MANY
    return NodeCards(Sharing.REPLICAS, shared, {how.rename or GPU: total}, how.strategy, most, frozenset((GPU,)))


def _number(text: object) -> int:
    if not isinstance(text, str | int | float) or text == "":
        return 0
    try:
        return min(max(0, to_units(parse_quantity(text))), MANY)
    except QuantityError:
        return 0


def request(pod: Pod) -> CardRequest | None:
    """What a pod asks for by the device plugin's resources, which nodes of different kinds read differently."""
    containers = amounts_by_container(pod)
    if not any(_is_ours(name) for amounts in containers for name in amounts):
        return None
    whole = counts_of(containers, lambda asked: CardAsk(asked[GPU], WHOLE, 0, WHOLE) if GPU in asked else None)
    asks: dict[int, tuple[CardAsk, ...]] = {
        Sharing.NONE: (),
        Sharing.COUNTED: (),
        Sharing.GPU_MILLI: (),
        Sharing.HAMI: counts_of(containers, hami.ask),
        Sharing.KOORDINATOR: whole,
        Sharing.MIG: (*_instances(containers), *whole),
        Sharing.REPLICAS: counts_of(containers, _replicas),
    }
    return hami.chosen("device-plugin", pod, asks)


def _is_ours(name: str) -> bool:
    return name in (GPU, GPU_SHARED) or bool(profile_of(name))


def _replicas(asked: Asked) -> CardAsk | None:
    count = asked.get(GPU, 0) + asked.get(GPU_SHARED, 0)
    return CardAsk(count, is_distinct=False) if count else None


def _instances(containers: list[Asked]) -> tuple[CardAsk, ...]:
    return tuple(
        CardAsk(count, profile=profile_of(name), is_distinct=False, container=at)
        for at, asked in enumerate(containers)
        for name, count in asked.items()
        if profile_of(name)
    )
