"""Room that preemption frees is held for the workload it is freed for: one of our own policies (holdFreedRoom).

In Kueue, what a victim leaves is free for whoever is first. Somebody else may take it, and the preemptor preempts
again, and again. With this policy nobody else gets it until the preemptor is admitted or withdrawn. Whatever is
admitted, or preempts, must fit beside all that is held once the victims are gone: so all for whom room is held can
be served.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.workload_info import Applicant, Holder

ROOM_HELD_MESSAGE = "the quota that it would take is held for {others}, for whose sake other workloads were preempted"


class Hold(NamedTuple):
    """What is held for one workload, and whose going makes it free."""

    applicant: Applicant
    queue: Queue
    usage: dict[int, int]
    victims: tuple[Holder, ...]


class HeldRoom:
    """Who holds what, by tree of cohorts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_root: dict[int, dict[str, Hold]] = {}
        self._root_of: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._root_of

    def keep(self, entry: Entry) -> None:
        """Hold what an entry was promised, in place of what was held for it before."""
        key, queue = entry.applicant.key, entry.queue
        victims = tuple(victim.holder for victim in entry.victims)
        self._by_root.setdefault(queue.root, {})[key] = Hold(
            entry.applicant, queue, dict(entry.assignment.usage), victims
        )
        self._root_of[key] = queue.root

    def give_up(self, key: str) -> Queue | None:
        """Hold nothing any more for a workload; the queue that it waited in, if there was anything."""
        root = self._root_of.pop(key, None)
        return None if root is None else self._by_root[root].pop(key).queue

    def in_the_way(self, entry: Entry, served: Collection[str], leaving: Iterable[Holder]) -> list[str]:
        """For whom room is held that the entry would take; none if it fits beside all of it.

        `served` had their turn in this cycle: what they hold is in the ledger already. `leaving` are this cycle's
        victims.
        """
        holds = [
            hold
            for key, hold in self._by_root.get(entry.queue.root, {}).items()
            if key != entry.applicant.key and key not in served and not _comes_first(entry, hold)
        ]
        if not holds:
            return []
        ledger = self._ledger
        gone = {holder.applicant.key: holder for hold in holds for holder in hold.victims}
        gone |= {holder.applicant.key: holder for holder in leaving}
        gone |= {victim.holder.applicant.key: victim.holder for victim in entry.victims}
        mark = ledger.checkpoint()
        for key, holder in gone.items():
            if key in ledger and ledger.holder(key) is holder:
                ledger.remove(holder)
        for hold in holds:
            ledger.add_usage(hold.queue.node, hold.usage)
        fits = ledger.fits(entry.queue.node, entry.assignment.usage)
        ledger.rollback(mark)
        return [] if fits else [hold.applicant.key for hold in holds]


def _comes_first(entry: Entry, hold: Hold) -> bool:
    """Nobody passes the head of a strict queue, not even one for whom others had to go."""
    return (
        entry.queue is hold.queue and entry.queue.is_strict and entry.applicant.queue_order < hold.applicant.queue_order
    )
