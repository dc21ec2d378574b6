"""How long each list and each single GET of the API takes at 2,000 queues and 50,000 workloads.

    python -m tests.bench.rest                 SQLite
    python -m tests.bench.rest --postgres      PostgreSQL, on a server of its own
    python -m tests.bench.rest --only getQueue --profile

It prints p50 and p95 in milliseconds, and the processor time of this process; on a busy machine the last one counts.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

LIMIT_MS = 150.0
ROUNDS = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--only", default="", help="operations, separated by commas")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument(
        "--home", help="keep the SQLite database here, and use the one that is there"
    )
    options = parser.parse_args()
    with ExitStack() as stack:
        scratch = tempfile.TemporaryDirectory(prefix="kaiweb-bench-")
        folder = Path(options.home or stack.enter_context(scratch))
        folder.mkdir(exist_ok=True)
        os.environ |= {
            "KAIWEB_HOME": str(folder),
            "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local",
        }
        if options.postgres:
            from tests.integration.postgres import postgres_or_skip

            os.environ["DATABASE_URL"] = stack.enter_context(postgres_or_skip())
        return _measure_all(options)


def _measure_all(options: argparse.Namespace) -> int:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    import kaiweb.urls  # noqa: F401  (the views, whose cluster is replaced)
    from queues.models import Queue
    from tests.bench.rest import world
    from tests.bench.rest.requests import client, requests

    call_command("migrate", verbosity=0)
    begun = time.perf_counter()
    if not Queue.objects.exists():
        world.fill()
        with connection.cursor() as cursor:
            # What PostgreSQL does by itself in an installation, some time after many rows came.
            is_postgres = connection.vendor == "postgresql"
            cursor.execute("VACUUM ANALYZE" if is_postgres else "ANALYZE")
    cluster = world.cluster()
    print(f"{connection.vendor}: filled in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    only = set(filter(None, options.only.split(",")))
    slow = []
    print(f"{'operation':24} {'p50 ms':>8} {'p95 ms':>8} {'cpu ms':>8}  request")
    # As the web process does after its start. The cluster, too, is no part of that process in an installation.
    gc.collect()
    gc.freeze()
    with client(cluster) as get:
        for name, address in requests():
            if only and name not in only:
                continue
            if options.profile:
                _profile(get, address)
                continue
            get(address)
            walls, cpus = zip(*(_timed(get, address) for _ in range(options.rounds)), strict=True)
            p95 = sorted(walls)[max(0, round(len(walls) * 0.95) - 1)]
            cpu = statistics.median(cpus)
            print(
                f"{name:24} {statistics.median(walls):8.1f} {p95:8.1f} {cpu:8.1f}  {address}",
                flush=True,
            )
            if min(p95, cpu) > LIMIT_MS:
                slow.append(name)
    connection.close()  # an open one would keep PostgreSQL from ending
    print(f"over {LIMIT_MS:.0f} ms: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


def _timed(get: Callable[[str], object], address: str) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    get(address)
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def _profile(get: Callable[[str], object], address: str) -> None:
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.runcall(get, address)
    pstats.Stats(profile).sort_stats("cumulative").print_stats(35)


if __name__ == "__main__":
    raise SystemExit(main())
