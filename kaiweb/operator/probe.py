"""Which of the supervised processes are up, by what can be seen from outside.

A process is up when the supervisor lists it, its pid lives, and it answers on its port. One without a port
must have lived for a moment: a program that dies at its start again and again is never called up. One that was
started anew between two looks counts as down in the second, however fast it came back.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaiweb.supervisor.layout import CONTROLLERS_PROCESS, WEB_PROCESS, metrics_port_name
from kaiweb.supervisor.wanted import FILE, scheduling_process
from kaiweb.supervisor.watchdog import read_children

CALM_S = 2.0
CONNECT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look found.

    Attributes
    ----------
    listed : names of the processes that the supervisor has started and that have not ended
    up : names of those of them that are up
    is_adopted : the supervisor has looked at the wanted file since it was last written
    faults : what the watchdog says of those that are not well; they are not up
    """

    listed: frozenset[str]
    up: frozenset[str]
    is_adopted: bool
    faults: Mapping[str, str] = field(default_factory=dict)


def is_alive(pid: int) -> bool:
    """Tell whether there is a process of this id (a zombie counts; its parent clears it in a moment)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def accepts(port: int) -> bool:
    """Tell whether someone listens on the loopback port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=CONNECT_S):
            return True
    except OSError:
        return False


@dataclass(slots=True)
class Probe:
    """Looks at the files of the installation and at its ports, and remembers since when a pid is there."""

    home: Path
    web_port: int
    is_alive: Callable[[int], bool] = is_alive
    accepts: Callable[[int], bool] = accepts
    _since: dict[str, tuple[int, float]] = field(default_factory=dict)

    def look(self, shards: tuple[str, ...], now: float) -> Seen:
        """Look once.

        Parameters
        ----------
        shards : whose schedulers answer on a port of their own
        now : monotonic seconds
        """
        # Asked first: what is listed from here on is what the supervisor has made of the wish.
        is_adopted = self._is_adopted()
        listed = _numbers(self.home / "processes.json")
        listed.pop("supervisor", None)
        came_back = {
            name for name, pid in listed.items() if self._since.get(name, (pid, 0.0))[0] != pid
        }
        self._since = {
            name: self._since[name] if self._since.get(name, (0, 0.0))[0] == pid else (pid, now)
            for name, pid in listed.items()
        }
        ports = self._ports(shards)
        children = read_children(self.home) or {}
        faults = {name: child.fault for name, child in children.items() if child.fault}
        up = {
            name
            for name, pid in listed.items()
            if name not in came_back | faults.keys() and self._is_up(name, pid, ports, now)
        }
        return Seen(
            listed=frozenset(listed), up=frozenset(up), is_adopted=is_adopted, faults=faults
        )

    def _is_up(self, name: str, pid: int, ports: Mapping[str, int], now: float) -> bool:
        if not self.is_alive(pid):
            return False
        if name in ports:
            return self.accepts(ports[name])
        return now - self._since[name][1] >= CALM_S

    def _ports(self, shards: tuple[str, ...]) -> dict[str, int]:
        known = _numbers(self.home / "ports.json")
        names = {scheduling_process(shard): metrics_port_name(shard) for shard in shards}
        names[CONTROLLERS_PROCESS] = "controller-metrics"
        found = {name: known[port] for name, port in names.items() if port in known}
        return {**found, WEB_PROCESS: self.web_port}

    def _is_adopted(self) -> bool:
        try:
            wanted = (self.home / FILE).stat().st_mtime_ns
            return (self.home / "processes.json").stat().st_mtime_ns >= wanted
        except FileNotFoundError:
            return False


def _numbers(file: Path) -> dict[str, int]:
    """Return name -> number of a file that another process replaces as a whole; nothing if it is not there."""
    try:
        found: dict[str, int] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return found
