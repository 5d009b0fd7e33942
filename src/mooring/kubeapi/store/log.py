"""Where changes are made to last: one SQLite file in WAL mode, written by one thread, many changes in one commit."""

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue

import msgspec

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


class _About(msgspec.Struct):
    name: str = ""


class _Stored(msgspec.Struct):
    metadata: _About


_decode = msgspec.json.Decoder(_Stored).decode


def _identity(data: object) -> _About | None:
    """The metadata of a stored object; None if it is none."""
    try:
        return _decode(data).metadata if isinstance(data, bytes) else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def damaged(path: Path, found: str) -> ConfigError:
    return ConfigError(str(path), "", expected="a cluster that `mooring up` has kept", found=f"a damaged file: {found}")


def _check_folder(path: Path) -> None:
    """The file holds private keys and all Secrets: others must not be able to put another in its place."""
    folder = path.resolve().parent
    try:
        mode = folder.stat().st_mode
    except OSError as error:
        found = f"{folder} ({(error.strerror or str(error)).lower()})"
        raise ConfigError(str(path), "", expected="a folder to keep the file in", found=found) from error
    if os.name == "posix" and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        found = f"{folder} with mode {stat.S_IMODE(mode):04o}"
        raise ConfigError(str(path), "", expected="a folder that not everybody can write to", found=found)


def _keep_private(path: Path) -> None:
    """Let nobody else read the file and its parts, whether they are new or from an older version."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    os.close(descriptor)
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        if each.exists():
            each.chmod(0o600)


class SqliteLog:
    """The file behind a store. What `write` was called back for survives the process, and the machine."""

    def __init__(self, path: Path) -> None:
        _check_folder(path)
        try:
            _keep_private(path)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            (layout,) = self._connection.execute("PRAGMA user_version").fetchone()
            if layout > _LAYOUT:
                raise ConfigError(str(path), "", expected=f"a file of layout {_LAYOUT}", found=f"layout {layout}")
            self._connection.executescript(_SCHEMA)
            self._connection.execute(f"PRAGMA user_version={_LAYOUT}")
            (health,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
            if health != "ok":
                raise damaged(path, " ".join(str(health).split()))
        except (sqlite3.Error, OSError) as error:
            found = "one that another process has open" if "locked" in str(error) else str(error)
            raise ConfigError(str(path), "", expected="a file to keep the cluster in", found=found) from error
        self.path = path
        self._batches: SimpleQueue[tuple[Sequence[Event], Done] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="store-writer", daemon=True)
        self._writer.start()

    def read(self) -> Iterator[tuple[str, Record]]:
        """Every object, with the table it is in."""
        try:
            rows = self._connection.execute("SELECT resource, namespace, name, revision, data FROM objects")
            for resource, namespace, name, revision, data in rows:
                record = Record(namespace, name, revision, data)
                if (about := _identity(data)) is None or about.name not in ("", name):
                    raise damaged(self.path, f"{resource} {namespace}/{name} is no object of that name")
                yield resource, record
        except sqlite3.Error as error:
            raise damaged(self.path, str(error)) from error

    def revision(self) -> int:
        kept = self.kept("revision")
        if kept is None:
            return 0
        if not (kept.isdigit() and len(kept) < 20):
            raise damaged(self.path, f"{kept!r} is no revision")
        return int(kept)

    def kept(self, key: str) -> bytes | None:
        """Something beside the objects, such as a certificate's key."""
        row = self._connection.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return row[0].encode() if isinstance(row[0], str) else bytes(row[0])

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
            # A full disk ends the transaction by itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
