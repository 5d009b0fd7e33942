"""One reader of a table's changes: those of a namespace, or that a selector selects."""

from collections import deque
from collections.abc import Callable

from mooring.kubeapi.store.records import ADDED, DELETED, Event, Record

Selects = Callable[[Record], bool]
MOST_WAITING = 200_000
"""Changes that may wait for a reader who does not read: after that its watch ends, and it has to list again."""


class Watch:
    """The changes after a revision that a reader has yet to take, in order, each once."""

    __slots__ = ("_wake", "is_over", "namespace", "selects", "since", "table", "waiting")

    def __init__(self, table: str, namespace: str | None, since: int, selects: Selects | None) -> None:
        self.table, self.namespace, self.since, self.selects = table, namespace, since, selects
        self.waiting: deque[tuple[str, Record]] = deque()
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
        if len(self.waiting) > MOST_WAITING:
            self.end()
        elif self._wake is not None:
            self._wake()

    def end(self) -> None:
        self.is_over = True
        if self._wake is not None:
            self._wake()

    def on_change(self, wake: Callable[[], None] | None) -> None:
        """Call `wake` whenever something comes."""
        self._wake = wake
