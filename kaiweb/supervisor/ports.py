"""Free loopback ports that stay the same over restarts, so that a kubeconfig goes on working."""

from __future__ import annotations

import json
import socket
from pathlib import Path


def is_free(port: int) -> bool:
    """Tell whether the loopback port can be bound right now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def pick() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def remembered(home: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Return one port for each name: the one used last time if it is free, else one that no name has.

    The choice is kept in `<home>/ports.json`.
    """
    file = home / "ports.json"
    known: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    chosen: dict[str, int] = {}
    for name in names:
        port = known.get(name, 0)
        while not port or port in chosen.values() or not is_free(port):
            port = pick()
            while port in known.values():
                port = pick()
        chosen[name] = port
    scratch = file.with_suffix(".tmp")
    scratch.write_text(json.dumps(known | chosen))
    scratch.replace(file)
    return chosen
