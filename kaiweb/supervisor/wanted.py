"""What the cluster asks of the processes, as a file: the operator writes it, supervisor and beat read it.

A file because it is still there when the API server, the broker or the operator is not: then what ran last
goes on running. See docs/adr/0008.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube.files import write_private

DEFAULT_SHARD = "default"
FILE = "wanted.json"
_SCHEDULING = "scheduling-"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What should run beyond the plain installation.

    Attributes
    ----------
    shards : the shards that have a scheduler, in order of name
    off : names of processes that are switched off
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
    """Tell whether a shard's name can be part of a process, a log file and a Celery queue."""
    return _LABEL.fullmatch(shard) is not None


def write_wanted(home: Path, wanted: Wanted) -> None:
    """Put the file in place in one step, so that nobody reads half of it."""
    write_private(home / FILE, json.dumps(_as_json(wanted), indent=1))


def read_wanted(home: Path) -> Wanted:
    """Return what the file says; without a file, one plain scheduler.

    Raises
    ------
    ValueError : the file does not have the form that `write_wanted` gives it
    """
    file = home / FILE
    if not file.exists():
        return Wanted()
    try:
        said = json.loads(file.read_text())
        wanted = Wanted(
            shards=tuple(said["shards"]),
            off=tuple(said["off"]),
            arguments={name: tuple(given) for name, given in said["arguments"].items()},
            environment={name: dict(given) for name, given in said["environment"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file}: expected what the operator writes, got {error!r}") from error
    bad = [shard for shard in wanted.shards if not can_be_process(shard)]
    if bad:
        raise ValueError(f"{file}: expected DNS labels as shards, got {', '.join(map(repr, bad))}")
    return wanted


class WantedFile:
    """Reads the file again only when it has changed."""

    def __init__(self, home: Path, complain: Callable[[str], None]) -> None:
        self._home = home
        self._complain = complain
        self._seen = 0

    def changed(self) -> Wanted | None:
        """Return what the file says if it has changed since the last call; one that is no good is passed over."""
        try:
            stamp = (self._home / FILE).stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if stamp == self._seen:
            return None
        self._seen = stamp
        try:
            return read_wanted(self._home)
        except ValueError as error:
            self._complain(str(error))
            return None


def _as_json(wanted: Wanted) -> dict[str, Any]:
    return {
        "shards": list(wanted.shards),
        "off": list(wanted.off),
        "arguments": {name: list(given) for name, given in wanted.arguments.items()},
        "environment": {name: dict(given) for name, given in wanted.environment.items()},
    }
