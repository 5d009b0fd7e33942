"""LowNodeUtilization (from busy nodes to idle ones) and HighNodeUtilization (idle nodes are emptied)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.actions.rebalance.descheduler.evictor import Evictor, Outcome
from mooring.actions.rebalance.descheduler.situation import eviction_order
from mooring.config.descheduler import (
    ONLY_THRESHOLDING_RESOURCES,
    HighNodeUtilizationArgs,
    LowNodeUtilizationArgs,
    UtilizationArgs,
)
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Pod
from mooring.model.values.quantity import NANO, parse_quantity, to_millis, to_units
from mooring.model.values.tolerations import is_tolerated

BASIC = ("cpu", "memory", "pods")
Percentages = dict[str, float]


@dataclass(slots=True)
class NodeUse:
    """What is requested on a node, what it may be used for, and its pods, as of the beginning."""

    node: Node
    used: dict[str, int]
    """In billionths."""
    most: dict[str, int]
    """To which it may be filled."""
    capacity: dict[str, int]
    pods: list[Pod]

    @property
    def is_above(self) -> bool:
        return any(self.most.get(name, 0) < amount for name, amount in self.used.items())

    @property
    def load(self) -> int:
        """All that is used, added up whatever its unit: millicores, bytes and counts."""
        return sum(to_millis(amount) if name == "cpu" else to_units(amount) for name, amount in self.used.items())


Classes = dict[str, list[str]]
"""Names of nodes, by what they were found to be."""


def move_from_busy_nodes(evictor: Evictor, nodes: Sequence[Node], args: LowNodeUtilizationArgs) -> Classes:
    """LowNodeUtilization: evict from nodes above the target, while there is room on nodes below the threshold."""
    names = [*dict.fromkeys((*args.thresholds, *BASIC))]
    usage = usage_of(evictor, nodes, names, measured=args.is_measured)
    percent = {name: percentages(usage[name][0], node) for name, node in _named(nodes)}
    low, high = thresholds_of(percent, args)
    under = [node for name, node in _named(nodes) if not node.spec.unschedulable and _is_below(percent[name], low)]
    below = {node.metadata.name for node in under}
    over = [node for name, node in _named(nodes) if name not in below and _is_over(percent[name], high)]
    classified = below | {node.metadata.name for node in over}
    classes = {
        "underutilized": [node.metadata.name for node in under],
        "overutilized": [node.metadata.name for node in over],
        "appropriate": [name for name, _ in _named(nodes) if name not in classified],
    }
    if not under or len(under) <= args.number_of_nodes or len(under) == len(nodes) or not over:
        return classes
    sources = sorted(node_uses(over, usage, high, names), key=lambda use: -use.load)
    limit = args.eviction_limits.node if args.eviction_limits is not None else None
    _move(
        evictor,
        sources,
        node_uses(under, usage, high, names),
        names,
        "LowNodeUtilization",
        args,
        goes_on=lambda use, room: use.is_above and all(amount > 0 for amount in room.values()),
        most_per_node=limit,
        measured=args.is_measured,
    )
    return classes


def empty_idle_nodes(evictor: Evictor, nodes: Sequence[Node], args: HighNodeUtilizationArgs) -> Classes:
    """HighNodeUtilization: evict from nodes below the threshold, while there is room on the others."""
    names = [*dict.fromkeys((*args.thresholds, *BASIC))]
    usage = usage_of(evictor, nodes, names)
    percent = {name: percentages(usage[name][0], node) for name, node in _named(nodes)}
    idle = [node for name, node in _named(nodes) if _is_below(percent[name], args.thresholds)]
    below = {node.metadata.name for node in idle}
    others = [node for name, node in _named(nodes) if name not in below and not node.spec.unschedulable]
    classes = {
        "underutilized": [node.metadata.name for node in idle],
        "destination": [node.metadata.name for node in others],
    }
    if not idle or len(idle) <= args.number_of_nodes or len(idle) == len(nodes) or not others:
        return classes
    full = dict.fromkeys(args.thresholds, 100.0)
    sources = sorted(node_uses(idle, usage, full, names), key=lambda use: use.load)
    wanted = set(args.thresholds) if ONLY_THRESHOLDING_RESOURCES in args.eviction_modes else None
    _move(
        evictor,
        sources,
        node_uses(others, usage, full, names),
        names,
        "HighNodeUtilization",
        args,
        goes_on=lambda use, room: all(amount > 0 for amount in room.values()),
        only_with=wanted,
    )
    return classes


def _move(
    evictor: Evictor,
    sources: Iterable[NodeUse],
    destinations: Sequence[NodeUse],
    names: Sequence[str],
    strategy: str,
    args: UtilizationArgs,
    goes_on: Callable[[NodeUse, Mapping[str, int]], bool],
    most_per_node: int | None = None,
    only_with: set[str] | None = None,
    *,
    measured: bool = False,
) -> None:
    """Evict node by node, and count what leaves against the room of all destinations together."""
    room = {name: sum(use.most[name] - use.used[name] for use in destinations) for name in names}
    taints = [use.node.spec.taints or [] for use in destinations]
    for use in sources:
        removable = [
            pod for pod in use.pods if evictor.may_evict(pod) and (only_with is None or requests_any(pod, only_with))
        ]
        if not removable or not goes_on(use, room):
            continue
        evicted = 0
        for pod in sorted(removable, key=eviction_order):
            if most_per_node is not None and evicted >= most_per_node:
                break
            if not _tolerates_some(pod, taints):
                continue
            if args.evictable_namespaces is not None and pod.metadata.namespace in args.evictable_namespaces.exclude:
                continue
            if not evictor.could_move(pod):
                continue
            outcome = evictor.evict(pod, strategy)
            if outcome is Outcome.TOTAL_LIMIT:
                return
            if outcome is Outcome.NODE_LIMIT:
                break
            if outcome is not Outcome.DONE:
                continue
            evicted += 1
            amounts = evictor.situation.uses(pod, measured=measured)
            for name in names:
                amount = NANO if name == "pods" else amounts.get(name, 0)
                use.used[name] -= amount
                room[name] -= amount
            if not goes_on(use, room):
                break


def _named(nodes: Iterable[Node]) -> list[tuple[str, Node]]:
    return [(node.metadata.name, node) for node in nodes]


def usage_of(
    evictor: Evictor, nodes: Iterable[Node], names: Iterable[str], *, measured: bool = False
) -> dict[str, tuple[dict[str, int], list[Pod]]]:
    """By node: what its pods request, or was measured there, and those pods."""
    usage = {}
    for node in nodes:
        count, requested = evictor.situation.requested_on(node)
        used = {name: count * NANO if name == "pods" else requested.get(name, 0) for name in names}
        found = (evictor.situation.measured_on(node) if measured else None) or {}
        usage[node.metadata.name] = (
            {name: found.get(name, amount) for name, amount in used.items()},
            evictor.situation.live_pods(node),
        )
    return usage


def _capacity(node: Node) -> dict[str, int]:
    return {
        name: parse_quantity(text) for name, text in (node.status.allocatable or node.status.capacity or {}).items()
    }


def percentages(used: Mapping[str, int], node: Node) -> Percentages:
    """How much of each resource is used; one that the node does not have is absent."""
    capacity = _capacity(node)
    found: Percentages = {}
    for name, amount in used.items():
        if name in capacity:
            whole = to_millis if name == "cpu" else to_units
            total = whole(capacity[name])
            found[name] = float(whole(amount)) / float(total) * 100 if total > 0 else 0.0
    return found


def thresholds_of(
    percent: Mapping[str, Percentages], args: LowNodeUtilizationArgs
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Below what and above what; deviations are from the average over the nodes that have the resource."""
    if not args.use_deviation_thresholds:
        return args.thresholds, args.target_thresholds
    low: Percentages = {}
    high: Percentages = {}
    for name in args.thresholds:
        values = [one[name] for one in percent.values() if name in one]
        if values:
            average = sum(values) / len(values)
            low[name] = min(max(average - args.thresholds[name], 0.0), 100.0)
            high[name] = min(max(average + args.target_thresholds[name], 0.0), 100.0)
    return low, high


