"""Whether and how well a pod fits into the NUMA zones of a node, by what is left in each.

Shared by the filter and the four scores of NodeResourceTopologyMatch; amounts are billionths, scores count whole units.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from mooring.model.api.pods import Container, PodSpec
from mooring.model.numa.ask import is_guaranteed
from mooring.model.numa.zones import UNKNOWN_DISTANCE, NodeZones, ZoneLeft
from mooring.model.values.quantity import NANO, parse_quantity
from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended

Requests = dict[str, int]


@dataclass(frozen=True)
class PodInZones:
    """What a pod asks of zones: container by container, and as a whole."""

    init: tuple[tuple[Requests, bool], ...]  # with whether it is a sidecar
    containers: tuple[Requests, ...]
    overhead: Requests
    is_guaranteed: bool
    is_best_effort: bool

    @cached_property
    def whole(self) -> Requests:
        """The sum of the containers or the largest init container, with overhead; sidecars are not added."""
        total: Requests = {}
        for requests in self.containers:
            for name, amount in requests.items():
                total[name] = total.get(name, 0) + amount
        for requests, _ in self.init:
            for name, amount in requests.items():
                total[name] = max(total.get(name, 0), amount)
        for name, amount in self.overhead.items():
            total[name] = total.get(name, 0) + amount
        return total

    def refusal(self, node: NodeZones, allocatable: frozenset[str]) -> str:
        """Why a node that wants all of a pod or container on one zone cannot have it; nothing if it can."""
        zones = node.copies()
        if node.scope == "pod":
            return "" if self._first_zone(zones, self.whole, allocatable) is not None else "cannot align pod"
        for requests, sidecar in self.init:
            if self._first_zone(zones, requests, allocatable) is None:
                return f"cannot align {'sidecar' if sidecar else 'init'} container"
        for requests in self.containers:
            number = self._first_zone(zones, requests, allocatable)
            if number is None:
                return "cannot align container"
            if number < len(zones):
                # Taken off by place in the list, as the original does it: lists out of order show it.
                _take(zones[number], requests)
        return ""

    def _first_zone(self, zones: list[ZoneLeft], requests: Requests, allocatable: frozenset[str]) -> int | None:
        """The lowest zone that has everything."""
        numbers = {zone.number for zone in zones}
        for name, amount in requests.items():
            if not amount:
                continue
            if name not in allocatable:
                return None
            listing = [zone for zone in zones if name in zone.left]
            if listing:
                numbers &= {zone.number for zone in listing if self.has(zone.left[name], name, amount)}
            elif not (is_extended(name) or name == EPHEMERAL_STORAGE):
                return None
            if not numbers:
                return None
        return min(numbers, default=None)

    def has(self, left: int, name: str, amount: int) -> bool:
        """Only Guaranteed pods get CPUs and memory of a zone; for others any zone will do."""
        return left >= amount or (not self.is_guaranteed and _is_compute(name))


def pod_in_zones(spec: PodSpec) -> PodInZones:
    init = tuple((_requests(c), c.restart_policy == "Always") for c in spec.init_containers or ())
    containers = tuple(_requests(container) for container in spec.containers)
    asked = {name for requests in (*containers, *(r for r, _ in init)) for name, amount in requests.items() if amount}
    return PodInZones(
        init=init,
        containers=containers,
        overhead={name: int(parse_quantity(text)) for name, text in (spec.overhead or {}).items()},
        is_guaranteed=is_guaranteed(spec),
        is_best_effort=not any(name in (CPU, MEMORY) or is_extended(name) for name in asked),
    )


def _requests(container: Container) -> Requests:
    given = container.resources.requests if container.resources else None
    return {name: int(parse_quantity(text)) for name, text in (given or {}).items()}


def _is_compute(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _take(zone: ZoneLeft, requests: Requests) -> None:
    for name, amount in requests.items():
        if name in zone.left:
            zone.left[name] = max(0, zone.left[name] - amount)


# Scores of a zone.

Strategy = Callable[[Requests, Requests, dict[str, int]], int]


def _units(nanos: int) -> int:
    return -(-nanos // NANO)


def _by_share(score: Callable[[int, int], int]) -> Strategy:
    def of_zone(left: Requests, requests: Requests, weights: dict[str, int]) -> int:
        total = weight_sum = 0
        for name, amount in requests.items():
            weight = weights.get(name, 1)
            available = left.get(name, 0)
            if 0 < available >= amount:
                total += weight * score(_units(amount), _units(available))
            weight_sum += weight
        return total // weight_sum if weight_sum else 0

    return of_zone


def _balanced(left: Requests, requests: Requests, _weights: dict[str, int]) -> int:
    fractions = []
    for name, amount in requests.items():
        available = _units(left.get(name, 0))
        fraction = _units(amount) / available if available else 1.0
        if fraction > 1:
            return 0
        fractions.append(fraction)
    if len(fractions) < 2:
        variance = 0.0
    else:
        mean = sum(fractions) / len(fractions)
        variance = sum((fraction - mean) ** 2 for fraction in fractions) / (len(fractions) - 1)
    return int((1 - variance) * 100)


STRATEGIES: dict[str, Strategy] = {
    "LeastAllocated": _by_share(lambda asked, available: (available - asked) * 100 // available),
    "MostAllocated": _by_share(lambda asked, available: asked * 100 // available),
    "BalancedAllocation": _balanced,
}


def score_zones(pod: PodInZones, node: NodeZones, strategy: Strategy, weights: dict[str, int]) -> int:
    """The worst zone that can have it counts; by container, the mean over all."""
    asks = [pod.whole] if node.scope == "pod" else [*(requests for requests, _ in pod.init), *pod.containers]
    scores = []
    for requests in asks:
        worst = 0
        for zone in node.zones:
            score = strategy(zone.left, requests, weights)
            if worst == 0 or (score and score < worst):
                worst = score
        scores.append(worst)
    return sum(scores) // len(scores) if scores else 0


# Fewest zones.


def fewest_zones(pod: PodInZones, node: NodeZones) -> int:
    """The fewer zones a container is spread over the better, and half a step more for those nearest to each other."""
    zones = node.copies()
    asks = [pod.whole] if node.scope == "pod" else [*(requests for requests, _ in pod.init), *pod.containers]
    most, nearest = 0, True
    for requests in asks:
        if not any(name in zone.left for zone in zones for name in requests):
            continue
        found = _combination(pod, zones, requests)
        if found is None:
            return 0
        chosen, is_nearest = found
        if len(chosen) > most:
            most = len(chosen)
        nearest = nearest and is_nearest
        _take_from(chosen, requests)
    if most == 0:
        return 100
    step = 100 // node.most_numa_nodes
    return 100 - most * step + (step // 2 if nearest else 0)


def _combination(pod: PodInZones, zones: list[ZoneLeft], requests: Requests) -> tuple[list[ZoneLeft], bool] | None:
    """The first nearest of the smallest combinations that fit; also whether none of that size is nearer at all."""
    for size in range(1, len(zones) + 1):
        nearest_of_all = None
        best: tuple[float, list[ZoneLeft]] | None = None
        for chosen in combinations(zones, size):
            distance = _distance(list(chosen))
            nearest_of_all = distance if nearest_of_all is None else min(nearest_of_all, distance)
            if _fits(pod, list(chosen), requests) and (best is None or distance < best[0]):
                best = distance, list(chosen)
        if best is not None:
            return best[1], best[0] == nearest_of_all
    return None


def _fits(pod: PodInZones, chosen: list[ZoneLeft], requests: Requests) -> bool:
    if any(name not in zone.left for zone in chosen for name in requests):
        return False
    return all(pod.has(sum(zone.left[name] for zone in chosen), name, amount) for name, amount in requests.items())


def _distance(chosen: list[ZoneLeft]) -> float:
    pairs = [one.distances.get(other.number, UNKNOWN_DISTANCE) for one in chosen for other in chosen]
    return sum(pairs) / len(pairs)


def _take_from(chosen: list[ZoneLeft], requests: Requests) -> None:
    for name, amount in requests.items():
        for zone in chosen:
            taken = min(amount, zone.left[name])
            zone.left[name] -= taken
            amount -= taken
