"""What a node lends to batch and mid pods: capacity less a margin, less what the system and more important pods use.

The formulas are Koordinator's, its peculiarities included: pods without a metric do not raise the larger of usage and
request on nodes (they do in NUMA zones), and metrics of pods that are gone still count.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from mooring.model.api.koordinator import NodeMetric, PodMetric
from mooring.model.api.meta import KubeObject, Resources
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.colocation.amounts import NOTHING, THOUSAND, Amount, amount_of, amount_of_nanos
from mooring.model.colocation.classes import BATCH, FREE, LSE, MID, PROD, priority_class, qos
from mooring.model.colocation.strategy import MAX_USAGE_REQUEST, REQUEST, STATIC, ColocationStrategy
from mooring.model.numa.machine import parse_cpu_set
from mooring.model.values.quantity import QuantityError
from mooring.model.values.requests import CPU, MEMORY, pod_requests

RESERVATION_ANNOTATION = "node.koordinator.sh/reservation"
_CPU_LIST = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", re.ASCII)
LOW = (BATCH, FREE)
"""Priority classes whose pods use what is lent."""


class Use(NamedTuple):
    """What one pod, or a metric of a pod that is gone, counts with."""

    pod: Pod | None
    requested: Amount
    used: Amount
    most: Amount
    """The larger of usage and request."""
    has_metric: bool
    is_prod: bool


@dataclass(frozen=True)
class Situation:
    """One node as far as lending reads it."""

    node: Node
    metric: NodeMetric
    uses: Sequence[Use]
    """Of all that is more important than batch."""

    @property
    def capacity(self) -> Amount:
        return amount_of(self.node.status.capacity)

    @property
    def reserved(self) -> Amount:
        """What the kubelet keeps for the system, or the node's annotation, whichever is more."""
        kept = self.capacity.minus(amount_of(self.node.status.allocatable))
        return kept.most(annotated_reservation(self.node)).most(NOTHING)

    def system(self, *above: str) -> Amount:
        """What runs outside of pods uses; applications on the host count if they are of one of these classes."""
        status = self.metric.status
        total = amount_of(status.node_metric.system_usage.resources) if status.node_metric else NOTHING
        for application in status.host_application_metric or ():
            if application.priority in above:
                total = total.plus(amount_of(application.usage.resources))
        return total


def situation(node: Node, metric: NodeMetric, pods: Sequence[Pod]) -> Situation:
    """Sum up a node: its pods, by their metrics where they have any."""
    return Situation(node, metric, list(_uses(metric, pods)))


def _uses(metric: NodeMetric, pods: Sequence[Pod]) -> Iterator[Use]:
    metrics = {(one.namespace, one.name): one for one in metric.status.pods_metric or ()}
    for pod in pods:
        if pod.status.phase not in ("Running", "Pending"):
            continue
        measured = metrics.pop((pod.metadata.namespace, pod.metadata.name), None)
        found = priority_class(pod)
        if found not in LOW:
            yield _use(pod, measured, is_prod=found == PROD)
    for gone in metrics.values():
        if gone.priority not in LOW:
            usage = amount_of(gone.pod_usage.resources)
            yield Use(None, NOTHING, usage, usage, has_metric=True, is_prod=False)


def _use(pod: Pod, measured: PodMetric | None, *, is_prod: bool) -> Use:
    requested = amount_of_nanos(pod_requests(pod))
    if measured is None:
        return Use(pod, requested, requested, requested, has_metric=False, is_prod=is_prod)
    usage = amount_of(measured.pod_usage.resources)
    used = Amount(requested.cpu, usage.memory) if qos(pod) == LSE else usage
    return Use(pod, requested, used, requested.most(usage), has_metric=True, is_prod=is_prod)


class Sums(NamedTuple):
    """Whatever is taken off before the rest is lent; of a node, or of one of its NUMA zones."""

    capacity: Amount
    reserved: Amount
    system: Amount
    requested: Amount
    used: Amount
    most: Amount


