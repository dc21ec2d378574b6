"""Choose free loopback ports that stay the same over restarts, so that a kubeconfig stays valid."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from kaiweb.settings.env import MAX_PORT
from kaiweb.supervisor.errors import StartError
from kube.process.files import write_private

FILE = "ports.json"


def is_free(port: int) -> bool:
    """Return whether the loopback port can be bound right now."""
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

    The choice is stored in `<home>/ports.json`.

    Raises
    ------
    StartError : the file cannot be read
    """
    file = home / FILE
    saved_ports = _read(file)
    port_of: dict[str, int] = {}
    for name in names:
        port = saved_ports.get(name, 0)
        while not port or port in port_of.values() or not is_free(port):
            port = pick()
            while port in saved_ports.values():
                port = pick()
        port_of[name] = port
    write_private(file, json.dumps(saved_ports | port_of))
    return port_of


def _read(file: Path) -> dict[str, int]:
    try:
        saved_ports = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise _damaged(file, str(error)) from error
    if not isinstance(saved_ports, dict):
        raise _damaged(file, f"a {type(saved_ports).__name__}")
    for name, port in saved_ports.items():
        if type(port) is not int or not 0 < port <= MAX_PORT:
            raise _damaged(file, f"{port!r} for {name!r}")
    return saved_ports


def _damaged(file: Path, fault: str) -> StartError:
    return StartError(
        f"{file}: expected a JSON object of names and ports, got {fault}; delete the file,"
        " and free ports are chosen again"
    )
