"""What the operating system of this machine tells about processes and ports."""

from __future__ import annotations

import os
import socket

CONNECT_S = 0.5


def is_alive(pid: int) -> bool:
    """Return whether a process of this id exists; a zombie counts, because its parent reaps it soon."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def accepts(port: int) -> bool:
    """Return whether a program accepts connections on the loopback port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=CONNECT_S):
            return True
    except OSError:
        return False
