"""The one state as provisioning and consolidation see it: nodes, those that were asked for, pods, pools and budgets."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from mooring.actions.capacity.karpenter.situation import (
    KarpenterSettings,
    Machine,
    Situation,
    make_machine,
    make_machines,
)
from mooring.config.capacity_policy import Capacity
from mooring.engine.queue.entries import Entry
from mooring.engine.queue.queue import Queue
from mooring.model.api.karpenter import NodePool, to_node_pool
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetStatus
from mooring.model.capacity.claims import as_promised
from mooring.model.capacity.labels import DO_NOT_DISRUPT
from mooring.model.values.selectors import compile_label_selector
from mooring.state.budgets import desired_healthy
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND


def pools_of(cluster: Cluster) -> list[NodePool]:
    """The NodePools, and the Provisioners as the NodePools that they became."""
    related = cluster.related
    return [*related.node_pools.values(), *map(to_node_pool, related.provisioners.values())]


def subject_of(pool: str) -> str:
    """Under which name failed launches of a pool are counted."""
    return f"NodePool/{pool}"


def waiting_for_nodes(queue: Queue) -> Iterator[Entry]:
    """The pods that no node fits, whatever the reason is; gangs, and pods that wait for something else, are not."""
    for parked in queue.parked():
        if parked.gang is None and parked.verdict is None:
            yield from parked.entries


def situation_of(
    cluster: Cluster,
    capacity: Capacity,
    pending: Sequence[Pod],
    now: float,
    is_protected: Callable[[str], bool] = lambda node: False,
) -> Situation:
    """Everything that provisioning and consolidation read; `is_protected` tells which nodes are not to be touched.

    Of pools whose last launch failed a moment ago nothing is bought.
    """
    bound = [_on(each.pod, each.node_name) for each in cluster.pods.records.values() if each.row != UNBOUND]
    related = cluster.related
    failed = {
        name
        for name in (pool.name for pool in pools_of(cluster))
        if (setback := cluster.setbacks.get(subject_of(name))) is not None
        and now < setback.last + capacity.policy.retry_seconds
    }
    return Situation(
        now=now,
        pools=tuple(_closed(pool) if pool.name in failed else pool for pool in pools_of(cluster)),
        instance_types=capacity.catalogue.instance_types,
        machines=tuple(_machines(cluster, capacity, bound, is_protected)),
        pending=tuple(pending),
        daemon_sets=tuple(related.daemon_sets.values()),
        budgets=tuple(_with_status(budget, bound) for budget in related.disruption_budgets.values()),
        namespaces=tuple(related.namespaces.values()),
        settings=KarpenterSettings(spot_to_spot=capacity.policy.spot_to_spot),
    )


def _closed(pool: NodePool) -> NodePool:
    """A pool of which nothing more is bought: its nodes count as before."""
    return replace(pool, spec=replace(pool.spec, limits={"nodes": "0"}))


def _on(pod: Pod, node: str) -> Pod:
    return pod if pod.spec.node_name == node else replace(pod, spec=replace(pod.spec, node_name=node))


def _machines(
    cluster: Cluster, capacity: Capacity, bound: Sequence[Pod], is_protected: Callable[[str], bool]
) -> Iterator[Machine]:
    """Nodes with their claims; nodes that were asked for, with the pods that wait for them."""
    table = cluster.nodes
    nodes: list[Node] = []
    for row in table.live_rows().tolist():
        node = table.node(row)
        if cluster.is_launching(node.name):
            pods = [record.pod for record in cluster.pods.on(row)]
            yield make_machine(node, None, [_on(pod, node.name) for pod in pods])
        else:
            nodes.append(_protected(node) if is_protected(node.name) else node)
    claims = [claim for claim in cluster.related.node_claims.values() if not cluster.is_launching(claim.name)]
    yield from make_machines(nodes, claims, bound)
    there = {node.spec.provider_id for node in nodes}
    for claim in claims:
        # Karpenter plans nothing while such a claim exists; we plan with what was asked for.
        if not claim.status.provider_id or claim.status.provider_id not in there:
            promised = None if claim.status.provider_id else as_promised(claim, capacity.catalogue.instance_types)
            if promised is not None:
                yield make_machine(None, promised, ())


def _protected(node: Node) -> Node:
    annotations = {**(node.metadata.annotations or {}), DO_NOT_DISRUPT: "true"}
    return replace(node, metadata=replace(node.metadata, annotations=annotations))


def _with_status(budget: PodDisruptionBudget, bound: Sequence[Pod]) -> PodDisruptionBudget:
    """Work out how many pods a budget lets go, where nobody has yet: pods on nodes count as healthy."""
    if budget.status is not None:
        return budget
    selector = compile_label_selector(budget.spec.selector)
    namespace = budget.metadata.namespace
    healthy = sum(
        not pod.is_terminal and pod.metadata.namespace == namespace and selector.matches(pod.metadata.labels or {})
        for pod in bound
    )
    allowed = max(healthy - desired_healthy(budget, healthy), 0)
    return replace(budget, status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, current_healthy=healthy))
