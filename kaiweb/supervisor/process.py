"""One supervised child: it has its own process group and log file, and ends with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kaiweb.supervisor.logs import MAX_BYTES, ProcessLog
from kube.process.backoff import Backoff
from kube.process.progress import PROCESS_VARIABLE

PR_SET_PDEATHSIG = 1
FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 10.0
CALM_AFTER_S = 30.0
UNSTEADY_ENDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """A program to run. Waves start in order and stop in reverse order.

    `broker_port`: for a broker, the port on which the watchdog asks it; any other program gives signs of life
    (`kube.process.progress`). `niceness`: how far the program gives way to others when processors are short.
    """

    name: str
    command: tuple[str, ...]
    wave: int
    env: Mapping[str, str] = field(default_factory=dict)
    broker_port: int = 0
    niceness: int = 0


def _prepare_child(niceness: int) -> None:
    """Give way as asked; let the kernel end this child when the supervisor dies, even by kill -9 (Linux only)."""
    os.nice(niceness)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A running or waiting instance of a `ProcessSpec`, restarted with a growing pause."""

    def __init__(self, spec: ProcessSpec, logs: Path, *, log_bytes: int = MAX_BYTES) -> None:
        self.spec = spec
        self.restarts = 0
        self._log = ProcessLog(logs, spec.name, most_bytes=log_bytes)
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff(first_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S, random_part=0.0)
        self._started_at = 0.0
        self._due_at = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def broker_port(self) -> int:
        return self.spec.broker_port

    @property
    def uptime_s(self) -> float:
        """Return the seconds since the last start of the process."""
        return time.monotonic() - self._started_at

    @property
    def is_steady(self) -> bool:
        """Return whether it has ended fewer than `UNSTEADY_ENDS` times without `CALM_AFTER_S` in between."""
        return self._backoff.failures < UNSTEADY_ENDS

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the last run; None while it runs or if it never ran."""
        return self._process.poll() if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program; output is appended to `<logs>/<name>.log` (see `logs`)."""
        # preexec_fn is safe here: the supervisor has a single thread.
        self._process = subprocess.Popen(
            self.spec.command,
            stdin=subprocess.DEVNULL,
            stdout=self._log.descriptor(),
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.spec.env, PROCESS_VARIABLE: self.spec.name},
            start_new_session=True,
            preexec_fn=partial(_prepare_child, self.spec.niceness),
        )
        self._started_at = time.monotonic()

    def tend(self) -> str | None:
        """Restart the program if it died and its pause is over; return a line to log, or None."""
        if self.is_running:
            if time.monotonic() - self._started_at > CALM_AFTER_S:
                self._backoff.reset()
            return None
        now = time.monotonic()
        if not self._due_at:
            pause_s = self._backoff.pause_s()
            self._due_at = now + pause_s
            return f"ended with code {self.exit_code}, starting it again in {pause_s:.1f} s"
        if now >= self._due_at:
            self._due_at = 0.0
            self.restarts += 1
            self.start()
            return f"started again as pid {self.pid}"
        return None

    def trim_log(self) -> None:
        """Keep the log within its size limit."""
        self._log.trim()

    def kill(self) -> None:
        """End the program and its children at once; `tend` starts it again."""
        if self._process is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the program alone, because it stops its own children itself."""
        if self._process is not None and self.is_running:
            self._process.terminate()

    def has_left(self, deadline: float) -> bool:
        """Return whether the program has ended; kill it after the monotonic `deadline`. Never waits."""
        if self.is_running and time.monotonic() < deadline:
            return False
        self.wait_or_kill(0.0)
        return True

    def wait_or_kill(self, deadline: float) -> bool:
        """Wait until the monotonic `deadline`, then kill the process group; True if it ended by itself."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.05, deadline - time.monotonic()))
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()
        return ended
