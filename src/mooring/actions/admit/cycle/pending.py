"""Who waits in all queues: the lines that have somebody to try, and what brings back those that are parked."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from mooring.actions.admit.cycle.pending_queue import PendingQueue, Requeue
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.quota.workload_info import PendingWorkload
from mooring.model.keys import WorkloadKey
from mooring.state.related import RelatedObjects
from mooring.state.workloads import Condition


class Pending:
    """The lines of all queues, and which of them have someone to try."""

    def __init__(
        self,
        structure: Structure,
        labels_of: Mapping[str, Mapping[str, str]],
        make_line: Callable[[Queue], PendingQueue],
    ) -> None:
        self.pending_queues = {name: make_line(queue) for name, queue in structure.queues.items()}
        self._labels_of = labels_of
        self._ready: dict[str, None] = {}
        self._line_of: dict[WorkloadKey, PendingQueue] = {}
        self.changed: set[int] = set()
        """The roots of trees in which somebody came, went or may be tried again; whoever reads it clears it."""
        self._unparked: set[int] = set()
        """The roots of trees in which nobody was parked since quota was last freed there."""
        self._by_root: dict[int, list[PendingQueue]] = {}
        for pending_queue in self.pending_queues.values():
            self._by_root.setdefault(pending_queue.queue.root, []).append(pending_queue)

    def __iter__(self) -> Iterator[PendingQueue]:
        return iter(self.pending_queues.values())

    def add(self, pending: PendingWorkload) -> None:
        pending_queue = self._line_of[pending.key] = self.pending_queues[pending.queue_name]
        pending_queue.add(pending)
        self.changed.add(pending_queue.queue.root)
        self._note(pending_queue)

    def discard(self, key: WorkloadKey) -> bool:
        """Take a waiting workload out; False if there is none of that name."""
        pending_queue = self._line_of.get(key)
        if pending_queue is None or pending_queue.discard(key) is None:
            return False
        pending_queue.admitted(key)
        self.changed.add(pending_queue.queue.root)
        self._note(pending_queue)
        del self._line_of[key]
        return True

    def find(self, key: WorkloadKey) -> PendingWorkload | None:
        """The waiting workload of that name, if there is one."""
        pending_queue = self._line_of.get(key)
        return None if pending_queue is None else pending_queue.find(key)

    def words_for(self, key: WorkloadKey) -> Condition | None:
        """What can be said of a waiting workload that was not tried; None if nobody of that name waits."""
        pending = self.find(key)
        return None if pending is None else self._line_of[key].words_for(pending)

    def try_again(self, keys: Iterable[WorkloadKey]) -> None:
        """Something happened that may help these workloads, if they are parked."""
        for key in keys:
            pending_queue = self._line_of.get(key)
            pending = None if pending_queue is None or not pending_queue.is_parked(key) else pending_queue.find(key)
            if pending_queue is not None and pending is not None:
                pending_queue.activate(pending)
                self.changed.add(pending_queue.queue.root)
                self._note(pending_queue)

    @property
    def has_heads(self) -> bool:
        return bool(self._ready)

    def count_waiting(self, root: int) -> int:
        """How many workloads wait in the queues of a tree of cohorts."""
        return sum(pending_queue.waiting_count for pending_queue in self._by_root.get(root, ()))

    def has_heads_outside(self, asleep: Collection[int]) -> bool:
        """Tell whether there is anyone to try in a tree that is not among the given ones."""
        return any(self.pending_queues[name].queue.root not in asleep for name in self._ready)

    def pop_heads(self, asleep: Collection[int] = ()) -> list[PendingWorkload]:
        """Take one workload from every active queue that has any, but for the trees that sleep."""
        heads = []
        for name in list(self._ready):
            pending_queue = self.pending_queues[name]
            if pending_queue.queue.root in asleep:
                continue
            heads.append(pending_queue.pop())
            self._note(pending_queue)
        return heads

    def put_back(self, pending: PendingWorkload, why: Requeue, condition: Condition) -> list[WorkloadKey]:
        pending_queue = self.pending_queues[pending.queue_name]
        peers = pending_queue.put_back(pending, why, condition)
        self._unparked.discard(pending_queue.queue.root)
        self._note(pending_queue)
        return peers

    def admitted(self, pending: PendingWorkload) -> None:
        self._line_of.pop(pending.key).admitted(pending.key)

    def admits_namespace(self, pending: PendingWorkload) -> bool:
        return self.pending_queues[pending.queue_name].admits_namespace(pending, self._labels_of)

    def retry(self, queues: Iterable[Queue], *, is_news: bool = True) -> None:
        """Quota was freed in these queues: try again what is parked anywhere in their trees.

        `is_news=False`: a cycle did that itself, and it does not count as a change from outside.
        """
        for root in {queue.root: None for queue in queues}:
            if is_news:
                self.changed.add(root)
            if root in self._unparked:
                continue
            pending_queues = self._by_root[root]
            for pending_queue in pending_queues:
                pending_queue.retry(self._labels_of)
                self._note(pending_queue)
            if not any(pending_queue.has_parked for pending_queue in pending_queues):
                self._unparked.add(root)

    def _note(self, pending_queue: PendingQueue) -> None:
        if len(pending_queue) and pending_queue.queue.is_active:
            self._ready[pending_queue.queue.name] = None
        else:
            self._ready.pop(pending_queue.queue.name, None)


class NamespaceLabels(Mapping[str, Mapping[str, str]]):
    """By namespace, its labels as they are now."""

    def __init__(self, related: RelatedObjects) -> None:
        self._related = related

    def __getitem__(self, namespace: str) -> Mapping[str, str]:
        return self._related.namespaces[namespace].metadata.labels or {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._related.namespaces)

    def __len__(self) -> int:
        return len(self._related.namespaces)
