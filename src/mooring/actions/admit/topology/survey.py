"""Surveys the cluster: which nodes a flavor has, in which domains they are, and what is free on them.

Free is what pods leave that were not assigned a domain. Pods that were are counted where they were assigned, be they
there yet or not.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from mooring.actions.admit.topology.assigner import TopologyAssigner
from mooring.actions.admit.topology.flavor import FlavorTopology
from mooring.model.api.kueue import ResourceFlavor
from mooring.model.topology.requests import asks_kueue
from mooring.model.values.requests import PODS
from mooring.model.values.selectors import compile_equality
from mooring.state.cluster import Cluster
from mooring.state.nodes import PLACES
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.remembered import Seen
from mooring.state.topology import LevelColumn, TopologyTree
from mooring.state.topology_trees import level_titles

HoldsDomains = Callable[[str], bool]
"""Whether a workload was assigned domains."""

ByRow = NDArray[np.int64]


class TopologySurvey:
    """Keeps an assigner's flavors as the cluster has them."""

    def __init__(
        self,
        cluster: Cluster,
        flavors: Mapping[str, ResourceFlavor],
        assigner: TopologyAssigner,
        holds_domains: HoldsDomains,
    ) -> None:
        self._cluster = cluster
        self._flavors = {name: found for name, found in flavors.items() if found.spec.topology_name}
        self.assigner = assigner
        self._holds_domains = holds_domains
        self._seen_nodes, self._seen_pods = Seen(), Seen()
        self._used: dict[str, ByRow] = {}

    def look(self) -> bool:
        """Bring the flavors up to date; whether there may be room now where there was none."""
        cluster = self._cluster
        has_new_nodes = self._seen_nodes.is_news((cluster.nodes_version, cluster.related.version))
        has_new_pods = self._seen_pods.is_news((cluster.pod_changes.position, cluster.tenants.position))
        if not has_new_nodes and not has_new_pods:
            return False
        before, self._used = self._used, self._count_used()
        if has_new_nodes:
            found = ((name, self._make(name, flavor)) for name, flavor in self._flavors.items())
            self.assigner.flavors = {name: topology for name, topology in found if topology is not None}
        for topology in self.assigner.flavors.values():
            topology.forget_free()
        return has_new_nodes or any(
            bool((column[: len(before[name])] < before[name]).any())
            for name, column in self._used.items()
            if name in before
        )

    def _make(self, name: str, flavor: ResourceFlavor) -> FlavorTopology | None:
        """The flavor's topology; None while there is no such Topology."""
        table, spec = self._cluster.nodes, flavor.spec
        topology = self._cluster.related.topologies.get(spec.topology_name or "")
        if topology is None:
            return None
        wanted = compile_equality(spec.node_labels or {})
        nodes = ((row, table.node(row)) for row in table.live_rows().tolist())
        rows = np.array(
            [
                row
                for row, node in nodes
                if node.is_ready and not node.spec.unschedulable and wanted.matches(node.metadata.labels or {})
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
            name, topology.metadata.name, tree, table.nodes, self.free, self.assigner.usage, spec.tolerations or ()
        )

    def free(self, resource: str) -> ByRow:
        """By row, what is left of a resource besides what pods use that were not assigned any domain."""
        name = PLACES if resource == PODS else resource
        allocatable = self._cluster.nodes.allocatable(name)
        used = self._used.get(name)
        free: ByRow = allocatable if used is None else allocatable - used
        return free

    def _count_used(self) -> dict[str, ByRow]:
        """By resource and row, what pods use that count where they are, not where they were assigned."""
        table = self._cluster.nodes
        total = {name: table.requested(name).copy() for name in list(table.resources.values)}
        for record in self._cluster.pods.records.values():
            if record.row != UNBOUND and self._is_assigned(record):
                total[PLACES][record.row] -= 1
                for name, amount in record.shape.requests.items():
                    total[name][record.row] -= amount
        return total

    def _is_assigned(self, record: PodRecord) -> bool:
        """Whether a pod counts where it was assigned: so says its workload, or else, as in Kueue, the pod."""
        workload = self._cluster.tenants.workload_of.get(record.key)
        if workload is not None:
            return self._holds_domains(workload)
        annotations = record.pod.metadata.annotations
        return bool(annotations) and asks_kueue(annotations or {})
