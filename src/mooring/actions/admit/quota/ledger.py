"""Who holds what, on top of the tree of quotas; the one place where either changes.

`remove` and `put_back` are for what-ifs (`with ledger.what_if():`), undone with what is done there to the tree and to
domains. `reserve` and `release` are for good.
"""

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from mooring.actions.admit.quota.topology_needs import held_use
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.actions.admit.topology.assigner import TopologyAssigner
from mooring.actions.admit.topology.usage import DomainUsage
from mooring.model.decisions import PodSetFlavors
from mooring.model.keys import WorkloadKey
from mooring.state.quota_tree import QuotaTree
from mooring.state.undo import Trial

_victim_order = attrgetter("victim_order")

Usage = Mapping[int, int]
Watcher = Callable[[AdmittedWorkload, Usage, Usage], None]
"""Told of an admitted workload whose usage has changed for good, with what it was and what it is."""


class Ledger:
    """The admitted workloads of quota by queue, and the tree that counts what they hold."""

    def __init__(
        self,
        tree: QuotaTree,
        topology: TopologyAssigner | None = None,
        topology_flavors: frozenset[str] = frozenset(),
        *,
        spares: Callable[[AdmittedWorkload], bool] | None = None,
        local_usage: Callable[[AdmittedWorkload], float] | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.tree = tree
        self.topology = topology or TopologyAssigner(DomainUsage(tree.log))
        """Knows what is used of the domains of topologies; what is held is counted there, too."""
        self.domains = self.topology.usage
        self._topology_flavors = topology_flavors
        self._column_of = {column: index for index, column in enumerate(tree.columns)}
        self.generation = [0] * len(tree.nodes)
        """Raised whenever something is reserved in or released from a queue (by node)."""
        self._versions = [0] * len(tree.nodes)
        """Of a queue, and of a whole tree by its root."""
        self._by_node: list[dict[WorkloadKey, AdmittedWorkload]] = [{} for _ in tree.nodes]
        self._in_victim_order: dict[int, list[AdmittedWorkload]] = {}
        self._by_key: dict[WorkloadKey, AdmittedWorkload] = {}
        self._away: dict[int, set[WorkloadKey]] = {}
        """By queue (node), the keys of those that what-ifs have removed."""
        self.log = tree.log
        self._watchers = tuple(watchers)
        self._followers: dict[int, list[set[int]]] = {path[-1]: [] for path in tree.paths}
        """By root."""
        self._followers_of = [self._followers[path[-1]] for path in tree.paths]
        """The same lists by node."""
        self.spares = spares
        """Whom other queues must not take anything from yet; None: nobody is spared."""
        self.local_usage = local_usage
        """What an admitted workload's LocalQueue has used; None if that does not count anywhere."""

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __len__(self) -> int:
        return len(self._by_key)

    def admitted(self, key: WorkloadKey) -> AdmittedWorkload:
        return self._by_key[key]

    def admitted_workloads(self) -> Iterator[AdmittedWorkload]:
        return iter(self._by_key.values())

    def admitted_in(self, node: int) -> Collection[AdmittedWorkload]:
        """Those who hold quota in a queue, without the ones that a what-if has removed."""
        admitted_workloads = self._by_node[node].values()
        away = self._away.get(node)
        if not away:
            return admitted_workloads
        return [admitted for admitted in admitted_workloads if admitted.pending.key not in away]

    def away_from(self, node: int) -> frozenset[WorkloadKey]:
        """The keys of a queue's workloads that a what-if has removed."""
        return frozenset(self._away.get(node, ()))

    def in_victim_order(self, node: int) -> Collection[AdmittedWorkload]:
        """The same, who would be missed least first."""
        known = self._in_victim_order.get(node)
        if known is None:
            known = self._in_victim_order[node] = sorted(self._by_node[node].values(), key=_victim_order)
        away = self._away.get(node)
        if not away:
            return known
        return [admitted for admitted in known if admitted.pending.key not in away]

    # What-if

    def _note_try(self, node: int) -> None:
        """Something is tried out in a queue: it is not what it was, and will not be what it is when that is undone."""
        for changed in self._followers_of[node]:
            changed.add(node)
        self.log.note(self._tell_followers, node)

    def _tell_followers(self, node: int) -> None:
        for changed in self._followers_of[node]:
            changed.add(node)

    def remove(self, admitted: AdmittedWorkload) -> None:
        self._note_try(admitted.node)
        away = self._away.setdefault(admitted.node, set())
        self.log.note(away.discard, admitted.pending.key)
        away.add(admitted.pending.key)
        for column, amount in admitted.usage.items():
            self.tree.remove(admitted.node, column, amount)
        if admitted.topology_use:
            self.domains.remove(admitted.topology_use)

    def put_back(self, admitted: AdmittedWorkload) -> None:
        away = self._away.setdefault(admitted.node, set())
        self.log.note(away.add, admitted.pending.key)
        away.discard(admitted.pending.key)
        self.add_usage(admitted.node, admitted.usage)
        if admitted.topology_use:
            self.domains.add(admitted.topology_use)

    def add_usage(self, node: int, usage: Mapping[int, int]) -> None:
        self._note_try(node)
        for column, amount in usage.items():
            self.tree.add(node, column, amount)

    def remove_usage(self, node: int, usage: Mapping[int, int]) -> None:
        self._note_try(node)
        for column, amount in usage.items():
            self.tree.remove(node, column, amount)

    def fits(self, node: int, usage: Mapping[int, int]) -> bool:
        available = self.tree.available
        return all(amount <= available(node, column) for column, amount in usage.items())

    def what_if(self) -> Trial:
        """Try something out: what is done inside is undone unless it is kept."""
        return Trial(self.log)

    # For good

    def version(self, node: int) -> int:
        """Raised whenever anything changes for good in a queue, or in a tree of cohorts: usage, or who is leaving."""
        return self._versions[node]

    def follow(self, root: int) -> set[int]:
        """A set to which queues (by node) of a tree are added whenever anything changes there; its owner empties it.

        That is for good, in a what-if, or because one is undone.
        """
        changed: set[int] = set()
        self._followers[root].append(changed)
        return changed

    def unfollow(self, root: int, changed: set[int]) -> None:
        self._followers[root][:] = [found for found in self._followers[root] if found is not changed]

    def lose_followers(self) -> None:
        """Those who followed are given up."""
        for found in self._followers.values():
            found.clear()

    def mark_evicted(self, admitted: AdmittedWorkload) -> None:
        """A workload is told to go; it holds what it holds until its pods are gone."""
        admitted.is_evicted = True
        if admitted.pending.key in self._by_key:
            self._note_change(admitted.node)
            self._in_victim_order.pop(admitted.node, None)

    def set_priority(self, admitted: AdmittedWorkload, priority: int) -> None:
        """The priority of an admitted workload is another: so is its place among those that would have to go."""
        if admitted.pending.priority == priority:
            return
        admitted.pending.priority = priority
        if admitted.pending.key in self._by_key:
            self._note_change(admitted.node)
            self._in_victim_order.pop(admitted.node, None)

    def reserve(self, admitted: AdmittedWorkload) -> None:
        key = admitted.pending.key
        self._by_key[key] = self._by_node[admitted.node][key] = admitted
        admitted.count_usage(self._column_of)
        if self._topology_flavors:
            admitted.topology_use = held_use(
                self.domains, self._topology_flavors, admitted.pending.pod_sets, admitted.claims
            )
            with self.log.for_good():
                self.domains.add(admitted.topology_use)
        self._change(admitted, {}, admitted.usage)
        if (known := self._in_victim_order.get(admitted.node)) is not None:
            insort(known, admitted, key=_victim_order)

    def _note_change(self, node: int) -> None:
        root = self.tree.paths[node][-1]
        self._versions[root] += 1
        if root != node:
            self._versions[node] += 1
        self._tell_followers(node)

    def reclaim(self, key: WorkloadKey, reclaimed: Mapping[str, int]) -> None:
        """So many pods of each set have finished: what they held is free."""
        admitted = self._by_key[key]
        before, admitted.reclaimed = admitted.usage, reclaimed
        admitted.count_usage(self._column_of)
        self._change(admitted, before, admitted.usage)

    def reassign(self, key: WorkloadKey, pod_sets: Iterable[PodSetFlavors]) -> None:
        """The pods of a workload go to other domains than before."""
        admitted, given = self._by_key[key], {found.name: found for found in pod_sets}
        admitted.claims = tuple(claim._replace(pods=given[claim.pods.name]) for claim in admitted.claims)
        self.domains.remove(admitted.topology_use)
        admitted.topology_use = held_use(
            self.domains, self._topology_flavors, admitted.pending.pod_sets, admitted.claims
        )
        self.domains.add(admitted.topology_use)
        self._note_change(admitted.node)

    def release(self, key: WorkloadKey) -> AdmittedWorkload:
        admitted = self._by_key.pop(key)
        del self._by_node[admitted.node][key]
        if (known := self._in_victim_order.get(admitted.node)) is not None:
            known.remove(admitted)
        if admitted.topology_use:
            with self.log.for_good():
                self.domains.remove(admitted.topology_use)
        self._change(admitted, admitted.usage, {})
        return admitted

    def _change(self, admitted: AdmittedWorkload, before: Mapping[int, int], after: Mapping[int, int]) -> None:
        with self.log.for_good():
            self.remove_usage(admitted.node, before)
            self.add_usage(admitted.node, after)
        self.generation[admitted.node] += 1
        self._note_change(admitted.node)
        for watch in self._watchers:
            watch(admitted, before, after)
