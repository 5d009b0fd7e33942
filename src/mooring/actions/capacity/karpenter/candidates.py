"""Nodes that may be given back: what they cost, what it costs to empty them, and how many may go at a time."""

from dataclasses import dataclass

from mooring.actions.capacity.karpenter.evictions import Evictions, eviction_cost, is_reschedulable
from mooring.actions.capacity.karpenter.situation import Machine
from mooring.actions.capacity.karpenter.snapshot import Snapshot, is_owned_by
from mooring.actions.capacity.karpenter.windows import consolidate_after, is_consolidatable
from mooring.model.api.karpenter import EMPTY, WHEN_EMPTY, NodePool
from mooring.model.api.pods import Pod
from mooring.model.capacity.budgets import allowed_disruptions
from mooring.model.capacity.instance_types import InstanceType
from mooring.model.capacity.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, NODE_POOL, ZONE

COST_OF_A_NODE = 1.0
"""What it costs to disrupt a node, its pods aside."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A node that nothing protects."""

    row: int
    machine: Machine
    pool: NodePool
    instance_type: InstanceType | None
    pods: tuple[Pod, ...]
    """Those that would need a place elsewhere."""
    price: float
    cost: float

    @property
    def is_empty(self) -> bool:
        """Tell whether no pod is there that it would cost anything to evict."""
        return self.cost <= COST_OF_A_NODE

    @property
    def capacity_type(self) -> str | None:
        return self.machine.labels.get(CAPACITY_TYPE)

    @property
    def savings_ratio(self) -> float:
        return self.price / self.cost


def blocked_by(snapshot: Snapshot, machine: Machine, evictions: Evictions) -> str | None:
    """Why a machine may not be disrupted at all; None if it may."""
    if machine.claim is None or machine.node is None:
        return "it is not a node that Karpenter launched" if machine.claim is None else "its node has not registered"
    if not machine.is_initialized:
        return "it is not initialized"
    if machine.is_deleting:
        return "it is being deleted"
    annotations = machine.node.metadata.annotations or {}
    if annotations.get(DO_NOT_DISRUPT) == "true":
        return f"it has the annotation {DO_NOT_DISRUPT}"
    if NODE_POOL not in machine.labels:
        return f"it has no label {NODE_POOL}"
    if machine.pool not in snapshot.all_pools or not snapshot.columns.types:
        return f"there is no NodePool {machine.pool}"
    for pod in machine.pods:
        if not evictions.is_disruptable(pod):
            return f"pod {pod.key} has the annotation {DO_NOT_DISRUPT}"
    for pod in machine.pods:
        if not evictions.can_evict((pod,)):
            return f"a PodDisruptionBudget keeps pod {pod.key}"
    return None


def find_candidates(snapshot: Snapshot, evictions: Evictions) -> list[Candidate]:
    """All machines that nothing protects, in the order of rows."""
    types = {each.name: each for each in snapshot.columns.types}
    found = []
    for row, machine in enumerate(snapshot.machines):
        if blocked_by(snapshot, machine, evictions) is not None:
            continue
        instance_type = types.get(machine.labels.get(INSTANCE_TYPE, ""))
        pods = tuple(pod for pod in machine.pods if is_reschedulable(pod))
        found.append(
            Candidate(
                row=row,
                machine=machine,
                pool=snapshot.all_pools[machine.pool],
                instance_type=instance_type,
                pods=pods,
                price=price_of(machine.labels, instance_type),
                cost=COST_OF_A_NODE + sum(max(0.0, eviction_cost(pod)) for pod in pods),
            )
        )
    return found


def price_of(labels: object, instance_type: InstanceType | None) -> float:
    """What a node costs; nothing, if that is not known."""
    assert isinstance(labels, dict)
    if instance_type is None:
        return 0.0
    return instance_type.price(labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")) or 0.0


def disruption_cost(machine: Machine) -> float:
    """What it would cost to disrupt a machine that is no candidate."""
    pods = [pod for pod in machine.pods if not pod.is_terminal and not is_owned_by(pod, "apps/v1", "DaemonSet")]
    return COST_OF_A_NODE + sum(max(0.0, eviction_cost(pod)) for pod in pods)


def unconsolidatable(candidate: Candidate, now: float) -> str | None:
    """Why neither emptiness nor consolidation takes a node; None if one of them may."""
    pool = candidate.pool
    if pool.spec.replicas is not None:
        return f"NodePool {pool.name} has a fixed number of nodes"
    if consolidate_after(pool) is None:
        return f"NodePool {pool.name} has consolidation disabled"
    claim = candidate.machine.claim
    if claim is None or not is_consolidatable(pool, claim, now):
        return f"pods came or went within consolidateAfter of NodePool {pool.name}"
    if candidate.is_empty:
        return None
    labels = candidate.machine.labels
    if candidate.instance_type is None:
        return f"instance type {labels.get(INSTANCE_TYPE)} is not in the catalogue"
    for key in (CAPACITY_TYPE, ZONE):
        if key not in labels:
            return f"it has no label {key}"
    if pool.spec.disruption.consolidation_policy == WHEN_EMPTY:
        return f"NodePool {pool.name} consolidates empty nodes only"
    return None


def candidates_for(reason: str, candidates: list[Candidate], now: float) -> list[Candidate]:
    """Those that emptiness takes, or those that the other methods take: never the same."""
    return [each for each in candidates if each.is_empty == (reason == EMPTY) and unconsolidatable(each, now) is None]


def budgets_left(snapshot: Snapshot, reason: str) -> dict[str, int]:
    """How many more nodes of each pool may be disrupted."""
    nodes: dict[str, int] = {}
    disrupted: dict[str, int] = {}
    for machine in snapshot.machines:
        claim = machine.claim
        if claim is None or machine.node is None or not machine.is_initialized or claim.is_true("InstanceTerminating"):
            continue
        nodes[machine.pool] = nodes.get(machine.pool, 0) + 1
        conditions = machine.node.status.conditions or ()
        is_ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
        if not is_ready or machine.is_deleting:
            disrupted[machine.pool] = disrupted.get(machine.pool, 0) + 1
    return {
        name: max(
            allowed_disruptions(pool, nodes.get(name, 0), reason, snapshot.situation.now) - disrupted.get(name, 0), 0
        )
        for name, pool in snapshot.all_pools.items()
    }
