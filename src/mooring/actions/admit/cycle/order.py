"""In which order the heads of all queues have their turn within a cycle."""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.quota.fair_sharing import DominantShare, Shares
from mooring.actions.admit.quota.ledger import Ledger


def by_rank(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Those that borrow least come first, then by priority, then by age."""
    return iter(sorted(entries, key=lambda entry: (entry.assignment.borrow_height, *entry.pending.queue_order)))


class Standing(NamedTuple):
    """How an entry compares among the children of one cohort; lower goes first."""

    is_borrowing: bool
    """Beyond its quota in something that the workload asks for."""
    share: DominantShare
    queue_order: tuple[int, float, str]


class FairOrder:
    """A tournament in each tree of cohorts: at every level the child with the lowest share, workload included, wins."""

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
        if len(entries) == 1:
            yield from entries
            return
        if all(len(self._ledger.tree.paths[entry.queue.node]) == 2 for entry in entries):
            # Right below the root nobody's turn changes anybody else's standing: one sorting is all the tournament.
            yield from [entry for entry in entries if not entry.can_start]  # their turns change nothing
            able = [entry for entry in entries if entry.can_start]
            yield from sorted(able, key=lambda entry: self.standing(entry, entry.queue.node))
            return
        bracket = _Bracket(self, self._ledger.tree.paths, entries)
        while bracket:
            winner = bracket.champion
            yield winner
            bracket.take_out(winner)

    def standing(self, entry: Entry, child: int) -> Standing:
        """How an entry compares in the cohort above a node on its path, which may be its queue itself."""
        tree, shares, usage = self._ledger.tree, self._shares, entry.assignment.usage
        more = usage if child == entry.queue.node else tree.added_at(child, entry.queue.node, usage)
        is_borrowing = False
        for column, wanted in usage.items():  # a loop: done for every head, and `any` costs more than what it asks
            if wanted > 0 and tree.exceeds(child, column, more[column]):
                is_borrowing = True
                break
        share = shares.share_with(child, more)
        if shares.looks_back:
            # Where the past counts, who had less comes first, with whatever workload: else one that is large for its
            # queue's weight would wait for ever behind small ones.
            share = share._replace(value=shares.share(child).value)
        return Standing(is_borrowing, share, entry.pending.queue_order)


class _Bracket:
    """The entries of one tree, in every cohort those of its queues and the champions of the cohorts in it, best first.

    How two children of a cohort compare depends on what is used below them. A turn changes that along one path only:
    from the winner's queue upward, where it was the champion, another one takes its place. The rest stands.
    """

    def __init__(self, order: FairOrder, paths: list[tuple[int, ...]], entries: list[Entry]) -> None:
        self._order = order
        self._paths = paths
        self._root = entries[0].queue.root
        self._left: dict[int, list[tuple[Standing, int, Entry]]] = {}
        """By cohort, a heap; of equals, who came first is the better."""
        self._count = 0
        cohorts: dict[int, int] = {}
        for entry in entries:
            path = paths[entry.queue.node]
            self._left.setdefault(path[1], []).append(self._item(entry, path[0]))
            cohorts |= {cohort: len(paths[cohort]) for cohort in path[1:]}
        for cohort in sorted(cohorts, key=lambda cohort: -cohorts[cohort]):
            heapify(self._left[cohort])
            if cohort != self._root:
                self._rise(cohort)

    def _rise(self, cohort: int) -> None:
        """Let the champion of a cohort compete in the one above."""
        champion = self._left[cohort][0][-1]
        heappush(self._left.setdefault(self._paths[cohort][1], []), self._item(champion, cohort))

    def _item(self, entry: Entry, child: int) -> tuple[Standing, int, Entry]:
        self._count += 1
        return self._order.standing(entry, child), self._count, entry

    def __bool__(self) -> bool:
        return bool(self._left[self._root])

    @property
    def champion(self) -> Entry:
        return self._left[self._root][0][-1]

    def take_out(self, champion: Entry) -> None:
        """It had its turn: it was the best all the way up."""
        path = self._paths[champion.queue.node]
        heappop(self._left[path[1]])
        for cohort, above in pairwise(path[1:]):
            heappop(self._left[above])
            if self._left[cohort]:
                self._rise(cohort)
