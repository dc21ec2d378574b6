"""Start an installation that holds a large cluster and only shows it: nothing schedules, groups or binds."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kaiweb.supervisor.desired import DesiredProcesses, write_desired
from tests.bench.dashboard.world import Size, fill
from tests.integration.stack import Stack, running_stack, wait_until

#: What decides something would be busy with the large cluster instead of with the dashboard.
IDLE = (
    "controllers", "simulators", "scheduling-default", "binding", "simulations", "operator",
    "worker", "beat",
)  # fmt: skip
LOADED_WITHIN_S = 1_200.0


@contextmanager
def large_installation(home: Path, size: Size) -> Iterator[Stack]:
    """Yield an installation whose mirror holds all of the cluster; a home that was filled before is taken as it is."""
    is_filled = (home / "wanted.json").exists()
    with running_stack(home, {"KAIWEB_NODES": "none"}) as stack:
        if not is_filled:
            stack.stop()
            fill(home / "objects.sqlite3", size)
            write_desired(home, DesiredProcesses(shards=(), off=IDLE))
            stack.start()
        wait_until(
            lambda: _workloads_in(home) >= size.workloads,
            what=f"the mirror of {size.workloads} workloads",
            timeout_s=LOADED_WITHIN_S,
            every_s=1.0,
            stack=stack,
        )
        yield stack


def _workloads_in(home: Path) -> int:
    connection = sqlite3.connect(home / "kaiweb.sqlite3", timeout=20)
    count: int = connection.execute("SELECT count(*) FROM queues_podgroup").fetchone()[0]
    connection.close()
    return count


@contextmanager
def changing(stack: Stack, per_second: int) -> Iterator[None]:
    """Change so many rows of workloads a second, in a process of their own, as the mirror does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.dashboard.changes", str(per_second)],
        env={
            **stack.environment,
            "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local",
            **_broker(stack),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield
    finally:
        process.terminate()
        process.wait()


def _broker(stack: Stack) -> dict[str, str]:
    """Return the variables by which a process finds the broker that the supervisor started."""
    ports = json.loads((stack.home / "ports.json").read_text())
    password = (stack.home / "broker-password").read_text().strip()
    return {"REDIS_URL": f"redis://:{password}@127.0.0.1:{ports['broker']}/0"}