def node_sums(of: Situation) -> Sums:
    requested = used = most = NOTHING
    for use in of.uses:
        requested, used = requested.plus(use.requested), used.plus(use.used)
        most = most.plus(use.most) if use.has_metric else most
    return Sums(of.capacity, of.reserved, of.system(PROD, MID), requested, used, most)


def lent_to_batch(sums: Sums, strategy: ColocationStrategy) -> Amount:
    """What batch pods may use, by the policy of each resource."""
    reclaimed = strategy.cpu_reclaim_threshold_percent, strategy.memory_reclaim_threshold_percent
    margin = sums.capacity.part(*((100 - percent) / 100 for percent in reclaimed))
    room = sums.capacity.minus(margin)
    free = room.minus(sums.system.most(sums.reserved))
    by_usage, by_most = free.minus(sums.used), free.minus(sums.most)
    by_request = room.minus(sums.reserved).minus(sums.requested)
    cpu = by_most.cpu if strategy.cpu_calculate_policy == MAX_USAGE_REQUEST else by_usage.cpu
    memory = {MAX_USAGE_REQUEST: by_most, REQUEST: by_request}.get(strategy.memory_calculate_policy, by_usage).memory
    found = Amount(cpu, memory).most(NOTHING)
    cpu_limit, memory_limit = strategy.batch_cpu_threshold_percent, strategy.batch_memory_threshold_percent
    limit = sums.capacity.part((cpu_limit or 0) / 100, (memory_limit or 0) / 100)
    return Amount(
        found.cpu if cpu_limit is None else min(found.cpu, limit.cpu),
        found.memory if memory_limit is None else min(found.memory, limit.memory),
    )


def lent_to_mid(of: Situation, strategy: ColocationStrategy) -> Amount:
    """What mid pods may use: what prod pods are predicted to leave, and part of what nobody asked for."""
    capacity = of.capacity
    limit = capacity.part(strategy.mid_cpu_threshold_percent / 100, strategy.mid_memory_threshold_percent / 100)
    if strategy.mid_reclaim_mode == STATIC:
        static = strategy.mid_static_cpu_reserved_percent, strategy.mid_static_memory_reserved_percent
        return capacity.part(*(percent / 100 for percent in static)).least(limit)
    status = of.metric.status
    reclaimable = status.prod_reclaimable_metric
    usage = status.node_metric.node_usage.resources if status.node_metric else None
    unused = capacity.minus(amount_of(usage)) if usage and {CPU, MEMORY} <= usage.keys() else NOTHING
    predicted = amount_of(reclaimable.resource.resources if reclaimable else None).least(unused).most(NOTHING)
    asked = NOTHING
    for use in of.uses:
        asked = asked.plus(use.requested) if use.is_prod else asked
    unallocated = capacity.minus(of.system(PROD).most(of.reserved)).minus(asked).most(NOTHING)
    part = strategy.mid_unallocated_percent / 100
    return predicted.plus(unallocated.part(part, part)).least(limit)


class _Reservation(KubeObject):
    resources: Resources | None = None
    reserved_cpus: str = msgspec.field(default="", name="reservedCPUs")


def annotated_reservation(node: Node) -> Amount:
    """What a node's annotation keeps from pods; nothing if it cannot be read."""
    text = (node.metadata.annotations or {}).get(RESERVATION_ANNOTATION)
    if not text:
        return NOTHING
    try:
        found = msgspec.json.decode(text, type=_Reservation)
        kept = amount_of(found.resources)
    except (msgspec.DecodeError, QuantityError):
        return NOTHING
    if not found.reserved_cpus:
        return kept
    if not _CPU_LIST.fullmatch(found.reserved_cpus):
        return NOTHING
    return kept._replace(cpu=parse_cpu_set(found.reserved_cpus).bit_count() * THOUSAND)
