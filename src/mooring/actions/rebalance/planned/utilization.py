"""LowNodeUtilization and HighNodeUtilization, where every pod goes to a node that is known.

The descheduler counts what leaves against the room of all destinations together. Here each pod goes to one node, which
stays below its target, and a node that is to be emptied is emptied, or left alone. Nodes without a resource that has a
threshold are neither idle nor busy in it: a node without GPUs is not one whose GPUs are idle. Where every node is idle,
pods go to those that are filled the most.
"""

from collections.abc import Iterable, Mapping, Sequence

from mooring.actions.rebalance.descheduler.evictor import Evictor, Outcome
from mooring.actions.rebalance.descheduler.situation import eviction_order, owner_kinds
from mooring.actions.rebalance.descheduler.utilization import (
    BASIC,
    Classes,
    NodeUse,
    Percentages,
    node_uses,
    percentages,
    requests_any,
    thresholds_of,
    usage_of,
)
from mooring.actions.rebalance.planned.evictor import PlanningEvictor
from mooring.actions.rebalance.planned.mover import FOR_THEIR_NODE
from mooring.actions.rebalance.planned.worth import WHOLE
from mooring.config.descheduler import (
    ONLY_THRESHOLDING_RESOURCES,
    HighNodeUtilizationArgs,
    LowNodeUtilizationArgs,
)
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.values.quantity import NANO
from mooring.state.pods import PodRecord

LOW, HIGH = "LowNodeUtilization", "HighNodeUtilization"


def relieve_busy_nodes(evictor: Evictor, nodes: Sequence[Node], args: LowNodeUtilizationArgs) -> Classes:
    """LowNodeUtilization: move pods from nodes above the target to nodes below the threshold, which stay below the
    target themselves."""
    assert isinstance(evictor, PlanningEvictor)
    usage = usage_of(evictor, nodes, args.thresholds, measured=args.is_measured)
    percent = {node.metadata.name: percentages(usage[node.metadata.name][0], node) for node in nodes}
    low, high = thresholds_of(percent, args)
    under = [node for node in nodes if not node.spec.unschedulable and _is_idle(percent[node.metadata.name], low)]
    over = [node for node in nodes if _is_busy(percent[node.metadata.name], high)]
    classes = _classes(nodes, underutilized=under, overutilized=over)
    if not over or len(under) <= args.number_of_nodes:
        return classes
    takers = _Takers(evictor, node_uses(under, usage, high, args.thresholds))
    limit = args.eviction_limits.node if args.eviction_limits is not None else None
    for use in sorted(node_uses(over, usage, high, args.thresholds), key=lambda use: -use.load):
        done = _relieve(evictor, use, takers, args, limit)
        if done is Outcome.TOTAL_LIMIT:
            break
    return classes


def _relieve(
    evictor: PlanningEvictor,
    use: NodeUse,
    takers: "_Takers",
    args: LowNodeUtilizationArgs,
    limit: int | None,
) -> Outcome:
    """Move pods from one node until it is no longer above its target."""
    name = use.node.metadata.name
    moved = 0
    for pod in sorted(filter(evictor.may_evict, use.pods), key=eviction_order):
        if not use.is_above or (limit is not None and moved >= limit):
            break
        amounts = _amounts(evictor, pod, args)
        gain = _relief(use, amounts)
        if gain <= 0 or (args.evictable_namespaces and pod.metadata.namespace in args.evictable_namespaces.exclude):
            continue
        if not evictor.could_move(pod):
            continue
        rows = takers.rows_for(amounts)
        if not rows:
            continue
        above = ", ".join(sorted(one for one, amount in use.used.items() if amount > use.most[one]))
        reason = f"node {name} is above its target for {above}"
        outcome = evictor.evict_together([pod], LOW, reason, rows, _each(pod.key, gain))
        if outcome is Outcome.TOTAL_LIMIT:
            return outcome
        if outcome is Outcome.NODE_LIMIT:
            break
        if outcome is Outcome.DONE:
            moved += 1
            found = evictor.situation.find(pod.key)
            assert found is not None
            _shift(use, amounts, -1)
            takers.take(found.spec.node_name, amounts)
    return Outcome.DONE


class _Takers:
    """The nodes that pods may go to, and which of them have room for so much, remembered for pods of equal amounts."""

    def __init__(self, evictor: PlanningEvictor, uses: Iterable[NodeUse]) -> None:
        self._uses = {use.node.metadata.name: use for use in uses}
        self._rows = {name: evictor.row_of(name) for name in self._uses}
        self._known: dict[tuple[tuple[str, int], ...], frozenset[int]] = {}

    def rows_for(self, amounts: Mapping[str, int]) -> frozenset[int]:
        """The rows of the nodes that stay at or below their targets with so much more."""
        asked = tuple(amounts.items())
        if asked not in self._known:
            self._known[asked] = frozenset(self._rows[name] for name, use in self._uses.items() if _takes(use, amounts))
        return self._known[asked]

    def take(self, name: str, amounts: Mapping[str, int]) -> None:
        """Let a node have so much more, if it is one of these."""
        use = self._uses.get(name)
        if use is None:
            return
        _shift(use, amounts, 1)
        row = self._rows[name]
        for asked, rows in self._known.items():
            if row in rows and not _takes(use, dict(asked)):
                self._known[asked] = rows - {row}


