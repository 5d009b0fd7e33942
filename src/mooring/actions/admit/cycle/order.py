"""In which order the heads of all queues have their turn within a cycle."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.quota.fair_sharing import Share, Shares
from mooring.actions.admit.quota.ledger import Ledger


def by_rank(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Those that borrow least come first, then by priority, then by age."""
    return iter(sorted(entries, key=lambda entry: (entry.assignment.borrow_height, *entry.pending.queue_order)))


class Standing(NamedTuple):
    """How an entry compares among the children of one cohort; lower goes first."""

    is_borrowing: bool
    """Beyond its quota in something that the workload asks for."""
    share: Share
    queue_order: tuple[int, float, str]


class FairOrder:
    """A tournament in each tree of cohorts: at every level the child with the lowest share, workload included, wins.

    An entry's standings depend on usage below the root along its own path only. So after a turn just the entries that
    share a child of the root with the winner are looked at again.
    """

    def __init__(self, ledger: Ledger, shares: Shares) -> None:
        self._ledger = ledger
        self._shares = shares

    def __call__(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        by_root: dict[int, list[Entry]] = {}
        for entry in entries:
            by_root.setdefault(entry.queue.root, []).append(entry)
        for found in by_root.values():
            yield from self._play(found)

    def _play(self, entries: list[Entry]) -> Iterator[Entry]:
        paths = self._ledger.tree.paths
        if all(len(paths[entry.queue.node]) == 2 for entry in entries):
            # Right below the root nobody's turn changes anybody else's standing: one sorting is all the tournament.
            root = entries[0].queue.root
            yield from sorted(entries, key=lambda entry: self._standings(entry)[root])
            return
        left = {entry.queue.node: entry for entry in entries}
        standings: dict[int, dict[int, Standing]] = {}
        while len(left) > 1:
            for node, entry in left.items():
                if node not in standings:
                    standings[node] = self._standings(entry)
            winner = self._champion(left, standings)
            yield left.pop(winner)
            if len(paths[winner]) > 2:
                branch = paths[winner][-2]
                for node in left:
                    if branch in paths[node]:
                        standings.pop(node, None)
        yield from left.values()

    def _standings(self, entry: Entry) -> dict[int, Standing]:
        """By cohort on the path: the standing of the child that leads to the entry's queue."""
        ledger, tree, usage = self._ledger, self._ledger.tree, entry.assignment.usage
        wanted = [column for column, amount in usage.items() if amount > 0]
        path, shares = tree.paths[entry.queue.node], self._shares
        # Where the past counts, who had less comes first, with whatever workload: else one that is large for its
        # queue's weight would wait for ever behind small ones.
        before = {child: shares.share(child).value for child in path[:-1]} if shares.looks_back else {}
        mark = ledger.checkpoint()
        ledger.add_usage(entry.queue.node, usage)
        found = {}
        for child, cohort in pairwise(path):
            is_borrowing = any(tree.exceeds(child, column) for column in wanted)
            share = shares.share(child)
            if before:
                share = share._replace(value=before[child])
            found[cohort] = Standing(is_borrowing, share, entry.pending.queue_order)
        ledger.rollback(mark)
        return found

    def _champion(self, left: dict[int, Entry], standings: dict[int, dict[int, Standing]]) -> int:
        """Let winners rise level by level; deep cohorts first, as they are what their parents choose from."""
        paths = self._ledger.tree.paths
        rising: dict[int, list[int]] = {}
        depth_of: dict[int, int] = {}
        for node in left:
            path = paths[node]
            rising.setdefault(path[1], []).append(node)
            for depth, cohort in enumerate(reversed(path[1:])):
                depth_of[cohort] = depth
        champion = -1
        for cohort in sorted(depth_of, key=lambda node: -depth_of[node]):
            champion = min(rising[cohort], key=lambda node: standings[node][cohort])
            if depth_of[cohort]:
                rising.setdefault(paths[cohort][1], []).append(champion)
        return champion
