"""Attack the page of a running installation and watch the scheduler: `make abuse`, or `make abuse ATTACKS="slow-bodies"`.

`kaiweb up` runs with more pods than GPUs, so that each cycle has work. Before, during and after each attack the cycles
are measured: their time, and the processor time of the scheduling process per cycle. The attacker takes a whole core, so on
a machine with two cores a cycle may take longer only because it waits for a core; its processor time hardly grows by that.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.abuse.attacks import ATTACKS, Target
from tests.e2e.rest import Session
from tests.integration.process_kills import burst
from tests.integration.stack import Stack, running_stack, wait_until

PODS, GPUS = 700, 512
#: As `kaiweb up` reads it: 64 nodes with 8 GPUs each.
NODES = "64x8"
MAX_GROWTH = 1.10
QUEUES = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: ours}
spec: {resources: {gpu: {quota: 4, limit: -1, overQuotaWeight: 1}}}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: theirs}
spec: {resources: {gpu: {quota: 4, limit: -1, overQuotaWeight: 1}}}
"""


@dataclass(frozen=True, slots=True)
class Cycles:
    """What the cycles of some seconds took, in milliseconds."""

    count: int
    time_ms: float
    processor_ms: float

    def mean(self, other: Cycles) -> Cycles:
        return Cycles(
            count=(self.count + other.count) // 2,
            time_ms=(self.time_ms + other.time_ms) / 2,
            processor_ms=(self.processor_ms + other.processor_ms) / 2,
        )


def main(arguments: Sequence[str]) -> int:
    """Run the attacks; return 1 if the processor time of a cycle grew by more than a tenth."""
    options = _parse(arguments)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.default_int_handler)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    costly_attacks = []
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-abuse-") as folder,
        running_stack(Path(folder), {"KAIWEB_NODES": NODES}) as stack,
    ):
        target = _prepare(stack, options.seconds)
        print(f"{os.cpu_count()} cores; each attack {options.seconds:.0f} s")
        print(
            f"{'attack':<15}{'sent/s':>9}{'cycles':>8}{'time ms':>16}{'processor ms':>18}  answers"
        )
        for name in options.attacks or ATTACKS:
            if _costs_more(stack, target, name):
                costly_attacks.append(name)
        verdict = stack.kaiweb("check_cluster")
    print(verdict.stdout + verdict.stderr)
    if costly_attacks:
        print(f"the processor time of a cycle grew by more than 10 %: {', '.join(costly_attacks)}")
    return 1 if costly_attacks or verdict.returncode else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.abuse", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args(arguments)
    unknown = set(options.attacks) - ATTACKS.keys()
    if unknown:
        parser.error(f"expected {', '.join(ATTACKS)}, got {', '.join(sorted(unknown))}")
    return options


def _prepare(stack: Stack, seconds: float) -> Target:
    """Fill the cluster, and make a token for one of two queues."""
    stack.kubectl("create", "namespace", "burst")
    stack.kubectl("apply", "-f", "-", stdin=QUEUES)
    burst(stack, "load", PODS, limits={"nvidia.com/gpu": "1"})
    wait_until(
        lambda: _running(stack) == GPUS, what=f"{GPUS} running pods", timeout_s=240, every_s=2.0
    )
    person = Session(stack)
    wait_until(lambda: len(person.call("GET", "queues")[0]["items"]) >= 4, what="queues in REST")
    body = {"name": "abuse", "scopes": ["read", "queues:write"], "subtree": "ours"}
    token = person.call("POST", "tokens", body)[0]["token"]
    _, tag = person.call("GET", "queues/theirs")
    return Target(
        url=stack.url,
        editor_token=token,
        edit_tag=tag,
        cookies=person.cookies(),
        seconds=seconds,
    )


def _running(stack: Stack) -> int:
    return sum(
        pod["status"].get("phase") == "Running" for pod in stack.objects("pods", "-n", "burst")
    )


def _costs_more(stack: Stack, target: Target, name: str) -> bool:
    """Measure with one attack, and without it before and after; print a line; return whether cycles cost more."""
    before = _cycles(stack, target.seconds)
    with multiprocessing.Pool(1, _end_by_default) as pool:
        running = pool.apply_async(ATTACKS[name], (target,))
        during = _cycles(stack, target.seconds)
        counts: Counter[str] = running.get(timeout=60)
    before = before.mean(_cycles(stack, target.seconds))
    growth = during.processor_ms / before.processor_ms if before.processor_ms else 1.0
    answers = {key: value for key, value in counts.items() if key not in ("sent", "connections")}
    print(
        f"{name:<15}{counts['sent'] / target.seconds:>9.0f}{before.count:>4}/{during.count:<3}"
        f"{before.time_ms:>8.1f}/{during.time_ms:<7.1f}"
        f"{before.processor_ms:>8.1f}/{during.processor_ms:<6.1f}{growth - 1:>+5.0%}  {answers}",
        flush=True,
    )
    return growth > MAX_GROWTH


def _end_by_default() -> None:
    """Let the pool end its process without a traceback."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _cycles(stack: Stack, seconds: float) -> Cycles:
    """Measure the cycles of some seconds."""
    last_id, processor_s = _last_cycle(stack), _processor_s(stack)
    time.sleep(seconds)
    with closing(_database(stack)) as database:
        rows = database.execute(
            "select duration_ms from scheduler_sessionrecord where id > ?", (last_id,)
        ).fetchall()
    spent_ms = (_processor_s(stack) - processor_s) * 1000
    times = [row[0] for row in rows]
    return Cycles(
        count=len(times),
        time_ms=statistics.median(times) if times else 0.0,
        processor_ms=spent_ms / len(times) if times else 0.0,
    )


def _last_cycle(stack: Stack) -> int:
    with closing(_database(stack)) as database:
        row = database.execute("select max(id) from scheduler_sessionrecord").fetchone()
    return int(row[0] or 0)


def _processor_s(stack: Stack) -> float:
    """Return the processor time that the scheduling process has used."""
    threads = Path(f"/proc/{stack.pids()['scheduling-default']}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _database(stack: Stack) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{stack.home / 'kaiweb.sqlite3'}?mode=ro", uri=True, timeout=20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
