"""The cluster as Karpenter sees it: machines (a node, its claim, or both), pods, pools, and what can be bought."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.model.api.karpenter import NodeClaim, NodePool
from mooring.model.api.meta import Namespace
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.api.workloads import DaemonSet
from mooring.model.capacity.instance_types import InstanceType, amounts_of
from mooring.model.capacity.labels import (
    HOSTNAME,
    INITIALIZED,
    NODE_POOL,
    PASSING_TAINT_PREFIX,
    PASSING_TAINTS,
    REGISTERED,
)

RESPECT, IGNORE = "Respect", "Ignore"
STRICT, BEST_EFFORT = "Strict", "BestEffort"
NODES = "nodes"
"""The name under which limits count nodes."""


@dataclass(frozen=True, slots=True)
class KarpenterSettings:
    """Karpenter's options that decide what it does."""

    preference_policy: str = RESPECT
    """Whether preferences count as requirements until they are relaxed, or not at all."""
    min_values_policy: str = STRICT
    spot_to_spot: bool = False
    """Whether spot nodes are replaced by cheaper spot nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """A node, a claim, or both, with the pods that are bound to it."""

    name: str
    node: Node | None
    claim: NodeClaim | None
    pods: tuple[Pod, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    is_initialized: bool
    is_deleting: bool
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]

    @property
    def hostname(self) -> str:
        return self.labels.get(HOSTNAME) or self.name

    @property
    def pool(self) -> str:
        return self.labels.get(NODE_POOL, "")

    @property
    def node_labels(self) -> Mapping[str, str]:
        return (self.node.metadata.labels or {}) if self.node is not None else {}


def make_machine(node: Node | None, claim: NodeClaim | None, pods: Sequence[Pod]) -> Machine:
    """Put a node and its claim together. Until the node is registered, the claim speaks for it."""
    own_labels = (node.metadata.labels or {}) if node is not None else {}
    is_registered = node is not None and (claim is None or own_labels.get(REGISTERED) == "true")
    is_initialized = node is not None and (claim is None or own_labels.get(INITIALIZED) == "true")
    speaker = node if is_registered or claim is None else claim
    assert speaker is not None, "a machine has a node or a claim"
    capacity = amounts_of(node.status.capacity) if node is not None else {}
    allocatable = amounts_of(node.status.allocatable) if node is not None else {}
    if claim is not None and not is_initialized:
        for mine, promised in ((capacity, claim.status.capacity), (allocatable, claim.status.allocatable)):
            mine.update({name: amount for name, amount in amounts_of(promised).items() if not mine.get(name)})
    return Machine(
        name=speaker.metadata.name,
        node=node,
        claim=claim,
        pods=tuple(pods),
        labels=speaker.metadata.labels or {},
        taints=_taints(node, claim, is_registered, is_initialized),
        is_initialized=is_initialized,
        is_deleting=_is_deleting(node, claim),
        capacity={**capacity, NODES: 1},
        allocatable=allocatable,
    )


def _taints(node: Node | None, claim: NodeClaim | None, is_registered: bool, is_initialized: bool) -> tuple[Taint, ...]:
    if claim is None:
        return tuple(node.spec.taints or ()) if node is not None else ()
    taints = (node.spec.taints if node is not None and is_registered else claim.spec.taints) or ()
    if is_initialized:
        return tuple(taints)
    starting = {(taint.key, taint.effect) for taint in claim.spec.startup_taints or ()} | PASSING_TAINTS
    return tuple(
        taint
        for taint in taints
        if (taint.key, taint.effect) not in starting and not taint.key.startswith(PASSING_TAINT_PREFIX)
    )


def _is_deleting(node: Node | None, claim: NodeClaim | None) -> bool:
    if claim is not None:
        return claim.metadata.deletion_timestamp is not None or claim.is_true("InstanceTerminating")
    return node is not None and node.metadata.deletion_timestamp is not None


def make_machines(nodes: Iterable[Node], claims: Iterable[NodeClaim], pods: Iterable[Pod]) -> tuple[Machine, ...]:
    """Pair nodes and claims by provider ID, and give each node its pods."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    claims_by_id = {claim.status.provider_id: claim for claim in claims}
    machines = []
    for node in nodes:
        claim = claims_by_id.pop(node.spec.provider_id, None) if node.spec.provider_id else None
        machines.append(make_machine(node, claim, by_node.get(node.name, ())))
    # A claim without a provider ID has not been launched: there is nothing yet that a pod could be planned onto.
    machines.extend(make_machine(None, claim, ()) for id_, claim in claims_by_id.items() if id_)
    return tuple(machines)


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Everything that provisioning and consolidation read."""

    now: float
    pools: tuple[NodePool, ...]
    instance_types: tuple[InstanceType, ...]
    machines: tuple[Machine, ...] = ()
    pending: tuple[Pod, ...] = ()
    """Pods that no node was found for."""
    daemon_sets: tuple[DaemonSet, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    settings: KarpenterSettings = KarpenterSettings()