def _is_below(percent: Percentages, thresholds: Mapping[str, float]) -> bool:
    return all(percent.get(name, 0.0) <= threshold for name, threshold in thresholds.items())


def _is_over(percent: Percentages, thresholds: Mapping[str, float]) -> bool:
    return any(percent.get(name, 0.0) > threshold for name, threshold in thresholds.items())


def node_uses(
    nodes: Iterable[Node],
    usage: Mapping[str, tuple[dict[str, int], list[Pod]]],
    thresholds: Mapping[str, float],
    names: Iterable[str],
) -> list[NodeUse]:
    uses = []
    for node in nodes:
        capacity = _capacity(node)
        most = {}
        for name in names:
            amount = capacity.get(name, 0)
            if name in thresholds and name in capacity:
                unit, whole = (NANO // 1000, to_millis) if name == "cpu" else (NANO, to_units)
                amount = int(thresholds[name] * 0.01 * float(whole(amount))) * unit
            most[name] = amount
        used, pods = usage[node.metadata.name]
        uses.append(NodeUse(node, used, most, capacity, pods))
    return uses


def requests_any(pod: Pod, names: set[str]) -> bool:
    """Whether some container requests one of the resources at all."""
    containers = (*pod.spec.containers, *(pod.spec.init_containers or ()))
    return any(names & (one.resources.requests or {}).keys() for one in containers if one.resources is not None)


def _tolerates_some(pod: Pod, taints: Iterable[Sequence[Taint]]) -> bool:
    """Whether a pod tolerates all taints of some destination; as many tolerations as taints are needed for that."""
    tolerations = pod.spec.tolerations or ()
    return any(
        len(tolerations) >= len(there) and all(is_tolerated(tolerations, taint) for taint in there) for there in taints
    )
