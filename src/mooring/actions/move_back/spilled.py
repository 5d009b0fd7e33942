"""Who runs outside of its own pools, would be made anew if it were evicted, and belongs to nobody but itself."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.config.node_pools import NodePool
from mooring.engine.node_pools import has_rows, owns
from mooring.engine.queue.shared import SharedQueues
from mooring.model.api.pods import Pod
from mooring.model.jobs.expansion import controller_of
from mooring.state.cluster import Cluster
from mooring.state.nodes import PLACES
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.shapes import Shape

MADE_ANEW = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))
"""The controllers that make a pod anew and lose nothing by it. A Job counts it as a failure and starts from the
beginning; a DaemonSet's pod, or a node's own, is there for that node."""


class Pools:
    """The pools of one profile, and by pod which of them are its own."""

    def __init__(self, scheduler: str, pools: Sequence[NodePool], shared: SharedQueues) -> None:
        """`scheduler` is the name by which pods ask for the profile."""
        self._scheduler = scheduler
        self._shared = shared
        self._pools = pools

    def own(self, shape: Shape) -> tuple[NodePool, ...]:
        """The pools that are a pod's own, if one of them has its pods back."""
        own = tuple(pool for pool in self._pools if owns(pool, shape))
        return own if any(pool.moves_back for pool in own) else ()

    def spilled(self, cluster: Cluster) -> list[PodRecord]:
        """The pods outside of their own pools that may be told to go: the most urgent first."""
        pods = cluster.pods
        bound = np.flatnonzero(pods.row.values[: pods.end] != UNBOUND)
        shapes = pods.shape.values[bound]
        can_go = cluster.effects(("MoveBack", self._scheduler), lambda shape: bool(self.own(shape))).at(shapes) > 0
        inside = dict[tuple[str, ...], NDArray[np.bool_]]()
        found: list[PodRecord] = []
        for shape in np.unique(shapes[can_go]).tolist():
            own = self.own(cluster.shapes.all[shape])
            names = tuple(pool.name for pool in own)
            if names not in inside:
                inside[names] = rows_of(own, cluster)
            slots = bound[shapes == shape]
            outside = ~inside[names][pods.row.values[slots]]
            found += [record for slot in slots[outside].tolist() if (record := pods.by_slot[slot]) is not None]
        mine = (record for record in found if self._may_go(record, cluster))
        return sorted(mine, key=lambda record: (-record.priority, record.key))

    def _may_go(self, record: PodRecord, cluster: Cluster) -> bool:
        is_mine = record.pod.spec.scheduler_name == self._scheduler
        return is_mine and may_go(record, cluster) and self._shared.of_pod(cluster, record) is None


def rows_of(pools: Sequence[NodePool], cluster: Cluster) -> NDArray[np.bool_]:
    """One truth a row of the table: whether it is in any of some pools."""
    nodes = cluster.rows()
    found = np.zeros(cluster.nodes.end, np.bool_)
    for pool in pools:
        found[nodes.index] |= has_rows(pool, nodes)
    return found


def room_in(pools: Sequence[NodePool], shape: Shape, cluster: Cluster) -> bytes:
    """What the nodes of some pools have free of all that a pod asks for: a value that changes with it."""
    nodes = cluster.rows(rows_of(pools, cluster).nonzero()[0])
    columns = [nodes.free(resource) for resource in (*shape.requests, PLACES)]
    return b"".join((nodes.index.tobytes(), *(column.tobytes() for column in columns)))


def may_go(record: PodRecord, cluster: Cluster) -> bool:
    """Whether a pod runs, is on no way out, is made anew, and is part of nothing that starts or waits as a whole."""
    if record.assumed or record.nominated or _is_going(record):
        return False
    owner = controller_of(record.pod.metadata)
    if owner is None or owner.kind not in MADE_ANEW:
        return False
    return cluster.gangs.of(record.key) is None and record.key not in cluster.tenants.workload_of


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
