"""Private files: folders of mode 0700, files of mode 0600, and atomic writes.

Only the user that kaiweb runs as may read what it keeps on disk (sessions, password hashes, Secrets of the
embedded cluster, logs).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_PRIVATE_UMASK = 0o077


def use_private_umask() -> None:
    """Make every file that this process and its children create readable by their user only."""
    os.umask(_PRIVATE_UMASK)


def private_folder(folder: Path) -> Path:
    """Create the folder if it is missing, restrict it to its owner, and return it.

    Raises
    ------
    PermissionError : the folder belongs to another user, or all users share it, as they do /tmp
    """
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    if folder.stat().st_mode & stat.S_ISVTX:
        raise PermissionError(errno.EPERM, "a folder that all users share", str(folder))
    folder.chmod(FOLDER_MODE)
    return folder


def restrict(folder: Path) -> None:
    """Remove the rights of group and others from a folder and everything in it.

    Links are not followed, because their targets may belong to another installation. A file that disappears
    meanwhile is no error, because other processes may work in the folder.

    Raises
    ------
    PermissionError : something in it belongs to another user
    """
    for path in [folder, *folder.rglob("*")]:
        if path.is_symlink():
            continue
        with contextlib.suppress(FileNotFoundError):
            mode = path.stat().st_mode & 0o777
            if mode & _PRIVATE_UMASK:
                path.chmod(mode & ~_PRIVATE_UMASK)


def write_private(file: Path, content: str | bytes) -> None:
    """Replace the file by one of mode 0600 in one step, and return when it is on the disk.

    A reader sees the old content or the new one; after a crash it is one of the two as well.
    """
    data = content.encode() if isinstance(content, str) else content
    scratch = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(_create(scratch), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(file)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
    _sync_folder(file.parent)


def kept_secret(file: Path, make: Callable[[], str]) -> str:
    """Return the secret kept in the file; the first caller creates it with `make`."""
    if not file.exists():
        private_folder(file.parent)
        scratch = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        write_private(scratch, make())
        # link() fails if another process was faster; then its secret is the one that counts.
        with contextlib.suppress(FileExistsError):
            file.hardlink_to(scratch)
        scratch.unlink()
    return file.read_text().strip()


def open_private(file: Path) -> int:
    """Open a file for appending, created with mode 0600; return the descriptor."""
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)


def _create(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
