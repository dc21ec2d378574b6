"""The processes of this machine as /proc shows them: parents, names and processor time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """One process.

    Attributes
    ----------
    cpu_s : processor seconds of its own
    ended_cpu_s : those of its children that have ended
    """

    pid: int
    parent: int
    name: str
    cpu_s: float
    ended_cpu_s: float


def processes() -> Iterator[Process]:
    """Yield the processes that run now."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text()
        except OSError:
            continue  # it has ended
        # A name may hold spaces and parentheses.
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        user, system, ended_user, ended_system = map(int, fields[11:15])
        yield Process(
            pid=int(file.parent.name),
            parent=int(fields[1]),
            name=head.partition("(")[2],
            cpu_s=(user + system) / TICKS_A_SECOND,
            ended_cpu_s=(ended_user + ended_system) / TICKS_A_SECOND,
        )
