"""The desired processes, as a file: the operator writes it, the supervisor and beat read it.

A file, because it can be read while the API server, the broker or the operator is down; the last desired processes
then keep running. See docs/adr/0008.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube.process.files import write_private

DEFAULT_SHARD = "default"
DESIRED_FILE = "wanted.json"
_SCHEDULING = "scheduling-"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredProcesses:
    """The processes that should run beyond the plain installation.

    Attributes
    ----------
    shards : the shards that have a scheduler, in order of name
    off : names of disabled processes
    arguments : further arguments by process
    environment : further variables by process
    """

    shards: tuple[str, ...] = (DEFAULT_SHARD,)
    off: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def scheduling_process(shard: str) -> str:
    """Return the name of a shard's process."""
    return f"{_SCHEDULING}{shard}"


def shards_among(processes: Iterable[str]) -> set[str]:
    """Return the shards whose schedulers are among these processes."""
    return {name.removeprefix(_SCHEDULING) for name in processes if name.startswith(_SCHEDULING)}


def can_be_process(shard: str) -> bool:
    """Return whether a shard's name can be part of the name of a process, a log file and a Celery queue."""
    return _LABEL.fullmatch(shard) is not None


def desired_file(home: Path) -> Path:
    """Return the file to read: that of the home, or the one that `KAIWEB_WANTED` names (in a cluster, a mount)."""
    return Path(os.environ.get("KAIWEB_WANTED") or home / DESIRED_FILE)


def write_desired(home: Path, desired: DesiredProcesses) -> None:
    """Replace the file in one step, so that nobody reads half of it."""
    write_private(home / DESIRED_FILE, json.dumps(as_json(desired), indent=1))


def read_desired(home: Path) -> DesiredProcesses:
    """Return the content of the file; without a file, the scheduler of shard `default`.

    Raises
    ------
    ValueError : the file does not have the form that `write_desired` gives it
    """
    file = desired_file(home)
    if not file.exists():
        return DesiredProcesses()
    try:
        content = json.loads(file.read_text())
        desired = DesiredProcesses(
            shards=tuple(content["shards"]),
            off=tuple(content["off"]),
            arguments={name: tuple(flags) for name, flags in content["arguments"].items()},
            environment={
                name: dict(variables) for name, variables in content["environment"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file}: expected what the operator writes, got {error!r}") from error
    unusable = [shard for shard in desired.shards if not can_be_process(shard)]
    if unusable:
        raise ValueError(
            f"{file}: expected DNS labels as shards, got {', '.join(map(repr, unusable))}"
        )
    return desired


class DesiredFile:
    """Reads the file again only when it has changed."""

    def __init__(self, home: Path, complain: Callable[[str], None]) -> None:
        self._home = home
        self._complain = complain
        self._read_mtime_ns = 0

    def changed(self) -> DesiredProcesses | None:
        """Return the content if the file has changed since the last call; None also for an unreadable file."""
        try:
            stamp = desired_file(self._home).stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if stamp == self._read_mtime_ns:
            return None
        self._read_mtime_ns = stamp
        try:
            return read_desired(self._home)
        except ValueError as error:
            self._complain(str(error))
            return None


def as_json(desired: DesiredProcesses) -> dict[str, Any]:
    """Return the content of the file."""
    return {
        "shards": list(desired.shards),
        "off": list(desired.off),
        "arguments": {name: list(flags) for name, flags in desired.arguments.items()},
        "environment": {name: dict(variables) for name, variables in desired.environment.items()},
    }
