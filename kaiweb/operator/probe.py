"""Find out which processes of the supervisor are up, by its files and by the ports of the processes.

A process is up if the supervisor lists it, its pid is alive, and it answers on its port. A process without a port
must have run for `MIN_UPTIME_S`, so that a program that ends at its start again and again is never up. A process
that was restarted since the last probe counts as down in this one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaiweb.machine import accepts, is_alive
from kaiweb.supervisor.desired import DESIRED_FILE, scheduling_process
from kaiweb.supervisor.layout import CONTROLLERS_PROCESS, WEB_PROCESS, metrics_port_name
from kaiweb.supervisor.watchdog import read_children

MIN_UPTIME_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of one probe.

    Attributes
    ----------
    process_names : the processes that the supervisor has started
    up : those of them that are up
    is_applied : the supervisor has read the wanted file since it was last written
    faults : what the watchdog reports, by process; a process with a fault is not up
    """

    process_names: frozenset[str]
    up: frozenset[str]
    is_applied: bool
    faults: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ProcessProbe:
    """Probes the files and ports of the installation; remembers since when each process has its pid."""

    home: Path
    web_port: int
    is_alive: Callable[[int], bool] = is_alive
    accepts: Callable[[int], bool] = accepts
    #: process -> its pid, and the monotonic time at which that pid was first seen
    _pid_first_seen: dict[str, tuple[int, float]] = field(default_factory=dict)

    def look(self, shards: tuple[str, ...], now: float) -> ProbeResult:
        """Probe once.

        Parameters
        ----------
        shards : the shards whose schedulers answer on a port of their own
        now : monotonic seconds
        """
        # This check must precede the read of the list: then a list read here reflects the wanted file.
        is_applied = self._is_applied()
        pids = _read_numbers(self.home / "processes.json")
        pids.pop("supervisor", None)
        first_seen = self._pid_first_seen
        restarted_names = {
            name for name, pid in pids.items() if first_seen.get(name, (pid, 0.0))[0] != pid
        }
        self._pid_first_seen = {
            name: first_seen[name] if first_seen.get(name, (0, 0.0))[0] == pid else (pid, now)
            for name, pid in pids.items()
        }
        ports = self._ports(shards)
        children = read_children(self.home) or {}
        faults = {name: child.fault for name, child in children.items() if child.fault}
        up = {
            name
            for name, pid in pids.items()
            if name not in restarted_names | faults.keys() and self._is_up(name, pid, ports, now)
        }
        return ProbeResult(
            process_names=frozenset(pids), up=frozenset(up), is_applied=is_applied, faults=faults
        )

    def _is_up(self, name: str, pid: int, ports: Mapping[str, int], now: float) -> bool:
        if not self.is_alive(pid):
            return False
        if name in ports:
            return self.accepts(ports[name])
        return now - self._pid_first_seen[name][1] >= MIN_UPTIME_S

    def _ports(self, shards: tuple[str, ...]) -> dict[str, int]:
        port_by_name = _read_numbers(self.home / "ports.json")
        names = {scheduling_process(shard): metrics_port_name(shard) for shard in shards}
        names[CONTROLLERS_PROCESS] = "controller-metrics"
        ports = {name: port_by_name[port] for name, port in names.items() if port in port_by_name}
        return {**ports, WEB_PROCESS: self.web_port}

    def _is_applied(self) -> bool:
        try:
            wanted_mtime_ns = (self.home / DESIRED_FILE).stat().st_mtime_ns
            return (self.home / "processes.json").stat().st_mtime_ns >= wanted_mtime_ns
        except FileNotFoundError:
            return False


def _read_numbers(file: Path) -> dict[str, int]:
    """Return the numbers by name that a JSON file holds; none if there is no such file.

    The file is never read half-written, because its writer replaces it as a whole.
    """
    try:
        numbers: dict[str, int] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return numbers
