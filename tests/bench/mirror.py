"""How many rows a second the mirror writes with one worker, two, ...: `python -m tests.bench.mirror`.

    python -m tests.bench.mirror [--pods 2000] [--workers 1 2]

Pods in groups of four on 250 nodes are created, bound and run, all at once in each of these three steps; a step begins when the
rows of the step before are written. The workers are processes on a PostgreSQL server of their own; no API server
takes part. It prints rows a second, and the processor time of a row, which depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from tests.integration.postgres import PostgresServer, postgres_server_or_skip
from tests.queues.mirror.workers.gateway import HistoryGateway
from tests.queues.mirror.workers.history import Change, History

NODE_COUNT, GROUP_SIZE, POD_COUNT = 250, 4, 2_000
STEPS = 3
NAMESPACE = "bench"
TIMEOUT_S = 600.0
TICKS_S = os.sysconf("SC_CLK_TCK")


def history(pods: int) -> tuple[list[Change], list[int]]:
    """Return the events, and how many have happened before each step and at the end."""
    events = History(random.Random(1))
    events.put(QUEUES, "team", {"spec": {"resources": {}}})
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"}
    for number in range(NODE_COUNT):
        status = {"capacity": amounts, "allocatable": amounts}
        events.put(NODES, f"node-{number}", {"status": status})
    for number in range(pods // GROUP_SIZE):
        spec = {"queue": "team", "minMember": GROUP_SIZE}
        events.put(PODGROUPS, f"g{number}", {"spec": spec}, NAMESPACE)
    ends = [len(events.changes)]
    for step in range(STEPS):
        for number in range(pods):
            body = _pod(number // GROUP_SIZE, f"node-{number % NODE_COUNT}", step)
            events.put(PODS, f"p{number}", body, NAMESPACE)
        ends.append(len(events.changes))
    return events.changes, ends


def _pod(group: int, node: str, step: int) -> dict[str, Any]:
    requests = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    spec: dict[str, Any] = {
        "schedulerName": "kai-scheduler",
        "containers": [{"name": "main", "resources": {"requests": requests}}],
    }
    if step:
        spec["nodeName"] = node
    return {
        "metadata": {"annotations": {"pod-group-name": f"g{group}"}},
        "spec": spec,
        "status": {"phase": "Running" if step == 2 else "Pending"},
    }


def work(pods: int, folder: Path, worker: int, workers: int) -> None:
    """Be one worker until a signal comes."""
    import django

    django.setup()
    from django.db import connection

    from kaiweb import mirror
    from queues.mirror.part import Part

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    connection.settings_dict["CONN_MAX_AGE"] = 10
    changes, _ends = history(pods)
    gateway: Any = HistoryGateway(changes, folder / "visible", lag_chance=0.0)
    mirror.follow(gateway, stop, Part(worker, workers))


@dataclass(slots=True)
class Run:
    """One measurement: the server, the workers, and the file that says what has happened."""

    server: PostgresServer
    folder: Path
    environment: dict[str, str]
    pods: int
    workers: int
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def measure(self) -> Iterator[str]:
        """Yield the lines to print."""
        _changes, ends = history(self.pods)
        self._show(ends[0])
        for worker in range(self.workers):
            arguments = [str(self.pods), str(self.folder), str(worker), str(self.workers)]
            command = [sys.executable, "-m", "tests.bench.mirror", "--work", *arguments]
            self.children.append(subprocess.Popen(command, env=self.environment))
        groups = self.pods // GROUP_SIZE
        self._await(lambda: self._count("podgroup", "TRUE") == groups)
        self._await(lambda: self._count("node", "TRUE") == NODE_COUNT)
        before, server_before = self._worker_seconds(), self._server_seconds()
        started = time.monotonic()
        for end, condition in zip(
            ends[1:], ("TRUE", "node <> ''", "phase = 'Running'"), strict=True
        ):
            self._show(end)
            self._await(lambda of=condition: self._count("pod", of) == self.pods)
        self._await(lambda: self._count("podgroup", "state = 'running'") == groups)
        self._await(lambda: self._sum("node", "pods") == self.pods)
        seconds = time.monotonic() - started
        rows = STEPS * self.pods
        used = [
            1000 * (now - then) / rows
            for now, then in zip(self._worker_seconds(), before, strict=True)
        ]
        server_ms = 1000 * (self._server_seconds() - server_before) / rows
        each = " + ".join(f"{ms:.2f}" for ms in used)
        yield (
            f"mirror, {self.workers} workers: {rows} rows of pods in {seconds:.1f} s, {rows / seconds:.0f} rows/s; processor time of"
            f" a row: workers {each} ms, PostgreSQL {server_ms:.2f} ms (load of the machine {os.getloadavg()[0]:.0f})"
        )

    def end(self) -> None:
        """End the workers."""
        for child in self.children:
            child.terminate()
            child.wait(60)

    def _show(self, count: int) -> None:
        scratch = self.folder / "visible.new"
        scratch.write_text(str(count))
        scratch.replace(self.folder / "visible")

    def _count(self, table: str, condition: str) -> int:
        return self._ask(f"SELECT count(*) FROM queues_{table} WHERE {condition}")

    def _sum(self, table: str, column: str) -> int:
        return self._ask(f"SELECT coalesce(sum({column}), 0) FROM queues_{table}")

    def _ask(self, query: str) -> int:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def _await(self, is_true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not is_true():
            assert time.monotonic() < deadline, f"not written within {TIMEOUT_S} s"
            time.sleep(0.05)

    def _worker_seconds(self) -> list[float]:
        return [_seconds(child.pid) for child in self.children]

    def _server_seconds(self) -> float:
        assert self.server.process is not None
        pid = self.server.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return _seconds(pid) + sum(_seconds(int(child)) for child in children)


def _seconds(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended; 0 if it has ended itself."""
    try:
        columns = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, columns[11:15])) / TICKS_S


def print_all(workers: Sequence[int] = (1, 2), pods: int = POD_COUNT) -> None:
    """Measure each number of workers on a server of its own and print."""
    for count in workers:
        with (
            postgres_server_or_skip() as server,
            tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        ):
            environment = {
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "kaiweb.settings.test",
                "KAIWEB_TEST_DATABASE_URL": server.url,
            }
            migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
            subprocess.run(migrate, env=environment, check=True)
            run = Run(server, Path(folder), environment, pods, count)
            try:
                for line in run.measure():
                    print(line, flush=True)
            finally:
                run.end()


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=POD_COUNT)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        pods, folder, worker, workers = options.work
        work(int(pods), Path(folder), int(worker), int(workers))
    else:
        print_all(options.workers, options.pods)


if __name__ == "__main__":
    main()
