"""Who holds what, on top of the tree of quotas; the one place where either changes.

`remove` and `put_back` are what-ifs: they are logged together with the tree's own log and undone by `rollback`.
`reserve` and `release` are for good.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from mooring.actions.admit.quota.tree import QuotaTree
from mooring.actions.admit.workload_info import Holder

Usage = Mapping[int, int]
Watcher = Callable[[Holder, Usage, Usage], None]
"""Told of a holder whose usage has changed for good, with what it was and what it is."""


class Mark(NamedTuple):
    """A moment to return to."""

    usage: int
    holders: int


class Ledger:
    """The holders of quota by queue, and the tree that counts what they hold."""

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self._column_of = {column: index for index, column in enumerate(tree.columns)}
        self.generation = [0] * len(tree.nodes)
        """Raised whenever something is reserved in or released from a queue (by node)."""
        self._by_node: list[dict[str, Holder]] = [{} for _ in tree.nodes]
        self._by_key: dict[str, Holder] = {}
        self._away: set[str] = set()
        self._log: list[tuple[str, bool]] = []
        self.watchers: list[Watcher] = []
        self.spares: Callable[[Holder], bool] | None = None
        """Whom other queues must not take anything from yet; None: nobody is spared."""
        self.local_usage: Callable[[Holder], float] | None = None
        """What a holder's LocalQueue has used; None if that does not count anywhere."""

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __len__(self) -> int:
        return len(self._by_key)

    def holder(self, key: str) -> Holder:
        return self._by_key[key]

    def holders(self) -> Iterator[Holder]:
        return iter(self._by_key.values())

    def holders_in(self, node: int) -> Collection[Holder]:
        """Those who hold quota in a queue, without the ones that a what-if has removed."""
        holders = self._by_node[node].values()
        if not self._away:
            return holders
        return [holder for holder in holders if holder.applicant.key not in self._away]

    # What-if

    def remove(self, holder: Holder) -> None:
        self._log.append((holder.applicant.key, False))
        self._away.add(holder.applicant.key)
        for column, amount in holder.usage.items():
            self.tree.remove(holder.node, column, amount)

    def put_back(self, holder: Holder) -> None:
        self._log.append((holder.applicant.key, True))
        self._away.discard(holder.applicant.key)
        self.add_usage(holder.node, holder.usage)

    def add_usage(self, node: int, usage: Mapping[int, int]) -> None:
        for column, amount in usage.items():
            self.tree.add(node, column, amount)

    def remove_usage(self, node: int, usage: Mapping[int, int]) -> None:
        for column, amount in usage.items():
            self.tree.remove(node, column, amount)

    def fits(self, node: int, usage: Mapping[int, int]) -> bool:
        available = self.tree.available
        return all(amount <= available(node, column) for column, amount in usage.items())

    def checkpoint(self) -> Mark:
        return Mark(self.tree.checkpoint(), len(self._log))

    def rollback(self, mark: Mark) -> None:
        self.tree.rollback(mark.usage)
        while len(self._log) > mark.holders:
            key, was_away = self._log.pop()
            (self._away.add if was_away else self._away.discard)(key)

    # For good

    def reserve(self, holder: Holder) -> None:
        key = holder.applicant.key
        self._by_key[key] = self._by_node[holder.node][key] = holder
        holder.count_usage(self._column_of)
        self._change(holder, {}, holder.usage)

    def reclaim(self, key: str, reclaimed: Mapping[str, int]) -> None:
        """So many pods of each set have finished: what they held is free."""
        holder = self._by_key[key]
        before, holder.reclaimed = holder.usage, reclaimed
        holder.count_usage(self._column_of)
        self._change(holder, before, holder.usage)

    def release(self, key: str) -> Holder:
        holder = self._by_key.pop(key)
        del self._by_node[holder.node][key]
        self._change(holder, holder.usage, {})
        return holder

    def _change(self, holder: Holder, before: Mapping[int, int], after: Mapping[int, int]) -> None:
        self.remove_usage(holder.node, before)
        self.add_usage(holder.node, after)
        self.generation[holder.node] += 1
        self.tree.settle()
        for watch in self.watchers:
            watch(holder, before, after)
