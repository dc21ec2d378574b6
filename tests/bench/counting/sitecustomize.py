"""Record every short request that a process sends to the API server, as one line of a file of its own.

Python imports a module of this name at its start where `PYTHONPATH` names this folder, so the processes of an
installation count their requests without knowing it. Watches are not counted: a process opens each once in five minutes.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kube.wire import Wire

#: Names the folder that gets the files; without it nothing is recorded.
FOLDER = "KAIWEB_BENCH_REQUESTS"
_VERBS = {"POST": "create", "PUT": "replace", "PATCH": "patch", "DELETE": "delete"}


def kind_of_request(method: str, path: str) -> str:
    """Return verb, resource and subresource of a request, as in `patch pods/status`."""
    parts = urlsplit(path).path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    resource, name, sub = (*parts, "", "", "")[:3]
    verb = _VERBS.get(method) or ("get" if name else "list")
    return f"{verb} {resource or 'discovery'}{'/' if sub else ''}{sub}"


def record_requests(folder: Path) -> None:
    """Record the requests of this process from now on in `<folder>/<pid>`."""
    exchange, lock = Wire.exchange, threading.Lock()
    files: dict[int, int] = {}

    def file_of_process() -> int:
        pid = os.getpid()
        with lock:
            if pid not in files:
                flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
                files[pid] = os.open(folder / str(pid), flags, 0o600)
            return files[pid]

    def recorded(wire: Wire, method: str, path: str, *rest: Any) -> Any:
        os.write(file_of_process(), f"{kind_of_request(method, path)}\n".encode())
        return exchange(wire, method, path, *rest)

    Wire.exchange = recorded  # type: ignore[method-assign]  # for all connections of this process


if os.environ.get(FOLDER):
    record_requests(Path(os.environ[FOLDER]))
