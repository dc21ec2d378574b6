"""Let the demo stream run fast for an hour and look for what grows: `make soak`, or `python -m tests.soak MINUTES SPEED`.

A whole installation is started in a scratch folder, and workloads arrive `SPEED` times as fast as in the demo. Every
half minute the memory of each process, the rows of each table and the time of the last cycles are noted. After a
warm-up of a quarter of the time, nothing may have grown: memory by more than 5 percent, cycles by more than a fifth.
Tables that grow are named with their rows; their limits are in time (days), so a short run cannot reach them.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kube.client import connect
from kube.errors import KubeError
from sandbox.stream.stream import Stream
from tests.integration.stack import Stack, running_stack
from tests.processes import processes
from tests.soak.verdict import Sample, report

#: Simulated seconds per real second in the demo.
DEMO_SPEED = 120.0
SAMPLE_EVERY_S = 30.0
PAGE_KIB = 4
#: Cycles of which the median is noted.
LAST_CYCLES = 50


@dataclass(frozen=True, slots=True)
class Options:
    """How long, and how many times as fast as the demo."""

    minutes: float = 60.0
    speed: float = 20.0

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Options:
        """Return the options of a command line: MINUTES, SPEED."""
        return cls(*(float(argument) for argument in arguments))


def main(arguments: Sequence[str]) -> int:
    """Run the soak; return 1 if something grows or the cluster contradicts itself."""
    options = Options.parse(arguments)
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder) / "home") as stack:
        stop = threading.Event()
        gateway = connect(stack.kubeconfig)
        stream = Stream(
            gateway, stop, on_fatal=_end_with, speed=DEMO_SPEED * options.speed, fractions=0.3
        )
        submitter = threading.Thread(target=stream.run, daemon=True)
        submitter.start()
        samples = list(_samples(stack, options.minutes * 60))
        stop.set()
        submitter.join(timeout=30)
        check = stack.kaiweb("check_cluster")
    print(check.stdout + check.stderr)
    faults = report(samples)
    return 1 if faults or check.returncode else 0


def _samples(stack: Stack, seconds: float) -> list[Sample]:
    started = time.monotonic()
    samples = []
    while (passed_s := time.monotonic() - started) < seconds:
        sample = Sample(
            at_s=passed_s,
            memory_mib=_memory(stack.pids()),
            rows=_rows(stack.home),
            cycle_ms=_cycle_ms(stack.home),
        )
        samples.append(sample)
        print(
            f"{passed_s / 60:5.1f} min: {sum(sample.memory_mib.values()):.0f} MiB,"
            f" cycle {sample.cycle_ms:.0f} ms, {sum(sample.rows.values())} rows",
            flush=True,
        )
        time.sleep(SAMPLE_EVERY_S)
    return samples


def _memory(pids: dict[str, int]) -> dict[str, float]:
    """Return by process the resident memory of it and of its unnamed children, in MiB.

    All processes are children of the supervisor, which counts for itself only.
    """
    named = set(pids.values())
    children = {
        parent: [pid for pid in pids_of_children if pid not in named]
        for parent, pids_of_children in _children().items()
    }
    return {name: _tree_mib(pid, children) for name, pid in pids.items()}


def _tree_mib(pid: int, children: dict[int, list[int]]) -> float:
    own = Path(f"/proc/{pid}/statm")
    try:
        mib = int(own.read_text().split()[1]) * PAGE_KIB / 1024
    except OSError:
        return 0.0
    return mib + sum(_tree_mib(child, children) for child in children.get(pid, ()))


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process.pid)
    return children


def _rows(home: Path) -> dict[str, int]:
    with closing(_database(home)) as database:
        tables = [
            name
            for (name,) in database.execute("select name from sqlite_master where type = 'table'")
        ]
        return {
            # The names are those of the schema.
            table: database.execute(f'select count(*) from "{table}"').fetchone()[0]
            for table in tables
        }


def _cycle_ms(home: Path) -> float:
    with closing(_database(home)) as database:
        rows = database.execute(
            "select duration_ms from scheduler_sessionrecord order by id desc limit ?",
            (LAST_CYCLES,),
        ).fetchall()
    return statistics.median(row[0] for row in rows) if rows else 0.0


def _database(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{home / 'kaiweb.sqlite3'}?mode=ro", uri=True, timeout=20)


def _end_with(error: KubeError) -> None:
    raise SystemExit(f"the API server refuses the stream: {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
