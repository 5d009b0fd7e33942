"""One reader of a table's changes: those of a namespace, or that a selector selects."""

from collections import deque
from collections.abc import Callable

from mooring.kubeapi.store.records import ADDED, DELETED, Event, Record

Selects = Callable[[Record], bool]
MOST_WAITING, MOST_WAITING_BYTES = 200_000, 32 * 1024 * 1024
"""Changes that may wait for a reader that does not read, and the bytes of those: after that its watch ends. What had
happened before the watch began does not count: the store remembers it anyway."""


class Watch:
    """The changes after a revision that a reader has yet to take, in order, each once."""

    __slots__ = ("_wake", "is_over", "namespace", "selects", "since", "table", "waiting", "waiting_bytes")

    def __init__(self, table: str, namespace: str | None, since: int, selects: Selects | None) -> None:
        self.table, self.namespace, self.since, self.selects = table, namespace, since, selects
        self.waiting: deque[tuple[str, Record]] = deque()
        self.waiting_bytes = 0
        self.is_over = False
        self._wake: Callable[[], None] | None = None

    def offer(self, event: Event) -> None:
        """Note a change, if it concerns this reader."""
        if event.revision <= self.since or self.is_over:
            return
        if self.selects is None:
            self._note(event.type, event.record)
            return
        was = event.before is not None and self.selects(event.before)
        is_now = event.type != DELETED and self.selects(event.record)
        if is_now:
            self._note(event.type if was else ADDED, event.record)
        elif was:
            self._note(DELETED, event.record if event.type == DELETED else event.departed)

    def _note(self, type_: str, record: Record) -> None:
        self.waiting.append((type_, record))
        self.waiting_bytes += len(record.data)
        if self._wake is not None and (len(self.waiting) > MOST_WAITING or self.waiting_bytes > MOST_WAITING_BYTES):
            self.waiting.clear()
            self.end()
        elif self._wake is not None:
            self._wake()

    def take(self, most: int, most_bytes: int) -> list[tuple[str, Record]]:
        """The next changes, one at least if there is any."""
        found: list[tuple[str, Record]] = []
        size = 0
        while self.waiting and len(found) < most and size < most_bytes:
            change = self.waiting.popleft()
            size += len(change[1].data)
            found.append(change)
        self.waiting_bytes = max(0, self.waiting_bytes - size)
        return found

    def end(self) -> None:
        self.is_over = True
        if self._wake is not None:
            self._wake()

    def on_change(self, wake: Callable[[], None] | None) -> None:
        """Call `wake` whenever something comes; what waits already is not counted against the reader."""
        self.waiting_bytes = 0
        self._wake = wake
