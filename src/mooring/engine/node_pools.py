"""Whose a node pool is, and where: what the plugin filters by, the action moves by, and reports tell of."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.config.node_pools import NodePool
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape


def owns(pool: NodePool, pod: Shape) -> bool:
    """Whether a pod is one of a pool's own: of one of its namespaces and priority classes, with all of its labels."""
    if pool.namespaces and pod.namespace not in pool.namespaces:
        return False
    if pool.priority_classes and pod.priority_class not in pool.priority_classes:
        return False
    return all(pod.label(key) == value for key, value in pool.pod_labels.items())


def has_rows(pool: NodePool, nodes: NodeRows) -> NDArray[np.bool_]:
    """Which of some rows are a pool's."""
    found = np.ones(len(nodes), np.bool_)
    for key, value in pool.node_labels.items():
        found &= nodes.has_label(key, value)
    return found


def own_rows(pools: Sequence[NodePool], pod: Shape, nodes: NodeRows) -> NDArray[np.bool_]:
    """Which of some rows are in any of the pools that are a pod's own."""
    found = np.zeros(len(nodes), np.bool_)
    for pool in pools:
        if owns(pool, pod):
            found |= has_rows(pool, nodes)
    return found
