"""Changes that are not in the database yet, appended to a plain file before the request is answered.

A process killed between an answer and the next batch must not lose the answered write. Data given to
`write` survives the process (not the machine), costs a few microseconds and needs no transaction. The
file has one frame per change; there is one file per batch, deleted when the batch is in the database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sandbox.apiserver.model.entry import Entry, Key

_LENGTH_BYTES = 4
#: Storage key of the kind, namespace, name, version, JSON; the JSON is None when the object was deleted.
SavedChange = tuple[str, str, str, int, bytes | None]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SavedChange).decode


class Tail:
    """Files `<stem>.tail.<number>` beside the database, written and deleted in order."""

    def __init__(self, database: Path) -> None:
        self._database = database
        #: The number of the newest file.
        self._number = max((number for number, _ in self._files()), default=0)
        self._descriptor: int | None = None

    def append(self, storage: str, key: Key, entry: Entry | None) -> None:
        """Add one change to the file of the current batch."""
        if self._descriptor is None:
            self._number += 1
            self._descriptor = os.open(
                self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
            )
        version, raw = (0, None) if entry is None else (entry.version, entry.raw)
        frame = _encode((storage, *key, version, raw))
        os.write(self._descriptor, len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)

    def close_batch(self) -> int:
        """Close the file of the current batch; return its number for `forget`."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        return self._number

    def forget(self, up_to: int) -> None:
        """Delete the files of batches that are in the database."""
        for number, path in self._files():
            if number <= up_to:
                path.unlink(missing_ok=True)

    def changes(self) -> Iterator[SavedChange]:
        """Yield the changes of all files, oldest first; a frame cut off by a kill ends its file."""
        for _, path in self._files():
            data = path.read_bytes()
            start = 0
            while start + _LENGTH_BYTES <= len(data):
                frame_start = start + _LENGTH_BYTES
                end = frame_start + int.from_bytes(data[start:frame_start], "big")
                if end > len(data):
                    break
                yield _decode(data[frame_start:end])
                start = end

    def _path(self, number: int) -> Path:
        return self._database.with_suffix(f".tail.{number}")

    def _files(self) -> list[tuple[int, Path]]:
        paths = self._database.parent.glob(f"{self._database.stem}.tail.*")
        return sorted((int(path.suffix[1:]), path) for path in paths)