def empty_idle_nodes(evictor: Evictor, nodes: Sequence[Node], args: HighNodeUtilizationArgs) -> Classes:
    """HighNodeUtilization: empty nodes below the threshold, each as a whole, the least used first."""
    assert isinstance(evictor, PlanningEvictor)
    names = [*dict.fromkeys((*args.thresholds, *BASIC))]
    usage = usage_of(evictor, nodes, names)
    percent = {node.metadata.name: percentages(usage[node.metadata.name][0], node) for node in nodes}
    idle = [node for node in nodes if _is_idle(percent[node.metadata.name], args.thresholds)]
    below = {node.metadata.name for node in idle}
    others = [node for node in nodes if node.metadata.name not in below and not node.spec.unschedulable]
    classes = {"underutilized": _names(idle), "destination": _names(others)}
    if not idle or len(idle) <= args.number_of_nodes:
        return classes
    is_by_devices = not set(args.thresholds) & set(BASIC)
    wanted = set(args.thresholds) if is_by_devices or ONLY_THRESHOLDING_RESOURCES in args.eviction_modes else None
    gone, filled = set[str](), set[str]()
    sources = sorted(node_uses(idle, usage, {}, names), key=lambda use: (use.load, use.node.metadata.name))
    for use in sources:
        name = use.node.metadata.name
        leaving = [pod for pod in use.pods if _counts(pod, wanted)]
        if name in filled or not leaving:
            continue
        if not all(evictor.may_evict(pod) and evictor.could_move(pod) and _is_meant(pod, args) for pod in leaving):
            continue
        takers = [node for node in nodes if not node.spec.unschedulable and node.metadata.name not in gone | {name}]
        rows = frozenset(evictor.row_of(taker.metadata.name) for taker in takers)
        gain = _each_of(leaving, WHOLE / len(leaving))
        reason = f"node {name} is below its thresholds and becomes empty" + (" of devices" if is_by_devices else "")
        outcome = evictor.evict_together(leaving, HIGH, reason, rows, gain)
        if outcome is Outcome.TOTAL_LIMIT:
            break
        if outcome is Outcome.DONE:
            gone.add(name)
            moved = (evictor.situation.find(pod.key) for pod in leaving)
            filled |= {pod.spec.node_name for pod in moved if pod is not None}
    return classes


def _counts(pod: Pod, wanted: set[str] | None) -> bool:
    """Whether a node is empty only once this pod has left."""
    return not set(owner_kinds(pod)) & FOR_THEIR_NODE and (wanted is None or requests_any(pod, wanted))


def _is_meant(pod: Pod, args: HighNodeUtilizationArgs) -> bool:
    return args.evictable_namespaces is None or pod.metadata.namespace not in args.evictable_namespaces.exclude


def _is_idle(percent: Percentages, thresholds: Mapping[str, float]) -> bool:
    """Whether a node has some of the resources, and is below the threshold of each that it has."""
    known = [(percent[name], threshold) for name, threshold in thresholds.items() if name in percent]
    return bool(known) and all(used <= threshold for used, threshold in known)


def _is_busy(percent: Percentages, thresholds: Mapping[str, float]) -> bool:
    return any(percent.get(name, 0.0) > threshold for name, threshold in thresholds.items())


def _amounts(evictor: PlanningEvictor, pod: Pod, args: LowNodeUtilizationArgs) -> dict[str, int]:
    """What leaves a node with a pod, of the resources that have thresholds, in billionths."""
    found = evictor.situation.uses(pod, measured=args.is_measured)
    return {name: NANO if name == "pods" else found.get(name, 0) for name in args.thresholds}


def _relief(use: NodeUse, amounts: Mapping[str, int]) -> float:
    """The percentage points by which a node comes nearer to its target, over all resources."""
    total = 0.0
    for name, amount in amounts.items():
        excess = use.used[name] - use.most[name]
        if excess > 0 and use.capacity.get(name):
            total += 100.0 * min(amount, excess) / use.capacity[name]
    return total


def _takes(use: NodeUse, amounts: Mapping[str, int]) -> bool:
    """Whether a node stays at or below its target with so much more; what it does not have is not asked of it."""
    return all(use.used[name] + amount <= use.most[name] for name, amount in amounts.items() if amount)


def _shift(use: NodeUse, amounts: Mapping[str, int], sign: int) -> None:
    for name, amount in amounts.items():
        use.used[name] += sign * amount


def _each(key: PodKey, gain: float) -> "_Gain":
    return _Gain(frozenset((key,)), gain)


def _each_of(pods: Iterable[Pod], gain: float) -> "_Gain":
    return _Gain(frozenset(pod.key for pod in pods), gain)


class _Gain:
    """So many points for each of some pods, wherever they go; none for others that move with them."""

    __slots__ = ("_keys", "_points")

    def __init__(self, keys: frozenset[PodKey], points: float) -> None:
        self._keys = keys
        self._points = points

    def __call__(self, record: PodRecord, row: int) -> float:
        return self._points if record.key in self._keys else 0.0


def _names(nodes: Iterable[Node]) -> list[str]:
    return [node.metadata.name for node in nodes]


def _classes(nodes: Sequence[Node], **found: Sequence[Node]) -> Classes:
    classes = {name: _names(some) for name, some in found.items()}
    classified = {name for names in classes.values() for name in names}
    return {**classes, "appropriate": [name for name in _names(nodes) if name not in classified]}
