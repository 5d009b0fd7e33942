"""LowNodeLoad: pods leave nodes that are measured to be too loaded, while others have room below their thresholds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from mooring.actions.rebalance.descheduler.evictor import EVICT
from mooring.actions.rebalance.descheduler.node_fit import fits
from mooring.actions.rebalance.descheduler.situation import QOS_CLASSES as KUBERNETES_QOS
from mooring.actions.rebalance.descheduler.situation import Situation, owner_kinds
from mooring.actions.rebalance.koordinator.node_load import (
    Amounts,
    NodeLoad,
    Thresholds,
    is_over,
    is_under,
    measure,
    set_levels,
)
from mooring.config.descheduler import SYSTEM_CRITICAL
from mooring.config.low_node_load import AnomalyCondition, LowNodeLoadArgs, Pool
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.colocation.classes import BE, LS, LSE, LSR, PRIORITY_CLASSES, PROD, SYSTEM, priority_class, qos
from mooring.model.keys import PodKey
from mooring.model.kubelet.qos import qos_class
from mooring.model.load.reports import NodeReport
from mooring.model.values.selectors import compile_label_selector

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
_LEAST_URGENT_FIRST = {name: rank for rank, name in enumerate(reversed(PRIORITY_CLASSES))}
_LEAST_PROMISED_FIRST = {BE: 0, LS: 1, LSR: 2, LSE: 3, SYSTEM: 3}


class Detector(Protocol):
    """Tells whether a node that is found overloaded is to be believed to be so: one look alone says little."""

    def mark(self, name: str, condition: AnomalyCondition) -> bool:
        """A node is overloaded once more; tell whether that is to be believed."""

    def reset(self, name: str) -> None:
        """A node is not overloaded, or no longer."""


@dataclass(slots=True)
class Detectors:
    """How often each node was found overloaded since it was last found fine."""

    counts: dict[str, int] = field(default_factory=dict)

    def mark(self, name: str, condition: AnomalyCondition) -> bool:
        most = condition.consecutive_abnormalities
        self.counts[name] = min(self.counts.get(name, 0), most) + 1
        return self.counts[name] > most

    def reset(self, name: str) -> None:
        self.counts.pop(name, None)


class LowNodeLoad:
    """The strategy, with what it remembers from one round to the next."""

    def __init__(
        self, args: LowNodeLoadArgs, detector: Detector | None = None, prod_detector: Detector | None = None
    ) -> None:
        self._args = args
        self._detectors = detector or Detectors()
        self._prod_detectors = prod_detector or Detectors()

    def balance(
        self, situation: Situation, metrics: Mapping[str, NodeReport], evict: Callable[[Pod], bool] | None = None
    ) -> list[PodKey]:
        """One round: the pods to evict, in order; `evict` tells whether one could be, the situation if it is absent."""
        if self._args.paused:
            return []
        evicted: list[PodKey] = []
        done: set[str] = set()
        for pool in self._args.pools:
            evicted += self._balance_pool(pool, situation, metrics, done, evict or situation.evict)
        return evicted

    def _balance_pool(
        self,
        pool: Pool,
        situation: Situation,
        metrics: Mapping[str, NodeReport],
        done: set[str],
        evict: Callable[[Pod], bool],
    ) -> list[PodKey]:
        selector = compile_label_selector(pool.node_selector) if pool.node_selector is not None else None
        nodes = [
            node
            for node in situation.nodes
            if node.metadata.name not in done and (selector is None or selector.matches(node.metadata.labels or {}))
        ]
        loads = self._measured(nodes, situation, metrics)
        if not loads:
            return []
        maps = (pool.low_thresholds, pool.high_thresholds, pool.prod_low_thresholds, pool.prod_high_thresholds)
        low, high, prod_low, prod_high = ({} if given is None else given for given in maps)
        names = [*dict.fromkeys((*low, *high, *prod_low, *prod_high, "memory"))]
        set_levels(loads, Thresholds.of(pool, names, low, high), Thresholds.of(pool, names, prod_low, prod_high))
        groups = _classify(loads)
        if not groups.high and not groups.prod_high:
            return []
        condition = pool.anomaly_condition or AnomalyCondition()
        busy = _believed(groups.high, self._detectors, condition)
        prod_busy = _believed(groups.prod_high, self._prod_detectors, condition)
        done.update(load.name for load in (*busy, *prod_busy))
        idle = [*groups.low, *groups.prod_low, *groups.both_low]
        if not (busy or prod_busy) or not idle:
            return []
        for load in (*groups.low, *groups.both_low):
            self._detectors.reset(load.name)
        for load in (*groups.prod_low, *groups.both_low):
            self._prod_detectors.reset(load.name)
        if len(idle) <= self._args.number_of_nodes or len(idle) == len(nodes):
            return []
        moves = _Moves(self._args, pool, situation, names, self._detectors, self._prod_detectors, evict)
        return moves.run(busy, prod_busy, groups)

    def _measured(
        self, nodes: Sequence[Node], situation: Situation, metrics: Mapping[str, NodeReport]
    ) -> list[NodeLoad]:
        loads = []
        for node in nodes:
            pods = {pod.key: pod for pod in situation.live_pods(node)}
            expires = self._args.node_metric_expiration_seconds
            load = measure(node, metrics.get(node.metadata.name), pods, situation.now, expires)
            if load is not None:
                loads.append(load)
        return loads


@dataclass(slots=True)
class _Groups:
    low: list[NodeLoad] = field(default_factory=list)
    high: list[NodeLoad] = field(default_factory=list)
    prod_low: list[NodeLoad] = field(default_factory=list)
    prod_high: list[NodeLoad] = field(default_factory=list)
    both_low: list[NodeLoad] = field(default_factory=list)


def _classify(loads: Iterable[NodeLoad]) -> _Groups:
    groups = _Groups()
    for load in loads:
        may_take = not load.node.spec.unschedulable
        is_prod_over = is_over(load.prod_used, load.prod_high)
        is_prod_under = may_take and is_under(load.prod_used, load.prod_low)
        if may_take and is_under(load.used, load.low):
            group = groups.prod_high if is_prod_over else groups.both_low if is_prod_under else groups.low
            group.append(load)
        elif is_over(load.used, load.high):
            groups.high.append(load)
        elif is_prod_over:
            groups.prod_high.append(load)
        elif is_prod_under:
            groups.prod_low.append(load)
    return groups


def _believed(loads: Sequence[NodeLoad], detectors: Detector, condition: AnomalyCondition) -> list[NodeLoad]:
    if condition.consecutive_abnormalities == 1:
        return list(loads)
    return [load for load in loads if detectors.mark(load.name, condition)]


class _Moves:
    """The evictions of one pool."""

    def __init__(
        self,
        args: LowNodeLoadArgs,
        pool: Pool,
        situation: Situation,
        names: Sequence[str],
        detectors: Detector,
        prod_detectors: Detector,
        evict: Callable[[Pod], bool],
    ) -> None:
        self._args, self._situation, self._names = args, situation, names
        self._weights = _weights(pool, names)
        self._evict = evict
        self._detectors, self._prod_detectors = detectors, prod_detectors
        self._selectors = [
            compile_label_selector(one.selector) for one in args.pod_selectors if one.selector is not None
        ]
        self.evicted: list[PodKey] = []

    def run(self, busy: list[NodeLoad], prod_busy: list[NodeLoad], groups: _Groups) -> list[PodKey]:
        names = self._names
        both_room = _room(groups.both_low, names, prod=False)
        prod_both_room = _room(groups.both_low, names, prod=True)
        prod_room = _room(groups.prod_low, names, prod=True)
        room = _room([*groups.low, *groups.both_low], names, prod=False)
        self._balance(busy, [*groups.low, *groups.both_low], room, prod=False)
        for name in names:
            # What nodes that are low in both ways still have: the first part may have used it.
            left = min(both_room[name], room[name])
            prod_room[name] += min(prod_both_room[name], left)
        self._balance(prod_busy, [*groups.prod_low, *groups.both_low], prod_room, prod=True)
        return self.evicted

    def _balance(self, sources: list[NodeLoad], targets: list[NodeLoad], room: Amounts, *, prod: bool) -> None:
        if not targets:
            return
        for load in sorted(sources, key=lambda load: -self._score(load, prod=prod)):
            pods = [
                pod
                for pod in self._situation.live_pods(load.node)
                if (not prod or priority_class(pod) == PROD)
                and self._may_evict(pod)
                and (not self._args.node_fit or self._fits(pod, load, targets, prod=prod))
            ]
            for pod in self._in_order(pods, load, prod=prod):
                if not self._goes_on(load, room, prod=prod):
                    break
                if self._args.dry_run or not self._evict(pod):
                    continue
                self.evicted.append(pod.key)
                usage = load.pod_usage.get(pod.key)
                if usage is None:
                    continue
                for name in self._names:
                    amount = 1 if name == "pods" else usage.get(name, 0)
                    room[name] -= amount
                    load.used[name] = load.used.get(name, 0) - amount
                    if prod:
                        load.prod_used[name] = load.prod_used.get(name, 0) - amount

    def _goes_on(self, load: NodeLoad, room: Amounts, *, prod: bool) -> bool:
        used, high = (load.prod_used, load.prod_high) if prod else (load.used, load.high)
        if not is_over(used, high):
            (self._prod_detectors if prod else self._detectors).reset(load.name)
            return False
        return all(amount > 0 for amount in room.values())

    def _score(self, load: NodeLoad, *, prod: bool) -> int:
        """How loaded a node is, in thousandths, by the weights of resources."""
        used = load.prod_used if prod else load.used
        total = weights = 0
        for name in (*self._names, *(() if "pods" in self._names else ("pods",))):
            weight = self._weights.get(name, 0)
            capacity = load.allocatable.get(name, 0)
            if capacity:
                total += weight * (min(used.get(name, 0), capacity) * 1000 // capacity)
            weights += weight
        return total // weights if weights else 0

    def _may_evict(self, pod: Pod) -> bool:
        args = self._args
        if args.evictable_namespaces is not None and not args.evictable_namespaces.has(pod.metadata.namespace):
            return False
        labels = pod.metadata.labels or {}
        if self._selectors and not any(selector.matches(labels) for selector in self._selectors):
            return False
        if EVICT in (pod.metadata.annotations or {}):
            return True
        kinds = owner_kinds(pod)
        if not kinds or "DaemonSet" in kinds or pod.metadata.deletion_timestamp is not None:
            return False
        if pod.spec.priority is not None and pod.spec.priority >= SYSTEM_CRITICAL:
            return False
        return not any(volume.empty_dir or volume.host_path for volume in pod.spec.volumes or ())

    def _fits(self, pod: Pod, load: NodeLoad, targets: Sequence[NodeLoad], *, prod: bool) -> bool:
        """Whether a target could take a pod; the first that could counts it at once, whether it comes or not."""
        usage = load.pod_usage.get(pod.key)
        if usage is None:
            return False
        for target in targets:
            if not fits(self._situation, pod, target.node):
                continue
            used, high = (target.prod_used, target.prod_high) if prod else (target.used, target.high)
            after = {name: used.get(name, 0) + usage.get(name, 0) for name in high}
            if all(amount <= high[name] for name, amount in after.items()):
                used.update(after)
                return True
        return False

    def _in_order(self, pods: Iterable[Pod], load: NodeLoad, *, prod: bool) -> list[Pod]:
        used, high = (load.prod_used, load.prod_high) if prod else (load.used, load.high)
        excess = {name: used[name] - level for name, level in high.items() if used.get(name, 0) > level}

        def order(pod: Pod) -> tuple[float, ...]:
            annotations = pod.metadata.annotations or {}
            usage = load.pod_usage.get(pod.key)
            return (
                _LEAST_URGENT_FIRST[priority_class(pod)],
                pod.spec.priority or 0,
                KUBERNETES_QOS.index(qos_class(msgspec.to_builtins(pod.spec))),
                _LEAST_PROMISED_FIRST.get(qos(pod), -1),
                _cost(annotations.get(DELETION_COST)),
                _cost(annotations.get(EVICTION_COST)),
                usage is None,
                -self._relief(usage or {}, excess),
                -(timestamp_seconds(pod.metadata.creation_timestamp) or 0.0),
            )

        return sorted(pods, key=order)

    def _relief(self, usage: Mapping[str, int], excess: Mapping[str, int]) -> float:
        """How well a pod fits what is too much: one that just suffices comes first."""
        total = weights = 0.0
        for name, amount in excess.items():
            if name not in usage:
                continue
            weight = self._weights.get(name, 0)
            share = usage[name] / amount
            total += weight * (share if share < 1 else 1 + 1 / share)
            weights += weight
        return total / weights if weights else 0.0


def _weights(pool: Pool, names: Iterable[str]) -> dict[str, int]:
    """1 for CPU, memory and every resource with a threshold, where no positive weight is given."""
    given = pool.resource_weights or {}
    every = dict.fromkeys(("cpu", "memory", *names, *given))
    return {name: given[name] if given.get(name, 0) > 0 else 1 for name in every}


def _room(loads: Iterable[NodeLoad], names: Iterable[str], *, prod: bool) -> Amounts:
    room = dict.fromkeys(names, 0)
    for load in loads:
        used, high = (load.prod_used, load.prod_high) if prod else (load.used, load.high)
        for name in room:
            room[name] += high.get(name, 0) - used.get(name, 0)
    return room


def _cost(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
