"""Keep the objects on disk, in a SQLite file that is some tens of milliseconds behind the store.

Requests do not wait for a transaction. `Persistence` collects the newest state of each changed object, and a thread
writes all of them in one transaction every 50 ms, so that a burst of changes to one object costs one row.
Changes that are not in the database yet are in a log file, the tail (tail.py), so a killed process loses no write
that it has confirmed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
from pathlib import Path

from sandbox.apiserver.model.entry import Entry, Key
from sandbox.apiserver.storage.tail import Tail

log = logging.getLogger(__name__)

BATCH_INTERVAL_S = 0.05
#: After a kill resourceVersions go on this far above the last saved one, so that none is used twice.
VERSION_GAP = 10_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  storage TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  version INTEGER NOT NULL, raw BLOB NOT NULL,
  PRIMARY KEY (storage, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (version INTEGER NOT NULL, clean INTEGER NOT NULL);
"""

#: Storage key of the kind, namespace, name, version, JSON.
Row = tuple[str, str, str, int, bytes]
#: Storage key of the kind, namespace, name.
RowKey = tuple[str, str, str]


class HomeInUseError(Exception):
    """Another server uses the same home directory."""


def _lock_home(path: Path) -> int:
    """Lock a home directory and return the descriptor of its lock file.

    The system releases the lock when the process ends, even by a kill.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder_pid = os.read(descriptor, 32).decode() or "unknown"
        os.close(descriptor)
        raise HomeInUseError(
            f"{path.parent} is in use by the sandbox with pid {holder_pid}"
        ) from error
    os.truncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor


class Persistence:
    """The database file and the thread that writes it; the store calls `record` for each change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._home_lock = _lock_home(path.with_suffix(".lock"))
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, Key], Entry | None] = {}
        self._tail = Tail(path)
        #: The last used version, as it is saved in the table `counter`.
        self._last_version = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sandbox-persistence", daemon=True)

    def load(self) -> tuple[int, list[Row]]:
        """Return the last used version and all saved objects, and mark the database as not cleanly closed."""
        connection = self._connect()
        try:
            connection.executescript(_SCHEMA)
            counter = connection.execute("SELECT version, clean FROM counter").fetchone()
            self._take_over_tail(connection)
            rows = connection.execute("SELECT * FROM objects").fetchall()
            # A new database has no counter: it starts at version 1 as if cleanly closed.
            version, clean = counter or (1, 1)
            version = max([version, *(row[3] for row in rows)])
            if not clean:
                version += VERSION_GAP
            self._last_version = version
            self._save_counter(connection, clean=False)
            connection.commit()
            # All changes in the files of the tail are in the database now.
            self._tail.forget(self._tail.close_batch())
        finally:
            connection.close()
        return version, rows

    def start(self) -> None:
        """Start the thread that writes the changes."""
        self._thread.start()

    def record(self, storage: str, key: Key, entry: Entry | None) -> None:
        """Note a change of an object, to be written with the next batch; None if the object was deleted."""
        with self._lock:
            self._pending[storage, key] = entry
            try:
                self._tail.append(storage, key, entry)
            except OSError:  # e.g. a full disk: the change is still in memory and part of its batch
                log.exception("could not append a change of %s to the tail of %s", key, self._path)

    def stop(self, version: int) -> None:
        """Write what is pending, and mark the database as cleanly closed at `version`, the last used one."""
        self._stopping.set()
        self._thread.join()
        self._last_version = version
        connection = self._connect()
        try:
            self._write(connection)
            self._save_counter(connection, clean=True)
            connection.commit()
        finally:
            connection.close()
            os.close(self._home_lock)

    def _run(self) -> None:
        connection = self._connect()
        try:
            while not self._stopping.wait(BATCH_INTERVAL_S):
                self._write(connection)
        finally:
            connection.close()

    def _write(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            batch, self._pending = self._pending, {}
            batch_number = self._tail.close_batch()
        if not batch:
            return
        new_rows: list[Row] = [
            (storage, *key, entry.version, entry.raw)
            for (storage, key), entry in batch.items()
            if entry is not None
        ]
        deleted_keys = [(storage, *key) for (storage, key), entry in batch.items() if entry is None]
        try:
            self._save(connection, new_rows, deleted_keys)
        except sqlite3.Error:
            # A full disk may get room again: try these changes again with the next batch.
            log.exception("could not save %d changes to %s, will retry", len(batch), self._path)
            with self._lock:
                self._pending = {**batch, **self._pending}
        else:
            self._tail.forget(batch_number)

    def _take_over_tail(self, connection: sqlite3.Connection) -> None:
        """Save the changes that a killed server had confirmed but not saved."""
        newest: dict[RowKey, tuple[int, bytes | None]] = {}
        for storage, namespace, name, version, raw in self._tail.changes():
            newest[storage, namespace, name] = (version, raw)
        new_rows = [
            (*key, version, raw) for key, (version, raw) in newest.items() if raw is not None
        ]
        deleted_keys = [key for key, (_, raw) in newest.items() if raw is None]
        self._save(connection, new_rows, deleted_keys)

    def _save(
        self,
        connection: sqlite3.Connection,
        new_rows: list[Row],
        deleted_keys: list[RowKey],
    ) -> None:
        with connection:
            connection.executemany(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", new_rows
            )
            connection.executemany(
                "DELETE FROM objects WHERE storage = ? AND namespace = ? AND name = ?", deleted_keys
            )

    def _save_counter(self, connection: sqlite3.Connection, *, clean: bool) -> None:
        connection.execute("DELETE FROM counter")
        connection.execute("INSERT INTO counter VALUES (?, ?)", (self._last_version, int(clean)))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection
