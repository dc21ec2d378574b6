"""`kaiweb healthy PROCESS`: check the signs of life of one process, for an exec probe.

Where no supervisor runs (each process in a container of its own), this is the liveness probe: exit code 0 or 1 and
one line. If the process hangs, the probe sets the object in hand aside, as the watchdog of the supervisor does,
and makes the process write its traceback to the container's log, before the container is ended. Django is not
loaded, because a probe runs every few seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from kaiweb.machine import is_alive
from kaiweb.settings import env
from kube.process.left_out import add_entry
from kube.process.progress import TRACEBACK_SIGNAL, beat_file, read_beat, standstill


def main(arguments: Sequence[str]) -> int:
    """Print one line about the process and return the exit code."""
    if len(arguments) != 1:
        print("usage: kaiweb healthy PROCESS", file=sys.stderr)
        return 2
    home = env.home()
    code, line = judge(home, arguments[0], time.monotonic(), datetime.now(UTC))
    print(line)
    return code


def judge(home: Path, process: str, now: float, wall: datetime) -> tuple[int, str]:
    """Return the exit code and the line; set the object aside on which the process hangs."""
    beat = read_beat(beat_file(home, process))
    if beat is None:
        return 1, f"{process}: no signs of life in {beat_file(home, process)}"
    if not is_alive(beat.pid):
        return 1, f"{process}: process {beat.pid} has ended"
    still = standstill(beat, now)
    if still is None:
        return 0, f"{process}: alive, last sign {max(0.0, now - beat.latest()):.1f} s ago"
    if still.held is not None:
        add_entry(home, process, still.held, wall, still.text(now))
    with suppress(ProcessLookupError, PermissionError):
        os.kill(beat.pid, TRACEBACK_SIGNAL)
    return 1, f"{process}: {still.text(now)}"
