"""Who runs outside of its own pools, would be made anew if it were evicted, and belongs to nobody but itself."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.config.node_pools import NodePool
from mooring.engine.node_pools import has_rows, owns
from mooring.engine.queue.shared import pod_queue
from mooring.model.api.pods import Pod
from mooring.model.loading.expansion import controller_of
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.shapes import Shape

MADE_ANEW = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))
"""The controllers that make a pod anew and lose nothing by it. A Job counts it as a failure and starts from the
beginning; a DaemonSet's pod, or a node's own, is there for that node."""


class Pools:
    """The pools of one profile, and by pod which of them are its own."""

    def __init__(self, profile: str, pools: Sequence[NodePool]) -> None:
        self.profile = profile
        self._pools = pools
        self._groups: list[tuple[NodePool, ...]] = [()]
        """The sets of own pools that pods have; the first is for those who have no way back."""

    def own(self, shape: Shape) -> tuple[NodePool, ...]:
        """The pools that are a pod's own, if one of them has its pods back."""
        own = tuple(pool for pool in self._pools if owns(pool, shape))
        return own if any(pool.moves_back for pool in own) else ()

    def _group(self, shape: Shape) -> int:
        own = self.own(shape)
        if own not in self._groups:
            self._groups.append(own)
        return self._groups.index(own)

    def spilled(self, cluster: Cluster) -> list[PodRecord]:
        """The pods outside of their own pools that may be told to go: the most urgent first."""
        pods = cluster.pods
        bound = np.flatnonzero(pods.row.values[: pods.end] != UNBOUND)
        groups = cluster.effects(("MoveBack", self.profile), self._group).at(pods.shape.values[bound])
        found: list[PodRecord] = []
        for group in np.unique(groups[groups > 0]).tolist():
            slots = bound[groups == group]
            outside = ~rows_of(self._groups[group], cluster)[pods.row.values[slots]]
            found += [record for slot in slots[outside].tolist() if (record := pods.by_slot[slot]) is not None]
        return sorted(
            (record for record in found if record.pod.spec.scheduler_name == self.profile and may_go(record, cluster)),
            key=lambda record: (-record.priority, record.key),
        )


def rows_of(pools: Sequence[NodePool], cluster: Cluster) -> NDArray[np.bool_]:
    """One truth a row of the table: whether it is in any of some pools."""
    nodes = cluster.rows()
    found = np.zeros(cluster.nodes.end, np.bool_)
    for pool in pools:
        found[nodes.index] |= has_rows(pool, nodes)
    return found


def may_go(record: PodRecord, cluster: Cluster) -> bool:
    """Whether a pod runs, is on no way out, is made anew, and is part of nothing that starts or waits as a whole."""
    if record.assumed or record.nominated or _is_going(record):
        return False
    owner = controller_of(record.pod.metadata)
    if owner is None or owner.kind not in MADE_ANEW:
        return False
    if cluster.gangs.of(record.key) is not None or record.key in cluster.tenants.workload_of:
        return False
    return pod_queue(cluster, record) is None


def _is_going(record: PodRecord) -> bool:
    return record.leaving is not None or record.pod.metadata.deletion_timestamp is not None


def workload_of(pod: Pod) -> str:
    """What makes a pod anew, by a name of its own; nothing if nobody does."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind not in MADE_ANEW:
        return ""
    return f"{owner.kind}/{pod.metadata.namespace}/{owner.name}"


def members(cluster: Cluster) -> dict[str, list[PodRecord]]:
    """The pods that are there of each workload."""
    found: dict[str, list[PodRecord]] = {}
    for record in cluster.pods.records.values():
        workload = workload_of(record.pod)
        if workload:
            found.setdefault(workload, []).append(record)
    return found


def is_settled(records: Sequence[PodRecord]) -> bool:
    """Whether all pods of a workload have their places: else one of them is being replaced already."""
    return all(record.row != UNBOUND and not record.nominated and not _is_going(record) for record in records)
