"""The state folder before anything starts in it: private, ours alone, and free of what nothing reads any more."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kaiweb.settings.env import writable_home
from kaiweb.supervisor.errors import StartError
from kube.files import FILE_MODE, private_folder, restrict

#: Beat kept wall-clock times here until it counted by the monotonic clock.
_ABANDONED = "celerybeat-schedule*"


def claim_home(home: Path, url: str) -> int:
    """Take the state folder for this process; return the descriptor that holds it until the process ends.

    Parameters
    ----------
    url : where this installation will answer; a second one that is refused names it

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
    """Restrict what earlier versions left readable for everybody, and delete what is no longer used.

    Raises
    ------
    EnvError : something in the folder belongs to another user
    """
    with writable_home(home):
        restrict(home)
        private_folder(home / "logs")
        for file in home.glob(_ABANDONED):
            file.unlink()
