"""Nodes that workloads were assigned and that are gone: their pods could never start there again."""

from collections.abc import Iterable, Iterator

from mooring.model.decisions import PodSetFlavors
from mooring.model.defaults import HOSTNAME_LABEL
from mooring.state.cluster import Cluster

NODE_FAILURES = "NodeFailures"


class NodeFailures:
    """Tells which of the nodes that were assigned to somebody have failed, each time that nodes have changed."""

    def __init__(self) -> None:
        self._seen = -1
        self._there: set[str] = set()
        self._ready: set[str] = set()
        self._ever_seen: set[str] = set()
        """Kept in the state."""

    def look(self, cluster: Cluster) -> bool:
        """Take in which nodes there are; whether they are others than at the last look."""
        if self._seen == cluster.nodes_version:
            return False
        self._seen = cluster.nodes_version
        nodes = [cluster.nodes.node(row) for row in cluster.nodes.live_rows().tolist()]
        names = [(node.metadata.labels or {}).get(HOSTNAME_LABEL, node.metadata.name) for node in nodes]
        self._there = set(names)
        self._ready = {name for name, node in zip(names, nodes, strict=True) if node.is_ready}
        self._ever_seen = cluster.workloads.see_nodes(self._there)
        return True

    def failed(self, pod_sets: Iterable[PodSetFlavors], *, is_ready: bool) -> list[str]:
        """The nodes among those assigned that are gone or, if pods are missing, not ready. What was never there has
        not failed: a picture of a cluster need not be complete."""
        usable = self._there if is_ready else self._ready
        return sorted((set(_assigned_nodes(pod_sets)) & self._ever_seen) - usable)


def _assigned_nodes(pod_sets: Iterable[PodSetFlavors]) -> Iterator[str]:
    """Where topologies reach down to single nodes."""
    for given in pod_sets:
        topology = given.topology
        if topology is not None and topology.levels[-1] == HOSTNAME_LABEL:
            yield from (domain.values[-1] for domain in topology.domains)
