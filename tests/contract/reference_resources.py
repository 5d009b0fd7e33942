"""NodeResourcesFit, its three strategies, and NodeResourcesBalancedAllocation, one node at a time."""

import math
from collections.abc import Callable, Sequence

from reference_world import PlainCluster, allocatable, is_device, requests

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod

Refusals = tuple[tuple[str, ...], bool]
"""(reasons, unresolvable)"""


def taken(cluster: PlainCluster, node: Node, resource: str, *, nonzero: bool = False) -> int:
    return sum(requests(pod, nonzero=nonzero).get(resource, 0) for pod in cluster.pods_on(node))


def fits(
    cluster: PlainCluster, pod: Pod, node: Node, *, ignored: Sequence[str] = (), ignored_groups: Sequence[str] = ()
) -> Refusals | None:
    reasons: list[str] = []
    unresolvable = False
    if len(cluster.pods_on(node)) + 1 > allocatable(node, "pods"):
        reasons.append("Too many pods")
    for resource, asked in requests(pod).items():
        if not asked:
            continue
        if is_device(resource) and (resource in ignored or resource.split("/")[0] in ignored_groups):
            continue
        has = allocatable(node, resource)
        if asked > has - taken(cluster, node, resource):
            reasons.append(f"Insufficient {resource}")
            unresolvable = unresolvable or asked > has
    return (tuple(sorted(reasons)), unresolvable) if reasons else None


def _scored(cluster: PlainCluster, pod: Pod, node: Node, weights: dict[str, int]) -> list[tuple[int, int, int]]:
    """(weight, requested with the pod, capacity) of each resource that counts."""
    found = []
    for resource, weight in weights.items():
        asked = requests(pod, nonzero=True).get(resource, 0)
        has = allocatable(node, resource)
        if (asked == 0 and is_device(resource)) or has == 0:
            continue
        counts_defaults = resource in ("cpu", "memory")
        found.append((weight, taken(cluster, node, resource, nonzero=counts_defaults) + asked, has))
    return found


def _average(parts: Sequence[tuple[int, int, int]], rule: Callable[[int, int], int]) -> int:
    total = sum(weight * rule(requested, has) for weight, requested, has in parts)
    weights = sum(weight for weight, _, _ in parts)
    return total // weights if weights else 0


def least_allocated(cluster: PlainCluster, pod: Pod, node: Node, weights: dict[str, int]) -> int:
    parts = _scored(cluster, pod, node, weights)
    return _average(parts, lambda requested, has: 0 if requested > has else (has - requested) * 100 // has)


def most_allocated(cluster: PlainCluster, pod: Pod, node: Node, weights: dict[str, int]) -> int:
    parts = _scored(cluster, pod, node, weights)
    return _average(parts, lambda requested, has: min(requested, has) * 100 // has)


def requested_to_capacity_ratio(
    cluster: PlainCluster, pod: Pod, node: Node, weights: dict[str, int], shape: Sequence[tuple[int, int]]
) -> int:
    total = weight_sum = 0
    for weight, requested, has in _scored(cluster, pod, node, weights):
        utilization = 100 if requested > has else requested * 100 // has
        score = _on_the_line(utilization, [(at, 10 * score) for at, score in shape])
        if score > 0:
            total += weight * score
            weight_sum += weight
    return math.floor(total / weight_sum + 0.5) if weight_sum else 0


def _on_the_line(at: int, points: Sequence[tuple[int, int]]) -> int:
    for index, (x, y) in enumerate(points):
        if at <= x:
            if index == 0:
                return y
            x0, y0 = points[index - 1]
            return y0 + int((y - y0) * (at - x0) / (x - x0))
    return points[-1][1]


def balanced_allocation(cluster: PlainCluster, pod: Pod, node: Node, resources: Sequence[str]) -> int | None:
    """None if the pod asks for none of the resources."""
    asked = requests(pod)
    if not any(asked.get(resource, 0) for resource in resources):
        return None
    before, after = [], []
    for resource in resources:
        more, has = asked.get(resource, 0), allocatable(node, resource)
        if has == 0 or (is_device(resource) and not more):
            continue
        before.append(min(1.0, taken(cluster, node, resource) / has))
        after.append(min(1.0, (taken(cluster, node, resource) + more) / has))
    change = _evenness(after) - _evenness(before)
    return 50 + (50 + change) // 2


def _evenness(fractions: Sequence[float]) -> int:
    if len(fractions) < 2:
        deviation = 0.0
    elif len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    else:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((fraction - mean) * (fraction - mean) for fraction in fractions) / len(fractions))
    return int((1 - deviation) * 100)
