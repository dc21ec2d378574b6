"""The log of one supervised process, limited in size however much the process writes.

The process writes to the file itself, so that a slow supervisor never blocks it and its last lines are in the file
whatever ends it. When the file is full, its end is copied to `<name>.log.1`, older copies are renumbered, and the
file is truncated: it was opened for appending, so the process continues at the new end. A line that is written
between the copy and the truncation is lost.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from kube.process.files import FILE_MODE, open_private

MAX_BYTES = 5_000_000
OLDER_FILES = 3
_CHUNK = 1 << 20


class ProcessLog:
    """`<folder>/<name>.log` and up to `OLDER_FILES` older parts of it."""

    def __init__(self, folder: Path, name: str, *, most_bytes: int = MAX_BYTES) -> None:
        self.file = folder / f"{name}.log"
        self._most_bytes = most_bytes
        self._descriptor: int | None = None

    def descriptor(self) -> int:
        """Return the descriptor that the process inherits, opened at first use."""
        if self._descriptor is None:
            self._descriptor = open_private(self.file)
        return self._descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def trim(self) -> None:
        """Start a new part if the file is full. On a full disk the newest older part is lost, and nothing fails."""
        try:
            size = self.file.stat().st_size
        except FileNotFoundError:
            return
        if size <= self._most_bytes:
            return
        try:
            self._keep_end()
        except OSError:
            self._part(1).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self.file, 0)

    def _keep_end(self) -> None:
        for number in range(OLDER_FILES, 1, -1):
            with contextlib.suppress(FileNotFoundError):
                self._part(number - 1).replace(self._part(number))
        part = os.open(self._part(1), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with self.file.open("rb") as source, os.fdopen(part, "wb") as copy:
            # Twice the limit: enough for a log that has just passed it and for lines that come during the copy,
            # and finite for a process that writes faster than we copy.
            budget = 2 * self._most_bytes
            left_out = self.file.stat().st_size - budget
            if left_out > 0:
                source.seek(left_out)
                copy.write(b"... %d bytes left out\n" % left_out)
            while chunk := source.read(min(budget, _CHUNK)):
                copy.write(chunk)
                budget -= len(chunk)

    def _part(self, number: int) -> Path:
        return self.file.with_name(f"{self.file.name}.{number}")
