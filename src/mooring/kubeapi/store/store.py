"""The store: decides at once, in memory, in one thread; makes changes last in groups; then tells who watches.

A write is applied and gets its revision when it is made, so there is nothing to lock and no update is lost. It is
*published* when it is on disk: only then do watchers and subscribers hear of it, and only then may an answer that shows
it be sent (`await committed(revision)`).
"""

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import SimpleQueue

from mooring.errors import MooringError
from mooring.kubeapi.status import Object, gone_revision, internal, too_large, too_large_revision
from mooring.kubeapi.store.log import SqliteLog
from mooring.kubeapi.store.records import ADDED, DELETED, MODIFIED, Event, Record, make_record
from mooring.kubeapi.store.table import Key, Table
from mooring.kubeapi.store.watch import Selects, Watch

log = logging.getLogger(__name__)
Callback = Callable[[Event], None]
MOST_EVENTS, MOST_BYTES = 200_000, 128 * 1024 * 1024
"""How much of the past is remembered for watches and continued lists, in changes and in bytes of them."""
RETRY_SECONDS = 1.0
"""Between attempts to write what could not be written."""
LARGEST_OBJECT = 2 * 1024 * 1024
"""Bytes of JSON; etcd keeps 1.5 MiB of a denser form."""


class Store:
    """All objects. Without an event loop (`attach` was not called) changes are published by `flush`."""

    def __init__(self, log: SqliteLog | None = None, *, most_events: int = MOST_EVENTS) -> None:
        self.revision = 1
        """Of the last change."""
        self.published = 1
        """Of the last change that is on disk and that everyone has heard of."""
        self.compacted = 1
        """What happened up to here is forgotten."""
        self._log = log
        self._tables: dict[str, Table] = {}
        self._subscribers: dict[str, list[Callback]] = {}
        self._observers: dict[str, list[Callback]] = {}
        self._observers_of_all: list[Callback] = []
        self._remembered: deque[tuple[int, Table]] = deque()
        self._most_events, self._bytes = most_events, 0
        self._pending: list[Event] = []
        self._is_writing = False
        self._is_due = False
        self._failure: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        if log is not None:
            for table, record in log.read():
                self.table(table).set(record)
            self.revision = self.published = self.compacted = max(1, log.revision())

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on publish by itself, in this loop."""
        self._loop = loop
        self._schedule()

    def table(self, name: str) -> Table:
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table()
        return found

    def tables(self) -> list[str]:
        return [name for name, table in self._tables.items() if len(table)]

    def get(self, table: str, namespace: str, name: str) -> Record | None:
        return self.table(table).get(namespace, name)

    def records(self, table: str, namespace: str | None = None) -> Iterable[Record]:
        return self.table(table).records(namespace)

    def records_at(self, table: str, revision: int, namespace: str | None, after: Key | None) -> list[Record]:
        """Raises 410 where the revision is forgotten, 504 where it is still to come."""
        if revision > self.revision:
            raise too_large_revision(revision, self.revision)
        if revision < self.compacted:
            raise gone_revision(revision, self.compacted)
        return self.table(table).records_at(revision, namespace, after)

    # Changes

    def put(self, table: str, namespace: str, name: str, obj: Object) -> Record:
        """Create or replace an object; `obj` gets its new resourceVersion."""
        self._check_works()
        held = self.table(table)
        before = held.get(namespace, name)
        record = make_record(namespace, name, self.revision + 1, obj)
        if len(record.data) > LARGEST_OBJECT:
            raise too_large(LARGEST_OBJECT)
        self.revision += 1
        held.set(record)
        self._happened(held, Event(table, ADDED if before is None else MODIFIED, record, before))
        return record

    def remove(self, table: str, namespace: str, name: str, obj: Object) -> Record:
        """Take an object away; `obj` is its last state, which gets the revision of its end."""
        self._check_works()
        held = self.table(table)
        before = held.get(namespace, name)
        self.revision += 1
        record = make_record(namespace, name, self.revision, obj)
        held.remove(namespace, name)
        self._happened(held, Event(table, DELETED, record, before))
        return record

    @property
    def failure(self) -> str:
        """Why changes cannot be kept at the moment; empty if they can."""
        return str(self._failure) if self._failure is not None else ""

    def _check_works(self) -> None:
        if self._failure is not None:
            raise internal(f"the store cannot be written to: {self._failure}")

    def _happened(self, table: Table, event: Event) -> None:
        table.events.append(event)
        self._remembered.append((event.revision, table))
        self._bytes += len(event.record.data)
        self._pending.append(event)
        for callback in (*self._observers.get(event.table, ()), *self._observers_of_all):
            callback(event)
        while len(self._remembered) > self._most_events or self._bytes > MOST_BYTES:
            self._forget_oldest()
        self._schedule()

    def _forget_oldest(self) -> None:
        revision, table = self._remembered.popleft()
        self._bytes -= len(table.events.popleft().record.data)
        self.compacted = revision

    def compact(self) -> None:
        """Forget the past: who asks for it gets 410 and lists again."""
        while self._remembered and self._remembered[0][0] <= self.published:
            self._forget_oldest()
        self.compacted = self.published

    # From decided to published

    def _schedule(self) -> None:
        if self._loop is not None and not self._is_due and not self._is_writing and self._pending:
            self._is_due = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_due = False
        if self._is_writing or not self._pending:
            return
        events, self._pending = self._pending, []
        loop = self._loop
        if self._log is None or loop is None:
            self._publish(events)
            self._schedule()
            return
        self._is_writing = True
        self._log.write(events, lambda error: self._tell(loop, events, error))

    def _tell(self, loop: asyncio.AbstractEventLoop, events: Sequence[Event], error: Exception | None) -> None:
        """Called in the writer's thread; a loop that has ended no longer wants to know."""
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._written, events, error)

    def _written(self, events: Sequence[Event], error: Exception | None) -> None:
        self._is_writing = False
        if error is not None:
            if self._failure is None:
                log.error("the store cannot be written to: %s", error)
            self._failure = error
            self._pending = [*events, *self._pending]
            if self._loop is not None:
                self._loop.call_later(RETRY_SECONDS, self._write)
            waiters, self._waiting = self._waiting, []
            for _, _, waiting in waiters:
                if not waiting.done():
                    waiting.set_exception(internal(f"the store cannot be written to: {error}"))
            return
        if self._failure is not None:
            log.warning("the store can be written to again")
            self._failure = None
        self._publish(events)
        self._schedule()

    def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            watches = self._tables[event.table].watches
            for namespace in (event.namespace, None) if event.namespace else (None,):
                for watch in tuple(watches.get(namespace, ())):
                    watch.offer(event)
            for callback in tuple(self._subscribers.get(event.table, ())):
                try:
                    callback(event)
                except Exception:
                    log.exception("a subscriber to %s failed", event.table)
        self.published = events[-1].revision
        while self._waiting and self._waiting[0][0] <= self.published:
            _, _, waiting = heapq.heappop(self._waiting)
            if not waiting.done():
                waiting.set_result(None)

    def flush(self) -> None:
        """Make everything last and publish it now; for tests and for the end, when no loop does."""
        while self._pending:
            events, self._pending = self._pending, []
            if self._log is not None:
                self._write_now(events)
            self._publish(events)

    def abandon(self) -> None:
        """Give up the changes that are not on disk yet: for the end, when they turn out to be part of a mistake."""
        self._pending.clear()

    def _write_now(self, events: Sequence[Event]) -> None:
        assert self._log is not None
        outcome: SimpleQueue[Exception | None] = SimpleQueue()
        self._log.write(events, outcome.put)
        if (error := outcome.get()) is not None:
            raise MooringError(f"the store cannot be written to: {error}")

    async def committed(self, revision: int) -> None:
        """Wait until a change that was made is published; a revision that does not exist yet is an error, since
        nothing says that it will ever come."""
        if revision <= self.published:
            return
        if revision > self.revision:
            raise too_large_revision(revision, self.revision)
        self._check_works()
        waiting = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (revision, next(self._numbers), waiting))
        await waiting

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        self._loop = None
        if self._failure is None:
            self.flush()
        if self._log is not None:
            self._log.close()

    # Who hears of changes

    def subscribe(self, table: str, callback: Callback) -> Callable[[], None]:
        """Call back for each change, in order, from the next one on; the result ends it."""
        callbacks = self._subscribers.setdefault(table, [])
        callbacks.append(callback)
        return lambda: callbacks.remove(callback) if callback in callbacks else None

    def observe(self, table: str | None, callback: Callback) -> None:
        """Call back from within each change of a table, or of all (None), before the call that makes it returns: for
        what in process has to know the store as it is. What follows from a change is written after it, so a crash
        loses no cause of an effect. `callback` may only take notes."""
        if table is None:
            self._observers_of_all.append(callback)
        else:
            self._observers.setdefault(table, []).append(callback)

    def watch(self, table: str, namespace: str | None, since: int, selects: Selects | None = None) -> Watch:
        """Follow the changes after a revision, remembered ones first; raises 410 where they are forgotten."""
        if since < self.compacted:
            raise gone_revision(since, self.compacted)
        watch = Watch(table, namespace, since, selects)
        held = self.table(table)
        missed = []
        for event in reversed(held.events):
            if event.revision <= since:
                break
            if event.revision <= self.published and (namespace is None or event.namespace == namespace):
                missed.append(event)
        for event in reversed(missed):
            watch.offer(event)
        held.watches.setdefault(namespace, set()).add(watch)
        return watch

    def end_watches(self) -> None:
        """Tell every reader that it is over."""
        for table in self._tables.values():
            for watches in table.watches.values():
                for watch in watches:
                    watch.end()

    def unwatch(self, watch: Watch) -> None:
        watches = self.table(watch.table).watches
        readers = watches.get(watch.namespace, set())
        readers.discard(watch)
        if not readers:
            watches.pop(watch.namespace, None)
