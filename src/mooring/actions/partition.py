"""Say how GPUs are to be cut, where they are cut on demand: for the instances that pods have, and no others.

An agent on the node, or a driver, carries it out. Instances that pods have never move, and stay where they are cut;
what nobody has any more is given up, so that a GPU is cut anew only where nobody is.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from mooring.engine.action import Action, Cycle
from mooring.model.api.nodes import Node
from mooring.model.decisions import Decision, Instance, Partition, Written
from mooring.model.devices.cards import Sharing
from mooring.model.devices.dialects.device_plugin import SPEC
from mooring.state.cluster import Cluster


class PartitionGpus(Action):
    """Runs last: when it is known who gets what."""

    def __init__(self) -> None:
        self._pods_seen = 0
        self._nodes_seen = 0
        self._refused_seen = 0

    def is_idle(self, cycle: Cycle) -> bool:
        return Sharing.MIG not in cycle.cluster.nodes.cards.kinds

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster = cycle.cluster
        pods_seen, self._pods_seen = self._pods_seen, cluster.pod_changes.position
        nodes_seen, self._nodes_seen = self._nodes_seen, cluster.nodes_version
        by_pods = cluster.pod_changes.rows_since(pods_seen)
        by_nodes = cluster.nodes_changed_since(nodes_seen)
        refused = self._tell_again(cluster)
        rows = cluster.nodes.live_rows()
        if by_pods is not None and by_nodes is not None:
            rows = np.intersect1d(rows, np.array([*by_pods.tolist(), *by_nodes, *refused], np.intp))
        is_cut = cluster.nodes.cards.sharing[rows] == Sharing.MIG
        return [found for row in rows[is_cut].tolist() for found in self._partitions(cluster, row)]

    def _tell_again(self, cluster: Cluster) -> list[int]:
        """The rows of nodes that could not be told how a GPU is to be cut: what they know is on the node itself."""
        seen, self._refused_seen = self._refused_seen, cluster.refused.position
        refused = (failed.decision for failed in cluster.refused.since(seen))
        names = [decision.node for decision in refused if isinstance(decision, Partition)]
        return [row for name in names if (row := cluster.nodes.row_of.get(name)) is not None]

    def _partitions(self, cluster: Cluster, row: int) -> list[Decision]:
        node, cards = cluster.nodes.node(row), cluster.nodes.cards.cards(row)
        cuts: dict[int, list[Instance]] = {at: [] for at in range(len(cards.cards))}
        for record, shares in cluster.card_holders.on_row(row):
            if not record.nominated:  # whoever holds room does not run yet, and others are still in it
                for share in shares:
                    if share.profile:
                        cuts[share.card].append(Instance(share.profile, share.start))
        told = cluster.partitions.cuts(node.metadata.name, node.metadata.uid)
        now: dict[int, tuple[Instance, ...]] = {}
        decisions: list[Decision] = []
        for at, instances in cuts.items():
            wanted = tuple(sorted(instances, key=lambda instance: instance.start))
            index = cards.cards[at].index
            before = told.get(index)
            known = [each.profile for each in before] if before is not None else _profiles_told(node, index)
            if wanted != before and (wanted or known):
                decisions.append(Partition(node.metadata.name, index, wanted, _annotations(index, wanted, known)))
            now[index] = wanted
        cluster.partitions.tell(node.metadata.name, node.metadata.uid, {**told, **now})
        return decisions


def _profiles_told(node: Node, gpu: int) -> list[str]:
    """The profiles that a GPU was told to have before this scheduler began."""
    start = f"{SPEC}-{gpu}-"
    return [name.removeprefix(start) for name in node.metadata.annotations or () if name.startswith(start)]


def _annotations(gpu: int, instances: Sequence[Instance], before: Sequence[str]) -> Written:
    """How many of each profile; nothing, to be taken away, of those that there were before."""
    counts = Counter(instance.profile for instance in instances)
    profiles = dict.fromkeys((*(instance.profile for instance in instances), *before))
    return tuple((f"{SPEC}-{gpu}-{name}", str(counts[name] or "")) for name in profiles)
