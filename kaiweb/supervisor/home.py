"""Prepare the state folder before the start: claim it, make it private, delete files of older versions."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kaiweb.settings.env import writable_home
from kaiweb.supervisor.errors import StartError
from kube.process.files import FILE_MODE, private_folder, restrict

#: Files in which beat stored wall-clock times, before it used the monotonic clock.
_OBSOLETE = "celerybeat-schedule*"


def claim_home(home: Path, url: str) -> int:
    """Claim the state folder for this process; return the descriptor that holds the lock.

    Parameters
    ----------
    url : the address of this installation, which the error of a second one names

    Raises
    ------
    StartError : another `kaiweb up` runs with this folder
    EnvError : the folder cannot be written
    """
    with writable_home(home):
        private_folder(home)
        descriptor = os.open(home / "up.lock", os.O_RDWR | os.O_CREAT, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 500).decode(errors="replace").strip() or "unknown pid"
        os.close(descriptor)
        raise StartError(
            f"KAIWEB_HOME {home} is in use by another `kaiweb up` ({holder}); stop it, or choose"
            " another folder with KAIWEB_HOME and another port with KAIWEB_PORT"
        ) from error
    with writable_home(home):
        os.truncate(descriptor, 0)
        os.write(descriptor, f"pid {os.getpid()}, {url}".encode())
    return descriptor


def prepare_home(home: Path) -> None:
    """Make files private that earlier versions left readable, and delete obsolete ones.

    Raises
    ------
    EnvError : something in the folder belongs to another user
    """
    with writable_home(home):
        restrict(home)
        private_folder(home / "logs")
        for file in home.glob(_OBSOLETE):
            file.unlink()
