"""HAMi: cards registered in an annotation of the node, shares as resources beside `nvidia.com/gpu`.

A container's GPUs are as many different cards. Without a word about memory it gets all of each card's; without a word
about cores it takes what compute is left, as long as any is.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.devices.cards import GPU, MANY, Card, CardAsk, CardRequest, CardShare, NodeCards, Sharing
from mooring.model.devices.dialects.reading import Asked, BadShare, amounts_by_container, counts_of, names_in

MEMORY, PERCENTAGE, CORES, PRIORITY = (
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
)
REGISTER, CORDON = "hami.io/node-nvidia-register", "hami.io/device-cordon"
USE_TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, NO_UUID = "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"
CARD_POLICY, NODE_POLICY = "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy"
ALLOCATED, TO_ALLOCATE, NODE = "hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-node"
PHASE = "hami.io/bind-phase"
NO_AMOUNTS = frozenset((PERCENTAGE, PRIORITY))
"""What a container says beside its amounts, as if it were one: no node has any of it."""
READ = (USE_TYPE, NO_TYPE, USE_UUID, NO_UUID, CARD_POLICY, NODE_POLICY)
POLICIES = ("binpack", "spread", "topology-aware", "mutex", "numa")


Amount = Annotated[int, msgspec.Meta(ge=0, le=MANY)]


class _Registered(msgspec.Struct):
    """One card as HAMi's device plugin registers it."""

    id: str
    count: Amount = 10
    devmem: Amount = 0
    devcore: Amount = 100
    type: str = ""
    index: Amount = 0
    mode: str = ""
    health: bool = True
    devicepairscore: dict[str, Any] = {}


def registered(text: str) -> list[_Registered]:
    """The cards of a node's annotation, in JSON or in the older form; ValueError if it is neither."""
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text, type=list[_Registered])
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from error
    found = [entry.split(",") for entry in text.split(":") if "," in entry]
    numbers = [text for entry in found for text in (*entry[1:4], *entry[7:8])]
    if not found or any(len(e) < 7 for e in found) or not all(n.isdecimal() and int(n) <= MANY for n in numbers):
        raise ValueError("neither JSON nor id,count,memory,cores,type,numa,health:")
    return [
        _Registered(e[0], int(e[1]), int(e[2]), int(e[3]), e[4], int(e[7]) if len(e) > 7 else at, health=e[6] == "true")
        for at, e in enumerate(found)
    ]


def cards(node: Node) -> NodeCards | None:
    annotations = node.metadata.annotations or {}
    text = annotations.get(REGISTER)
    if not text:
        return None
    try:
        devices = registered(text)
    except ValueError:
        return None
    cordoned = set(names_in(annotations.get(CORDON, "")))
    islands = _islands(devices)
    found = tuple(
        Card(
            device.index or at,
            device.id,
            device.type,
            device.devmem,
            device.count,
            device.health and device.id not in cordoned,
            islands[at],
        )
        for at, device in enumerate(devices)
    )
    usable = [card for card in found if card.is_healthy]
    offered = {MEMORY: sum(card.memory for card in usable), CORES: 100 * len(usable)}
    return NodeCards(Sharing.HAMI, found, {**offered, GPU: sum(card.slots for card in usable)})


def _islands(devices: Sequence[_Registered]) -> list[int]:
    """Cards whose links to one another score best of all are an island."""
    pairs = [(device.devicepairscore.get("scores") or device.devicepairscore) for device in devices]
    best = max((score for scores in pairs for score in scores.values() if isinstance(score, int)), default=0)
    if not best:
        return [-1] * len(devices)
    numbers = list(range(len(devices)))
    for at, scores in enumerate(pairs):
        for other in range(at):
            if scores.get(devices[other].id) == best or pairs[other].get(devices[at].id) == best:
                first, second = sorted((numbers[at], numbers[other]))
                numbers = [first if number == second else number for number in numbers]
    return numbers


def request(pod: Pod) -> CardRequest | None:
    """What a pod asks for in HAMi's resources; None if it names none of them but `nvidia.com/gpu`."""
    containers = amounts_by_container(pod)
    if not any(name in amounts for amounts in containers for name in (MEMORY, PERCENTAGE, CORES)):
        return None
    return chosen("hami", pod, {Sharing.HAMI: counts_of(containers, ask)})


def ask(asked: Asked) -> CardAsk | None:
    """What one container asks for on HAMi's nodes."""
    if not any(name in asked for name in (GPU, MEMORY, PERCENTAGE, CORES)):
        return None
    for name in (CORES, PERCENTAGE):
        if asked.get(name, 0) > 100:
            raise BadShare(name, "at most 100, percent of a GPU", str(asked[name]))
    memory = asked.get(MEMORY, 0)
    share = 0 if memory else 10 * asked.get(PERCENTAGE, 100)
    return CardAsk(asked.get(GPU, 1), 10 * asked.get(CORES, 0), memory, share)


def chosen(dialect: str, pod: Pod, asks: Mapping[int, tuple[CardAsk, ...]]) -> CardRequest:
    """A request with what the pod says of the cards and nodes that it wants."""
    written = pod.metadata.annotations or {}
    return CardRequest(
        dialect,
        asks,
        names_in(written.get(USE_TYPE, "")),
        names_in(written.get(NO_TYPE, "")),
        names_in(written.get(USE_UUID, "")),
        names_in(written.get(NO_UUID, "")),
        written.get(CARD_POLICY, ""),
        written.get(NODE_POLICY, ""),
    )


def annotations(node: str, cards: NodeCards, shares: Sequence[CardShare]) -> dict[str, str]:
    """What HAMi's device plugin reads: by container, each card with what the container may use of it."""
    by_container: dict[int, list[CardShare]] = {}
    for share in shares:
        by_container.setdefault(share.container, []).append(share)
    written = "".join(
        "".join(f"{cards.cards[s.card].uuid},NVIDIA,{s.memory},{s.milli // 10}:" for s in by_container.get(at, ()))
        + ";"
        for at in range(max(by_container, default=-1) + 1)
    )
    return {NODE: node, TO_ALLOCATE: written, ALLOCATED: written, PHASE: "allocating"}


def held(pod: Pod, cards: NodeCards) -> tuple[CardShare, ...] | None:
    """The cards that a pod has, by its annotation; None if there is none that can be read."""
    text = (pod.metadata.annotations or {}).get(ALLOCATED, "")
    position = {card.uuid: at for at, card in enumerate(cards.cards)}
    shares = list[CardShare]()
    for container, of_container in enumerate(text.split(";")):
        for entry in of_container.split(":"):
            parts = entry.split(",")
            if len(parts) >= 4 and parts[0] in position and parts[2].isdigit() and parts[3].isdigit():
                shares.append(CardShare(position[parts[0]], 10 * int(parts[3]), int(parts[2]), container))
    return tuple(shares) or None
