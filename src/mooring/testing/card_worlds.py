"""Small random clusters whose nodes have GPUs and whose pods ask for shares of them, in every dialect."""

from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.model.api.nodes import Node
from mooring.testing.builders import make_node
from mooring.testing.random_clusters import Choose, Template, World, one_in, one_of
from mooring.testing.situations import Objects

V100, A100 = "NVIDIA-V100", "NVIDIA-A100-SXM4-80GB"


def hami_register(name: str, cards: int, *, memory: int = 16_000, slots: int = 10, sick: int = -1) -> str:
    """The annotation in which HAMi's device plugin registers so many cards; one of them may not be well."""
    devices = [
        {
            "id": f"GPU-{name}-{index}",
            "index": index,
            "count": slots,
            "devmem": memory,
            "devcore": 100,
            "type": V100 if index % 2 else A100,
            "health": index != sick,
        }
        for index in range(cards)
    ]
    return msgspec.json.encode(devices).decode()


def random_card_node(choose: Choose, name: str) -> Node:
    """A node of one of the kinds that hand out cards, or without any."""
    cards = 1 + choose(3)
    room: dict[str, Any] = {"cpu": one_of(choose, ("8", "3")), "zone": one_of(choose, ("zone-0", "zone-1"))}
    match choose(6):
        case 0:
            labels = {"nvidia.com/gpu.memory": "16000"} if choose(2) else {}
            return make_node(name, gpu=cards, labels=labels, **room)
        case 1:
            slots = one_of(choose, (10, 2))
            register = hami_register(name, cards, slots=slots, sick=cards - 1 if one_in(choose, 4) else -1)
            return make_node(name, gpu=slots * cards, annotations={"hami.io/node-nvidia-register": register}, **room)
        case 2:
            labels = {"alibabacloud.com/gpu-card-model": one_of(choose, ("T4", "G2"))}
            return make_node(name, resources={"alibabacloud.com/gpu-count": cards}, labels=labels, **room)
        case 3:
            labels = {"nvidia.com/gpu.product": A100, "nos.nebuly.com/gpu-partitioning": "mig"}
            return make_node(name, gpu=cards, labels=labels, **room)
        case 4:
            labels = {"nvidia.com/gpu.replicas": "3", "nvidia.com/gpu.count": str(cards)}
            return make_node(name, gpu=3 * cards, labels=labels, **room)
    return make_node(name, **room)


def random_card_template(choose: Choose) -> Template:
    """A pod that asks for cards in one of the dialects."""
    given: dict[str, Any] = {"cpu": one_of(choose, ("100m", "500m")), "priority": 10 * choose(3)}
    match choose(6):
        case 0:
            given["annotations"] = {"gpu-fraction": one_of(choose, ("0.5", "0.3", "0.9"))}
        case 1:
            given["annotations"] = {"gpu-memory": one_of(choose, ("4000", "9000"))}
            if choose(2):
                given["annotations"]["gpu-fraction-num-devices"] = "2"
        case 2:
            amounts = {"nvidia.com/gpu": 1 + choose(2), "nvidia.com/gpumem": one_of(choose, (3000, 8000))}
            given["resources"] = amounts | ({"nvidia.com/gpucores": 40} if choose(2) else {})
            given["annotations"] = one_of(
                choose, ({}, {"nvidia.com/use-gputype": "A100"}, {"hami.io/gpu-scheduler-policy": "binpack"})
            )
        case 3:
            milli = one_of(choose, ("460", "1000", "810"))
            count = str(1 + choose(2)) if milli == "1000" else "1"
            given["annotations"] = {"alibabacloud.com/gpu-milli": milli, "alibabacloud.com/gpu-count": count}
        case 4:
            profile = one_of(choose, ("1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"))
            given["resources"] = {f"nvidia.com/mig-{profile}": 1 + choose(2)}
        case _:
            given["gpu"] = 1 + choose(2)
    return Template(given)


@dataclass
class CardWorld(World):
    """A world in which nodes that come have cards."""

    def template(self) -> Template:
        return one_of(self.choose, self.templates)

    def make_node(self, name: str) -> Node:
        return random_card_node(self.choose, name)


def random_card_world(choose: Choose, *, nodes: int, templates: int) -> CardWorld:
    world = CardWorld(choose, [random_card_template(choose) for _ in range(templates)])
    world.nodes = {f"node-{index}": random_card_node(choose, f"node-{index}") for index in range(nodes)}
    return world


def random_card_objects(choose: Choose) -> Objects:
    """Some nodes with cards, pods on them as far as they fit, and pods that wait: for checks of plugins."""
    world = random_card_world(choose, nodes=3 + choose(5), templates=3 + choose(3))
    names = [*world.nodes]
    pods = []
    for index in range(4 + choose(8)):
        name = one_of(choose, names) if not one_in(choose, 3) else ""
        pods.append(world.template().pod(f"pod-{index}", node=name))
    pods += [template.pod(f"asked-{index}") for index, template in enumerate(world.templates)]
    return Objects(list(world.nodes.values()), pods)
