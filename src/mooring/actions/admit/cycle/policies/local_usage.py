"""What LocalQueues used over time, and what that means for the order in their ClusterQueue: Kueue's admission fair
sharing.

With the configuration's admissionFairSharing, in a ClusterQueue whose admissionMode is UsageBasedAdmissionFairSharing,
the workload comes first whose LocalQueue has used least:

    usage = sum over resources of weight(r) * average(r), divided by the LocalQueue's own weight

CPU counts in cores, memory in bytes, anything else in units. Averages are those of `decayed.py`: exact, where Kueue
takes samples. As in Kueue, whoever is admitted is at once charged with what it would use in one sampling interval; else
one LocalQueue could fill the queue before any time has passed.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from math import inf

from mooring.actions.admit.cycle.pending_queue import HeapEntry, PendingQueue
from mooring.actions.admit.cycle.policies.decayed import DecayedAverages
from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.quota.workload_info import AdmittedWorkload, PendingWorkload
from mooring.config.queueing import UsageHistory
from mooring.model.api.kueue import LocalQueue
from mooring.model.keys import WorkloadKey
from mooring.model.memory import QueueUse
from mooring.model.values.quantity import NANO, parse_quantity
from mooring.model.values.requests import CPU
from mooring.state.quota_tree import FlavorResource
from mooring.state.workloads import Average, Logged

MILLIS = 1000


class LocalUsage:
    """The usage of every LocalQueue, by namespace/name."""

    def __init__(self, history: UsageHistory, used: MutableMapping[str, Average] | None = None) -> None:
        """`used` is where the averages are kept."""
        self._history = history
        self.now = 0.0
        # Without a half-life nothing is remembered; any will do for averages that are not asked for.
        self._averages: DecayedAverages[str] = DecayedAverages(history.half_life_seconds or 1.0, used)
        self._charge = 1.0 - self._averages.kept_after(history.sampling_seconds)
        self._amounts: dict[str, dict[str, float]] = {}
        self._weights: dict[str, float] = {}
        self._columns: tuple[FlavorResource, ...] = ()

    def attach(self, columns: Iterable[FlavorResource], local_queues: Iterable[LocalQueue]) -> None:
        """Go on with other queues, in which nobody uses anything yet."""
        self._columns = tuple(columns)
        self._weights = {f"{found.metadata.namespace}/{found.metadata.name}": _weight(found) for found in local_queues}
        self._amounts.clear()
        self._averages.clear(self.now)

    def remembered(self) -> dict[str, QueueUse]:
        return dict(sorted(self._averages.remembered()))

    def recall(self, local_queues: Mapping[str, QueueUse]) -> None:
        """Go on from what was used before a restart: before any queues are attached."""
        for name, use in local_queues.items():
            self._averages.recall(name, use)

    def note_change(self, admitted: AdmittedWorkload, before: Mapping[int, int], after: Mapping[int, int]) -> None:
        """What a workload holds changed just now."""
        name = admitted.pending.local_queue
        amounts = self._amounts.setdefault(name, {})
        for usage, sign in ((before, -1), (after, 1)):
            for resource, amount in self._in_units(usage).items():
                amounts[resource] = amounts.get(resource, 0.0) + sign * amount
        self._averages.set(name, amounts, self.now)

    def charge(self, admitted: AdmittedWorkload) -> None:
        """A workload was admitted just now."""
        amounts = {name: self._charge * amount for name, amount in self._in_units(admitted.usage).items()}
        self._averages.add(admitted.pending.local_queue, amounts, self.now)

    def usage_of(self, admitted: AdmittedWorkload) -> float:
        """That of the LocalQueue which a workload is in."""
        return self.usage(admitted.pending.local_queue)

    def usage(self, local_queue: str) -> float:
        """What counts for the order; less comes first."""
        if self._history.half_life_seconds <= 0:
            return 0.0
        weight = self._weights.get(local_queue, 1.0)
        if weight <= 0:
            return inf
        counts = self._history.weights
        averages = self._averages.at(local_queue, self.now)
        return sum(counts.get(name, 1.0) * amount for name, amount in averages.items()) / weight

    def _in_units(self, usage: Mapping[int, int]) -> dict[str, float]:
        amounts: dict[str, float] = {}
        for column, amount in usage.items():
            resource = self._columns[column].resource
            amounts[resource] = amounts.get(resource, 0.0) + (amount / MILLIS if resource == CPU else amount)
        return amounts


class PendingQueueByUsage(PendingQueue):
    """The line of a queue in which LocalQueues take turns by what they used."""

    def __init__(self, queue: Queue, preemptors: Logged[str, WorkloadKey], usage: LocalUsage) -> None:
        super().__init__(queue, preemptors)
        self._usage = usage

    def _group(self, pending: PendingWorkload) -> str:
        return pending.local_queue

    def _first(self) -> HeapEntry:
        firsts = {name: self._first_in(heads) for name, heads in self._heads.items()}
        self._heads = {name: heads for name, heads in self._heads.items() if heads}
        found = ((self._usage.usage(name), first) for name, first in firsts.items() if first is not None)
        return min(found)[1]

    def in_order(self, *, with_parked: bool = False) -> list[PendingWorkload]:
        found = list(self.waiting(with_parked=with_parked))
        usage = {name: self._usage.usage(name) for name in {pending.local_queue for pending in found}}
        sticky = "" if self.queue.is_strict else self.sticky
        return sorted(found, key=lambda found: (found.key != sticky, usage[found.local_queue], *found.queue_order))


def _weight(found: LocalQueue) -> float:
    sharing = found.spec.fair_sharing
    return 1.0 if sharing is None or sharing.weight is None else parse_quantity(sharing.weight) / NANO
