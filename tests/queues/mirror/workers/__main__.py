"""Run workers over a random history on PostgreSQL, kill them in between, and compare the tables with those of one worker.

    python -m tests.queues.mirror.workers check SEED FOLDER     ends with an error that names the rows that differ
    python -m tests.queues.mirror.workers work SEED FOLDER WORKER WORKERS   one worker, started by `check`

DATABASE_URL's place is taken by KAIWEB_TEST_DATABASE_URL, the variable of kaiweb.settings.test.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.test")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402

from binder.models import BindRequest  # noqa: E402
from kaiweb import mirror  # noqa: E402
from queues import live  # noqa: E402
from queues.mirror.feed import last_contacts  # noqa: E402
from queues.mirror.part import Part  # noqa: E402
from queues.models import (  # noqa: E402
    LiveChange,
    MirrorState,
    Node,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
)
from scheduler.models import GroupStanding  # noqa: E402
from tests.queues.mirror.workers.gateway import HistoryGateway  # noqa: E402
from tests.queues.mirror.workers.history import (  # noqa: E402
    GROUP_NAMES,
    NAMESPACE,
    random_history,
)

EVENTS = 1_500
QUIET_S, SETTLE_S, START_S = 6.0, 90.0, 90.0
DIVISION_CHANGED = 3
#: The version of a row that did not change otherwise, and GPU cells, depend on which events came together.
LEFT_OUT = {"version", "devices"}
TABLES = (Queue, PriorityClass, Node, PodGroup, Pod, BindRequest)


def work(seed: int, folder: Path, worker: int, workers: int) -> int:
    """Follow the history until a signal comes."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    mirror.CLUSTER_PAUSE_S = 0.1
    gateway: Any = HistoryGateway(random_history(seed, EVENTS), folder / "visible")
    error = mirror.follow(gateway, stop, Part(worker, workers))
    print(f"worker {worker} of {workers} ended: {error}", flush=True)
    return DIVISION_CHANGED if error else 0


