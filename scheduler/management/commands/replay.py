"""`kaiweb replay trace DIR | generated | jobs DIR`: how the core packs the pods of a trace, or serves its jobs over time."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from django.core.management.base import BaseCommand, CommandError

from scheduler.core.errors import CoreError
from scheduler.tools.traces.generated import generate
from scheduler.tools.traces.inventories import inventories_in, read_inventory
from scheduler.tools.traces.one_session import SessionResult, place_trace
from scheduler.tools.traces.openb import lists_in, read_openb
from scheduler.tools.traces.report import page_of, table_of
from scheduler.tools.traces.timed.jobs import read_jobs
from scheduler.tools.traces.timed.play import play
from scheduler.tools.traces.timed.report import timed_page, timed_tables
from scheduler.tools.traces.timed.result import TimedResult
from scheduler.tools.traces.trace import Trace, TraceError

#: The list of pods that is played if none is named.
DEFAULT_LIST = "default"
#: Length of the progress bar in characters.
BAR_CHARS = 30

R = TypeVar("R", SessionResult, TimedResult)


class Command(BaseCommand):
    """Place all pods of a trace in one session, or play its jobs over time; compare strategies side by side."""

    help = (
        "Place all pods of a trace in one session of the scheduling core: share of GPUs given away,"
        " fragmentation and time, for each placement strategy. Or play jobs that arrive and end, in virtual time:"
        " waiting time by queue, fairness, evictions. Writes to no cluster."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's own name; no database is needed
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the sources of traces."""
        sources = parser.add_subparsers(dest="source", required=True)
        trace = sources.add_parser(
            "trace",
            help="files nodes_gpu and pods_LIST, or one of nodes, machine_shapes, hosts, instances (.csv or .csv.gz)",
        )
        trace.add_argument("folder", type=Path, help="the folder with these files")
        trace.add_argument(
            "--list",
            default="",
            help="LIST[,LIST...], the name of a file without nodes or pods, or 'all'"
            " (pods_default, or else whatever the folder has)",
        )
        generated = sources.add_parser("generated", help="a made-up workload like openb's")
        generated.add_argument("--nodes", type=int, default=1213, help="GPU nodes (1213)")
        jobs = sources.add_parser(
            "jobs",
            help="files vc_jobs, job_durations or pods_LIST (.csv or .csv.gz), in virtual time",
        )
        jobs.add_argument("folder", type=Path, help="the folder with these files")
        jobs.add_argument(
            "--list", default="vc_jobs", help="vc_jobs, a set of job_durations, or LIST (vc_jobs)"
        )
        jobs.add_argument("--jobs", type=int, default=500, help="how many jobs to play (500)")
        jobs.add_argument(
            "--nodes", type=int, default=60, help="nodes of 8 GPUs, if the trace has none (60)"
        )
        jobs.add_argument(
            "--step", type=float, default=60.0, help="seconds between cycles at least (60)"
        )
        for source in (trace, generated, jobs):
            source.add_argument("--strategy", default="binpack", help="STRATEGY[,STRATEGY...]")
            source.add_argument("--json", action="store_true", help="print one JSON array")
            source.add_argument("--html", type=Path, help="also write a page with plots")
        for source in (trace, generated):
            source.add_argument("--seeds", type=int, default=1, help="how many seeds to run (1)")
            source.add_argument(
                "--demand", type=float, default=1.3, help="GPUs asked for per GPU (1.3)"
            )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run every workload, strategy and seed; print the table."""
        for name in ("seeds", "jobs", "nodes", "step"):
            if options.get(name) is not None and options[name] <= 0:
                raise CommandError(f"--{name}: expected more than 0, got {options[name]}")
        try:
            if options["source"] == "jobs":
                runs = self._runs(options)
                self._report(options, runs, timed_tables, timed_page)
            else:
                results = self._results(options)
                self._report(options, results, table_of, page_of)
        except (TraceError, CoreError, OSError) as error:
            raise CommandError(str(error)) from error

    def _report(
        self,
        options: dict[str, Any],
        results: Sequence[R],
        table: Callable[[Sequence[R]], str],
        page: Callable[[Sequence[R]], str],
    ) -> None:
        if options["html"]:
            options["html"].write_text(page(results))
        if options["json"]:
            self.stdout.write(json.dumps([result.as_dict() for result in results]))
        else:
            self.stdout.write(table(results))

    def _runs(self, options: dict[str, Any]) -> list[TimedResult]:
        trace = read_jobs(
            options["folder"], options["list"], nodes=options["nodes"], max_jobs=options["jobs"]
        )
        strategies = options["strategy"].split(",")
        total = len(strategies) * len(trace.jobs)
        runs: list[TimedResult] = []
        for number, strategy in enumerate(strategies):
            ended = number * len(trace.jobs)

            def show(done: int, _: int, *, before: int = ended, name: str = strategy) -> None:
                self._progress(min(before + done, total - 1), total, f"jobs ended, {name}")

            runs.append(play(trace, strategy, step_s=options["step"], progress=show))
        self._progress(total, total, "done")
        return runs

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
        return ["generated"]
    folder = options["folder"]
    names = [*lists_in(folder), *inventories_in(folder)]
    if options["list"] == "all" or (not options["list"] and DEFAULT_LIST not in names and names):
        return names
    return str(options["list"] or DEFAULT_LIST).split(",")


def _traces(options: dict[str, Any], workload: str) -> Iterator[tuple[int, Trace]]:
    for seed in range(options["seeds"]):
        if options["source"] == "generated":
            yield seed, generate(options["nodes"], seed=seed, demand=options["demand"])
        else:
            read = read_inventory if workload in inventories_in(options["folder"]) else read_openb
            yield seed, read(options["folder"], workload, seed=seed, demand=options["demand"])
