"""Objects on disk: a SQLite file, at most some tens of milliseconds behind the store.

Requests do not wait for a transaction. The journal holds the newest state of each changed key; a thread
writes all of them in one transaction every 50 ms, so that a burst of changes to one object costs one row.
Changes that are not in the database yet are in the tail (tail.py), so a killed process loses no write that
it has answered. `VERSION_GAP` prevents resourceVersions from being used twice after a kill.
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
VERSION_GAP = 10_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  storage TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  version INTEGER NOT NULL, raw BLOB NOT NULL,
  PRIMARY KEY (storage, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (version INTEGER NOT NULL, clean INTEGER NOT NULL);
"""

Row = tuple[str, str, str, int, bytes]


class HomeInUseError(Exception):
    """Another server uses the same home directory."""


def _claim(path: Path) -> int:
    """Lock a home directory; the system releases the lock when the process ends, even by a kill."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode() or "unknown"
        os.close(descriptor)
        raise HomeInUseError(f"{path.parent} is in use by the sandbox with pid {holder}") from error
    os.truncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor


class Persistence:
    """The database file and the thread that writes it; the store calls `record` for each change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = _claim(path.with_suffix(".lock"))
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, Key], Entry | None] = {}
        self._tail = Tail(path)
        self._latest = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sandbox-journal", daemon=True)

    def load(self) -> tuple[int, list[Row]]:
        """Return the last used version and all saved objects, and mark the file as in use."""
        connection = self._connect()
        try:
            connection.executescript(_SCHEMA)
            counter = connection.execute("SELECT version, clean FROM counter").fetchone()
            self._take_over_tail(connection)
            rows = connection.execute("SELECT * FROM objects").fetchall()
            version, clean = counter or (1, 1)
            version = max([version, *(row[3] for row in rows)])
            if not clean:
                version += VERSION_GAP
            self._latest = version
            self._save_counter(connection, clean=False)
            connection.commit()
            self._tail.forget(self._tail.close_batch())
        finally:
            connection.close()
        return version, rows

    def start(self) -> None:
        self._thread.start()

    def record(self, storage: str, key: Key, entry: Entry | None) -> None:
        with self._lock:
            self._pending[storage, key] = entry
            try:
                self._tail.append(storage, key, entry)
            except OSError:  # e.g. a full disk: the change is still in memory and part of its batch
                log.exception("could not append a change of %s to the tail of %s", key, self._path)

    def stop(self, version: int) -> None:
        """Write what is pending and record that the file is complete up to `version`."""
        self._stopping.set()
        self._thread.join()
        self._latest = version
        connection = self._connect()
        try:
            self._write(connection)
            self._save_counter(connection, clean=True)
            connection.commit()
        finally:
            connection.close()
            os.close(self._guard)

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
            number = self._tail.close_batch()
        if not batch:
            return
        puts: list[Row] = [
            (storage, *key, entry.version, entry.raw)
            for (storage, key), entry in batch.items()
            if entry is not None
        ]
        drops = [(storage, *key) for (storage, key), entry in batch.items() if entry is None]
        try:
            self._save(connection, puts, drops)
        except sqlite3.Error:
            # A full disk may get room again: try these changes again with the next batch.
            log.exception("could not save %d changes to %s, will retry", len(batch), self._path)
            with self._lock:
                self._pending = {**batch, **self._pending}
        else:
            self._tail.forget(number)

    def _take_over_tail(self, connection: sqlite3.Connection) -> None:
        """Save the changes that a killed server had answered but not saved."""
        newest = {change[:3]: change for change in self._tail.changes()}
        puts = [(*key, c[3], c[4]) for key, c in newest.items() if c[4] is not None]
        self._save(connection, puts, [key for key, c in newest.items() if c[4] is None])

    def _save(
        self,
        connection: sqlite3.Connection,
        puts: list[Row],
        drops: list[tuple[str, str, str]],
    ) -> None:
        with connection:
            connection.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", puts)
            connection.executemany(
                "DELETE FROM objects WHERE storage = ? AND namespace = ? AND name = ?", drops
            )

    def _save_counter(self, connection: sqlite3.Connection, *, clean: bool) -> None:
        connection.execute("DELETE FROM counter")
        connection.execute("INSERT INTO counter VALUES (?, ?)", (self._latest, int(clean)))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection
