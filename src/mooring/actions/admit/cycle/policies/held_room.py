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
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.model.keys import WorkloadKey
from mooring.state.workloads import HeldQuota, Logged

ROOM_HELD_MESSAGE = "the quota that it would take is held for {others}, for whose sake other workloads were preempted"


class QuotaHold(NamedTuple):
    """What is held for one workload, and whose going makes it free."""

    key: WorkloadKey
    queue: Queue
    usage: dict[int, int]
    victims: tuple[AdmittedWorkload, ...]
    queue_order: tuple[int, float, str]


class HeldRoom:
    """What is held, by tree of cohorts; the state has it by workload."""

    def __init__(self, ledger: Ledger, structure: Structure, kept: Logged[WorkloadKey, HeldQuota]) -> None:
        self._ledger = ledger
        self._kept = kept
        self._by_root: dict[int, dict[WorkloadKey, QuotaHold]] = {}
        for key, found in kept.items():
            queue = structure.queues.get(found.queue)
            if queue is not None:
                usage = {
                    structure.column_of[at]: amount for at, amount in found.usage.items() if at in structure.column_of
                }
                self._put(QuotaHold(key, queue, usage, found.victims, found.queue_order))

    def _put(self, hold: QuotaHold) -> None:
        self._by_root.setdefault(hold.queue.root, {})[hold.key] = hold

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def keep(self, entry: Entry) -> None:
        """Hold what an entry was promised, in place of what was held for it before."""
        pending, queue, columns = entry.pending, entry.queue, self._ledger.tree.columns
        victims = tuple(victim.admitted for victim in entry.victims)
        usage = dict(entry.assignment.usage)
        self._put(QuotaHold(pending.key, queue, usage, victims, pending.queue_order))
        named = {columns[column]: amount for column, amount in usage.items()}
        self._kept.put(pending.key, HeldQuota(queue.name, named, victims, pending.queue_order))

    def give_up(self, key: WorkloadKey) -> Queue | None:
        """Hold nothing any more for a workload; the queue that it waited in, if there was anything."""
        if self._kept.take_out(key) is None:
            return None
        for holds in self._by_root.values():
            if key in holds:
                return holds.pop(key).queue
        return None

    def signature(self, root: int) -> object:
        """What is held in a tree of cohorts, in a form that can be compared with a later one."""
        return tuple(
            (key, tuple(hold.usage.items()), tuple(admitted.pending.key for admitted in hold.victims))
            for key, hold in sorted(self._by_root.get(root, {}).items())
        )

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
        return [] if fits else [hold.key for hold in holds]


def _comes_first(entry: Entry, hold: QuotaHold) -> bool:
    """Nobody passes the head of a strict queue, not even one for whom others had to go."""
    return entry.queue is hold.queue and entry.queue.is_strict and entry.pending.queue_order < hold.queue_order
