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
from mooring.actions.admit.workload_info import AdmittedWorkload, PendingWorkload
from mooring.model.keys import WorkloadKey

ROOM_HELD_MESSAGE = "the quota that it would take is held for {others}, for whose sake other workloads were preempted"


class Hold(NamedTuple):
    """What is held for one workload, and whose going makes it free."""

    pending: PendingWorkload
    queue: Queue
    usage: dict[int, int]
    victims: tuple[AdmittedWorkload, ...]


class HeldRoom:
    """Who holds what, by tree of cohorts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_root: dict[int, dict[WorkloadKey, Hold]] = {}
        self._root_of: dict[WorkloadKey, int] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._root_of

    def keep(self, entry: Entry) -> None:
        """Hold what an entry was promised, in place of what was held for it before."""
        key, queue = entry.pending.key, entry.queue
        victims = tuple(victim.admitted for victim in entry.victims)
        self._by_root.setdefault(queue.root, {})[key] = Hold(
            entry.pending, queue, dict(entry.assignment.usage), victims
        )
        self._root_of[key] = queue.root

    def give_up(self, key: WorkloadKey) -> Queue | None:
        """Hold nothing any more for a workload; the queue that it waited in, if there was anything."""
        root = self._root_of.pop(key, None)
        return None if root is None else self._by_root[root].pop(key).queue

    def in_the_way(self, entry: Entry, served: Collection[str], leaving: Iterable[AdmittedWorkload]) -> list[str]:
        """For whom room is held that the entry would take; none if it fits beside all of it.

        `served` had their turn in this cycle: what they hold is in the ledger already. `leaving` are this cycle's
        victims.
        """
        holds = [
            hold
            for key, hold in self._by_root.get(entry.queue.root, {}).items()
            if key != entry.pending.key and key not in served and not _comes_first(entry, hold)
        ]
        if not holds:
            return []
        ledger = self._ledger
        gone = {admitted.pending.key: admitted for hold in holds for admitted in hold.victims}
        gone |= {admitted.pending.key: admitted for admitted in leaving}
        gone |= {victim.admitted.pending.key: victim.admitted for victim in entry.victims}
        with ledger.what_if():
            for key, admitted in gone.items():
                if key in ledger and ledger.admitted(key) is admitted:
                    ledger.remove(admitted)
            for hold in holds:
                ledger.add_usage(hold.queue.node, hold.usage)
            fits = ledger.fits(entry.queue.node, entry.assignment.usage)
        return [] if fits else [hold.pending.key for hold in holds]


def _comes_first(entry: Entry, hold: Hold) -> bool:
    """Nobody passes the head of a strict queue, not even one for whom others had to go."""
    return entry.queue is hold.queue and entry.queue.is_strict and entry.pending.queue_order < hold.pending.queue_order
