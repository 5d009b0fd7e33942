"""Nodes by pool, and how much of each pool is taken."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

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


class Usage(Struct, rename="camel"):
    """How much of a resource is requested of what there is: cores, bytes, or a count."""

    requested: float
    allocatable: float
    percent: float


class Pool(Struct, rename="camel"):
    name: str
    nodes: int
    pods: int
    resources: dict[str, Usage]


def pool_names(cluster: Cluster, label: str | None = None) -> dict[str, str]:
    """The pool of each node, by the given label or by the best known one that it has; empty if it has none."""
    keys = (label,) if label else POOL_LABELS
    names: dict[str, str] = {}
    for name, row in cluster.nodes.row_of.items():
        labels = cluster.nodes.node(row).metadata.labels or {}
        names[name] = next((labels[key] for key in keys if key in labels), "")
    return names


def pools(cluster: Cluster, pool_of: Mapping[str, str]) -> list[Pool]:
    """Usage of CPU, memory and every extended resource, pool by pool, in the order of their names."""
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
