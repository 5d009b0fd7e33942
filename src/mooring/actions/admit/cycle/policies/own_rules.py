"""Our own policies as far as they decide within a cycle of admission, put together. All of them are off unless set."""

from collections.abc import Callable, Iterable
from math import inf

from mooring.actions.admit.cycle.pending import Pending
from mooring.actions.admit.cycle.pending_queue import PendingQueue
from mooring.actions.admit.cycle.policies.local_usage import LocalUsage, PendingQueueByUsage
from mooring.actions.admit.cycle.policies.past_shares import PastBorrowing, SharesWithPast
from mooring.actions.admit.quota.fair_sharing import Shares
from mooring.actions.admit.quota.ledger import Ledger, Watcher
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.quota.workload_info import AdmittedWorkload
from mooring.actions.admit.topology.assigner import TopologyAssigner
from mooring.config.queueing import UsageHistory
from mooring.model.api.kueue import LocalQueue
from mooring.model.keys import WorkloadKey
from mooring.model.memory import Memory
from mooring.state.quota_tree import QuotaTree
from mooring.state.workloads import Logged, WorkloadTable


class MinimumRuntime:
    """Spares the young, and remembers when somebody who was spared comes of age."""

    def __init__(self, seconds: float, table: WorkloadTable) -> None:
        self.seconds = seconds
        self.now = 0.0
        self._due = table.of_age

    def spares(self, admitted: AdmittedWorkload) -> bool:
        """Tell whether a workload must not be taken anything yet; one that is on its way out is not spared."""
        if self.seconds <= 0 or admitted.is_evicted:
            return False
        of_age = admitted.running_since + self.seconds
        if of_age <= self.now:
            return False
        queue = admitted.pending.queue_name
        if of_age < self._due.get(queue, inf):
            self._due.put(queue, of_age)
        return True

    def came_of_age(self) -> list[str]:
        """The queues in which somebody has come of age since they were spared; each is told once."""
        found = [queue for queue, at in self._due.items() if at <= self.now]
        for queue in found:
            self._due.take_out(queue)
        return found

    @property
    def next(self) -> float | None:
        return min(self._due.values(), default=None)


LOOKS_PER_HALF_LIFE = 32
"""How often past shares are compared anew while nothing happens: meanwhile they move by two in a hundred."""


class OwnRules:
    """What outlasts a change of queues: who is too young to give, and what was used in the past."""

    def __init__(
        self,
        table: WorkloadTable,
        minimum_runtime_seconds: float = 0.0,
        usage_half_life_seconds: float = 0.0,
        local_history: UsageHistory | None = None,
    ) -> None:
        """`table` is where the past is kept."""
        self._table = table
        self.runtime = MinimumRuntime(minimum_runtime_seconds, table)
        self.past = PastBorrowing(usage_half_life_seconds, table.borrowed) if usage_half_life_seconds > 0 else None
        self.local = LocalUsage(local_history, table.used) if local_history is not None else None

    @property
    def moves_with_time(self) -> bool:
        """Whether who may take from whom can change though nobody's usage does."""
        return self.runtime.seconds > 0 or self.past is not None or self.local is not None

    def set_time(self, now: float) -> None:
        """All that happens from here on happens at this moment."""
        self.runtime.now = now
        if self.past is not None:
            self.past.now = now
        if self.local is not None:
            self.local.now = now

    def remember(self, memory: Memory) -> None:
        if self.past is not None:
            memory.borrowed = self.past.remembered()
        if self.local is not None:
            memory.local_queues = self.local.remembered()

    def recall(self, memory: Memory) -> None:
        """Go on from what was used before a restart: before there is a ledger."""
        if self.past is not None:
            self.past.recall(memory.borrowed)
        if self.local is not None:
            self.local.recall(memory.local_queues)

    def make_ledger(
        self, structure: Structure, topology: TopologyAssigner, local_queues: Iterable[LocalQueue]
    ) -> Ledger:
        """A ledger in which nobody holds anything yet, and that these rules follow."""
        past, local, tree = self.past, self.local, structure.tree
        watchers: list[Watcher] = []
        local_usage: Callable[[AdmittedWorkload], float] | None = None
        if past is not None:
            past.attach(tree)
            watchers.append(lambda admitted, before, after: past.note_change(admitted.node))
        if local is not None:
            local.attach(tree.columns, local_queues)
            watchers.append(local.note_change)
            local_usage = local.usage_of
        spares = self.runtime.spares if self.runtime.seconds > 0 else None
        return Ledger(
            tree, topology, structure.topology_flavors, spares=spares, local_usage=local_usage, watchers=watchers
        )

    def look_again(self, pending: Pending) -> None:
        """Have those tried again for whom time alone may have changed something."""
        queues = [
            pending.pending_queues[name].queue for name in self.runtime.came_of_age() if name in pending.pending_queues
        ]
        if self.past is not None and self.past.now >= self._table.looked_at + self._seconds_between_looks:
            self._table.look_at(self.past.now)
            queues += [pending_queue.queue for pending_queue in pending if pending_queue.is_waited_in]
        pending.retry(queues)

    def next_look(self, pending: Pending) -> float | None:
        """When to look again though nothing happens; None if there is no need."""
        times = [self.runtime.next]
        if self.past is not None and any(pending_queue.is_waited_in for pending_queue in pending):
            times.append(self._table.looked_at + self._seconds_between_looks)
        return min((time for time in times if time is not None), default=None)

    @property
    def _seconds_between_looks(self) -> float:
        return self.past.half_life_seconds / LOOKS_PER_HALF_LIFE if self.past is not None else inf

    def make_shares(self, tree: QuotaTree) -> Shares:
        return Shares(tree) if self.past is None else SharesWithPast(tree, self.past)

    def line_maker(self, preemptors: Logged[str, WorkloadKey]) -> Callable[[Queue], PendingQueue]:
        """Makes the line of a queue; `preemptors` says for whom others were preempted there."""
        local = self.local
        return lambda queue: (
            PendingQueueByUsage(queue, preemptors, local)
            if local is not None and queue.orders_by_usage
            else PendingQueue(queue, preemptors)
        )
