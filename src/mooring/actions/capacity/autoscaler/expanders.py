"""Which of several node groups grows: expanders, each of which keeps the best of the options."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mooring.actions.capacity.autoscaler.equivalence import PodGroup
from mooring.actions.capacity.autoscaler.situation import GPU_RESOURCES, NodeGroup, Prices, gpu_resource
from mooring.config.autoscaler import AutoscalerSettings
from mooring.model.api.nodes import Node
from mooring.model.values.quantity import NANO, parse_quantity, to_millis, to_units
from mooring.model.values.requests import CPU, MEMORY

GIB = 1 << 30
STEADYING_CPU, STEADYING_MEMORY = 0.5, 500 * (1 << 20) / GIB
"""The price expander adds a pod of 500m and 500Mi to both sides, so that small sums do not decide."""
GPU_UNFITNESS = 1000.0
"""What pods without need of GPUs must not have."""
IDEAL_CORES = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
"""Up to so many nodes in the cluster, a node should have so many cores; 32 beyond."""


@dataclass(frozen=True, eq=False, slots=True)
class Option:
    """What growing one group would need and help."""

    group: NodeGroup
    nodes: int
    helped: tuple[tuple[PodGroup, int], ...]
    """Groups of pods, of each the first so many."""
    similar: tuple[NodeGroup, ...] = ()

    @property
    def pod_count(self) -> int:
        return sum(count for _, count in self.helped)

    def requested(self, name: str) -> int:
        """What its pods ask for together, in nano-units."""
        return sum(pods.requests.get(name, 0) * count for pods, count in self.helped)


@dataclass(frozen=True, slots=True)
class Market:
    """What expanders look at besides the options."""

    templates: Mapping[str, Node]
    node_count: int
    prices: Prices
    settings: AutoscalerSettings


Options = Sequence[Option]


def choose(options: Options, market: Market) -> Option:
    """The option that the chain of expanders leaves; where it leaves several, the first in the order of groups."""
    for name in market.settings.scale_up.expanders:
        options = keep_best(name, options, market)
        if len(options) == 1:
            break
    return options[0]


def keep_best(name: str, options: Options, market: Market) -> Options:
    """What one expander keeps."""
    if name == "random":
        return options
    if name == "priority":
        return _by_priority(options, market)
    return _lowest(options, lambda option: _SCORES[name](option, market))


def _lowest(options: Options, score: Callable[[Option], float]) -> Options:
    scores = [score(option) for option in options]
    return [option for option, found in zip(options, scores, strict=True) if found == min(scores)]


def _by_priority(options: Options, market: Market) -> Options:
    """Those of the highest priority that any of them has; all of them if none has any."""
    highest, best = -1, list[Option]()
    for option in options:
        for priority, expressions in market.settings.priorities.items():
            if priority < highest or not any(found.search(option.group.name) for found in expressions):
                continue
            if priority > highest:
                highest, best = priority, []
            best.append(option)
    return best or options


def _waste(option: Option, market: Market) -> float:
    """The share of CPU that nobody asked for, plus the same for memory."""
    capacity = market.templates[option.group.name].status.capacity or {}
    cpu = to_millis(parse_quantity(capacity.get(CPU, 0))) * option.nodes
    memory = to_units(parse_quantity(capacity.get(MEMORY, 0))) * option.nodes
    wasted_cpu, wasted_memory = cpu - to_millis(option.requested(CPU)), memory - to_units(option.requested(MEMORY))
    return (wasted_cpu / cpu if cpu else 0.0) + (wasted_memory / memory if memory else 0.0)


def _price(option: Option, market: Market) -> float:
    """What is paid for what is asked for; the more nodes, the less it matters how large they are."""
    node, prices = market.templates[option.group.name], market.prices
    steadying = STEADYING_CPU * prices.cpu + STEADYING_MEMORY * prices.memory
    paid = option.group.price * option.nodes
    asked = sum(_pod_price(pods, prices) * count for pods, count in option.helped)
    unfitness = (_unfitness(node, market.node_count) - 1.0) * (1.0 - math.tanh((option.nodes - 1) / 15.0)) + 1.0
    if gpu_resource(node, market.settings.gpu_label) is not None:
        unfitness = GPU_UNFITNESS
    worth = asked + steadying
    return unfitness * ((paid + steadying) / worth) if worth else math.inf


def _pod_price(pods: PodGroup, prices: Prices) -> float:
    asked = pods.requests
    gpus = sum(asked.get(name, 0) for name in GPU_RESOURCES)
    return (asked.get(CPU, 0) * prices.cpu + asked.get(MEMORY, 0) / GIB * prices.memory + gpus * prices.gpu) / NANO


def _unfitness(node: Node, node_count: int) -> float:
    """How far a node's size is from what suits a cluster of so many nodes."""
    ideal = 1000 * next((cores for most, cores in IDEAL_CORES if node_count <= most), 32)
    millis = to_millis(parse_quantity((node.status.capacity or {}).get(CPU, 0)))
    return max(millis / ideal, ideal / millis) if millis else math.inf


_SCORES: Mapping[str, Callable[[Option, Market], float]] = {
    "most-pods": lambda option, market: -option.pod_count,
    "least-nodes": lambda option, market: option.nodes,
    "least-waste": _waste,
    "price": _price,
}
"""The lower the better."""