class Check:
    """The run of several workers, and that of one."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.chance = random.Random(seed)
        self.length = len(random_history(seed, EVENTS))
        self.children: dict[Part, subprocess.Popen[bytes]] = {}
        self.kills = self.divisions = 0

    def run(self) -> list[str]:
        """Return what differs; nothing if all is well."""
        call_command("migrate", verbosity=0)
        self._show(0)
        self._divide(2)
        started = datetime.now(UTC)
        self._await(lambda: self._all_heard_since(started), START_S, "the first start")
        shown = 0
        while shown < self.length:
            shown = min(self.length, shown + self.chance.randrange(20, 160))
            self._show(shown)
            self._write_standings()
            time.sleep(self.chance.random() * 0.6)
            self._disturb(shown / self.length)
        several = self._settled_tables()
        self._end_all()
        faults = cell_faults()
        self._start_anew()
        self._divide(1)
        alone = self._settled_tables()
        self._end_all()
        print(
            f"{self.kills} kills, {self.divisions} other divisions, {sum(map(len, alone.values()))} rows"
        )
        return [*faults, *differences(several, alone)]

    def _disturb(self, progress: float) -> None:
        """Kill a worker now and then, and always near the end, so that it misses the last events.

        Another division sums up everything, which would hide what was lost before, so it comes only early.
        """
        draw = self.chance.random()
        may_divide = progress < 1 / 3
        if not may_divide and len(self.children) == 1:
            self._divide(3)
        elif draw < 0.3 or 0.8 < progress < 1:
            part = self.chance.choice(list(self.children))
            self.children[part].kill()
            self.children[part].wait()
            self._start(part)
            self.kills += 1
        elif draw < 0.4 and may_divide:
            self._divide(self.chance.choice([1, 2, 3]))

    def _divide(self, count: int) -> None:
        """Start so many workers. Only the first of the old ones is ended: the others must end by themselves."""
        old = self.children
        if any(part.count == count for part in old):
            return
        for part, child in old.items():
            if part.is_first:
                child.kill()
                child.wait()
        self.children = {}
        for index in range(count):
            self._start(Part(index, count))
        for part, child in old.items():
            if not part.is_first:
                code = child.wait(START_S)
                assert code == DIVISION_CHANGED, f"{part} ended with {code}"
        self.divisions += 1

    def _start(self, part: Part) -> None:
        arguments = ["work", str(self.seed), str(self.folder), str(part.index), str(part.count)]
        log = (self.folder / "workers.log").open("ab")
        self.children[part] = subprocess.Popen(
            [sys.executable, "-m", "tests.queues.mirror.workers", *arguments],
            stdout=log,
            stderr=log,
        )

    def _end_all(self) -> None:
        for child in self.children.values():
            child.terminate()
        for part, child in self.children.items():
            code = child.wait(START_S)
            assert code == 0, f"{part} ended with {code}"
        self.children = {}

    def _show(self, count: int) -> None:
        scratch = self.folder / "visible.new"
        scratch.write_text(str(count))
        scratch.replace(self.folder / "visible")

    def _write_standings(self) -> None:
        key = f"{NAMESPACE}/{self.chance.choice(GROUP_NAMES)}"
        with transaction.atomic():
            GroupStanding.objects.update_or_create(
                key=key,
                defaults={
                    "shard": "default",
                    "code": "NeverFits",
                    "position": self.chance.randrange(9),
                },
            )
            live.record("standing", [key])

    def _all_heard_since(self, moment: datetime) -> bool:
        """Return whether each worker has been at work after a moment, also one that was started again lately."""
        times = last_contacts().values()
        return len(times) == len(self.children) and all(seen and seen > moment for seen in times)

    def _settled_tables(self) -> dict[str, dict[str, Any]]:
        """Return the tables when all workers are at work and have changed nothing for a while."""
        started = datetime.now(UTC)
        self._await(lambda: self._all_heard_since(started), START_S, "signs of all workers")
        tables, since = tables_now(), time.monotonic()
        deadline = since + SETTLE_S
        while time.monotonic() - since < QUIET_S:
            assert time.monotonic() < deadline, f"the tables still change after {SETTLE_S} s"
            time.sleep(0.5)
            now = tables_now()
            if now != tables:
                tables, since = now, time.monotonic()
        return tables

    def _start_anew(self) -> None:
        for model in (*TABLES, MirrorState, LiveChange):
            model._default_manager.all().delete()

    def _await(self, is_true: Any, within_s: float, what: str) -> None:
        deadline = time.monotonic() + within_s
        while not is_true():
            assert time.monotonic() < deadline, f"{what} did not come about within {within_s} s"
            time.sleep(0.1)


def tables_now() -> dict[str, dict[str, Any]]:
    """Return all rows of all tables by their keys."""
    tables = {}
    for model in TABLES:
        rows = {
            row["pk"]: row
            for row in model._default_manager.order_by().values("pk", *columns(model))
        }
        tables[model.__name__] = rows
    return tables


def columns(model: Any) -> list[str]:
    """Return the columns that are compared."""
    return [item.name for item in model._meta.concrete_fields if item.name not in LEFT_OUT]


def differences(several: dict[str, Any], alone: dict[str, Any]) -> list[str]:
    """Return a line for each value that differs."""
    lines = []
    for table, expected_rows in alone.items():
        for key in sorted(several[table].keys() | expected_rows.keys()):
            row, expected = several[table].get(key), expected_rows.get(key)
            if row is None or expected is None:
                lines.append(f"{table} {key}: {'missing' if row is None else 'too many'}")
                continue
            lines += [
                f"{table} {key}.{name}: {row[name]!r}, one worker has {expected[name]!r}"
                for name in expected
                if row[name] != expected[name]
            ]
    return lines


def cell_faults() -> list[str]:
    """Return which pods lack GPU cells on their node, or share one with another pod."""
    lines = []
    for node in Node.objects.all():
        taken: dict[int, str] = {}
        pods = Pod.objects.filter(node=node.name).exclude(phase__in=("Succeeded", "Failed"))
        for pod in pods:
            for cell in pod.devices:
                if cell in taken:
                    lines.append(f"{pod.key} and {taken[cell]} share cell {cell} of {node.name}")
                taken[cell] = pod.key
        wanted = sum(int(pod.gpu) for pod in pods)
        if wanted <= node.gpus and len(taken) != wanted:
            lines.append(f"{node.name}: {len(taken)} cells for {wanted} GPUs")
    return lines


def main() -> int:
    """Do what the arguments say."""
    command, seed, folder, *numbers = sys.argv[1:]
    if command == "work":
        worker, workers = map(int, numbers)
        return work(int(seed), Path(folder), worker, workers)
    check = Check(int(seed), Path(folder))
    try:
        lines = check.run()
    finally:
        for child in check.children.values():
            child.kill()
    print("\n".join(lines[:40]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
