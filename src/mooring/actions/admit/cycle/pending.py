"""Who waits in all queues: the lines that have somebody to try, and what brings back those that are parked."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from mooring.actions.admit.cycle.line import Line, Requeue
from mooring.actions.admit.lifecycle.conditions import Condition
from mooring.actions.admit.quota.structure import Queue, Structure
from mooring.actions.admit.workload_info import PendingWorkload
from mooring.model.keys import WorkloadKey
from mooring.state.related import RelatedObjects


class Pending:
    """The lines of all queues, and which of them have someone to try."""

    def __init__(
        self,
        structure: Structure,
        labels_of: Mapping[str, Mapping[str, str]],
        make_line: Callable[[Queue], Line] = Line,
    ) -> None:
        self.lines = {name: make_line(queue) for name, queue in structure.queues.items()}
        self._labels_of = labels_of
        self._ready: dict[str, None] = {}
        self._line_of: dict[WorkloadKey, Line] = {}
        self.changed: set[int] = set()
        """The roots of trees in which somebody came, went or may be tried again; whoever reads it clears it."""
        self._unparked: set[int] = set()
        """The roots of trees in which nobody was parked since quota was last freed there."""
        self._by_root: dict[int, list[Line]] = {}
        for line in self.lines.values():
            self._by_root.setdefault(line.queue.root, []).append(line)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines.values())

    def add(self, pending: PendingWorkload) -> None:
        line = self._line_of[pending.key] = self.lines[pending.queue_name]
        line.add(pending)
        self.changed.add(line.queue.root)
        self._note(line)

    def discard(self, key: WorkloadKey) -> bool:
        """Take a waiting workload out; False if there is none of that name."""
        line = self._line_of.get(key)
        if line is None or line.discard(key) is None:
            return False
        line.admitted(key)
        self.changed.add(line.queue.root)
        self._note(line)
        del self._line_of[key]
        return True

    def find(self, key: WorkloadKey) -> PendingWorkload | None:
        """The waiting workload of that name, if there is one."""
        line = self._line_of.get(key)
        return None if line is None else line.find(key)

    def words_for(self, key: WorkloadKey) -> Condition | None:
        """What can be said of a waiting workload that was not tried; None if nobody of that name waits."""
        pending = self.find(key)
        return None if pending is None else self._line_of[key].words_for(pending)

    def try_again(self, keys: Iterable[WorkloadKey]) -> None:
        """Something happened that may help these workloads, if they are parked."""
        for key in keys:
            line = self._line_of.get(key)
            pending = None if line is None or not line.is_parked(key) else line.find(key)
            if line is not None and pending is not None:
                line.activate(pending)
                self.changed.add(line.queue.root)
                self._note(line)

    @property
    def has_heads(self) -> bool:
        return bool(self._ready)

    def has_heads_outside(self, asleep: Collection[int]) -> bool:
        """Tell whether there is anyone to try in a tree that is not among the given ones."""
        return any(self.lines[name].queue.root not in asleep for name in self._ready)

    def pop_heads(self, asleep: Collection[int] = ()) -> list[PendingWorkload]:
        """Take one workload from every active queue that has any, but for the trees that sleep."""
        heads = []
        for name in list(self._ready):
            line = self.lines[name]
            if line.queue.root in asleep:
                continue
            heads.append(line.pop())
            self._note(line)
        return heads

    def put_back(self, pending: PendingWorkload, why: Requeue, condition: Condition) -> list[WorkloadKey]:
        line = self.lines[pending.queue_name]
        peers = line.put_back(pending, why, condition)
        self._unparked.discard(line.queue.root)
        self._note(line)
        return peers

    def admitted(self, pending: PendingWorkload) -> None:
        self._line_of.pop(pending.key).admitted(pending.key)

    def admits_namespace(self, pending: PendingWorkload) -> bool:
        return self.lines[pending.queue_name].admits_namespace(pending, self._labels_of)

    def retry(self, queues: Iterable[Queue]) -> None:
        """Quota was freed in these queues: try again what is parked anywhere in their trees."""
        for root in {queue.root: None for queue in queues}:
            self.changed.add(root)
            if root in self._unparked:
                continue
            lines = self._by_root[root]
            for line in lines:
                line.retry(self._labels_of)
                self._note(line)
            if not any(line.has_parked for line in lines):
                self._unparked.add(root)

    def _note(self, line: Line) -> None:
        if len(line) and line.queue.is_active:
            self._ready[line.queue.name] = None
        else:
            self._ready.pop(line.queue.name, None)


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
