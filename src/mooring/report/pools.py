"""Nodes by pool, how much of each pool is taken, and by which policy."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from mooring.assembly import node_pools
from mooring.config.node_pools import NodePool
from mooring.engine.cycle import Scheduler
from mooring.engine.node_pools import has_rows
from mooring.model.values.requests import CPU, MEMORY, is_extended
from mooring.state.cluster import Cluster

POOL_LABELS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "node.kubernetes.io/instance-type",
)
"""Where providers write a node's pool; the first one that a node has counts."""
NO_POOL = "(no pool)"
AND = " + "
"""Between the names of pools that have a node in common."""


class Usage(Struct, rename="camel"):
    """How much of a resource is requested of what there is: cores, bytes, or a count."""

    requested: float
    allocatable: float
    percent: float


class Pool(Struct, rename="camel", omit_defaults=True):
    name: str
    nodes: int
    pods: int
    resources: dict[str, Usage]
    policy: str = ""
    """Of a pool that the configuration names (NodePools): Dedicated, Shared or Reserved; nothing for others."""
    reserved_percent: int = 0
    """What others together may not use of each of its nodes."""
    moves_back: bool = False
    """Whether its pods that spilled over go back when there is room."""


def configured_pools(scheduler: Scheduler) -> list[NodePool]:
    """The node pools of all profiles, each name once."""
    found = (pool for args in node_pools(scheduler.profiles).values() for pool in args.pools)
    by_name: dict[str, NodePool] = {}
    for pool in found:
        by_name.setdefault(pool.name, pool)
    return list(by_name.values())


def pool_names(cluster: Cluster, label: str | None = None, configured: Sequence[NodePool] = ()) -> dict[str, str]:
    """The pool of each node: by the given label, else by the pools that are configured, else by the best known label
    that it has; empty if it has none. A node in several has the names of all of them."""
    if configured and not label:
        return _configured_names(cluster, configured)
    keys = (label,) if label else POOL_LABELS
    names: dict[str, str] = {}
    for name, row in cluster.nodes.row_of.items():
        labels = cluster.nodes.node(row).metadata.labels or {}
        names[name] = next((labels[key] for key in keys if key in labels), "")
    return names


def _configured_names(cluster: Cluster, configured: Sequence[NodePool]) -> dict[str, str]:
    nodes = cluster.rows()
    inside = [(pool.name, has_rows(pool, nodes).tolist()) for pool in configured]
    return {node: AND.join(name for name, has in inside if has[position]) for position, node in enumerate(nodes.names)}


def pools(cluster: Cluster, pool_of: Mapping[str, str], configured: Sequence[NodePool] = ()) -> list[Pool]:
    """Usage of CPU, memory and every extended resource, pool by pool, in the order of their names.

    Where pools are configured, so are their policies told.
    """
    made = _usage_by_pool(cluster, pool_of)
    by_name = {pool.name: pool for pool in configured}
    for pool in made:
        if all(name in by_name for name in pool.name.split(AND)):
            policies = [by_name[name] for name in pool.name.split(AND)]
            pool.policy = AND.join(each.policy for each in policies)
            pool.reserved_percent = max(each.reserved_percent for each in policies)
            pool.moves_back = any(each.moves_back for each in policies)
    return made


def _usage_by_pool(cluster: Cluster, pool_of: Mapping[str, str]) -> list[Pool]:
    nodes = cluster.nodes
    names = sorted(set(pool_of.values()))
    code_of = {name: code for code, name in enumerate(names)}
    rows = np.array([nodes.row_of[name] for name in pool_of], np.intp)
    codes = np.array([code_of[name] for name in pool_of.values()], np.intp)

    def by_pool(column: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
        sums = np.zeros(len(names), np.int64)
        np.add.at(sums, codes, column[rows])
        found: list[int] = sums.tolist()
        return found

    counts = np.bincount(codes, minlength=len(names)).tolist()
    pod_counts = by_pool(nodes.pod_count.values)
    made = [Pool(name or NO_POOL, counts[code], pod_counts[code], {}) for code, name in enumerate(names)]
    extended = sorted(name for name in nodes.resources.values if is_extended(name))
    for resource in (CPU, MEMORY, *extended):
        requested, allocatable = by_pool(nodes.requested(resource)), by_pool(nodes.allocatable(resource))
        for pool, taken, there in zip(made, requested, allocatable, strict=True):
            if there or taken or resource in (CPU, MEMORY):
                pool.resources[resource] = _usage(resource, taken, there)
    return made


def _usage(resource: str, taken: int, there: int) -> Usage:
    unit = 1000 if resource == CPU else 1
    percent = round(100 * taken / there, 1) if there else 0.0
    return Usage(_number(taken, unit), _number(there, unit), percent)


def _number(amount: int, unit: int) -> float:
    return amount // unit if amount % unit == 0 else amount / unit
