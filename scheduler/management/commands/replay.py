"""`kaiweb replay trace DIR | generated`: how well and how fast the core packs the pods of a trace."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler.core.errors import CoreError
from scheduler.tools.traces.generated import generate
from scheduler.tools.traces.one_session import SessionResult, place_trace
from scheduler.tools.traces.openb import lists_in, read_openb
from scheduler.tools.traces.report import page_of, table_of
from scheduler.tools.traces.trace import Trace, TraceError

#: Length of the progress bar in characters.
BAR_CHARS = 30


class Command(BaseCommand):
    """Place all pods of a trace in one session and compare strategies side by side."""

    help = (
        "Place all pods of a trace in one session of the scheduling core: share of GPUs given away,"
        " fragmentation and time, for each placement strategy. Writes to no cluster."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's own name; no database is needed
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the sources of traces."""
        sources = parser.add_subparsers(dest="source", required=True)
        trace = sources.add_parser("trace", help="files nodes_gpu.csv(.gz) and pods_LIST.csv(.gz)")
        trace.add_argument("folder", type=Path, help="the folder with these files")
        trace.add_argument(
            "--list", default="default", help="LIST[,LIST...] or 'all'; 'default' if not given"
        )
        generated = sources.add_parser("generated", help="a made-up workload like openb's")
        generated.add_argument("--nodes", type=int, default=1213, help="GPU nodes (1213)")
        for source in (trace, generated):
            source.add_argument("--strategy", default="binpack", help="STRATEGY[,STRATEGY...]")
            source.add_argument("--seeds", type=int, default=1, help="how many seeds to run (1)")
            source.add_argument(
                "--demand", type=float, default=1.3, help="GPUs asked for per GPU (1.3)"
            )
            source.add_argument("--json", action="store_true", help="print one JSON array")
            source.add_argument("--html", type=Path, help="also write a page with plots")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run every workload, strategy and seed; print the table."""
        if options["seeds"] < 1:
            raise CommandError(f"--seeds: expected at least 1, got {options['seeds']}")
        try:
            results = self._results(options)
            if options["html"]:
                options["html"].write_text(page_of(results))
        except (TraceError, CoreError, OSError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps([result.as_dict() for result in results]))
        else:
            self.stdout.write(table_of(results))

    def _results(self, options: dict[str, Any]) -> list[SessionResult]:
        workloads = _workloads(options)
        strategies = options["strategy"].split(",")
        runs = len(workloads) * len(strategies) * options["seeds"]
        results: list[SessionResult] = []
        for workload in workloads:
            for seed, trace in _traces(options, workload):
                for strategy in strategies:
                    self._progress(len(results), runs, f"{workload} {strategy} seed {seed}")
                    results.append(place_trace(trace, strategy, seed=seed))
        self._progress(runs, runs, "done")
        return results

    def _progress(self, done: int, runs: int, text: str) -> None:
        if not sys.stderr.isatty():
            return
        bar = "#" * (BAR_CHARS * done // runs)
        end = "\n" if done == runs else ""
        self.stderr.write(f"\r[{bar:<{BAR_CHARS}}] {done}/{runs} {text:<40}", ending=end)
        sys.stderr.flush()


def _workloads(options: dict[str, Any]) -> list[str]:
    if options["source"] == "generated":
        if options["nodes"] < 1:
            raise CommandError(f"--nodes: expected at least 1, got {options['nodes']}")
        return ["generated"]
    if options["list"] == "all":
        return lists_in(options["folder"])
    return str(options["list"]).split(",")


def _traces(options: dict[str, Any], workload: str) -> Iterator[tuple[int, Trace]]:
    for seed in range(options["seeds"]):
        if options["source"] == "generated":
            yield seed, generate(options["nodes"], seed=seed, demand=options["demand"])
        else:
            yield (
                seed,
                read_openb(options["folder"], workload, seed=seed, demand=options["demand"]),
            )
