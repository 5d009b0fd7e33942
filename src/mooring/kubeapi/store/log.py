"""Where changes are made to last: one SQLite file in WAL mode, written by one thread, many changes in one commit."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue

from mooring.errors import ConfigError
from mooring.kubeapi.store.records import DELETED, Event, Record

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""
_LAYOUT = 1
"""Of the file; one written by a later Mooring is refused."""
Done = Callable[[Exception | None], None]


class SqliteLog:
    """The file behind a store. What `write` was called back for survives the process, and the machine."""

    def __init__(self, path: Path) -> None:
        try:
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            (layout,) = self._connection.execute("PRAGMA user_version").fetchone()
            if layout > _LAYOUT:
                raise ConfigError(str(path), "", expected=f"a file of layout {_LAYOUT}", found=f"layout {layout}")
            self._connection.executescript(_SCHEMA)
            self._connection.execute(f"PRAGMA user_version={_LAYOUT}")
        except sqlite3.Error as error:
            found = "one that another process has open" if "locked" in str(error) else str(error)
            raise ConfigError(str(path), "", expected="a file to keep the cluster in", found=found) from error
        self._batches: SimpleQueue[tuple[Sequence[Event], Done] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="store-writer", daemon=True)
        self._writer.start()

    def read(self) -> Iterator[tuple[str, Record]]:
        """Every object, with the table it is in."""
        rows = self._connection.execute("SELECT resource, namespace, name, revision, data FROM objects")
        for resource, namespace, name, revision, data in rows:
            yield resource, Record(namespace, name, revision, data)

    def revision(self) -> int:
        kept = self.kept("revision")
        return int(kept) if kept is not None else 0

    def kept(self, key: str) -> bytes | None:
        """Something beside the objects, such as a certificate's key."""
        row = self._connection.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
        return bytes(row[0]) if row else None

    def keep(self, key: str, value: bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (key, value))

    def write(self, events: Sequence[Event], done: Done) -> None:
        """Commit these changes together; `done` is called in the writer's thread."""
        self._batches.put((events, done))

    def close(self) -> None:
        self._batches.put(None)
        self._writer.join()
        self._connection.close()

    def _write_all(self) -> None:
        while (batch := self._batches.get()) is not None:
            events, done = batch
            try:
                self._commit(events)
            except Exception as error:
                done(error)
            else:
                done(None)

    def _commit(self, events: Sequence[Event]) -> None:
        """Of several changes of one object only the last is written."""
        latest = {(event.table, *event.record.key): event for event in events}
        gone = [key for key, event in latest.items() if event.type == DELETED]
        there = [(*key, event.revision, event.record.data) for key, event in latest.items() if event.type != DELETED]
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            if there:
                connection.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", there)
            if gone:
                connection.executemany("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", gone)
            connection.execute("INSERT OR REPLACE INTO kept VALUES ('revision', ?)", (b"%d" % events[-1].revision,))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
