"""Who holds what, on top of the tree of quotas; the one place where either changes.

`remove` and `put_back` are for what-ifs (`with ledger.what_if():`), undone with what is done there to the tree and to
domains. `reserve` and `release` are for good.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from mooring.actions.admit.quota.tree import QuotaTree
from mooring.actions.admit.topology.assigner import TopologyAssigner
from mooring.actions.admit.topology.needs import held_use
from mooring.actions.admit.workload_info import AdmittedWorkload
from mooring.state.undo import Trial

Usage = Mapping[int, int]
Watcher = Callable[[AdmittedWorkload, Usage, Usage], None]
"""Told of a admitted workload whose usage has changed for good, with what it was and what it is."""


class Ledger:
    """The admitted workloads of quota by queue, and the tree that counts what they hold."""

    def __init__(
        self,
        tree: QuotaTree,
        topology: TopologyAssigner | None = None,
        topology_flavors: frozenset[str] = frozenset(),
    ) -> None:
        self.tree = tree
        self.topology = topology or TopologyAssigner()
        """Knows what is used of the domains of topologies; what is held is counted there, too."""
        self.domains = self.topology.usage
        self._topology_flavors = topology_flavors
        self._column_of = {column: index for index, column in enumerate(tree.columns)}
        self.generation = [0] * len(tree.nodes)
        """Raised whenever something is reserved in or released from a queue (by node)."""
        self._versions = [0] * len(tree.nodes)
        self._by_node: list[dict[str, AdmittedWorkload]] = [{} for _ in tree.nodes]
        self._in_victim_order: dict[int, list[AdmittedWorkload]] = {}
        self._by_key: dict[str, AdmittedWorkload] = {}
        self._away: set[str] = set()
        self.log = self.domains.log = tree.log
        self.watchers: list[Watcher] = []
        self.spares: Callable[[AdmittedWorkload], bool] | None = None
        """Whom other queues must not take anything from yet; None: nobody is spared."""
        self.local_usage: Callable[[AdmittedWorkload], float] | None = None
        """What a admitted workload's LocalQueue has used; None if that does not count anywhere."""

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __len__(self) -> int:
        return len(self._by_key)

    def admitted(self, key: str) -> AdmittedWorkload:
        return self._by_key[key]

    def admitted_workloads(self) -> Iterator[AdmittedWorkload]:
        return iter(self._by_key.values())

    def admitted_in(self, node: int) -> Collection[AdmittedWorkload]:
        """Those who hold quota in a queue, without the ones that a what-if has removed."""
        admitted_workloads = self._by_node[node].values()
        if not self._away:
            return admitted_workloads
        return [admitted for admitted in admitted_workloads if admitted.pending.key not in self._away]

    def in_victim_order(self, node: int) -> Collection[AdmittedWorkload]:
        """The same, who would be missed least first."""
        known = self._in_victim_order.get(node)
        if known is None:
            known = sorted(self._by_node[node].values(), key=lambda admitted: admitted.victim_order)
            self._in_victim_order[node] = known
        if not self._away:
            return known
        return [admitted for admitted in known if admitted.pending.key not in self._away]

    # What-if

    def remove(self, admitted: AdmittedWorkload) -> None:
        self.log.note(self._away.discard, admitted.pending.key)
        self._away.add(admitted.pending.key)
        for column, amount in admitted.usage.items():
            self.tree.remove(admitted.node, column, amount)
        if admitted.topology_use:
            self.domains.remove(admitted.topology_use)

    def put_back(self, admitted: AdmittedWorkload) -> None:
        self.log.note(self._away.add, admitted.pending.key)
        self._away.discard(admitted.pending.key)
        self.add_usage(admitted.node, admitted.usage)
        if admitted.topology_use:
            self.domains.add(admitted.topology_use)

    def add_usage(self, node: int, usage: Mapping[int, int]) -> None:
        for column, amount in usage.items():
            self.tree.add(node, column, amount)

    def remove_usage(self, node: int, usage: Mapping[int, int]) -> None:
        for column, amount in usage.items():
            self.tree.remove(node, column, amount)

    def fits(self, node: int, usage: Mapping[int, int]) -> bool:
        available = self.tree.available
        return all(amount <= available(node, column) for column, amount in usage.items())

    def what_if(self) -> Trial:
        """Try something out: what is done inside is undone unless it is kept."""
        return Trial(self.log)

    # For good

    def version(self, root: int) -> int:
        """Raised whenever anything changes for good in a tree of cohorts: usage, or who is on its way out."""
        return self._versions[root]

    def mark_evicted(self, admitted: AdmittedWorkload) -> None:
        """A workload is told to go; it holds what it holds until its pods are gone."""
        admitted.is_evicted = True
        if admitted.pending.key in self._by_key:
            self._note_change(admitted.node)

    def reserve(self, admitted: AdmittedWorkload) -> None:
        key = admitted.pending.key
        self._by_key[key] = self._by_node[admitted.node][key] = admitted
        admitted.count_usage(self._column_of)
        if self._topology_flavors:
            admitted.topology_use = held_use(
                self.domains, self._topology_flavors, admitted.pending.pod_sets, admitted.claims
            )
            self.domains.add(admitted.topology_use)
        self._change(admitted, {}, admitted.usage)

    def _note_change(self, node: int) -> None:
        self._versions[self.tree.paths[node][-1]] += 1
        self._in_victim_order.pop(node, None)

    def reclaim(self, key: str, reclaimed: Mapping[str, int]) -> None:
        """So many pods of each set have finished: what they held is free."""
        admitted = self._by_key[key]
        before, admitted.reclaimed = admitted.usage, reclaimed
        admitted.count_usage(self._column_of)
        self._change(admitted, before, admitted.usage)

    def release(self, key: str) -> AdmittedWorkload:
        admitted = self._by_key.pop(key)
        del self._by_node[admitted.node][key]
        if admitted.topology_use:
            self.domains.remove(admitted.topology_use)
        self._change(admitted, admitted.usage, {})
        return admitted

    def _change(self, admitted: AdmittedWorkload, before: Mapping[int, int], after: Mapping[int, int]) -> None:
        self.remove_usage(admitted.node, before)
        self.add_usage(admitted.node, after)
        self.generation[admitted.node] += 1
        self._note_change(admitted.node)
        for watch in self.watchers:
            watch(admitted, before, after)
