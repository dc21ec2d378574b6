"""Keep a set of processes alive until told to stop, then stop all of them, last started first."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from kaiweb.supervisor.logs import MAX_BYTES
from kaiweb.supervisor.process import Child, ProcessSpec
from kaiweb.supervisor.watchdog import Watchdog
from kube.process.files import private_folder, write_private

POLL_S = 0.1
STOP_S = 8.0


class Supervisor:
    """Starts `specs` wave by wave, restarts what dies, and writes `<home>/processes.json` (name -> pid).

    The list may change while they run (`adopt`).
    """

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        *,
        home: Path,
        say: Callable[[str], None],
        log_bytes: int = MAX_BYTES,
    ) -> None:
        self._logs = private_folder(home / "logs")
        self._log_bytes = log_bytes
        self._children = [self._child(spec) for spec in sorted(specs, key=lambda s: s.wave)]
        #: (Process that was told to end, when it is killed).
        self._leaving: list[tuple[Child, float]] = []
        self._waves: set[int] = set()
        self._pids_file = home / "processes.json"
        self._say = say
        self._stopping = False
        self._watchdog = Watchdog(home, say)

    def handle_signals(self) -> None:
        """Make Ctrl-C and SIGTERM end `run` in an orderly way."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def start_wave(self, wave: int) -> None:
        """Start the processes of one wave without waiting for them."""
        self._waves.add(wave)
        for child in self._children:
            if child.spec.wave == wave and not child.is_running:
                child.start()
        self._write_pids()

    def adopt(self, specs: Sequence[ProcessSpec]) -> None:
        """Take another list: start new processes, stop missing ones, restart changed ones, keep the rest.

        Does not wait. A changed process starts when its predecessor has ended.
        """
        spec_by_name = {spec.name: spec for spec in specs}
        unchanged = [
            child for child in self._children if spec_by_name.get(child.spec.name) == child.spec
        ]
        for child in self._children:
            if child not in unchanged:
                is_changed = child.spec.name in spec_by_name
                self._say(
                    f"{child.spec.name} {'restarts with other settings' if is_changed else 'is no longer wanted'}"
                )
                child.ask_to_stop()
                self._leaving.append((child, time.monotonic() + STOP_S))
        running_names = {child.spec.name for child in unchanged}
        new = [
            self._child(spec) for name, spec in spec_by_name.items() if name not in running_names
        ]
        self._children = sorted([*unchanged, *new], key=lambda child: child.spec.wave)
        self._tend()
        # Also without a change: the time of the file tells the operator that the wanted file was read.
        self._write_pids()

    def wait_for(self, ready: Callable[[], bool], *, what: str, timeout_s: float) -> bool:
        """Poll `ready` while restarting children that end; return False if stopped meanwhile.

        Raises
        ------
        TimeoutError : `what` was not ready after `timeout_s`
        """
        deadline = time.monotonic() + timeout_s
        while not self._stopping:
            if ready():
                return True
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} was not ready within {timeout_s:.0f} s; see the logs")
            self._tend()
            time.sleep(POLL_S)
        return False

    def run(self, follow: Callable[[], Sequence[ProcessSpec] | None] = lambda: None) -> None:
        """Restart children that end until a signal comes; `follow` returns another list if there is one."""
        while not self._stopping:
            specs = follow()
            if specs is not None:
                self.adopt(specs)
            self._tend()
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop all children, wave by wave from the last; kill what does not end in time."""
        for wave in sorted({child.spec.wave for child in self._children}, reverse=True):
            group = [child for child in self._children if child.spec.wave == wave]
            for child in group:
                child.ask_to_stop()
            deadline = time.monotonic() + STOP_S
            self._await_end(group, deadline)
            for child in group:
                if not child.wait_or_kill(deadline):
                    self._say(
                        f"{child.spec.name} did not stop within {STOP_S:.0f} s and was killed"
                    )
        for child, deadline in self._leaving:
            child.wait_or_kill(deadline)
        self._trim_logs()
        self._pids_file.unlink(missing_ok=True)
        self._watchdog.close()

    def _child(self, spec: ProcessSpec) -> Child:
        return Child(spec, self._logs, log_bytes=self._log_bytes)

    def _await_end(self, children: Sequence[Child], deadline: float) -> None:
        while any(child.is_running for child in children) and time.monotonic() < deadline:
            self._trim_logs()
            time.sleep(POLL_S / 4)

    def _trim_logs(self) -> None:
        for child in [*self._children, *(child for child, _ in self._leaving)]:
            child.trim_log()

    def _tend(self) -> None:
        self._trim_logs()
        self._leaving = [
            (child, deadline) for child, deadline in self._leaving if not child.has_left(deadline)
        ]
        leaving = {child.spec.name for child, _ in self._leaving}
        for child in self._children:
            if child.pid is not None:
                line = child.tend()
            elif child.spec.wave in self._waves and child.spec.name not in leaving:
                child.start()
                line = f"started as pid {child.pid}"
            else:
                continue  # its wave has not started, or its predecessor has not ended
            if line:
                self._say(f"{child.spec.name} {line}")
                self._write_pids()
        self._watchdog.look(self._children)

    def _write_pids(self) -> None:
        pids = {child.spec.name: child.pid for child in self._children if child.is_running}
        listed = {"supervisor": os.getpid(), **pids}
        try:
            write_private(self._pids_file, json.dumps(listed, indent=1))
        except OSError as error:
            # A full disk must not stop the supervisor: the file only informs people and the operator.
            self._say(f"{self._pids_file} could not be written: {error}")
