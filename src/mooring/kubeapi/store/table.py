"""The objects of one resource, in the order in which lists give them: by namespace, then by name."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

from mooring.kubeapi.store.records import Event, Record
from mooring.kubeapi.store.watch import Watch

Key = tuple[str, str]


class Table:
    """One resource's objects, the changes still remembered, and who watches."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Record]] = {}
        self._sorted: dict[str, list[str] | None] = {}
        self.events: deque[Event] = deque()
        """What has changed of late, oldest first."""
        self.watches: dict[str | None, set[Watch]] = {}
        """By the namespace that they look at; None looks at all."""

    def __len__(self) -> int:
        return sum(len(records) for records in self._namespaces.values())

    def get(self, namespace: str, name: str) -> Record | None:
        records = self._namespaces.get(namespace)
        return records.get(name) if records is not None else None

    def set(self, record: Record) -> None:
        records = self._namespaces.setdefault(record.namespace, {})
        if record.name not in records:
            self._sorted[record.namespace] = None
        records[record.name] = record

    def remove(self, namespace: str, name: str) -> None:
        records = self._namespaces[namespace]
        del records[name]
        self._sorted[namespace] = None
        if not records:
            del self._namespaces[namespace], self._sorted[namespace]

    def records(self, namespace: str | None = None, after: Key | None = None) -> Iterator[Record]:
        """The objects of one or all namespaces, in order, from the one after a key on."""
        for each in (namespace,) if namespace is not None else sorted(self._namespaces):
            if after is not None and each < after[0]:
                continue
            names = self._names(each)
            start = bisect_right(names, after[1]) if after is not None and each == after[0] else 0
            records = self._namespaces.get(each, {})
            for index in range(start, len(names)):
                yield records[names[index]]

    def _names(self, namespace: str) -> list[str]:
        if namespace not in self._namespaces:
            return []
        names = self._sorted[namespace]
        if names is None:
            names = self._sorted[namespace] = sorted(self._namespaces[namespace])
        return names

    def records_at(self, revision: int, namespace: str | None, after: Key | None) -> list[Record]:
        """The objects as they were at an earlier revision, as far back as changes are remembered."""
        undone: dict[Key, Record | None] = {}
        for event in reversed(self.events):
            if event.revision <= revision:
                break
            undone[event.record.key] = event.before
        if not undone:
            return list(self.records(namespace, after))
        found = [record for record in self.records(namespace, after) if record.key not in undone]
        for key, record in undone.items():
            if record is not None and (namespace is None or key[0] == namespace) and (after is None or key > after):
                found.append(record)
        return sorted(found, key=lambda record: record.key)
