"""End children that make no progress, and write the state of all children to a file.

The watchdog checks the signs of life (`kube.process.progress`) once a second. A child that is late is asked for its
traceback, and is ended at the next check if it is still late; the supervisor then starts it again. The object
that the child hung on is set aside. The states are in `<home>/run/children.json`, for readiness, metrics, the
operator and the dashboard.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from kube.process.files import write_private
from kube.process.left_out import add_entry
from kube.process.progress import (
    FOLDER,
    HANG_S,
    START_S,
    TRACEBACK_SIGNAL,
    Beat,
    Standstill,
    beat_file,
    read_beat,
    standstill,
)

FILE = "children.json"
LOOK_S = 1.0
#: A longer time between two checks means that the machine or the supervisor was stopped.
PAUSED_S = 5.0
#: Short, because the children are not supervised meanwhile.
BROKER_TIMEOUT_S = 0.5


def broker_answers(port: int) -> bool:
    """Return whether a broker answers on the loopback port; a refusal without a password is an answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=BROKER_TIMEOUT_S) as link:
            link.sendall(b"PING\r\n")
            return bool(link.recv(1))
    except OSError:
        return False


class Watched(Protocol):
    """What the watchdog needs of a supervised child."""

    restarts: int

    @property
    def name(self) -> str: ...

    @property
    def broker_port(self) -> int: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def is_steady(self) -> bool: ...

    @property
    def exit_code(self) -> int | None: ...

    @property
    def uptime_s(self) -> float: ...

    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildState:
    """The state of one child.

    Attributes
    ----------
    pid : None while it does not run
    is_steady : false while it ends again and again
    hangs : how often the watchdog has ended it
    fault : what is wrong; "" if nothing is. Anybody may read it, so it names no object
    held : the object it hangs on; "" without one
    """

    pid: int | None
    is_steady: bool
    restarts: int
    hangs: int
    fault: str
    held: str = ""


def children_file(home: Path) -> Path:
    """Return the file to which the watchdog writes the states."""
    return home / FOLDER / FILE


def read_children(home: Path) -> Mapping[str, ChildState] | None:
    """Return the states by name; None if no supervisor runs."""
    try:
        states = json.loads(children_file(home).read_text())
        return {name: ChildState(**state) for name, state in states.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


@dataclass(slots=True)
class Watchdog:
    """Watches the children of one supervisor.

    Parameters
    ----------
    say : writes a line to the log of the supervisor
    wall : returns the time of day
    send : sends a signal to a pid
    answers : asks the broker on a port
    """

    home: Path
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    read: Callable[[Path], Beat | None] = read_beat
    send: Callable[[int, int], None] = os.kill
    answers: Callable[[int], bool] = broker_answers
    _looked_at: float = float("-inf")
    _awake_since: float = float("-inf")
    #: Process -> the object it hung on last.
    _held_objects: dict[str, str] = field(default_factory=dict)
    #: (Process, pid) of which a standstill was logged.
    _warned: set[tuple[str, int]] = field(default_factory=set)
    _silent_since: float | None = None
    #: Process -> how often it hung.
    _hangs: dict[str, int] = field(default_factory=dict)
    _written: dict[str, ChildState] | None = None

    def look(self, children: Iterable[Watched]) -> None:
        """Check at most once a second, however often this is called."""
        now = self.clock()
        if now - self._looked_at < LOOK_S:
            return
        if now - self._looked_at > PAUSED_S:
            self._awake_since = now
        self._looked_at = now
        states = {child.name: self._state(child, now) for child in children}
        if states != self._written:
            self._write(states)
            self._written = states

    def close(self) -> None:
        """Delete the file, because nothing is supervised any more."""
        children_file(self.home).unlink(missing_ok=True)

    def _state(self, child: Watched, now: float) -> ChildState:
        self._held_objects.pop(child.name, None)
        fault = self._fault(child, now)
        return ChildState(
            pid=child.pid if child.is_running else None,
            is_steady=child.is_steady,
            restarts=child.restarts,
            hangs=self._hangs.get(child.name, 0),
            fault=fault,
            held=self._held_objects.get(child.name, ""),
        )

    def _fault(self, child: Watched, now: float) -> str:
        log = f"see {self.home / 'logs' / child.name}.log"
        pid = child.pid
        if pid is None:
            return "it has not started yet"
        if not child.is_running:
            return f"it ended with code {child.exit_code} and starts again soon; {log}"
        restart_fault = "" if child.is_steady else f"it ends again and again; {log}"
        if child.broker_port:
            return self._broker_fault(child, now) or restart_fault
        beat = self.read(beat_file(self.home, child.name))
        if beat is None or beat.pid != pid:
            # Such a child is not ended, because on a full disk it cannot write its signs of life.
            silence_fault = f"it has given no sign of life yet; {log}"
            return restart_fault or (silence_fault if child.uptime_s > START_S else "")
        no_progress = standstill(beat, now, awake_since=self._awake_since)
        if no_progress is None:
            self._warned.discard((child.name, pid))
            return restart_fault
        return self._late(child, pid, no_progress, now)

    def _broker_fault(self, child: Watched, now: float) -> str:
        """End a broker that has not answered for the time of a hang, or its clients would wait for ever."""
        if self.answers(child.broker_port):
            self._silent_since = None
            return ""
        self._silent_since = now if self._silent_since is None else self._silent_since
        since = max(self._silent_since, self._awake_since)
        if now - since > HANG_S:
            self._silent_since = None
            self._end(child, Standstill(since=since, doing="answering", held=None), now)
        return "it does not answer"

    def _late(self, child: Watched, pid: int, still: Standstill, now: float) -> str:
        """Ask for a traceback at the first check, end the child at the second."""
        key = (child.name, pid)
        if key not in self._warned:
            self._warned.add(key)
            with suppress(ProcessLookupError):
                self.send(pid, TRACEBACK_SIGNAL)
        else:
            self._end(child, still, now)
            self._warned.discard(key)
        self._held_objects[child.name] = still.held.text() if still.held else ""
        # Without a duration, so that the text stays the same and the file is not written at every check.
        return f"it makes no progress ({still.doing}) and is started again"

    def _end(self, child: Watched, still: Standstill, now: float) -> None:
        child.kill()
        self._hangs[child.name] = self._hangs.get(child.name, 0) + 1
        trace = "see" if child.broker_port else "traceback in"
        self.say(
            f"ending {child.name}, which will be started again: {still.text(now)}; "
            f"{trace} {self.home / 'logs' / child.name}.log"
        )
        if still.held is None:
            return
        try:
            add_entry(self.home, child.name, still.held, self.wall(), still.text(now))
        except OSError as error:
            self.say(f"{still.held.text()} could not be set aside: {error}")
        else:
            self.say(f"{child.name} leaves out {still.held.text()} until it changes")

    def _write(self, states: Mapping[str, ChildState]) -> None:
        file = children_file(self.home)
        text = json.dumps({name: asdict(state) for name, state in states.items()}, indent=1)
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(file, text)
        except OSError as error:
            self.say(f"cannot write the states of the processes: {error}")
