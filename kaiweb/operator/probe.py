"""Find out from outside which of the supervised processes are up.

A process is up if the supervisor lists it, its pid is alive, and it answers on its port. One without a port
must have run for two seconds, so that a program that ends at its start again and again is never up. One that
was restarted between two looks counts as down in the second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaiweb.machine import accepts, is_alive
from kaiweb.supervisor.desired import FILE, scheduling_process
from kaiweb.supervisor.layout import CONTROLLERS_PROCESS, WEB_PROCESS, metrics_port_name
from kaiweb.supervisor.watchdog import read_children

CALM_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of one look.

    Attributes
    ----------
    listed : names of the running processes that the supervisor has started
    up : the listed processes that are up
    is_adopted : the supervisor has read the wanted file since it was last written
    faults : what the watchdog reports, by process; those are not up
    """

    listed: frozenset[str]
    up: frozenset[str]
    is_adopted: bool
    faults: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ProcessProbe:
    """Looks at the files and ports of the installation, and remembers since when a pid is listed."""

    home: Path
    web_port: int
    is_alive: Callable[[int], bool] = is_alive
    accepts: Callable[[int], bool] = accepts
    _since: dict[str, tuple[int, float]] = field(default_factory=dict)

    def look(self, shards: tuple[str, ...], now: float) -> ProbeResult:
        """Look once.

        Parameters
        ----------
        shards : the shards whose schedulers answer on a port of their own
        now : monotonic seconds
        """
        # First: if the supervisor has read the wanted file by now, the list that is read next reflects it.
        is_adopted = self._is_adopted()
        listed = _numbers(self.home / "processes.json")
        listed.pop("supervisor", None)
        restarted = {
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
            if name not in restarted | faults.keys() and self._is_up(name, pid, ports, now)
        }
        return ProbeResult(
            listed=frozenset(listed), up=frozenset(up), is_adopted=is_adopted, faults=faults
        )

    def _is_up(self, name: str, pid: int, ports: Mapping[str, int], now: float) -> bool:
        if not self.is_alive(pid):
            return False
        if name in ports:
            return self.accepts(ports[name])
        return now - self._since[name][1] >= CALM_S

    def _ports(self, shards: tuple[str, ...]) -> dict[str, int]:
        port_by_name = _numbers(self.home / "ports.json")
        names = {scheduling_process(shard): metrics_port_name(shard) for shard in shards}
        names[CONTROLLERS_PROCESS] = "controller-metrics"
        ports = {name: port_by_name[port] for name, port in names.items() if port in port_by_name}
        return {**ports, WEB_PROCESS: self.web_port}

    def _is_adopted(self) -> bool:
        try:
            desired_mtime_ns = (self.home / FILE).stat().st_mtime_ns
            return (self.home / "processes.json").stat().st_mtime_ns >= desired_mtime_ns
        except FileNotFoundError:
            return False


def _numbers(file: Path) -> dict[str, int]:
    """Return the numbers by name in a file that another process replaces as a whole; none without the file."""
    try:
        numbers: dict[str, int] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return numbers
