"""Nodes that workloads were assigned and that are gone: their pods could never start there again."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from mooring.model.decisions import PodSetFlavors
from mooring.model.defaults import HOSTNAME_LABEL
from mooring.state.cluster import Cluster

NODE_FAILURES = "NodeFailures"


@dataclass(frozen=True, slots=True)
class NodesThere:
    """Which nodes there are, by the name of their host: what tells which of those that were assigned have failed."""

    all: frozenset[str]
    ready: frozenset[str]
    ever_seen: Collection[str]
    """With those that were there before, as the state has them."""

    @classmethod
    def of(cls, cluster: Cluster) -> "NodesThere":
        nodes = [cluster.nodes.node(row) for row in cluster.nodes.live_rows().tolist()]
        names = [(node.metadata.labels or {}).get(HOSTNAME_LABEL, node.metadata.name) for node in nodes]
        ready = frozenset(name for name, node in zip(names, nodes, strict=True) if node.is_ready)
        return cls(frozenset(names), ready, cluster.workloads.see_nodes(set(names)))

    def failed(self, pod_sets: Iterable[PodSetFlavors], *, is_ready: bool) -> list[str]:
        """The nodes among those assigned that are gone or, if pods are missing, not ready. What was never there has
        not failed: a picture of a cluster need not be complete."""
        usable = self.all if is_ready else self.ready
        return sorted(set(_assigned_nodes(pod_sets)).intersection(self.ever_seen) - usable)


def _assigned_nodes(pod_sets: Iterable[PodSetFlavors]) -> Iterator[str]:
    """Where topologies reach down to single nodes."""
    for given in pod_sets:
        topology = given.topology
        if topology is not None and topology.levels[-1] == HOSTNAME_LABEL:
            yield from (domain.values[-1] for domain in topology.domains)
