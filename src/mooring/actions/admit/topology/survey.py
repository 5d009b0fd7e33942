"""Surveys the cluster: which nodes a flavor has, in which domains they are, and what is free on them.

Free is what pods leave that were not assigned a domain. Pods that were are counted where they were assigned, be they
there yet or not.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from mooring.actions.admit.topology.assigner import TopologyAssigner
from mooring.actions.admit.topology.flavor import FlavorTopology
from mooring.model.api.kueue import ResourceFlavor
from mooring.model.api.nodes import Node
from mooring.model.topology.requests import asks_kueue
from mooring.model.values.requests import PODS
from mooring.model.values.selectors import compile_equality
from mooring.state.cluster import Cluster
from mooring.state.nodes import PLACES
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.topology import LevelColumn, TopologyTree
from mooring.state.topology_trees import level_titles

READY = "Ready"

HoldsDomains = Callable[[str], bool | None]
"""Whether a workload that is known to queue was assigned domains; None if nothing is known of it."""


class TopologySurvey:
    """Keeps an assigner's flavors as the cluster has them."""

    def __init__(self, cluster: Cluster, flavors: Mapping[str, ResourceFlavor], holds_domains: HoldsDomains) -> None:
        self._cluster = cluster
        self._flavors = {name: found for name, found in flavors.items() if found.spec.topology_name}
        self._holds_domains = holds_domains
        self._seen_nodes: object = None
        self._seen_pods: object = None
        self._assigned: dict[str, NDArray[np.int64]] = {}

    def look(self, assigner: TopologyAssigner) -> bool:
        """Bring the flavors up to date; whether anything is not what it was."""
        if not self._flavors:
            return False
        cluster = self._cluster
        nodes = (cluster.nodes_version, cluster.related.version, tuple(map(is_ready, self._nodes())))
        pods = (cluster.pod_changes.position, cluster.tenants.position)
        if nodes == self._seen_nodes and pods == self._seen_pods:
            return False
        if pods != self._seen_pods:
            self._assigned = {}
        if nodes != self._seen_nodes:
            found = ((name, self._make(name, flavor, assigner)) for name, flavor in self._flavors.items())
            assigner.flavors = {name: topology for name, topology in found if topology is not None}
        for topology in assigner.flavors.values():
            topology.forget_free()
        self._seen_nodes, self._seen_pods = nodes, pods
        return True

    def _nodes(self) -> Iterator[Node]:
        return (node for node in self._cluster.nodes.nodes if node is not None)

    def _make(self, name: str, flavor: ResourceFlavor, assigner: TopologyAssigner) -> FlavorTopology | None:
        """The flavor's topology; None while there is no such Topology."""
        table, spec = self._cluster.nodes, flavor.spec
        topology = self._cluster.related.topologies.get(spec.topology_name or "")
        if topology is None:
            return None
        wanted = compile_equality(spec.node_labels or {})
        rows = np.array(
            [
                row
                for row in table.live_rows().tolist()
                if is_ready(table.node(row))
                and not table.node(row).spec.unschedulable
                and wanted.matches(table.node(row).metadata.labels or {})
            ],
            np.intp,
        )
        keys = tuple(level.node_label for level in topology.spec.levels)
        columns = []
        for key, title in zip(keys, level_titles(keys), strict=True):
            label = table.label(key)
            columns.append(LevelColumn(key, title, label.codes[rows], tuple(label.interner.values)))
        names = [table.name(row) for row in rows.tolist()]
        tree = TopologyTree(columns, rows, names, capacity=table.capacity)
        return FlavorTopology(
            name, topology.metadata.name, tree, table.nodes, self.free, assigner.usage, spec.tolerations or ()
        )

    def free(self, resource: str) -> NDArray[np.int64]:
        """By row, what is left of a resource besides what pods use that were not assigned any domain."""
        table, name = self._cluster.nodes, PLACES if resource == PODS else resource
        if not self._assigned:
            self._assigned = self._count_assigned()
        used = table.requested(name)
        assigned = self._assigned.get(name)
        if assigned is not None:
            used = used - assigned[: len(used)]
        free: NDArray[np.int64] = table.allocatable(name) - used
        return free

    def _count_assigned(self) -> dict[str, NDArray[np.int64]]:
        """By resource and row, what pods use there that count where they were assigned."""
        table = self._cluster.nodes
        total: dict[str, NDArray[np.int64]] = {PLACES: np.zeros(table.capacity, np.int64)}
        for record in self._cluster.pods.records.values():
            if record.row == UNBOUND or not self._is_assigned(record):
                continue
            total[PLACES][record.row] += 1
            for name, amount in record.shape.requests.items():
                if name not in total:
                    total[name] = np.zeros(table.capacity, np.int64)
                total[name][record.row] += amount
        return total

    def _is_assigned(self, record: PodRecord) -> bool:
        """Kueue tells by annotations. A workload of ours that holds no domains has its pods count where they are."""
        workload = self._cluster.tenants.workload_of.get(record.key)
        holds = None if workload is None else self._holds_domains(workload)
        return asks_kueue(record.pod.metadata.annotations or {}) if holds is None else holds


def is_ready(node: Node) -> bool:
    """A node that says nothing of its conditions, as in a manifest, is taken to be ready."""
    conditions = node.status.conditions
    return conditions is None or any(found.type == READY and found.status == "True" for found in conditions)
